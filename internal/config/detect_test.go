package config

import (
	"errors"
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
	if q := d.VirtualQueues[0]; q.Kmin != 62_500 || q.Kmax != 156_250 || q.Pmax != DefaultPmax {
		t.Errorf("%+v", q)
	}
}

const vpnLinks = `
contexts: [{name: blue, namespace: blue}, {name: green, device: vrf0}]
congestion_node:
  source_ipv4: 192.0.2.1
  interfaces: [eth2]
  contexts: [{name: blue, nrp: 1, interfaces: [eth3]}, {name: green, nrp: 2, interfaces: [eth4]}]
  detect:
    virtual_queues: [%s]
`

func TestVirtualQueuesAreOfALinkInItsNamespace(t *testing.T) {
	for queue, want := range map[string]string{
		"{interface: eth3, rate_mbit: 1}":                 "[eth2 blue/eth3 green/eth4 eth3+queue]",
		"{interface: eth3, context: blue, rate_mbit: 1}":  "[eth2 blue/eth3+queue green/eth4]",
		"{interface: eth4, rate_mbit: 1}":                 "[eth2 blue/eth3 green/eth4+queue]",
		"{interface: eth4, context: green, rate_mbit: 1}": "[eth2 blue/eth3 green/eth4+queue]",
		"{interface: eth5, context: blue, rate_mbit: 1}":  "[eth2 blue/eth3 green/eth4 blue/eth5+queue]",
	} {
		c, err := Parse(fmt.Appendf(nil, vpnLinks, queue))
		if err != nil {
			t.Errorf("%s: %v", queue, err)
			continue
		}
		var got []string
		for _, l := range c.DetectorLinks() {
			s := l.Interface
			if l.Context != "" {
				s = l.Context + "/" + s
			}
			if l.Queue != nil {
				s += "+queue"
			}
			if (l.Namespace != "") != (l.Context == "blue") || l.CE == (s == "eth3+queue" || s == "blue/eth5+queue") {
				t.Errorf("%s: %+v", queue, l)
			}
			got = append(got, s)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", queue, got, want)
		}
	}
	for queue, want := range map[string]string{
		"{interface: eth3, context: red, rate_mbit: 1}":                                                "virtual_queues[0].context: \"red\" is none of congestion_node.contexts",
		"{interface: eth2, context: green, rate_mbit: 1}":                                              "virtual_queues[0].context: eth2 is a link of context \"\"",
		"{interface: eth4, rate_mbit: 1}, {interface: eth4, context: green, rate_mbit: 1}":             "virtual_queues[1].interface: \"eth4\" is given twice",
		"{interface: eth3, context: blue, rate_mbit: 1}, {interface: eth3, rate_mbit: 1, kmin: 10000}": "virtual_queues[1].kmin",
	} {
		if _, err := Parse(fmt.Appendf(nil, vpnLinks, queue)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", queue, err, want)
		}
	}
}

func TestVirtualQueuesAloneAreEnough(t *testing.T) {
	if _, err := Parse([]byte("congestion_node: {source_ipv4: 192.0.2.1, detect: {virtual_queues: [{interface: eth3, rate_mbit: 10}]}}")); err != nil {
		t.Error(err)
	}
}

func TestQueueSources(t *testing.T) {
	c, err := Parse([]byte(`congestion_node:
  source_ipv4: 192.0.2.1
  contexts: [{name: blue, nrp: 5, interfaces: [eth4]}, {name: red, nrp: 6}]
  detect: {qdiscs: [{interface: eth2}, {interface: eth4, backlog: 9}, {interface: eth6, context: red}], api: {interfaces: [eth5, eth2]}}
contexts: [{name: blue}, {name: red, namespace: red}]
`))
	if err != nil {
		t.Fatal(err)
	}
	d := &c.CongestionNode.Detect
	if q := d.Qdiscs; q[0].Interval.Duration != DefaultQdiscInterval || q[0].Backlog != 0 || q[1].Backlog != 9 {
		t.Errorf("%+v", q)
	}
	if d.API.Rate != DefaultReportRate || d.API.Burst != DefaultPaceBurst {
		t.Errorf("%+v", d.API)
	}
	if d.TopFlows != (TopFlows{Count: 8, Share: 5, Window: Duration{DefaultTopWindow}, Sample: 16}) {
		t.Errorf("%+v", d.TopFlows)
	}
	var got []string
	for _, l := range c.SampledLinks() {
		got = append(got, l.Context+"/"+l.Namespace+"/"+l.Interface)
	}
	if want := "[//eth2 blue//eth4 red/red/eth6 //eth5]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if q := c.QdiscLinks()[1]; q.Context != "blue" || q.Qdisc.Backlog != 9 {
		t.Errorf("%+v", q)
	}
	for _, alone := range []string{"{qdiscs: [{interface: eth3}]}", "{api: {}}"} {
		if _, err := Parse([]byte("congestion_node: {source_ipv4: 192.0.2.1, detect: " + alone + "}")); err != nil {
			t.Errorf("%s alone: %v", alone, err)
		}
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
		"{virtual_queues: [{interface: eth3}]}": "virtual_queues[0].rate_mbit: required",
		"{virtual_queues: [{rate_mbit: 10}]}":   `virtual_queues[0].interface: "" is not`,
		"{virtual_queues: [{interface: eth3, rate_mbit: 10, kmin: 5, kmax: 5}]}":         "virtual_queues[0].kmin: 5 is not less than kmax, 5",
		"{virtual_queues: [{interface: eth3, rate_mbit: 1, kmax: 125001}]}":              "virtual_queues[0].kmax: 125001 is not between 1 and 125000",
		"{virtual_queues: [{interface: eth3, rate_mbit: 10, pmax: 101}]}":                "virtual_queues[0].pmax: 101 is not between 1 and 100",
		"{mode: ring, virtual_queues: [{interface: eth2, rate_mbit: 10}]}":               `virtual_queues[0].interface: "eth2" is watched with mode ring`,
		"{virtual_queues: [{interface: a, rate_mbit: 1}, {interface: a, rate_mbit: 1}]}": `virtual_queues[1].interface: "a" is given twice`,
		"{qdiscs: [{interface: a, context: red}]}":                                       `qdiscs[0].context: "red" is none of congestion_node.contexts`,
		"{qdiscs: [{}]}": `congestion_node.detect.qdiscs[0].interface: "" is not`,
		"{qdiscs: [{interface: a}, {interface: a}]}":  `qdiscs[1].interface: "a" is given twice`,
		"{qdiscs: [{interface: a, interval: 100us}]}": "qdiscs[0].interval: 100µs is not between 1ms and 1m0s",
		"{qdiscs: [{interface: a, backlog: -1}]}":     "qdiscs[0].backlog: -1 is not between 0",
		"{api: {interfaces: [a, a]}}":                 `congestion_node.detect.api.interfaces[1]: "a" is given twice`,
		"{api: {interfaces: ['']}}":                   `api.interfaces[0]: "" is not`,
		"{api: {rate: 0}}":                            "api.rate: 0 is not between 1 and",
		"{api: {burst: 0}}":                           "api.burst: 0 is not between 1 and",
		"{top_flows: {count: 65}}":                    "congestion_node.detect.top_flows.count: 65 is not between 1 and 64",
		"{top_flows: {share: 0}}":                     "top_flows.share: 0 is not between 1 and 100",
		"{top_flows: {window: 1ms}}":                  "top_flows.window: 1ms is not between 10ms and 1m0s",
		"{top_flows: {sample: 100000}}":               "top_flows.sample: 100000 is not between 1 and 65536",
		"{top_flows: {flows: 3}}":                     "top_flows.flows: unknown key",
	} {
		if _, err := parseDetect(t, detect); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %q", detect, err, want)
		}
	}
}

func TestQueueWithoutARateHasOneProblem(t *testing.T) {
	for detect, want := range map[string]string{
		"{virtual_queues: [{interface: eth3}]}":               "rate_mbit: required",
		"{virtual_queues: [{interface: eth3, rate_mbit: 0}]}": "rate_mbit: 0 is not between 1 and 1600000",
	} {
		_, err := parseDetect(t, detect)
		var e *Error
		if !errors.As(err, &e) || len(e.Problems) != 1 || !strings.HasSuffix(e.Problems[0].String(), want) {
			t.Errorf("%s: %v\nwant %q alone", detect, err, want)
		}
	}
}
