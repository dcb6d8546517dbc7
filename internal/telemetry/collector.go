package telemetry

import (
	"sort"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const namespace = "pncd"

// Family descriptors. The label order here is the order in which Collect passes values.
var (
	descBuild = desc("build_info", "The program's version, as a label; the value is always 1.", "version", "node")
	descStart = desc("start_time_seconds", "When the process started, in seconds since the epoch.")
	descOn    = desc("enabled", "Whether the mechanism is switched on (1) or off (0).")
	descReady = desc("ready", "Whether the node can do its part now: as a proxy, translate; as a congestion node, detect and notify.")
	descPart  = desc("part_state", "What a part of the daemon is doing: 1 for the state that it is in.", "part", "state")

	descOutcome = desc("outcomes_total", "Congestion events (part congestion-node) and notifications (part proxy) by what became of them; each ends in exactly one outcome.", "part", "outcome")

	descPeerState    = desc("bgp_neighbor_state", "The session's state (RFC 4271 section 8.2.2): 1 for the state that it is in.", "neighbor", "state")
	descPeerUp       = desc("bgp_neighbor_up", "Whether the session is established.", "neighbor")
	descPeerAS       = desc("bgp_neighbor_as", "The neighbour's autonomous system number.", "neighbor")
	descPeerSince    = desc("bgp_neighbor_state_since_seconds", "Since when the session is in its state, in seconds since the epoch.", "neighbor")
	descPeerFlaps    = desc("bgp_neighbor_established_transitions_total", "Times that the session was established (RFC 4273 bgpPeerFsmEstablishedTransitions).", "neighbor")
	descPeerReceived = desc("bgp_neighbor_received_routes", "Paths held from the neighbour.", "neighbor")
	descPeerAdvert   = desc("bgp_neighbor_advertised_routes", "Paths advertised to the neighbour.", "neighbor")
	descPeerNHC      = desc("bgp_neighbor_nhc_routes", "Paths held from the neighbour that carry a Next Hop Dependent Characteristics attribute.", "neighbor")
	descPeerPNC      = desc("bgp_neighbor_pnc_routes", "Paths held from the neighbour whose Proxy Node Capability is believed.", "neighbor")
	descPeerStale    = desc("bgp_neighbor_stale_routes", "Paths kept through a restart of the neighbour and not yet announced again.", "neighbor")
	descPeerDisreg   = desc("bgp_neighbor_nhc_disregarded_total", "NHC attributes and TLVs that were not believed, by reason.", "neighbor", "reason")
	descPeerMalform  = desc("bgp_neighbor_malformed_total", "What was wrong in the neighbour's messages and did not end the session (RFC 7606), by kind.", "neighbor", "kind")
	descPeerFaults   = desc("bgp_neighbor_faults_total", "Connections ended with a NOTIFICATION for what the neighbour sent.", "neighbor")
	descPeerError    = desc("bgp_neighbor_last_error", "Whether the last session or attempt ended with an error.", "neighbor")

	descTapPackets = desc("tap_packets_total", "Packets that passed the ring's filter.", "interface", "role")
	descTapDrops   = desc("tap_drops_total", "Packets that the kernel dropped because the ring was full.", "interface", "role")
	descTapFreezes = desc("tap_freezes_total", "Times that the ring was full.", "interface", "role")
	descTapDowns   = desc("tap_link_downs_total", "Times that the interface went down while tapped.", "interface", "role")

	descTableEntries  = desc("table_entries", "Entries in a table, by state where the table has states.", "table", "state")
	descTableCapacity = desc("table_capacity", "The most entries that a table may hold.", "table")
	descTableVersion  = desc("table_version", "The version of a table; it grows with each change.", "table")

	descAPICalls   = desc("api_calls_total", "Finished calls and streams of the gRPC API, by code.", "code")
	descAPIPanics  = desc("api_panics_total", "Calls whose handler panicked; each was answered with Internal.")
	descAPIDropped = desc("api_stream_dropped_total", "Changes that clients following them were too slow for.")
	descAPIStreams = desc("api_streams", "Streams of the gRPC API that are open.")

	descRecMade = desc("records_total", "Evidence records made.")
	descRecOver = desc("records_overwritten_total", "Evidence records that left the bounded ring.")
	descRecDrop = desc("records_dropped_total", "Evidence records that could not be kept.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

// States that a part or session can be in; one series for each, so that a query for a state that was
// never reached gives 0 instead of nothing.
var (
	partStates     = []string{"off", "disabled", "starting", "ready", "failed"}
	neighborStates = []string{"idle", "connect", "active", "opensent", "openconfirm", "established"}
)

// Collector exports the snapshots of a Source. It is unchecked (it describes nothing beforehand),
// because the families of Snapshot.Counters are not known before the first snapshot.
type Collector struct{ source Source }

// NewCollector returns a collector over source.
func NewCollector(source Source) *Collector { return &Collector{source: source} }

// Describe sends nothing: see Collector.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect exports one snapshot.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	s := c.source.Snapshot()
	x := exporter{ch: ch, seen: make(map[string]bool)}
	x.gauge(descBuild, 1, s.Version, s.Node)
	x.time(descStart, s.StartedAt)
	x.gauge(descOn, flag(s.Enabled))
	x.gauge(descReady, flag(s.Ready))
	for _, p := range s.Parts {
		x.state(descPart, partStates, p.State, p.Name)
	}
	for _, o := range s.Outcomes {
		x.counter(descOutcome, o.Value, o.Part, o.Outcome)
	}
	for i := range s.Neighbors {
		x.neighbor(s.Neighbors[i])
		x.peer(&s.Neighbors[i], s.RouterID, time.Now())
	}
	for _, r := range s.Ranges {
		x.gauge(descRangeNow, float64(r.Neighbors), r.Prefix)
		x.gauge(descRangeLimit, float64(r.Limit), r.Prefix)
		x.counter(descRangeRefused, r.Refused, r.Prefix)
	}
	x.advertisements(s.Advertisements, s.Sources)
	x.senders(s.Senders)
	for _, t := range s.Taps {
		x.counter(descTapPackets, t.Packets, t.Interface, t.Role)
		x.counter(descTapDrops, t.Drops, t.Interface, t.Role)
		x.counter(descTapFreezes, t.Freezes, t.Interface, t.Role)
		x.counter(descTapDowns, t.LinkDowns, t.Interface, t.Role)
	}
	for _, t := range s.Tables {
		x.gauge(descTableEntries, float64(t.Entries), t.Name, t.State)
		if t.Capacity > 0 {
			x.gauge(descTableCapacity, float64(t.Capacity), t.Name)
		}
		if t.Version > 0 {
			x.gauge(descTableVersion, float64(t.Version), t.Name)
		}
	}
	for code, n := range s.API.Calls {
		x.counter(descAPICalls, n, code)
	}
	x.counter(descAPIPanics, s.API.Panics)
	x.counter(descAPIDropped, s.API.StreamDropped)
	x.gauge(descAPIStreams, float64(s.API.Streams))
	x.counter(descRecMade, s.Records.Made)
	x.counter(descRecOver, s.Records.Overwritten)
	x.counter(descRecDrop, s.Records.Dropped)
	for _, c := range s.Counters {
		x.generic(c)
	}
}

// exporter sends each series at most once: two series with the same labels would fail the whole scrape,
// and one part that reports twice must not hide all the others.
type exporter struct {
	ch   chan<- prometheus.Metric
	seen map[string]bool
}

func (x *exporter) neighbor(n Neighbor) {
	x.state(descPeerState, neighborStates, n.State, n.Address)
	x.gauge(descPeerUp, flag(n.State == "established"), n.Address)
	x.gauge(descPeerAS, float64(n.PeerAS), n.Address)
	if !n.Since.IsZero() {
		x.time(descPeerSince, n.Since, n.Address)
	}
	x.counter(descPeerFlaps, n.Flaps, n.Address)
	x.gauge(descPeerReceived, float64(n.Received), n.Address)
	x.gauge(descPeerAdvert, float64(n.Advertised), n.Address)
	x.gauge(descPeerNHC, float64(n.NHCReceived), n.Address)
	x.gauge(descPeerPNC, float64(n.PNCBelieved), n.Address)
	x.gauge(descPeerStale, float64(n.Stale), n.Address)
	for reason, v := range n.Disregarded {
		x.counter(descPeerDisreg, v, n.Address, reason)
	}
	for kind, v := range n.Malformed {
		x.counter(descPeerMalform, v, n.Address, kind)
	}
	x.counter(descPeerFaults, n.Faults, n.Address)
	x.gauge(descPeerError, flag(n.SessionError), n.Address)
}

// state sends one series for each known state, and one for the current state when it is not known.
func (x *exporter) state(d *prometheus.Desc, known []string, current, name string) {
	found := false
	for _, s := range known {
		found = found || s == current
		x.gauge(d, flag(s == current), name, s)
	}
	if !found && current != "" {
		x.gauge(d, 1, name, current)
	}
}

func (x *exporter) generic(c Counter) {
	labels := append([]Label(nil), c.Labels...)
	sort.Slice(labels, func(i, j int) bool { return labels[i].Name < labels[j].Name })
	names, values := make([]string, len(labels)), make([]string, len(labels))
	for i, l := range labels {
		names[i], values[i] = metricName(l.Name), l.Value
	}
	name := metricName(c.Part) + "_" + strings.TrimSuffix(metricName(c.Name), "_total")
	help := c.Help
	if help == "" {
		help = "Counter " + c.Name + " of part " + c.Part + "."
	}
	if c.Gauge {
		x.gauge(desc(name, help, names...), float64(c.Value), values...)
		return
	}
	x.counter(desc(name+"_total", help, names...), c.Value, values...)
}

func (x *exporter) counter(d *prometheus.Desc, v uint64, labels ...string) {
	x.send(d, prometheus.CounterValue, float64(v), labels)
}

func (x *exporter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	x.send(d, prometheus.GaugeValue, v, labels)
}

func (x *exporter) time(d *prometheus.Desc, t time.Time, labels ...string) {
	if t.IsZero() {
		return
	}
	x.send(d, prometheus.GaugeValue, float64(t.UnixNano())/1e9, labels)
}

func (x *exporter) send(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels []string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "�")
	}
	key := d.String() + "\x00" + strings.Join(labels, "\x00")
	if x.seen[key] {
		return
	}
	x.seen[key] = true
	m, err := prometheus.NewConstMetric(d, kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	x.ch <- m
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// metricName turns a name as pncd writes it (map-miss, tap:eth0) into the characters that Prometheus
// tools accept without quoting.
func metricName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, s)
}
