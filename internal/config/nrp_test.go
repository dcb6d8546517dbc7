package config

import (
	"strings"
	"testing"
)

const (
	vpnContexts = "contexts:\n- {name: blue}\n- {name: red}\n"
	vpnProxy    = "proxy:\n  ipv4: 192.0.2.1\n  taps: [eth0]\n  accept_from: [192.0.2.0/24]\n  senders:\n  - prefix: 198.51.100.0/24\n"
	vpnNode     = "congestion_node:\n  source_ipv4: 192.0.2.1\n"
)

func TestNRPMapIsHeldToTheRules(t *testing.T) {
	const flow = "sender: 198.51.100.1, receiver: 192.0.2.1, source_qp: 0x18a"
	for _, tc := range []struct{ name, entry, want string }{
		{"nothing", "{id: 1}", "proxy.nrp.map[0].context: required"},
		{"unknown context", "{id: 1, context: green}", `proxy.nrp.map[0].context: "green" is none of contexts`},
		{"ID", "{id: 4294967296, context: blue}", "proxy.nrp.map[0].id: 4294967296 is not between 0 and 4294967295"},
		{"no ID", "{context: blue}", "proxy.nrp.map[0].id: required"},
		{"negative ID", "{id: -1, context: blue}", "proxy.nrp.map[0].id: -1 is not between"},
		{"no receiver", "{id: 1, sender: 198.51.100.1, source_qp: 5}", "proxy.nrp.map[0].receiver: required"},
		{"no sender", "{id: 1, receiver: 198.51.100.1, source_qp: 5}", "proxy.nrp.map[0].sender: required"},
		{"no Source QP", "{id: 1, sender: 198.51.100.1, receiver: 192.0.2.1}", "proxy.nrp.map[0].source_qp: 0 is not between 2 and 16777215"},
		{"families", "{id: 1, sender: 198.51.100.1, receiver: \"2001:db8::1\", source_qp: 5}", "proxy.nrp.map[0].receiver: 2001:db8::1 is not of the sender's"},
		{"multicast", "{id: 1, sender: 224.0.0.1, receiver: 192.0.2.1, source_qp: 5}", "proxy.nrp.map[0].sender: 224.0.0.1 is not a unicast"},
		{"twice", "{id: 1, context: blue}\n    - {id: 1, context: red}", "proxy.nrp.map[1]: the same id, sender and receiver as map[0]"},
		{"flow twice", "{id: 1, " + flow + "}\n    - {id: 1, " + flow + "}", "proxy.nrp.map[1]: the same id"},
		{"good", "{id: 1, context: blue}\n    - {id: 1, " + flow + "}\n    - {id: 0, context: red}", ""},
	} {
		_, err := Parse([]byte(vpnContexts + vpnProxy + "  nrp:\n    map:\n    - " + tc.entry + "\n"))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
	if _, err := Parse([]byte(vpnContexts + vpnProxy + "  nrp:\n    entries: 1\n    map: [{id: 1, context: blue}, {id: 2, context: red}]\n")); err == nil || !strings.Contains(err.Error(), "proxy.nrp.entries") {
		t.Errorf("%v", err)
	}
	c, err := Parse([]byte(vpnProxy + "  nrp: {}\nboundary:\n  border_interfaces: [eth9]\n"))
	if err != nil || c.Proxy.NRP == nil || c.Proxy.NRP.Entries != DefaultNRPEntries || len(c.Boundary.Ports) != 2 || c.Boundary.Ports[1] != DefaultFormat2Port {
		t.Errorf("%v", err)
	}
	if _, err := Parse([]byte(vpnProxy + "  port: 1022\n")); err != nil {
		t.Errorf("the port of format 2, where there is none: %v", err)
	}
	if _, err := Parse([]byte(vpnProxy + "  port: 1022\n  nrp: {}\n")); err == nil || !strings.Contains(err.Error(), "proxy.port_format2: 1022 is proxy.port") {
		t.Errorf("%v", err)
	}
	if _, err := Parse([]byte(vpnProxy + "  nrp: {}\nboundary:\n  ports: [1021]\n")); err == nil || !strings.Contains(err.Error(), "1022 of proxy.port_format2 is missing") {
		t.Errorf("%v", err)
	}
}

func TestContextsOfACongestionNodeAreHeldToTheRules(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"unknown", "  contexts: [{name: green, nrp: 1}]\n", `congestion_node.contexts[0].name: "green" is none of contexts`},
		{"no NRP", "  contexts: [{name: blue}]\n", "congestion_node.contexts[0].nrp: required"},
		{"NRP", "  contexts: [{name: blue, nrp: -1}]\n", "congestion_node.contexts[0].nrp: -1 is not between"},
		{"twice", "  contexts: [{name: blue, nrp: 1}, {name: blue, nrp: 2}]\n", `contexts[1].name: "blue" is congestion_node.contexts[0] already`},
		{"NRP twice", "  contexts: [{name: blue, nrp: 1}, {name: red, nrp: 1}]\n", "contexts[1].nrp: 1 is that of congestion_node.contexts[0]"},
		{"link of two", "  interfaces: [eth1]\n  contexts: [{name: blue, nrp: 1, interfaces: [eth1]}]\n", "contexts[0].interfaces[0]: eth1 is one of congestion_node.interfaces"},
		{"one port", "  port_format2: 1021\n  contexts: [{name: blue, nrp: 1}]\n", "port_format2: 1021 is congestion_node.port"},
		{"one port, unused", "  interfaces: [eth1]\n  port: 1022\n", ""},
		{"good", "  contexts: [{name: blue, nrp: 0, interfaces: [eth1]}, {name: red, nrp: 4294967295}]\n", ""},
	} {
		_, err := Parse([]byte(vpnContexts + vpnNode + tc.yaml))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}
