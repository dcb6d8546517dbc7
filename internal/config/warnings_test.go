package config

import (
	"fmt"
	"strings"
	"testing"

	"pncd/deploy"
)

func TestWhatDoesNothingIsAWarning(t *testing.T) {
	const proxy = "proxy:\n  ipv4: 192.0.2.1\n  taps: [eth0]\n  accept_from: [192.0.2.0/24]\n"
	const none = "  senders: [{prefix: 198.51.100.0/24, mode: none}]\n"
	const blue = `{name: blue, rd: "65000:1", export: ["65000:1"], label: implicit-null`
	bgp := "bgp: {as: 65000, router_id: 192.0.2.1, neighbors: [{address: 192.0.2.254, as: 65000}]}\n"
	sender := func(proxy string) string {
		return "  senders: [{prefix: 198.51.100.0/24, context: blue, next_hop: 192.0.2.254, proxy: " + proxy + "}]\n"
	}
	for _, tc := range []struct {
		yaml string
		want []string
	}{
		{string(deploy.ReferenceConfig), nil},
		{"isis: {net: 49.0001.0000.0000.0001.00}\n", []string{"line 1: isis.circuits: none: this system speaks with nobody"}},
		{"isis: {net: 49.0001.0000.0000.0001.00, circuits: [{interface: isis0}]}\n", nil},
		{"ospfv2: {router_id: 192.0.2.2}\n", []string{"line 1: ospfv2.links: none: this router speaks with nobody"}},
		{"ospfv3: {router_id: 192.0.2.2, areas: [{id: 1, type: stub}]}\n", []string{"line 1: ospfv3.links: none: this router speaks with nobody"}},
		{"ospfv2:\n  router_id: 192.0.2.2\n  areas: [{id: 1, type: stub}, {id: 2}]\n  links: [{interface: ospf0, area: 2}]\n",
			[]string{"line 3: ospfv2.areas[0].id: no link is in area 0.0.0.1: nothing is learned or marked there"}},
		{"congestion_node: {source_ipv4: 192.0.2.1, interfaces: [eth2], detect: {top_flows: {count: 1}, api: {}}}\n", []string{
			"line 1: congestion_node.detect.top_flows: neither qdiscs nor api.interfaces name a link: no flow has to be named"}},
		{"congestion_node: {source_ipv4: 192.0.2.1, interfaces: [eth2], detect: {top_flows: {count: 1}, api: {interfaces: [eth2]}}}\n", nil},
		{"proxy:\ncongestion_node:\n", []string{"line 1: proxy: is empty: as if it were not there", "line 2: congestion_node: is empty: as if it were not there"}},
		{proxy + none + "  nrp:\n", []string{"line 6: proxy.nrp: is empty: as if it were not there"}},
		{proxy + none + "  translate_interfaces: [eth1]\n  translate_records: 10\n", []string{
			"line 6: proxy.translate_interfaces: only with translate: kernel: notifications are translated in user space, whatever they come in by",
			"line 7: proxy.translate_records: only with translate: kernel: what is translated in user space is recorded each time",
		}},
		{proxy + none + "  translate_interfaces: [eth1]\n  translate_records: 10\n  translate: kernel\n", nil},
		{proxy + none + "  tap: ring\n  tap_flows: 2048\n", []string{"line 7: proxy.tap_flows: not with tap: ring: there is no map of the kernel's to hold flows"}},
		{proxy + none + "  tap: auto\n  tap_flows: 2048\n", nil},
		{bgp + "contexts: [" + blue + "}]\n" + proxy + sender("192.0.2.1"), []string{
			`line 7: proxy.senders[0].context: context "blue" has no place on this host: nothing is translated for the prefix`,
			"line 7: proxy.senders[0].context: without proxy.nrp no notification about a VPN is taken",
		}},
		{bgp + "contexts: [" + blue + "}]\n" + proxy + sender("192.0.2.7"), nil}, // another node translates
		{bgp + "contexts: [" + blue + ", device: vrf0}]\n" + proxy + sender("192.0.2.1") + "  nrp: {}\n", nil},
	} {
		c, err := Parse([]byte(tc.yaml))
		if err != nil {
			t.Errorf("%.40s: %v", tc.yaml, err)
			continue
		}
		var got []string
		for _, w := range c.Warnings() {
			got = append(got, w.String())
		}
		if fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%.40s:\n%s\nwant\n%s", tc.yaml, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
}
