package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// fixed is a Source that always gives the same snapshot.
type fixed struct{ s Snapshot }

func (f fixed) Snapshot() Snapshot { return f.s }

// ready is a Readiness by list of reasons.
type ready []string

func (r ready) Ready() (bool, []string) { return len(r) == 0, r }

func sample() Snapshot {
	return Snapshot{
		Version: "v1.2.3", Node: "pe1", StartedAt: time.Unix(1700000000, 500_000_000), Enabled: true,
		Parts:    []Part{{"bgp", "ready"}, {"tap:eth0", "failed"}},
		Outcomes: []Outcome{{"congestion-node", "sent", 7}, {"proxy", "map-miss", 3}},
		Neighbors: []Neighbor{{
			Address: "192.0.2.1", PeerAS: 65001, State: "established", Flaps: 2, Received: 10, Advertised: 1,
			NHCReceived: 5, PNCBelieved: 4, Disregarded: map[string]uint64{"next-hop-mismatch": 1},
			Malformed: map[string]uint64{"wrong-flags": 3}, Faults: 2,
		}},
		Taps:    []Tap{{"eth0", "learner", 1000, 12, 1, 0}},
		Tables:  []Table{{Name: "flows", State: "learned", Entries: 3, Capacity: 100, Version: 9}, {Name: "flows", State: "aged", Entries: 1, Capacity: 100, Version: 9}},
		API:     API{Calls: map[string]uint64{"OK": 5, "NotFound": 1}, Panics: 0, StreamDropped: 2, Streams: 1},
		Records: Records{Made: 10, Overwritten: 2, Dropped: 1},
		Counters: []Counter{
			{Part: "learner", Name: "bad-icrc", Help: "Packets whose ICRC is wrong.", Value: 4},
			{Part: "learner", Name: "cm-mads", Help: "Connection management MADs, by kind.", Labels: []Label{{"kind", "REQ"}}, Value: 2},
			{Part: "learner", Name: "cm-mads", Help: "Connection management MADs, by kind.", Labels: []Label{{"kind", "REP"}}, Value: 1},
			{Part: "learner", Name: "kernel-flows", Help: "Flows that there are.", Value: 6, Gauge: true},
		},
	}
}

func TestEveryPartOfASnapshotIsExportedUnderItsName(t *testing.T) {
	const want = `
# HELP pncd_api_calls_total Finished calls and streams of the gRPC API, by code.
# TYPE pncd_api_calls_total counter
pncd_api_calls_total{code="NotFound"} 1
pncd_api_calls_total{code="OK"} 5
# HELP pncd_bgp_neighbor_faults_total Connections ended with a NOTIFICATION for what the neighbour sent.
# TYPE pncd_bgp_neighbor_faults_total counter
pncd_bgp_neighbor_faults_total{neighbor="192.0.2.1"} 2
# HELP pncd_bgp_neighbor_malformed_total What was wrong in the neighbour's messages and did not end the session (RFC 7606), by kind.
# TYPE pncd_bgp_neighbor_malformed_total counter
pncd_bgp_neighbor_malformed_total{kind="wrong-flags",neighbor="192.0.2.1"} 3
# HELP pncd_bgp_neighbor_nhc_disregarded_total NHC attributes and TLVs that were not believed, by reason.
# TYPE pncd_bgp_neighbor_nhc_disregarded_total counter
pncd_bgp_neighbor_nhc_disregarded_total{neighbor="192.0.2.1",reason="next-hop-mismatch"} 1
# HELP pncd_bgp_neighbor_pnc_routes Paths held from the neighbour whose Proxy Node Capability is believed.
# TYPE pncd_bgp_neighbor_pnc_routes gauge
pncd_bgp_neighbor_pnc_routes{neighbor="192.0.2.1"} 4
# HELP pncd_bgp_neighbor_state The session's state (RFC 4271 section 8.2.2): 1 for the state that it is in.
# TYPE pncd_bgp_neighbor_state gauge
pncd_bgp_neighbor_state{neighbor="192.0.2.1",state="active"} 0
pncd_bgp_neighbor_state{neighbor="192.0.2.1",state="connect"} 0
pncd_bgp_neighbor_state{neighbor="192.0.2.1",state="established"} 1
pncd_bgp_neighbor_state{neighbor="192.0.2.1",state="idle"} 0
pncd_bgp_neighbor_state{neighbor="192.0.2.1",state="openconfirm"} 0
pncd_bgp_neighbor_state{neighbor="192.0.2.1",state="opensent"} 0
# HELP pncd_bgp_neighbor_up Whether the session is established.
# TYPE pncd_bgp_neighbor_up gauge
pncd_bgp_neighbor_up{neighbor="192.0.2.1"} 1
# HELP pncd_build_info The program's version, as a label; the value is always 1.
# TYPE pncd_build_info gauge
pncd_build_info{node="pe1",version="v1.2.3"} 1
# HELP pncd_enabled Whether the mechanism is switched on (1) or off (0).
# TYPE pncd_enabled gauge
pncd_enabled 1
# HELP pncd_learner_bad_icrc_total Packets whose ICRC is wrong.
# TYPE pncd_learner_bad_icrc_total counter
pncd_learner_bad_icrc_total 4
# HELP pncd_learner_cm_mads_total Connection management MADs, by kind.
# TYPE pncd_learner_cm_mads_total counter
pncd_learner_cm_mads_total{kind="REP"} 1
pncd_learner_cm_mads_total{kind="REQ"} 2
# HELP pncd_learner_kernel_flows Flows that there are.
# TYPE pncd_learner_kernel_flows gauge
pncd_learner_kernel_flows 6
# HELP pncd_outcomes_total Congestion events (part congestion-node) and notifications (part proxy) by what became of them; each ends in exactly one outcome.
# TYPE pncd_outcomes_total counter
pncd_outcomes_total{outcome="map-miss",part="proxy"} 3
pncd_outcomes_total{outcome="sent",part="congestion-node"} 7
# HELP pncd_start_time_seconds When the process started, in seconds since the epoch.
# TYPE pncd_start_time_seconds gauge
pncd_start_time_seconds 1.7000000005e+09
# HELP pncd_table_capacity The most entries that a table may hold.
# TYPE pncd_table_capacity gauge
pncd_table_capacity{table="flows"} 100
# HELP pncd_table_entries Entries in a table, by state where the table has states.
# TYPE pncd_table_entries gauge
pncd_table_entries{state="aged",table="flows"} 1
pncd_table_entries{state="learned",table="flows"} 3
# HELP pncd_tap_drops_total Packets that the kernel dropped because the ring was full.
# TYPE pncd_tap_drops_total counter
pncd_tap_drops_total{interface="eth0",role="learner"} 12
`
	names := []string{
		"pncd_api_calls_total", "pncd_bgp_neighbor_pnc_routes",
		"pncd_bgp_neighbor_faults_total", "pncd_bgp_neighbor_malformed_total", "pncd_bgp_neighbor_nhc_disregarded_total", "pncd_bgp_neighbor_state", "pncd_bgp_neighbor_up", "pncd_build_info",
		"pncd_enabled", "pncd_learner_bad_icrc_total", "pncd_learner_cm_mads_total", "pncd_learner_kernel_flows", "pncd_outcomes_total",
		"pncd_start_time_seconds", "pncd_table_capacity", "pncd_table_entries", "pncd_tap_drops_total",
	}
	if err := testutil.CollectAndCompare(NewCollector(fixed{sample()}), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestMetricNamesFollowThePrometheusConventions(t *testing.T) {
	problems, err := testutil.CollectAndLint(NewCollector(fixed{sample()}))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestSeriesReportedTwiceDoesNotFailTheScrape(t *testing.T) {
	s := sample()
	s.Neighbors = append(s.Neighbors, s.Neighbors...)
	s.Counters = append(s.Counters, s.Counters...)
	s.Parts = append(s.Parts, Part{Name: "tap:\xff", State: "unheard-of"})
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(fixed{s}))
	if _, err := reg.Gather(); err != nil {
		t.Errorf("Gather() = %v, want every series once", err)
	}
}

func TestMetricNameKeepsOnlyLegalCharacters(t *testing.T) {
	for in, want := range map[string]string{"map-miss": "map_miss", "tap:eth0": "tap_eth0", "CM REQ": "cm_req", "a_b9": "a_b9"} {
		if got := metricName(in); got != want {
			t.Errorf("metricName(%q) = %q, want %q", in, got, want)
		}
	}
}
