package api

import (
	"context"
	"net/netip"
	"strconv"

	pncv1 "pncd/api/pnc/v1"
)

// OSPF is the OSPF routers and the learner through FRR's API. Both methods fail with Precondition for a version that
// is not configured.
type OSPF interface {
	// Ospf reads the router of a version, or with 0 all.
	Ospf(ctx context.Context, version uint32) (*pncv1.GetOspfResponse, error)
	// Lsas lists the LSAs that the filter chooses, by version, database, type, ID and advertising router.
	Lsas(ctx context.Context, f LsaFilter) ([]*pncv1.OspfLsa, error)
}

// LsaFilter chooses LSAs. The zero filter chooses all.
type LsaFilter struct {
	Version uint32     // 0: any
	Area    netip.Addr // as a dotted quad; invalid: any
	Router  netip.Addr // the advertising one; invalid: any
	Type    string     // a name of LsaTypeName, or a number in decimal; empty: any
	Detail  bool       // what the LSAs hold is wanted, too
}

// Match reports whether an LSA is chosen.
func (f LsaFilter) Match(l *pncv1.OspfLsa) bool {
	return (f.Version == 0 || f.Version == l.GetVersion()) &&
		(!f.Area.IsValid() || f.Area.String() == l.GetArea()) &&
		(!f.Router.IsValid() || f.Router.String() == l.GetRouter()) &&
		(f.Type == "" || f.Type == l.GetTypeName() || f.Type == strconv.FormatUint(uint64(l.GetType()), 10))
}

// ospfService answers pnc.v1.OspfService.
type ospfService struct {
	pncv1.UnimplementedOspfServiceServer
	ospf OSPF // nil: not configured
}

func (s ospfService) configured(version uint32) error {
	if version != 0 && version != 2 && version != 3 {
		return Invalid("version", "%d is neither 2 nor 3, nor 0 for all", version)
	}
	if s.ospf == nil {
		return Precondition(ReasonNotConfigured, "OSPF is not configured: the configuration has none of the sections ospfv2, ospfv3 and ospfapi")
	}
	return nil
}

// GetOspf implements pncv1.OspfServiceServer.
func (s ospfService) GetOspf(ctx context.Context, r *pncv1.GetOspfRequest) (*pncv1.GetOspfResponse, error) {
	if err := s.configured(r.GetVersion()); err != nil {
		return nil, err
	}
	return s.ospf.Ospf(ctx, r.GetVersion())
}

// ListLsas implements pncv1.OspfServiceServer.
func (s ospfService) ListLsas(ctx context.Context, r *pncv1.ListLsasRequest) (*pncv1.ListLsasResponse, error) {
	if err := s.configured(r.GetVersion()); err != nil {
		return nil, err
	}
	f := LsaFilter{Version: r.GetVersion(), Detail: r.GetDetail()}
	var err error
	if f.Area, err = dottedQuad("area", r.GetArea()); err != nil {
		return nil, err
	}
	if f.Router, err = dottedQuad("router", r.GetRouter()); err != nil {
		return nil, err
	}
	if f.Type, err = lsaType(r.GetType()); err != nil {
		return nil, err
	}
	lsas, err := s.ospf.Lsas(ctx, f)
	if err == nil && len(lsas) == 0 && f.Router.IsValid() {
		err = s.knownRouter(ctx, f)
	}
	if err != nil {
		return nil, err
	}
	return &pncv1.ListLsasResponse{Lsas: lsas}, nil
}

// knownRouter is NotFound for a router of which no LSA is there.
func (s ospfService) knownRouter(ctx context.Context, f LsaFilter) error {
	all, err := s.ospf.Lsas(ctx, LsaFilter{Version: f.Version, Router: f.Router})
	if err == nil && len(all) == 0 {
		err = NotFound("no LSA of router %s is known", f.Router)
	}
	return err
}

// dottedQuad reads a router ID or area ID, which may be a number, too. An empty one is invalid: any.
func dottedQuad(field, s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return netip.Addr{}, Invalid(field, "%q is neither a dotted quad such as 192.0.2.1 nor a number", s)
	}
	return a, nil
}
