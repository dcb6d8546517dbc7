package daemon

import (
	"slices"
	"sort"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/tap/kernel"
	"pncd/proxyagent/flowmap"
)

// count is one exact counter of a part other than the two ends, whose counters are the outcomes.
type count struct {
	part, name, help string
	value            uint64
	label            [2]string // name and value; empty without
}

// ringFamilies are the counts of a ring that the exporter has families of its own for.
var ringFamilies = map[string]bool{"packets": true, "drops": true, "freezes": true, "link-downs": true}

// gauges are counts of what there is now, which can fall.
var gauges = map[string]bool{"kernel-flows": true, "destinations": true, "destinations-usable": true, "neighbors": true}

// Counters implements api.Node: the outcomes and everything else that is counted.
func (d *Daemon) Counters() []*pncv1.Counter {
	d.countBoundary() // into the outcomes
	d.countDetectors()
	d.countKernel()
	var out []*pncv1.Counter
	for _, c := range d.recorder.Snapshot() {
		out = append(out, c.ToProto())
	}
	for _, c := range d.counts() {
		name := c.name
		if c.label[0] != "" {
			name += "{" + c.label[0] + "=" + c.label[1] + "}"
		}
		out = append(out, &pncv1.Counter{Part: c.part, Name: name, Value: c.value, Help: c.help})
	}
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].Part != out[j].Part {
			return out[i].Part < out[j].Part
		}
		return out[i].Name < out[j].Name
	})
	return out
}

// counts reads the counters of all parts but the two ends.
func (d *Daemon) counts() []count {
	out := d.tableCounts()
	out = append(out, count{part: "records", name: "overwritten", value: d.recorder.Overwritten(), help: "Records that left the bounded ring."},
		count{part: "records", name: "dropped", value: d.recorder.Dropped(), help: "Records that could not be kept."})
	for _, r := range d.rings.list() {
		label := [2]string{"interface", r.Interface}
		out = append(out,
			count{r.Role, "packets", "RoCEv2 packets that the tap saw.", r.Packets, label},
			count{r.Role, "drops", "Packets lost because the ring was full: the packet ring, or the ring buffer of the program.", r.Drops, label},
			count{r.Role, "freezes", "Times that the ring was full.", r.Freezes, label},
			count{r.Role, "link-downs", "Times that the interface went down.", r.Downs, label})
		if r.Role == roleDetector {
			out = append(out,
				count{r.Role, "ignored", "CE-marked packets that don't count as congestion: ACKs, CNPs, transports that can't be notified.", r.Ignored, label},
				count{r.Role, "malformed", "CE-marked packets to UDP port 4791 that are not sound RoCEv2.", r.Malformed, label},
				count{r.Role, "events-ce", "Congestion events of packets that came marked CE.", r.Events, label},
				count{r.Role, "events-virtual-queue", "Congestion events of packets that the virtual queue marked.", r.QueueEvents, label},
				count{r.Role, "gated", "Marked data packets within congestion_node.detect.gate of their flow's last event; the next one stands for them.", r.Gated, label},
				count{r.Role, "gate-full", "Marked data packets for whose flow the kernel had no room.", r.GateFull, label},
				count{r.Role, "gate-forgotten", "Flows that the kernel forgot to make room for others, at least; what was gated of them is told by no event, and they are reported again at once.", r.GateForgotten, label},
				count{r.Role, "marked", "Packets that the virtual queue found congested, and marked CE where they were not.", r.Marked, label},
				count{r.Role, "mark-failed", "Packets that the virtual queue could not mark.", r.MarkFailed, label})
		}
	}
	out = append(out, d.learnerCounts()...)
	out = append(append(out, d.boundCounts()...), d.readinessCounts()...)
	out = append(out, d.sender.frameCounts()...)
	return append(append(append(out, d.apiCounts()...), d.bgpCounts()...), slices.Concat(d.boundaryCounts(), d.kernelCounts(), d.hostCounts(), d.stationCounts(), d.isisCounts(), d.ospfCounts(), d.ospfapiCounts(), d.qdiscCounters(), d.reportCounters())...)
}

// learnerCounts tells what the map has learned, and what the taps did for it.
func (d *Daemon) learnerCounts() (out []count) {
	p := d.parts.Load()
	if p.flows == nil {
		return []count{{part: "learner", name: "not-rocev2", value: d.notRoCEv2.Load(), help: helpNotRoCEv2}}
	}
	n, c := p.learner.programCounts(), p.flows.Counters()
	n.into(&c)
	out = append(flowCounts(c),
		count{part: "learner", name: "not-rocev2", value: d.notRoCEv2.Load() + n.Refused, help: helpNotRoCEv2},
		count{part: "learner", name: "late", value: p.learner.group.Late(), help: "Packets that came after a later one had been learned from."},
		count{part: "learner", name: "kernel-flows", value: n.live, help: "Flows in the eBPF program's map, counted several times in proxy.map.age."},
		count{part: "learner", name: "kernel-flows-made", value: n.FlowsMade, help: "Flows that came into the program's map."},
		count{part: "learner", name: "kernel-flows-evicted", value: n.FlowsEvicted, help: "Flows that left the program's map for others: proxy.tap_flows is too small."},
		count{part: "learner", name: "kernel-flows-refused", value: n.FlowsRefused, help: "Packets for whose flow the program's map had no room."},
		count{part: "learner", name: "kernel-untold", value: p.learner.untold.Load(), help: "Times that the program could not be told what to show of a flow."})
	for r := range n.HandedUp {
		if name := kernel.Reason(r).String(); name != "" {
			out = append(out, count{"learner", "handed-up", "Packets that the program gave to user space.", n.HandedUp[r], [2]string{"reason", name}})
		}
	}
	return out
}

const helpNotRoCEv2 = "Packets to UDP port 4791 that are not RoCEv2."

// boundCounts tells where bounded state was too small, and where the kernel dropped what was to be heard.
func (d *Daemon) boundCounts() (out []count) {
	p := d.parts.Load()
	if p.notifier != nil {
		out = append(out, count{part: "notifier", name: "flows-evicted", value: p.notifier.Stats().FlowsEvicted, help: "Flows whose pacing was forgotten for others: congestion_node.pace.flows is too small."})
	}
	if p.translator != nil {
		s := p.translator.Stats()
		out = append(out,
			count{part: "translator", name: "qps-evicted", value: s.QPsEvicted, help: "Source QPs whose pacing was forgotten for others: proxy.pace.qps is too small."},
			count{part: "translator", name: "nodes-evicted", value: s.NodesEvicted, help: "Congestion nodes whose event numbers are no longer followed, for others."})
	}
	s := d.tracker.Stats()
	return append(out,
		count{part: "routes", name: "overruns", value: s.Overruns, help: "Times that the kernel dropped notifications of route changes; all proxies were looked up again."},
		count{part: "routes", name: "changes", value: s.Changes, help: "Changes of whether and how a proxy is reached."})
}

func (d *Daemon) apiCounts() []count {
	s := d.api.Stats()
	out := []count{
		{part: "api", name: "panics", value: s.Panics, help: "Calls whose handler panicked; each answered INTERNAL."},
		{part: "api", name: "stream-dropped", value: s.StreamDropped, help: "Items that watching clients were too slow for."},
	}
	for code, n := range s.Calls {
		out = append(out, count{"api", "calls", "Finished calls and streams by gRPC code.", n, [2]string{"code", code}})
	}
	return out
}

func (d *Daemon) bgpCounts() []count {
	if d.speaker == nil {
		return nil
	}
	all := d.speaker.Counters()
	c := all.Engine
	return []count{
		{part: "bgp", name: "vpn-unmatched", value: all.Unmatched, help: "VPN routes that arrived and that no context imports; they are not kept."},
		{part: "bgp", name: "conversion-errors", value: c.ConversionErrors, help: "Paths whose attributes the engine could not hand out."},
		{part: "bgp", name: "callback-panics", value: c.CallbackPanics, help: "Panics in callbacks of the engine, recovered."},
		{part: "bgp", name: "engine-panics", value: c.EnginePanics, help: "Panics and fatal errors that the engine asked its logger for, refused."},
		{part: "bgp", name: "coalesced", value: c.Coalesced, help: "Path events that a later one replaced before they were read."},
	}
}

func (d *Daemon) tableCounts() []count {
	c := d.table.Counters()
	out := []count{
		{part: "table", name: "learned", value: c.Learned, help: "Capabilities learned."},
		{part: "table", name: "changed", value: c.Changed, help: "Changes of routes with a capability."},
		{part: "table", name: "withdrawn", value: c.Withdrawn, help: "Capabilities withdrawn."},
		{part: "table", name: "invalid", value: c.Invalid, help: "Updates refused because of a bad prefix or source."},
		{part: "table", name: "watch-dropped", value: c.WatchDropped, help: "Events that watching clients were too slow for."},
	}
	for reason, n := range c.Disregarded {
		out = append(out, count{"table", "disregarded", "Capabilities seen and not believed.", n, [2]string{"reason", reason.String()}})
	}
	return out
}

func flowCounts(c flowmap.Counters) []count {
	learner := func(name string, value uint64, help string) count {
		return count{part: "learner", name: name, value: value, help: help}
	}
	out := []count{
		learner("observed", c.Packets, "RoCEv2 packets observed."),
		learner("learned", c.Learned, "Entries that got a Source QP."),
		learner("confirmed", c.Confirmed, "Entries confirmed by RTU or by data."),
		learner("contradicted", c.Contradicted, "Entries whose sources disagreed or whose QP was reused."),
		learner("withdrawn", c.Withdrawn, "Entries by votes that went back to undecided."),
		learner("aged", c.Aged, "Entries without traffic for the configured time."),
		learner("closed", c.Closed, "Entries closed by DREQ, DREP or REJ."),
		learner("evicted", c.Evicted, "Entries removed to keep the map within its bound."),
		learner("refused", c.Refused, "Claims refused because a live pair names another peer."),
		learner("icrc-verified", c.ICRCVerified, "Packets whose ICRC was verified (a sample)."),
		learner("icrc-bad", c.BadICRC, "Packets with a wrong ICRC among those; used all the same."),
		learner("malformed", c.Malformed, "Packets too short for their opcode, and CM datagrams that don't parse."),
		learner("foreign", c.Foreign, "Packets whose interface, source MAC or TTL differs from their stream's."),
		learner("cnp", c.CNP, "CNPs seen and ignored."),
		learner("cm-mismatch", c.CMMismatch, "CM datagrams whose GIDs, QP or way here is not that of the connection."),
		learner("cm-evicted", c.CMEvicted, "Unfinished CM exchanges dropped to keep the bound."),
	}
	for _, k := range []struct {
		kind string
		n    uint64
	}{
		{"dc", c.UnsupportedDC}, {"xrc", c.UnsupportedXRC}, {"rocev1", c.UnsupportedRoCEv1}, {"vendor", c.UnsupportedVendor},
	} {
		out = append(out, count{"learner", "unsupported", "Packets of a transport whose Source QP can't be learned.", k.n, [2]string{"transport", k.kind}})
	}
	for _, k := range []struct {
		kind string
		n    uint64
	}{
		{"req", c.CMREQ}, {"mra", c.CMMRA}, {"rej", c.CMREJ}, {"rep", c.CMREP}, {"rtu", c.CMRTU}, {"dreq", c.CMDREQ},
		{"drep", c.CMDREP}, {"sidr-req", c.CMSIDRREQ}, {"sidr-rep", c.CMSIDRREP}, {"lap", c.CMLAP}, {"apr", c.CMAPR}, {"other", c.CMOther},
	} {
		out = append(out, count{"learner", "cm", "Connection management datagrams seen.", k.n, [2]string{"kind", k.kind}})
	}
	return out
}
