package api

import (
	"context"
	"net/netip"
	"slices"

	pncv1 "pncd/api/pnc/v1"
)

type nodeService struct {
	pncv1.UnimplementedNodeServiceServer
	srv *Server
}

// GetStatus reads the status.
func (n nodeService) GetStatus(ctx context.Context, _ *pncv1.GetStatusRequest) (*pncv1.GetStatusResponse, error) {
	return n.srv.backends.Node.Status(ctx)
}

// Enable switches the mechanism on.
func (n nodeService) Enable(ctx context.Context, _ *pncv1.EnableRequest) (*pncv1.EnableResponse, error) {
	was, err := n.srv.backends.Node.Enable(ctx)
	if err != nil {
		return nil, err
	}
	return &pncv1.EnableResponse{WasEnabled: was}, nil
}

// Disable switches the mechanism off.
func (n nodeService) Disable(ctx context.Context, _ *pncv1.DisableRequest) (*pncv1.DisableResponse, error) {
	was, err := n.srv.backends.Node.Disable(ctx)
	if err != nil {
		return nil, err
	}
	return &pncv1.DisableResponse{WasEnabled: was}, nil
}

// Reload reads the configuration file again.
func (n nodeService) Reload(ctx context.Context, _ *pncv1.ReloadRequest) (*pncv1.ReloadResponse, error) {
	changes, err := n.srv.backends.Node.Reload(ctx)
	if err != nil {
		return nil, err
	}
	return &pncv1.ReloadResponse{Changes: changes}, nil
}

// GetConfig reads the running configuration.
func (n nodeService) GetConfig(ctx context.Context, _ *pncv1.GetConfigRequest) (*pncv1.GetConfigResponse, error) {
	yaml, err := n.srv.backends.Node.Config(ctx)
	if err != nil {
		return nil, err
	}
	return &pncv1.GetConfigResponse{Yaml: yaml}, nil
}

// ListNeighbors lists BGP neighbours; NOT_FOUND for one that is asked for and not configured.
func (n nodeService) ListNeighbors(ctx context.Context, req *pncv1.ListNeighborsRequest) (*pncv1.ListNeighborsResponse, error) {
	only, err := neighborAddress(req.GetAddress())
	if err != nil {
		return nil, err
	}
	all, err := n.srv.backends.Node.Neighbors(ctx)
	if err != nil {
		return nil, err
	}
	type keyed struct {
		addr     netip.Addr
		neighbor *pncv1.Neighbor
	}
	var list []keyed
	for _, nb := range all {
		a, _ := netip.ParseAddr(nb.GetAddress())
		if !only.IsValid() || a == only {
			list = append(list, keyed{a, nb})
		}
	}
	if only.IsValid() && len(list) == 0 {
		return nil, NotFound("%s is not a configured neighbour", only)
	}
	slices.SortFunc(list, func(a, b keyed) int { return a.addr.Compare(b.addr) })
	res := &pncv1.ListNeighborsResponse{}
	for _, k := range list {
		res.Neighbors = append(res.Neighbors, k.neighbor)
	}
	return res, nil
}

// GetBoundary reads the border filter.
func (n nodeService) GetBoundary(ctx context.Context, _ *pncv1.GetBoundaryRequest) (*pncv1.GetBoundaryResponse, error) {
	return n.srv.backends.Node.Boundary(ctx)
}

// neighborAddress reads the address of a neighbour; an empty one is invalid and no error. Unlike others it may
// be link-local with a zone.
func neighborAddress(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, Invalid("address", "%q is not an IP address", s)
	}
	return a.Unmap(), nil
}

// RefreshNeighbor asks a neighbour for its routes again, or sends it our announcements again.
func (n nodeService) RefreshNeighbor(ctx context.Context, req *pncv1.RefreshNeighborRequest) (*pncv1.RefreshNeighborResponse, error) {
	addr, err := neighborAddress(req.GetAddress())
	switch {
	case err != nil:
		return nil, err
	case !addr.IsValid():
		return nil, Invalid("address", "is required")
	}
	in, out := true, false
	switch req.GetDirection() {
	case pncv1.RefreshDirection_REFRESH_DIRECTION_UNSPECIFIED, pncv1.RefreshDirection_REFRESH_DIRECTION_IN:
	case pncv1.RefreshDirection_REFRESH_DIRECTION_OUT:
		in, out = false, true
	case pncv1.RefreshDirection_REFRESH_DIRECTION_BOTH:
		out = true
	default:
		return nil, Invalid("direction", "%d is none", req.GetDirection())
	}
	families, err := n.srv.backends.Node.RefreshNeighbor(ctx, addr, in, out)
	if err != nil {
		return nil, err
	}
	return &pncv1.RefreshNeighborResponse{Families: families}, nil
}

// SetLogLevel changes the log level.
func (n nodeService) SetLogLevel(_ context.Context, req *pncv1.SetLogLevelRequest) (*pncv1.SetLogLevelResponse, error) {
	level := req.GetLevel()
	switch {
	case level == "":
		return nil, Invalid("level", "is required")
	case len(level) > maxLevel:
		return nil, Invalid("level", "is no log level")
	}
	previous, err := n.srv.backends.Node.SetLogLevel(level)
	if err != nil {
		return nil, err
	}
	return &pncv1.SetLogLevelResponse{Previous: previous}, nil
}
