package config

import (
	"strings"
	"testing"
)

const vpnBase = `
contexts:
  - {name: blue, import: ["65000:100"], rd: "192.0.2.1:1", export: ["65000:9100"], label: implicit-null}
  - {name: red, import: ["65000:200"]}
static:
  - {prefix: 203.0.113.0/24, proxy: 192.0.2.99}
  - {prefix: 203.0.113.0/24, proxy: 192.0.2.99, context: blue}
bgp:
  as: 65000
  router_id: 192.0.2.1
  neighbors: [{address: 192.0.2.254, as: 65000, families: [ipv4-unicast, vpnv4-unicast, vpnv6-unicast]}]
proxy:
  ipv4: 192.0.2.1
  ipv6: "2001:db8::1"
  taps: [eth0]
  accept_from: [192.0.2.0/24]
  senders:
    - {prefix: 198.51.100.0/24, next_hop: 192.0.2.254}
    - {prefix: 198.51.100.0/24, context: blue, next_hop: 192.0.2.254}
    - {prefix: "2001:db8:7::/48", context: blue, next_hop: 192.0.2.1}
`

func TestContextsHaveDefaultsAndKeepEqualPrefixesApart(t *testing.T) {
	c, err := Parse([]byte(vpnBase))
	if err != nil {
		t.Fatal(err)
	}
	blue, red := c.Contexts[0], c.Contexts[1]
	if blue.Label != (Label{3, true}) || red.Label.Given || red.RD != "" || red.Export != nil {
		t.Errorf("%+v, %+v", blue, red)
	}
	if s := c.Proxy.Senders[1]; s.Mode != "originate" || s.NextHop.String() != "192.0.2.254" || s.Proxy.String() != "192.0.2.1" {
		t.Errorf("sender in a context: %+v", s)
	}
	if got := c.Proxy.ServedPrefixes(); len(got) != 1 || got[0].String() != "198.51.100.0/24" {
		t.Errorf("translates for %v; senders in contexts are announced only", got)
	}
}

func TestAWrongContextNamesTheKeyAndTheRule(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"name: red", "name: blue", `contexts[1].name: "blue" is given twice`},
		{"name: red, ", "", "contexts[1].name: \"\": required"},
		{"name: red", `name: "re d"`, "without spaces"},
		{`["65000:200"]`, `["65000"]`, `contexts[1].import[0]: "65000" is not AS:number`},
		{`["65000:200"]`, `["65000:200", "65000:200"]`, "contexts[1].import[1]: \"65000:200\" is given twice"},
		{`["65000:200"]`, `["70000:65536"]`, "contexts[1].import[0]"},
		{`"192.0.2.1:1"`, `"192.0.2.1:65536"`, "contexts[0].rd"},
		{"label: implicit-null", "label: 15", `"15" is neither implicit-null nor a label`},
		{"label: implicit-null", "label: 1048576", "label"},
		{", label: implicit-null", "", `context "blue" needs label`},
		{`, rd: "192.0.2.1:1"`, "", `context "blue" needs rd`},
		{`, export: ["65000:9100"]`, "", `context "blue" needs export`},
		{"proxy: 192.0.2.99, context: blue", "proxy: 192.0.2.99, context: green", `static[1].context: "green" is none of contexts`},
		{"proxy: 192.0.2.99, context: blue", "proxy: 192.0.2.99", "the same as static[0]"},
		{"198.51.100.0/24, context: blue", "198.51.100.0/24, context: green", `proxy.senders[1].context: "green" is none of contexts`},
		{"198.51.100.0/24, context: blue", "198.51.100.0/24", "is senders[0] already"},
		{"198.51.100.0/24, context: blue", "198.51.100.0/24, context: blue, mode: none", "only if context \"blue\" has a device, a namespace, or a table with a mark"},
		{"198.51.100.0/24, context: blue, next_hop: 192.0.2.254", "198.51.100.0/24, context: red, mode: path", "proxy.senders[1].from: required"},
		{`import: ["65000:100"], rd: "192.0.2.1:1", export: ["65000:9100"], label: implicit-null}`, `}`, `context "blue" needs rd`},
		{"context: blue, next_hop: 192.0.2.254", "context: blue", "proxy.senders[1].next_hop: required with mode originate"},
		{"context: blue, next_hop: 192.0.2.254", `context: blue, next_hop: "2001:db8::1"`, "is IPv6 and the VPN's prefix is IPv4"},
		{"vpnv6-unicast]", "vpnv5-unicast]", "vpnv5-unicast"},
		{"name: red,", "name: red, vrf: red,", "vrf"},
		{"name: red,", `name: red, accept_from: ["::/0"],`, "contexts[1].accept_from[0]: ::/0 is not an IPv4 prefix"},
		{"name: red,", "name: red, import_prefixes: [{le: 24}],", "contexts[1].import_prefixes[0].prefix: required"},
		{"name: red,", "name: red, export_prefixes: [{prefix: 10.0.0.0/8, le: 7}],", "contexts[1].export_prefixes[0].le: 7 is not between 8 and 32"},
		{"name: red,", "name: red, require_communities: [blue],", "contexts[1].require_communities[0]: \"blue\" is not a community"},
		{"name: red,", "name: red, communities: [\"1:2:3:4\"],", "contexts[1].communities[0]: \"1:2:3:4\" is not a community"},
	} {
		text := strings.Replace(vpnBase, tt.from, tt.to, 1)
		if text == vpnBase {
			t.Fatalf("%q isn't in the configuration", tt.from)
		}
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s -> %s: got %v, want %q", tt.from, tt.to, err, tt.want)
		}
	}
}

func TestVPNNumbersAreThoseThatTheSpeakerReads(t *testing.T) {
	for s, want := range map[string]bool{
		"0:0": true, "65535:4294967295": true, "65536:65535": true, "4294967295:1": true, "192.0.2.1:65535": true,
		"0:65000:4294967295": true, "2:65000:65535": true, "1:192.0.2.1:1": true,
		"": false, ":": false, "65000": false, "65000:": false, ":1": false, "65535:4294967296": false, "65536:65536": false,
		"192.0.2.1:65536": false, "2:65000:65536": false, "0:65536:1": false, "0:192.0.2.1:1": false, "1:65000:1": false,
		"3:65000:1": false, "+1:1": false, "1_0:1": false, "2001:db8::1:1": false, "-1:1": false, "1:-1": false,
	} {
		if got := isVPNNumber(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

func TestDiffNamesContextsByTheirName(t *testing.T) {
	before, err := Parse([]byte(vpnBase))
	if err != nil {
		t.Fatal(err)
	}
	after, err := Parse([]byte(strings.Replace(vpnBase, "65000:200", "65000:300", 1)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Diff(before, after)
	if err != nil || len(got) != 1 || got[0] != "contexts[red].import: [65000:200] -> [65000:300]" {
		t.Errorf("%v, %v", got, err)
	}
}
