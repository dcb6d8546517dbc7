package daemon

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/speaker"
)

// ospfBackend implements api.OSPF.
type ospfBackend struct{ *Daemon }

// Ospf implements api.OSPF.
func (d ospfBackend) Ospf(ctx context.Context, version uint32) (*pncv1.GetOspfResponse, error) {
	out := &pncv1.GetOspfResponse{}
	for _, p := range d.ospf {
		if version == 0 || version == uint32(p.version) {
			r, err := p.read(ctx)
			if err != nil {
				return nil, err
			}
			out.Routers = append(out.Routers, r)
		}
	}
	if d.ospfapi != nil && version != 3 {
		l, err := d.ospfapi.read(ctx)
		if err != nil {
			return nil, err
		}
		out.Learner = l
	}
	if len(out.Routers) == 0 && out.Learner == nil {
		return nil, ospfNotConfigured(version)
	}
	return out, nil
}

// Lsas implements api.OSPF.
func (d ospfBackend) Lsas(ctx context.Context, f api.LsaFilter) (out []*pncv1.OspfLsa, err error) {
	found := d.ospfapi != nil && f.Version != 3
	if found { // then there is no OSPFv2 besides
		if out, err = d.ospfapi.lsas(ctx, f); err != nil {
			return nil, err
		}
	}
	for _, p := range d.ospf {
		if f.Version == 0 || f.Version == uint32(p.version) {
			found = true
			list, err := p.lsas(ctx, f)
			if err != nil {
				return nil, err
			}
			out = append(out, list...)
		}
	}
	if !found {
		return nil, ospfNotConfigured(f.Version)
	}
	return out, nil
}

func ospfNotConfigured(version uint32) error {
	return api.Precondition(api.ReasonNotConfigured, "OSPFv%d is not configured", version)
}

// read gives the router's state for the API.
func (p *ospfPart) read(ctx context.Context) (*pncv1.OspfRouter, error) {
	st, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	notMarked := p.notMarked
	p.mu.Unlock()
	out := &pncv1.OspfRouter{
		Version: uint32(st.Version), RouterId: st.Router.String(), Dropped: named(st.Drops), QueueOverflow: st.QueueOverflow, SendErrors: st.SendErrors,
		Received: map[string]uint64{}, Used: st.Used, ExternalLsas: uint32(st.External), Counters: ospfCounters(&st.Counters), NotMarked: uint32(notMarked),
	}
	out.Counters["grace-unreadable"], out.Counters["malformed"] = st.GraceErrors, st.Malformed
	for typ, n := range st.Received {
		name := typ.String()
		if typ == 0 {
			name = "unreadable"
		}
		out.Received[name] = n
	}
	for i := range st.Areas {
		out.Areas = append(out.Areas, ospfArea(&st.Areas[i]))
	}
	for i := range st.Links {
		l := &st.Links[i]
		out.Links = append(out.Links, ospfLink(st.Version, l, p.linkError(l.Name)))
	}
	return out, nil
}

// named gives counters by the name of what they count.
func named[K interface {
	comparable
	fmt.Stringer
}](counters map[K]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for k, n := range counters {
		out[k.String()] = n
	}
	return out
}

func ospfCounters(c *flooding.Counters) map[string]uint64 {
	return map[string]uint64{
		"stored": c.Stored, "duplicate": c.Duplicate, "outdated": c.Outdated, "bad-checksum": c.BadChecksum, "unsupported": c.Unsupported, "too-soon": c.TooSoon,
		"unknown-max-age": c.UnknownMaxAge, "database-full": c.Full, "below-exchange": c.BelowExchange, "own-newer": c.OwnNewer, "bad-request": c.BadRequest,
		"withheld": c.Withheld, "retransmitted": c.Retransmitted, "acknowledged": c.Acknowledged, "unexpected-ack": c.UnexpectedAcks,
	}
}

func ospfArea(a *speaker.AreaStatus) *pncv1.OspfArea {
	out := &pncv1.OspfArea{
		Id: a.ID.String(), Type: a.Kind.String(), Lsas: uint32(a.LSAs), Routers: uint32(a.Routers), Reachable: uint32(a.Reachable),
		Prefixes: uint32(a.Prefixes), Marked: uint32(a.Marked), SpfRuns: a.SPFRuns, Unreadable: a.Unreadable,
	}
	if !a.SPFRan.IsZero() {
		out.SpfRan = timestamppb.New(a.SPFRan)
	}
	if a.Error != nil {
		out.Error = a.Error.Error()
	}
	return out
}

func ospfLink(v packet.Version, l *speaker.LinkStatus, why error) *pncv1.OspfLink {
	out := &pncv1.OspfLink{
		Interface: l.Name, Area: l.Area.String(), Broadcast: l.Broadcast, State: l.State.String(), Up: l.Link.Up && l.Link.Address.IsValid(), Mtu: uint32(l.Link.MTU),
		Designated: idText(l.DR), Backup: idText(l.BDR), Lsas: uint32(l.LSAs), Refused: named(l.Refused),
	}
	maps.Copy(out.Refused, named(l.Dropped))
	if l.Link.Address.IsValid() {
		out.Address = l.Link.Address.String()
	}
	switch {
	case why != nil:
		out.Detail = why.Error()
	case !l.Link.Up:
		out.Detail = "the link is down"
	case !l.Link.Address.IsValid() && v == packet.V2:
		out.Detail = "the interface has no IPv4 address"
	case !l.Link.Address.IsValid():
		out.Detail = "the interface has no IPv6 link-local address"
	case l.Last != "" && !slices.ContainsFunc(l.Neighbors, func(n speaker.NeighborStatus) bool { return n.State == neighbor.Full }):
		out.Detail = "last refused: " + l.Last
	}
	for i := range l.Neighbors {
		n := &l.Neighbors[i]
		x := &pncv1.OspfNeighbor{
			RouterId: n.Router.String(), Address: addrText(n.Address), Priority: uint32(n.Priority), State: n.State.String(),
			Since: timestamppb.New(n.Since), Expires: timestamppb.New(n.Expires), Designated: idText(n.DR), Backup: idText(n.BDR),
			InterfaceId: n.Interface, Requests: uint32(n.Requests), Retransmissions: uint32(n.Retransmission), Dropped: named(n.Dropped),
		}
		if !n.Helping.IsZero() {
			x.HelpedUntil = timestamppb.New(n.Helping)
		}
		out.Neighbors = append(out.Neighbors, x)
	}
	return out
}

// idText is empty for nobody.
func idText(id packet.ID) string {
	if id == 0 {
		return ""
	}
	return id.String()
}

// addrText is empty without an address.
func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// lsas lists the LSAs that a filter chooses.
func (p *ospfPart) lsas(ctx context.Context, f api.LsaFilter) (out []*pncv1.OspfLsa, err error) {
	db, err := p.Database(ctx)
	for i := range db {
		l := &db[i]
		x := ospfLSA(p.version, l.LSA, l.Age)
		x.Interface, x.Own, x.Reachable = l.LinkName, l.Own, l.Reachable
		if l.Scope != packet.ScopeAS {
			x.Area = l.Area.String()
		}
		out = appendLSA(out, f, p.marks, l.LSA, x)
	}
	return out, err
}

// summary is what the list of parts says.
func (p *ospfPart) summary(ctx context.Context) (s igpSummary, err error) {
	r, err := p.read(ctx)
	for _, l := range r.GetLinks() {
		s.links++
		if l.GetUp() {
			s.used++
		}
		for _, n := range l.GetNeighbors() {
			if n.GetState() == "full" {
				s.up++
			}
		}
		if l.GetDetail() != "" {
			s.notes = append(s.notes, l.GetInterface()+": "+l.GetDetail())
		}
	}
	if n := r.GetNotMarked(); n > 0 {
		s.notes = append(s.notes, fmt.Sprintf("senders that are not marked, because their proxy's address is of the other family: %d", n))
	}
	return s, err
}

// ospfParts tells how the routers do.
func (d *Daemon) ospfParts() (out []*pncv1.Part) {
	for _, p := range d.ospf {
		out = append(out, igpStatusPart(p.name, p.link, p.summary))
	}
	return out
}

// ospfCounts reads the routers; one that is too busy to answer in time has no counters this time.
func (d *Daemon) ospfCounts() (out []count) {
	for _, p := range d.ospf {
		ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
		r, err := p.read(ctx)
		cancel()
		if err != nil {
			continue
		}
		var refused, dropped []map[string]uint64
		var states []string
		for _, l := range r.GetLinks() {
			refused = append(refused, l.GetRefused())
			for _, n := range l.GetNeighbors() {
				dropped = append(dropped, n.GetDropped())
				states = append(states, n.GetState())
			}
		}
		out = slices.Concat(out,
			labelled(p.name, "neighbors", helpNeighbors, "state", byState(neighbor.Full, states)),
			labelled(p.name, "dropped", "Packets that were not used, by reason.", "reason", r.GetDropped()),
			labelled(p.name, "received", "Packets received, by type.", "type", r.GetReceived()),
			labelled(p.name, "refused", "Packets that a link refused, by reason; of links that are up.", "reason", sum(refused...)),
			labelled(p.name, "neighbor-dropped", "What was dropped of the packets of neighbours, by reason; of neighbours that are there.", "reason", sum(dropped...)),
			labelled(p.name, "lsas", "LSAs by what became of them, over all databases.", "event", r.GetCounters()),
			[]count{
				{part: p.name, name: "used", value: r.GetUsed(), help: "Packets that were used: those received, less those dropped."},
				{part: p.name, name: "queue-overflow", value: r.GetQueueOverflow(), help: "Packets lost because too many waited; they are sent again."},
				{part: p.name, name: "send-errors", value: r.GetSendErrors(), help: "Packets that could not be sent."},
			})
	}
	return out
}
