package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	pncv1 "pncd/api/pnc/v1"
	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/flooding"
	"pncd/igp/isis/packet"
	"pncd/igp/isis/speaker"
)

// Isis implements api.ISIS.
func (p *isisPart) Isis(ctx context.Context) (*pncv1.GetIsisResponse, error) {
	st, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := &pncv1.GetIsisResponse{
		SystemId: st.System.String(), Hostname: st.Hostname, Dropped: map[string]uint64{},
		QueueOverflow: st.QueueOverflow, SendErrors: st.SendErrors, Received: map[string]uint64{}, Used: st.Used,
	}
	for typ, n := range st.Received {
		name := typ.String()
		if typ == 0 {
			name = "unreadable"
		}
		out.Received[name] = n
	}
	for _, a := range st.Areas {
		out.Areas = append(out.Areas, a.String())
	}
	for d, n := range st.Drops {
		out.Dropped[d.String()] = n
	}
	for i := range st.Levels {
		out.Levels = append(out.Levels, isisLevel(&st.Levels[i]))
	}
	for i := range st.Circuits {
		c := &st.Circuits[i]
		out.Circuits = append(out.Circuits, isisCircuit(c, p.linkError(c.Name)))
	}
	return out, nil
}

// summary is what the list of parts says.
func (p *isisPart) summary(ctx context.Context) (s igpSummary, err error) {
	st, err := p.Isis(ctx)
	for _, c := range st.GetCircuits() {
		s.links++
		if c.GetUp() {
			s.used++
		}
		for _, n := range c.GetNeighbors() {
			if n.GetState() == "up" {
				s.up++
			}
		}
		if c.GetDetail() != "" {
			s.notes = append(s.notes, c.GetInterface()+": "+c.GetDetail())
		}
	}
	return s, err
}

// isisCounts reads the system; one that is too busy to answer in time has no counters this time.
func (d *Daemon) isisCounts() (out []count) {
	if d.isis == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	st, err := d.isis.Isis(ctx)
	if err != nil {
		return nil
	}
	var refused, events []map[string]uint64
	var states []string
	for _, c := range st.GetCircuits() {
		refused = append(refused, c.GetRefused())
		for _, n := range c.GetNeighbors() {
			states = append(states, n.GetState())
		}
	}
	for _, l := range st.GetLevels() {
		events = append(events, l.GetCounters())
	}
	return slices.Concat(
		labelled("isis", "neighbors", helpNeighbors, "state", byState(adjacency.Up, states)),
		labelled("isis", "dropped", "PDUs that were not used, by reason.", "reason", st.GetDropped()),
		labelled("isis", "received", "PDUs received, by type.", "type", st.GetReceived()),
		labelled("isis", "hellos-refused", "Hellos that made no adjacency, by reason.", "reason", sum(refused...)),
		labelled("isis", "lsps", "LSPs by what became of them, over all levels.", "event", sum(events...)),
		[]count{
			{part: "isis", name: "used", value: st.GetUsed(), help: "PDUs that were used: those received, less those dropped."},
			{part: "isis", name: "queue-overflow", value: st.GetQueueOverflow(), help: "Frames lost because too many waited; they are sent again."},
			{part: "isis", name: "send-errors", value: st.GetSendErrors(), help: "Frames that could not be sent."},
		})
}

func isisLevel(l *speaker.LevelStatus) *pncv1.IsisLevel {
	out := &pncv1.IsisLevel{
		Level: uint32(l.Level), Lsps: uint32(l.LSPs), Systems: uint32(l.Systems), Reachable: uint32(l.Reachable),
		Prefixes: uint32(l.Prefixes), Marked: uint32(l.Marked), SpfRuns: l.SPFRuns, NotFitting: uint32(l.NotFitting),
		Counters: isisCounters(&l.Counters),
	}
	out.Counters["unreadable"] = l.Unreadable
	if !l.SPFRan.IsZero() {
		out.SpfRan = timestamppb.New(l.SPFRan)
	}
	if l.Error != nil {
		out.Error = l.Error.Error()
	}
	return out
}

func isisCounters(c *flooding.Counters) map[string]uint64 {
	return map[string]uint64{
		"stored": c.Stored, "duplicate": c.Duplicate, "outdated": c.Outdated, "bad-checksum": c.BadChecksum, "zero-sequence": c.ZeroSequence,
		"unknown-purge": c.UnknownPurges, "database-full": c.Full, "too-long": c.TooLong, "confused": c.Confused,
		"own-newer": c.OwnNewer, "own-purged": c.OwnPurged, "not-made": c.NotMade, "sign-failed": c.SignFailed, "unnamed": c.Unnamed,
	}
}

func isisCircuit(c *speaker.CircuitStatus, why error) *pncv1.IsisCircuit {
	out := &pncv1.IsisCircuit{
		Interface: c.Name, Lan: c.LAN, Levels: uint32(c.Levels), Up: c.Running, Mtu: uint32(c.Link.MTU),
		Addresses: texts(append(append([]netip.Addr(nil), c.Link.IPv4...), c.Link.IPv6...)), Designated: map[uint32]string{}, Refused: map[string]uint64{},
	}
	switch {
	case why != nil:
		out.Detail = why.Error()
	case !c.Running:
		out.Detail = "the link is down"
	}
	for level, id := range c.Designated {
		if id != (packet.NodeID{}) {
			out.Designated[uint32(level)] = id.String()
		}
	}
	for level, refused := range c.Refused {
		if refused {
			out.Detail = fmt.Sprintf("not used at level %d: this system would be the LAN's designated one; give a router a higher priority", level)
		}
	}
	for r, n := range c.Hellos {
		out.Refused[r.String()] = n
	}
	for i := range c.Neighbors {
		n := &c.Neighbors[i]
		out.Neighbors = append(out.Neighbors, &pncv1.IsisNeighbor{
			SystemId: n.System.String(), Hostname: n.Hostname, Levels: uint32(n.Levels), State: n.State.String(),
			Since: timestamppb.New(n.Since), Expires: timestamppb.New(n.Expires), Mac: net.HardwareAddr(n.MAC[:]).String(),
			Addresses: texts(append(append([]netip.Addr(nil), n.IPv4...), n.IPv6...)), ThreeWay: n.ThreeWay, Priority: uint32(n.Priority),
		})
	}
	return out
}

func texts[T fmt.Stringer](list []T) (out []string) {
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}

// Lsps implements api.ISIS.
func (p *isisPart) Lsps(ctx context.Context, r *pncv1.ListLspsRequest) (out []*pncv1.IsisLsp, err error) {
	for _, level := range []uint8{packet.Level1, packet.Level2} {
		if r.GetLevel() != 0 && r.GetLevel() != uint32(level) {
			continue
		}
		db, err := p.Database(ctx, level)
		if err != nil {
			return nil, err
		}
		for i := range db {
			l := &db[i]
			if s := r.GetSystem(); s != "" && s != l.Hostname && s != l.ID.Node().System().String() {
				continue
			}
			out = append(out, isisLSP(level, l, r.GetDetail()))
		}
	}
	return out, nil
}

func isisLSP(level uint8, l *speaker.LSPStatus, detail bool) *pncv1.IsisLsp {
	out := &pncv1.IsisLsp{
		Level: uint32(level), Id: l.ID.String(), Hostname: l.Hostname, Sequence: l.Sequence, Checksum: uint32(l.Checksum),
		Lifetime: uint32(l.Lifetime), Length: uint32(l.Length), Own: l.Own, Reachable: l.Reachable,
		Overload: l.Flags&packet.LSPOverload != 0, Attached: l.Flags&packet.LSPAttached != 0,
	}
	if !detail {
		return out
	}
	for _, t := range l.LSP.TLVs {
		prefixes, line := isisTLV(l.Flag, t)
		out.Prefixes = append(out.Prefixes, prefixes...)
		if line != "" {
			out.Lines = append(out.Lines, line)
		}
	}
	return out
}

// isisTLV gives the prefixes of a TLV, or a line for a reader about what else it holds.
func isisTLV(flag uint8, t packet.TLV) (prefixes []*pncv1.IsisPrefix, line string) {
	value, mt, err := t.Value, packet.MTStandard, error(nil)
	switch t.Type {
	case packet.TLVMTIPReach, packet.TLVMTIPv6Reach, packet.TLVMTISReach:
		if mt, _, value, err = packet.ParseMT(value); err != nil {
			return nil, fmt.Sprintf("TLV %d: %v", t.Type, err)
		}
	}
	switch t.Type {
	case packet.TLVExtendedIPReach, packet.TLVMTIPReach, packet.TLVIPv6Reach, packet.TLVMTIPv6Reach:
		list, err := packet.ParsePrefixes(value, t.Type == packet.TLVIPv6Reach || t.Type == packet.TLVMTIPv6Reach)
		for i := range list {
			prefixes = append(prefixes, isisPrefix(flag, mt, &list[i]))
		}
		if err != nil {
			line = fmt.Sprintf("TLV %d: %v", t.Type, err)
		}
		return prefixes, line
	case packet.TLVExtendedISReach, packet.TLVMTISReach:
		list, err := packet.ParseISReach(value)
		var to []string
		for _, r := range list {
			to = append(to, fmt.Sprintf("%s (metric %d)", r.Neighbor, r.Metric))
		}
		if err != nil {
			to = append(to, err.Error())
		}
		line = "IS reachability: " + strings.Join(to, ", ")
		if mt != packet.MTStandard {
			line = fmt.Sprintf("IS reachability of topology %d: %s", mt, strings.Join(to, ", "))
		}
		return nil, line
	}
	one := packet.TLVs{t}
	switch t.Type {
	case packet.TLVAreas:
		areas, err := one.Areas()
		return nil, lineOf("areas", texts(areas), err)
	case packet.TLVDynamicHostname:
		return nil, "host name: " + one.Hostname()
	case packet.TLVIPv4Interfaces:
		addrs, err := one.IPv4Interfaces()
		return nil, lineOf("IPv4 interface addresses", texts(addrs), err)
	case packet.TLVIPv6Interfaces:
		addrs, err := one.IPv6Interfaces()
		return nil, lineOf("IPv6 interface addresses", texts(addrs), err)
	case packet.TLVTERouterID, packet.TLVIPv6TERouterID:
		v4, v6 := one.TERouterIDs()
		if v4.IsValid() {
			return nil, "TE router ID: " + v4.String()
		}
		return nil, "TE router ID: " + v6.String()
	case packet.TLVAuthentication:
		return nil, "authentication" // without the digest
	case packet.TLVProtocolsSupported:
		var names []string
		for _, b := range t.Value {
			names = append(names, map[byte]string{packet.NLPIDIPv4: "IPv4", packet.NLPIDIPv6: "IPv6"}[b])
		}
		return nil, lineOf("protocols", names, nil)
	}
	return nil, fmt.Sprintf("TLV %d: %x", t.Type, t.Value)
}

func lineOf(what string, list []string, err error) string {
	if err != nil {
		list = append(list, err.Error())
	}
	return what + ": " + strings.Join(list, ", ")
}

func isisPrefix(flag uint8, mt packet.MTID, p *packet.Prefix) *pncv1.IsisPrefix {
	flags := p.Attributes()
	out := &pncv1.IsisPrefix{Prefix: p.Prefix.String(), Metric: p.Metric, P: flags.Has(flag), Down: p.Down, Topology: uint32(mt)}
	if flags != nil {
		out.Flags = fmt.Sprintf("%x", []byte(flags))
	}
	v4, v6 := p.SourceRouterIDs()
	for _, a := range []netip.Addr{v4, v6} {
		if a.IsValid() {
			out.SourceRouterIds = append(out.SourceRouterIds, a.String())
		}
	}
	for _, t := range p.SubTLVs {
		switch t.Type {
		case packet.SubTLVPrefixAttributes, packet.SubTLVIPv4SourceRouterID, packet.SubTLVIPv6SourceRouterID:
		default:
			out.OtherSubTlvs = append(out.OtherSubTlvs, uint32(t.Type))
		}
	}
	return out
}
