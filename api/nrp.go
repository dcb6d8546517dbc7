package api

import (
	"context"
	"fmt"
	"net/netip"

	pncv1 "pncd/api/pnc/v1"
)

// NRPs is the NRP map. Its methods fail with Precondition when the configuration has none.
type NRPs interface {
	// NRPMappings lists what is mapped, sorted as ListNrpMappingsResponse says, and the map's version.
	NRPMappings(ctx context.Context) ([]*pncv1.NrpMapping, uint64, error)
	// SetNRPMappings adds or changes mappings, all or none, and returns them. Errors: Invalid with the field,
	// Precondition for one that is configured, TooMany when the map is full.
	SetNRPMappings(ctx context.Context, list []NRPMapping) ([]*pncv1.NrpMapping, error)
	// DeleteNRPMapping deletes a mapping: NotFound, or Precondition for one that is configured.
	DeleteNRPMapping(ctx context.Context, m NRPMapping) error
}

// NRPMapping is a mapping whose addresses were read.
type NRPMapping struct {
	NRP              uint32
	Sender, Receiver netip.Addr // both invalid, or both valid
	SourceQP         uint32     // 24 bits
	Context          string
}

type nrpService struct {
	pncv1.UnimplementedNrpServiceServer
	nrps NRPs // nil: this node is not a proxy
}

func (s nrpService) configured() error {
	if s.nrps == nil {
		return Precondition(ReasonNotConfigured, "this node is not a proxy: it has no NRP map")
	}
	return nil
}

// ListNrpMappings lists mappings.
func (s nrpService) ListNrpMappings(ctx context.Context, req *pncv1.ListNrpMappingsRequest) (*pncv1.ListNrpMappingsResponse, error) {
	limit, err := rows("limit", req.GetLimit(), defaultRows)
	if err != nil {
		return nil, err
	}
	if err := s.configured(); err != nil {
		return nil, err
	}
	all, version, err := s.nrps.NRPMappings(ctx)
	if err != nil {
		return nil, err
	}
	res := &pncv1.ListNrpMappingsResponse{Version: version}
	for _, m := range all {
		if req.NrpSelectorId != nil && m.GetNrpSelectorId() != req.GetNrpSelectorId() {
			continue
		}
		if len(res.Mappings) == limit {
			res.Truncated = true
			break
		}
		res.Mappings = append(res.Mappings, m)
	}
	return res, nil
}

// SetNrpMappings adds or changes mappings.
func (s nrpService) SetNrpMappings(ctx context.Context, req *pncv1.SetNrpMappingsRequest) (*pncv1.SetNrpMappingsResponse, error) {
	if n := len(req.GetMappings()); n < 1 || n > defaultRows {
		return nil, Invalid("mappings", "%d mappings: must be 1 to %d", n, defaultRows)
	}
	list := make([]NRPMapping, 0, len(req.GetMappings()))
	for i, m := range req.GetMappings() {
		at := fmt.Sprintf("mappings[%d].", i)
		k, err := nrpKey(at, m.GetNrpSelectorId(), m.GetSender(), m.GetReceiver())
		if err != nil {
			return nil, err
		}
		if err := queuePair(at+"source_qp", m.GetSourceQp()); err != nil {
			return nil, err
		}
		if err := contextName(at+"context", m.GetContext()); err != nil {
			return nil, err
		}
		k.SourceQP, k.Context = m.GetSourceQp(), m.GetContext()
		list = append(list, k)
	}
	if err := s.configured(); err != nil {
		return nil, err
	}
	set, err := s.nrps.SetNRPMappings(ctx, list)
	if err != nil {
		return nil, err
	}
	return &pncv1.SetNrpMappingsResponse{Mappings: set}, nil
}

// DeleteNrpMapping deletes a mapping.
func (s nrpService) DeleteNrpMapping(ctx context.Context, req *pncv1.DeleteNrpMappingRequest) (*pncv1.DeleteNrpMappingResponse, error) {
	k, err := nrpKey("", req.GetNrpSelectorId(), req.GetSender(), req.GetReceiver())
	if err != nil {
		return nil, err
	}
	if err := s.configured(); err != nil {
		return nil, err
	}
	if err := s.nrps.DeleteNRPMapping(ctx, k); err != nil {
		return nil, err
	}
	return &pncv1.DeleteNrpMappingResponse{}, nil
}

// nrpKey reads what names a mapping; at is put before the fields' names.
func nrpKey(at string, nrp uint32, sender, receiver string) (m NRPMapping, err error) {
	m.NRP = nrp
	if m.Sender, err = optionalAddress(at+"sender", sender); err != nil {
		return m, err
	}
	if m.Receiver, err = optionalAddress(at+"receiver", receiver); err != nil {
		return m, err
	}
	switch {
	case m.Sender.IsValid() != m.Receiver.IsValid():
		return m, Invalid(at+"receiver", "sender and receiver go together")
	case m.Sender.IsValid() && m.Sender.Is4() != m.Receiver.Is4():
		return m, Invalid(at+"receiver", "%s is not of the sender's address family", m.Receiver)
	}
	return m, nil
}
