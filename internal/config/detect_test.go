package config

import (
	"fmt"
	"strings"
	"testing"
)

func parseDetect(t *testing.T, detect string) (*Config, error) {
	t.Helper()
	return Parse([]byte("congestion_node: {interfaces: [eth2], source_ipv4: 192.0.2.1, detect: " + detect + "}\n"))
}

func TestDetectDefaults(t *testing.T) {
	c, err := parseDetect(t, "{virtual_queues: [{interface: eth3, rate_mbit: 10000}]}")
	if err != nil {
		t.Fatal(err)
	}
	d := &c.CongestionNode.Detect
	if d.Mode != DetectAuto || d.Gate.Duration != DefaultGate || d.Flows != DefaultPaceState {
		t.Errorf("%+v", d)
	}
	if q := d.VirtualQueue("eth3"); q == nil || q.Kmin != 62_500 || q.Kmax != 156_250 || q.Pmax != DefaultPmax {
		t.Errorf("%+v", q)
	}
	if d.VirtualQueue("eth2") != nil {
		t.Error("eth2 has a queue")
	}
	n := c.CongestionNode
	n.Contexts = []NodeContext{{Name: "blue", Interfaces: []string{"eth4"}}}
	if got := fmt.Sprint(n.DetectorLinks()); got != "[{ eth2 true} {blue eth4 true} { eth3 false}]" {
		t.Error(got)
	}
}

func TestVirtualQueuesAloneAreEnough(t *testing.T) {
	if _, err := Parse([]byte("congestion_node: {source_ipv4: 192.0.2.1, detect: {virtual_queues: [{interface: eth3, rate_mbit: 10}]}}")); err != nil {
		t.Error(err)
	}
}

func TestDetectErrorsNameKeyAndRule(t *testing.T) {
	for detect, want := range map[string]string{
		"{mode: xdp}":                           `congestion_node.detect.mode: "xdp" is none of auto, ring, tcx`,
		"{gate: 2m}":                            "congestion_node.detect.gate: 2m0s is not between 0s and 1m0s",
		"{flows: 10}":                           "congestion_node.detect.flows: 10 is not between 1024",
		"{gates: 1ms}":                          "congestion_node.detect.gates: unknown key; did you mean gate?",
		"{mode: }":                              "congestion_node.detect.mode",
		"{flows: many}":                         "congestion_node.detect.flows: many is not a whole number",
		"{virtual_queues: [{interface: eth3}]}": "virtual_queues[0].rate_mbit: 0 is not between 1",
		"{virtual_queues: [{rate_mbit: 10}]}":   `virtual_queues[0].interface: "" is not`,
		"{virtual_queues: [{interface: eth3, rate_mbit: 10, kmin: 5, kmax: 5}]}":         "virtual_queues[0].kmin: 5 is not less than kmax, 5",
		"{virtual_queues: [{interface: eth3, rate_mbit: 1, kmax: 125001}]}":              "virtual_queues[0].kmax: 125001 is not between 1 and 125000",
		"{virtual_queues: [{interface: eth3, rate_mbit: 10, pmax: 101}]}":                "virtual_queues[0].pmax: 101 is not between 1 and 100",
		"{mode: ring, virtual_queues: [{interface: eth2, rate_mbit: 10}]}":               `virtual_queues[0].interface: "eth2" is watched with mode ring`,
		"{virtual_queues: [{interface: a, rate_mbit: 1}, {interface: a, rate_mbit: 1}]}": `virtual_queues[1].interface: "a" is given twice`,
	} {
		if _, err := parseDetect(t, detect); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %q", detect, err, want)
		}
	}
}
