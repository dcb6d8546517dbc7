package apitest

import (
	"context"
	"sync"
	"time"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
)

// NRPs is an api.NRPs in memory, with room for four mappings.
type NRPs struct {
	mu      sync.Mutex
	list    []*pncv1.NrpMapping
	version uint64
}

func nrps() *NRPs {
	return &NRPs{version: 7, list: []*pncv1.NrpMapping{
		{NrpSelectorId: 100, Context: "blue", Configured: true, Version: 1, ChangedAt: ago(time.Hour)},
		{NrpSelectorId: 100, Sender: "198.51.100.10", Receiver: "203.0.113.10", SourceQp: 0x18a, Context: "blue", Version: 7, ChangedAt: ago(time.Minute)},
		{NrpSelectorId: 200, Sender: "2001:db8:1::1", Receiver: "2001:db8:2::1", SourceQp: 0x200, Version: 5, ChangedAt: ago(time.Minute)},
	}}
}

// NRPMappings implements api.NRPs.
func (n *NRPs) NRPMappings(context.Context) ([]*pncv1.NrpMapping, uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list, n.version, nil
}

// SetNRPMappings implements api.NRPs.
func (n *NRPs) SetNRPMappings(_ context.Context, list []api.NRPMapping) (out []*pncv1.NrpMapping, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range list {
		i := n.find(m)
		switch {
		case i >= 0 && n.list[i].GetConfigured():
			return nil, api.Precondition(api.ReasonConfigured, "nrp %d is configured", m.NRP)
		case i < 0 && len(n.list) == 4:
			return nil, api.TooMany("the map is full")
		}
		n.version++
		set := &pncv1.NrpMapping{NrpSelectorId: m.NRP, SourceQp: m.SourceQP, Context: m.Context, Version: n.version, ChangedAt: ago(0)}
		if m.Sender.IsValid() {
			set.Sender, set.Receiver = m.Sender.String(), m.Receiver.String()
		}
		if i >= 0 {
			n.list[i] = set
		} else {
			n.list = append(n.list, set)
		}
		out = append(out, set)
	}
	return out, nil
}

// DeleteNRPMapping implements api.NRPs.
func (n *NRPs) DeleteNRPMapping(_ context.Context, m api.NRPMapping) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch i := n.find(m); {
	case i < 0:
		return api.NotFound("nrp %d is not mapped", m.NRP)
	case n.list[i].GetConfigured():
		return api.Precondition(api.ReasonConfigured, "nrp %d is configured", m.NRP)
	default:
		n.list = append(n.list[:i:i], n.list[i+1:]...)
		n.version++
		return nil
	}
}

func (n *NRPs) find(m api.NRPMapping) int {
	for i, have := range n.list {
		sender := ""
		if m.Sender.IsValid() {
			sender = m.Sender.String()
		}
		if have.GetNrpSelectorId() == m.NRP && have.GetSender() == sender {
			return i
		}
	}
	return -1
}
