package daemon

import (
	"net/netip"

	"pncd/internal/telemetry"
	"pncd/internal/version"
)

// exported gives the metrics' exporter what it asks for.
type exported struct{ d *Daemon }

// Snapshot implements telemetry.Source.
func (x exported) Snapshot() telemetry.Snapshot {
	d := x.d
	ready, _ := d.Ready()
	out := telemetry.Snapshot{
		Version: version.Get().String(), Node: d.node, StartedAt: d.started, Enabled: d.Enabled(), Ready: ready,
		Tables: d.tables(), Neighbors: d.exportedNeighbors(), Ranges: d.exportedRanges(), Senders: d.exportedSenders(),
		Records: telemetry.Records{Made: d.recorder.Made(), Overwritten: d.recorder.Overwritten(), Dropped: d.recorder.Dropped()},
	}
	if b := d.config.Load().BGP; b != nil {
		out.RouterID = b.RouterID.String()
	}
	out.Advertisements, out.Sources = d.exportedAdvertisements()
	for _, p := range d.partList() {
		out.Parts = append(out.Parts, telemetry.Part{Name: p.GetName(), State: partStateName(p.GetState())})
	}
	d.countDetectors()
	for _, c := range d.recorder.Snapshot() {
		if c.Outcome != 0 {
			out.Outcomes = append(out.Outcomes, telemetry.Outcome{Part: c.Part.String(), Outcome: c.Name, Value: c.Value})
		}
	}
	for _, r := range d.rings.list() {
		out.Taps = append(out.Taps, telemetry.Tap{Interface: r.Interface, Role: r.Role, Packets: r.Packets, Drops: r.Drops, Freezes: r.Freezes, LinkDowns: r.Downs})
	}
	a := d.api.Stats()
	out.API = telemetry.API{Calls: a.Calls, Panics: a.Panics, StreamDropped: a.StreamDropped, Streams: a.Streams}
	for _, c := range d.counts() {
		if c.part == "records" || c.part == "api" || ringFamilies[c.name] && c.label[0] == "interface" {
			continue // families of their own above
		}
		t := telemetry.Counter{Part: c.part, Name: c.name, Help: c.help, Value: c.value, Gauge: gauges[c.name]}
		if c.label[0] != "" {
			t.Labels = []telemetry.Label{{Name: c.label[0], Value: c.label[1]}}
		}
		out.Counters = append(out.Counters, t)
	}
	for _, c := range d.recorder.Snapshot() {
		if c.Outcome == 0 {
			out.Counters = append(out.Counters, telemetry.Counter{Part: c.Part.String(), Name: c.Name, Help: c.Help, Value: c.Value})
		}
	}
	return out
}

func (d *Daemon) tables() []telemetry.Table {
	snapshot := d.table.Snapshot()
	routes, capabilities := snapshot.Len()
	out := []telemetry.Table{
		{Name: "capability-routes", State: "with-proxy", Entries: uint64(capabilities), Version: snapshot.Version()},
		{Name: "capability-routes", State: "without-proxy", Entries: uint64(routes - capabilities), Version: snapshot.Version()},
	}
	cfg := d.config.Load()
	if flows := d.parts.Load().flows; flows != nil && cfg.Proxy != nil {
		known, total := flows.Len()
		version, bound := flows.Version(), uint64(cfg.Proxy.Map.Entries)
		out = append(out,
			telemetry.Table{Name: "flows", State: "known", Entries: uint64(known), Capacity: bound, Version: version},
			telemetry.Table{Name: "flows", State: "other", Entries: uint64(total - known), Capacity: bound, Version: version})
	}
	return out
}

func (d *Daemon) exportedNeighbors() []telemetry.Neighbor {
	if d.speaker == nil {
		return nil
	}
	families, ranges := map[netip.Addr][]string{}, map[netip.Prefix][]string{}
	if b := d.config.Load().BGP; b != nil {
		for i := range b.Neighbors {
			families[b.Neighbors[i].Address.Addr] = b.Neighbors[i].Families
		}
		for i := range b.ListenRanges {
			ranges[b.ListenRanges[i].Prefix.Prefix] = b.ListenRanges[i].Families
		}
	}
	var out []telemetry.Neighbor
	for _, n := range d.speaker.Neighbors() {
		x := telemetry.Neighbor{
			Address: n.Address.String(), PeerAS: n.PeerAS, State: n.State.String(), Since: n.Since, Flaps: n.Flaps,
			Received: n.Received, Advertised: n.Advertised, NHCReceived: uint64(n.NHCReceived), PNCBelieved: uint64(n.PNCBelieved),
			Stale: uint64(n.Stale), Disregarded: map[string]uint64{}, SessionError: n.LastError != "",
			LocalAS: n.LocalAS, Families: families[n.Address], Shutdown: n.Shutdown != "", MD5: n.MD5,
			SentUpdates: n.SentUpdates, Refused: n.Refused,
		}
		if n.Range.IsValid() {
			x.Families, x.Range = ranges[n.Range], n.Range.String()
		}
		if n.RouterID.IsValid() {
			x.RouterID = n.RouterID.String()
		}
		x.Malformed, x.Faults = findings(&n), n.Faults
		for reason, count := range n.Disregarded {
			x.Disregarded[reason.String()] = count
		}
		out = append(out, x)
	}
	return out
}

// exportedAdvertisements counts what is announced, or would be, by what asked for it, and what the sources
// of senders have.
func (d *Daemon) exportedAdvertisements() (out []telemetry.Advertisements, sources []telemetry.SenderSource) {
	counts := map[telemetry.Advertisements]int{}
	for _, a := range (advertiser{d}).Advertisements() {
		from := "request"
		switch {
		case a.GetFollowedFrom() != "":
			from = "source"
		case a.GetConfigured():
			from = "config"
		case a.GetExpiresAt() != nil:
			from = "lease"
		}
		counts[telemetry.Advertisements{From: from, Active: a.GetActive()}]++
	}
	for a, n := range counts {
		a.Count = n
		out = append(out, a)
	}
	cfg := d.config.Load()
	if cfg.Proxy == nil {
		return out, nil
	}
	_, found := d.withSources(cfg)
	for i := range cfg.Proxy.SenderSources {
		s := telemetry.SenderSource{Name: routeSource(&cfg.Proxy.SenderSources[i]).String()}
		for _, src := range found {
			if src == &cfg.Proxy.SenderSources[i] {
				s.Prefixes++
			}
		}
		sources = append(sources, s)
	}
	return out, sources
}
