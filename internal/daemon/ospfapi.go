package daemon

import (
	"context"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/ospfapi"
	mirror "pncd/igp/ospf/ospfapi/learner" // learner is that of queue pairs here
	"pncd/igp/ospf/packet"
	"pncd/internal/config"
	"pncd/pnc"
)

// ospfapiProtocol is OSPFv2 through FRR's API, which only learns.
var ospfapiProtocol = protocol{
	name: "ospfapi", link: "connection", source: pnc.SourceOSPF,
	policy: func(c *config.Config) *igpPolicy {
		if c.OSPFAPI == nil {
			return nil
		}
		return &igpPolicy{accept: c.OSPFAPI.AcceptProxies}
	},
	carries: func(prefix, proxy netip.Addr) bool { return false },
}

// ospfapiPart is the learner through FRR's API.
type ospfapiPart struct {
	*ospfapi.Client
	protocol
	marks marks.Config // how LSAs are read
}

func (d *Daemon) newOSPFAPI(c *config.Config) (err error) {
	settings := ospfapiSettings(c.OSPFAPI)
	p := &ospfapiPart{protocol: ospfapiProtocol, marks: marks.Config{Version: packet.V2, Carrier: settings.Learner.Carrier}}
	if p.Client, err = ospfapi.NewClient(settings, d.learned(ospfapiProtocol), d.log.WithField("part", p.name)); err == nil {
		d.ospfapi = p
	}
	return err
}

func ospfapiSettings(a *config.OSPFAPI) ospfapi.Config {
	return ospfapi.Config{
		Router: a.Address.Addr, Port: a.Port, Local: a.LocalAddress.Addr,
		Learner: mirror.Config{MaxLSAs: a.MaxLSAs, Carrier: ospfCarrier(&a.OSPFCarrier)},
	}
}

// checkOSPFAPI says which of the changed keys of a reload need a restart: all but whom to believe.
func checkOSPFAPI(old, next *config.OSPFAPI) []string {
	f := &fixed{section: "ospfapi"}
	if !f.whole(old != nil, next != nil) {
		return f.keys
	}
	f.key("address", old.Address, next.Address)
	f.key("port", old.Port, next.Port)
	f.key("local_address", old.LocalAddress, next.LocalAddress)
	f.key("max_lsas", old.MaxLSAs, next.MaxLSAs)
	f.carrier(&old.OSPFCarrier, &next.OSPFCarrier)
	return f.keys
}

// read gives the learner's state for the API.
func (p *ospfapiPart) read(ctx context.Context) (*pncv1.OspfApiLearner, error) {
	st, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := &pncv1.OspfApiLearner{
		Address: st.Router.String(), State: st.State.String(), RouterId: idText(st.RouterID), Believed: st.Believed,
		Dropped: named(st.Counters.Dropped), Received: named(st.Counters.Received), Connections: st.Counters.Connections, Syncs: st.Counters.Syncs,
	}
	if st.Error != nil {
		out.Detail = st.Error.Error()
	}
	for _, a := range st.Areas {
		x := &pncv1.OspfArea{
			Id: a.ID.String(), Lsas: uint32(a.LSAs), Routers: uint32(a.Routers), Reachable: uint32(a.Reachable),
			Prefixes: uint32(a.Prefixes), Marked: uint32(a.Marked), SpfRuns: a.SPFRuns, Unreadable: a.Unreadable,
		}
		if !a.SPFRan.IsZero() {
			x.SpfRan = timestamppb.New(a.SPFRan)
		}
		out.Areas = append(out.Areas, x)
	}
	return out, nil
}

// lsas lists the LSAs that a filter chooses, of the mirror of ospfd's database.
func (p *ospfapiPart) lsas(ctx context.Context, f api.LsaFilter) (out []*pncv1.OspfLsa, err error) {
	st, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range st.Areas {
		db, err := p.Database(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		for _, l := range db {
			x := ospfLSA(packet.V2, l.LSA, l.Age)
			x.Area, x.Reachable = a.ID.String(), l.Reachable
			out = appendLSA(out, f, p.marks, l.LSA, x)
		}
	}
	return out, nil
}

// ospfapiStatus tells how the learner does.
func (d *Daemon) ospfapiStatus() *pncv1.Part {
	p := &pncv1.Part{Name: d.ospfapi.name, State: pncv1.PartState_PART_STATE_READY}
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	st, err := d.ospfapi.read(ctx)
	if err != nil {
		p.State, p.Detail = pncv1.PartState_PART_STATE_FAILED, err.Error()
		return p
	}
	p.Detail = st.GetAddress() + ": " + st.GetState()
	if st.GetState() != mirror.Synced.String() {
		p.State = pncv1.PartState_PART_STATE_STARTING
	}
	if st.GetDetail() != "" {
		p.Detail += "; " + st.GetDetail()
	}
	return p
}

// ospfapiCounts reads the learner; when it is too busy to answer in time there are no counters this time.
func (d *Daemon) ospfapiCounts() []count {
	if d.ospfapi == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	st, err := d.ospfapi.read(ctx)
	if err != nil {
		return nil
	}
	return slices.Concat(
		labelled("ospfapi", "dropped", "What ospfd said and was not used, by reason.", "reason", st.GetDropped()),
		labelled("ospfapi", "received", "Messages received, by type.", "type", st.GetReceived()),
		[]count{
			{part: "ospfapi", name: "connections", value: st.GetConnections(), help: "Connections to ospfd's API that were made."},
			{part: "ospfapi", name: "syncs", value: st.GetSyncs(), help: "Times that ospfd's whole database was there."},
		})
}
