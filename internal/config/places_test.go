package config

import (
	"strings"
	"testing"
)

func TestPlacesOfContextsAreHeldToTheRules(t *testing.T) {
	const proxy = "proxy:\n  ipv4: 192.0.2.1\n  taps: [eth0]\n  accept_from: [192.0.2.0/24]\n  senders:\n  - {prefix: 198.51.100.0/24, context: blue}\n"
	for _, tc := range []struct{ name, contexts, want string }{
		{"no place", "{name: blue}", `proxy.senders[0].mode: none: the sender is served only if context "blue" has a device`},
		{"device", "{name: blue, device: vrf0, taps: [eth1]}", ""},
		{"namespace", "{name: blue, namespace: blue, taps: [eth0]}", ""},
		{"namespace by path", "{name: blue, namespace: /proc/7/ns/net}", ""},
		{"table", "{name: blue, table: 100, mark: 0x64, taps: [eth1]}", ""},
		{"two", "{name: blue, device: vrf0, namespace: blue}", "contexts[0]: give one of device, namespace, and table with mark"},
		{"table alone", "{name: blue, table: 100}", "contexts[0].mark: table and mark go together"},
		{"mark alone", "{name: blue, mark: 100}", "contexts[0].mark: table and mark go together"},
		{"main table", "{name: blue, table: 254, mark: 1}", "contexts[0].table: 254 is one of this host's own"},
		{"long device", "{name: blue, device: vrf0123456789abc}", "contexts[0].device:"},
		{"namespace with a space", "{name: blue, namespace: \"a b\"}", "contexts[0].namespace:"},
		{"taps without a place", "{name: blue, taps: [eth1]}", "contexts[0].taps: only with device, namespace, or table and mark"},
		{"tap of the default context", "{name: blue, device: vrf0, taps: [eth0]}", "contexts[0].taps[0]: eth0 is one of proxy.taps"},
		{"tap of two", "{name: blue, device: vrf0, taps: [eth1]}\n- {name: red, device: vrf1, taps: [eth1]}", "contexts[1].taps[0]: eth1 is one of contexts[0].taps"},
		{"the same name in two namespaces", "{name: blue, namespace: a, taps: [eth1]}\n- {name: red, namespace: b, taps: [eth1]}", ""},
		{"one device", "{name: blue, device: vrf0}\n- {name: red, device: vrf0}", "contexts[1].device: vrf0 is that of contexts[0]"},
		{"one mark", "{name: blue, table: 1, mark: 7}\n- {name: red, table: 2, mark: 7}", "contexts[1].mark: 7 is that of contexts[0]"},
		{"one namespace", "{name: blue, namespace: a}\n- {name: red, namespace: a}", "contexts[1].namespace: a is that of contexts[0]"},
	} {
		_, err := Parse([]byte("contexts:\n- " + tc.contexts + "\n" + proxy))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestALinkIsOfOneContextWhetherTappedOrWatched(t *testing.T) {
	const base = `
contexts: [{name: blue, device: vrf0, taps: [eth1]}, {name: red, namespace: red, taps: [eth1]}, {name: green, device: vrf1}]
proxy:
  ipv4: 192.0.2.1
  taps: [eth0]
  accept_from: [192.0.2.0/24]
  senders: [{prefix: 198.51.100.0/24}]
congestion_node:
  source_ipv4: 192.0.2.1
`
	for node, want := range map[string]string{
		"interfaces: [eth0]": "",
		"interfaces: [eth1]": "congestion_node.interfaces[0]: eth1 is one of contexts[0].taps",
		"contexts: [{name: blue, nrp: 1, interfaces: [eth1]}, {name: red, nrp: 2, interfaces: [eth1]}]": "",
		"contexts: [{name: green, nrp: 1, interfaces: [eth2, eth1]}]":                                   "congestion_node.contexts[0].interfaces[1]: eth1 is one of contexts[0].taps",
		"contexts: [{name: green, nrp: 1, interfaces: [eth0]}]":                                         "congestion_node.contexts[0].interfaces[0]: eth0 is one of proxy.taps",
		"detect: {qdiscs: [{interface: eth1}]}":                                                         "congestion_node.detect.qdiscs[0].interface: eth1 is one of contexts[0].taps",
		"detect: {api: {interfaces: [eth0, eth1]}}":                                                     "congestion_node.detect.api.interfaces[1]: eth1 is one of contexts[0].taps",
		"detect: {virtual_queues: [{interface: eth1, rate_mbit: 1}]}":                                   "congestion_node.detect.virtual_queues[0].interface: eth1 is one of contexts[0].taps",
	} {
		_, err := Parse([]byte(base + "  " + node + "\n"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", node, err, want)
		}
	}
}

// The order of what is wrong is that of the file, each time.
func TestProblemsOfAPlaceHaveAnOrder(t *testing.T) {
	for range 20 {
		_, err := Parse([]byte("contexts:\n- {name: blue, table: 7, mark: 8}\n- {name: red, table: 7, mark: 8}\n"))
		if err == nil || strings.Index(err.Error(), "contexts[1].table") > strings.Index(err.Error(), "contexts[1].mark") {
			t.Fatal(err)
		}
	}
}
