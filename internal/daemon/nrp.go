package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/nrpmap"
)

// nrpBackend answers the API about the NRP map. What it changes lasts until pncd stops.
type nrpBackend struct{ d *Daemon }

// nrps gives the map, while the configuration has one.
func (b nrpBackend) nrps() (*nrpmap.Map, error) {
	switch p := b.d.config.Load().Proxy; {
	case p == nil:
		return nil, errNoProxy()
	case p.NRP == nil:
		return nil, api.Precondition(api.ReasonNotConfigured, "notifications of format 2 are not listened to: the configuration has no proxy.nrp section")
	}
	return b.d.parts.Load().nrps, nil
}

// NRPMappings implements api.NRPs.
func (b nrpBackend) NRPMappings(context.Context) ([]*pncv1.NrpMapping, uint64, error) {
	m, err := b.nrps()
	if err != nil {
		return nil, 0, err
	}
	s := m.Snapshot()
	return nrpMessages(s.Entries()), s.Version(), nil
}

// SetNRPMappings implements api.NRPs.
func (b nrpBackend) SetNRPMappings(_ context.Context, list []api.NRPMapping) ([]*pncv1.NrpMapping, error) {
	b.d.control.Lock() // a reload that was checked against the map must find it so
	defer b.d.control.Unlock()
	m, err := b.nrps()
	if err != nil {
		return nil, err
	}
	known := contextNames(b.d.config.Load())
	mappings := make([]nrpmap.Mapping, 0, len(list))
	for i, x := range list {
		if x.Context != "" && !slices.Contains(known, x.Context) {
			return nil, api.Invalid(fmt.Sprintf("mappings[%d].context", i), "%q is none of the configuration's contexts", x.Context)
		}
		mappings = append(mappings, nrpmap.Mapping{Key: nrpKey(x), SourceQP: x.SourceQP, Context: x.Context})
	}
	set, err := m.Set(mappings, b.d.now())
	if err != nil {
		return nil, nrpError(err)
	}
	return nrpMessages(set), nil
}

// DeleteNRPMapping implements api.NRPs.
func (b nrpBackend) DeleteNRPMapping(_ context.Context, x api.NRPMapping) error {
	b.d.control.Lock()
	defer b.d.control.Unlock()
	m, err := b.nrps()
	if err != nil {
		return err
	}
	return nrpError(m.Delete(nrpKey(x)))
}

func nrpKey(x api.NRPMapping) nrpmap.Key {
	return nrpmap.Key{NRP: x.NRP, Sender: x.Sender, Receiver: x.Receiver}
}

// nrpError gives an error of the map as the API shows it.
func nrpError(err error) error {
	var field *nrpmap.FieldError
	switch {
	case errors.As(err, &field):
		return api.Invalid(fmt.Sprintf("mappings[%d].%s", field.Index, field.Field), "%s", field.Rule)
	case errors.Is(err, nrpmap.ErrConfigured):
		return api.Precondition(api.ReasonConfigured, "%v", err)
	case errors.Is(err, nrpmap.ErrNotFound):
		return api.NotFound("%v", err)
	case errors.Is(err, nrpmap.ErrFull):
		return api.TooMany("%v", err)
	}
	return err
}

func nrpMessages(list []nrpmap.Entry) []*pncv1.NrpMapping {
	out := make([]*pncv1.NrpMapping, 0, len(list))
	for i := range list {
		e := &list[i]
		m := &pncv1.NrpMapping{
			NrpSelectorId: e.NRP, SourceQp: e.SourceQP, Context: e.Context,
			Configured: e.Configured, Version: e.Version, ChangedAt: stamp(e.ChangedAt),
		}
		if e.ForQP() {
			m.Sender, m.Receiver = e.Sender.String(), e.Receiver.String()
		}
		out = append(out, m)
	}
	return out
}
