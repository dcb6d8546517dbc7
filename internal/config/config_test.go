package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"pncd/deploy"
)

func TestReferenceIsValidAndNamesEveryKey(t *testing.T) {
	c, err := Parse(deploy.ReferenceConfig)
	if err != nil {
		t.Fatalf("deploy/pncd.yaml: %v", err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(deploy.ReferenceConfig, &root); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys(reflect.TypeOf(*c), "") {
		if find(&root, key) == nil && !elsewhere[key] && !strings.HasPrefix(key, "ospfapi.") {
			t.Errorf("key %s is not in deploy/pncd.yaml", key)
		}
	}
	if find(&root, "proxy.senders[1].from") == nil {
		t.Error("key proxy.senders[].from is not in deploy/pncd.yaml")
	}
	for _, key := range []string{"contexts[1].namespace", "contexts[2].table", "contexts[2].mark"} {
		if find(&root, key) == nil {
			t.Errorf("key %s is not in deploy/pncd.yaml", key)
		}
	}
}

// elsewhere are keys that the reference can't have in that place.
var elsewhere = map[string]bool{
	"proxy.senders[0].from":                    true, // in the second one
	"contexts[0].namespace":                    true, // instead of a device, in the second one
	"contexts[0].table":                        true, // in the third one
	"contexts[0].mark":                         true,
	"ospfv2.links[0].instance":                 true, // OSPFv3 alone
	"ospfv3.link_metric":                       true, // OSPFv2 alone, as those that follow
	"ospfv3.flag_mask":                         true,
	"ospfv3.links[0].keys[0].bind_source":      true,
	"ospfv2.links[0].keys[0].swap_protocol_id": true, // OSPFv3 alone
}

// The section that excludes another one is a comment there.
func TestReferenceNamesEveryKeyOfTheAPILearner(t *testing.T) {
	_, section, found := strings.Cut(string(deploy.ReferenceConfig), "\n#ospfapi:")
	section, _, _ = strings.Cut("#ospfapi:"+section, "\n\n")
	text := regexp.MustCompile(`(?m)^#`).ReplaceAllString(section, "")
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil || !found {
		t.Fatalf("%v in %s", err, text)
	}
	if _, err := Parse([]byte(text)); err != nil {
		t.Error(err)
	}
	for _, key := range keys(reflect.TypeFor[OSPFAPI](), "ospfapi") {
		if find(&root, key) == nil {
			t.Errorf("key %s is not in deploy/pncd.yaml", key)
		}
	}
}

// keys lists every key below a type; lists stand for their first element.
func keys(t reflect.Type, at string) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return keys(t.Elem(), at)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct && t.Elem().NumField() > 1 {
			return keys(t.Elem(), at+"[0]")
		}
		return []string{at}
	case reflect.Struct:
		if _, leaf := reflect.New(t).Interface().(yaml.Unmarshaler); leaf {
			return []string{at}
		}
		var out []string
		for key, typ := range fields(t) {
			if at != "" {
				key = at + "." + key
			}
			out = append(out, keys(typ, key)...)
		}
		return out
	default:
		return []string{at}
	}
}

func TestDefaultsAreThoseOfTheReference(t *testing.T) {
	const minimal = `
bgp: {as: 65000, router_id: 192.0.2.1, neighbors: [{address: 192.0.2.254, as: 65000}, {address: 192.0.2.253, as: 65001}]}
congestion_node: {interfaces: [eth2], source_ipv4: 192.0.2.1}
proxy: {ipv4: 192.0.2.1, taps: [eth0], accept_from: [192.0.2.0/24], senders: [{prefix: 198.51.100.0/24, next_hop: 192.0.2.254}]}
`
	c, err := Parse([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := Parse(deploy.ReferenceConfig)
	if err != nil {
		t.Fatal(err)
	}
	same := func(name string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: default %v, the reference shows %v", name, got, want)
		}
	}
	same("log", c.Log, ref.Log)
	same("api.listen", c.API.Listen, ref.API.Listen)
	same("evidence", c.Evidence, ref.Evidence)
	same("resolve", c.Resolve, ref.Resolve)
	same("bgp.port", c.BGP.Port, ref.BGP.Port)
	same("bgp.pnc_code", c.BGP.PNCCode, ref.BGP.PNCCode)
	n, rn := c.BGP.Neighbors[0], ref.BGP.Neighbors[0]
	same("hold_time", n.HoldTime, rn.HoldTime)
	same("keepalive", n.Keepalive, rn.Keepalive)
	same("connect_retry", n.ConnectRetry, rn.ConnectRetry)
	same("port", n.Port, rn.Port)
	same("local_as", n.LocalAS, rn.LocalAS)
	same("graceful_restart", n.GracefulRestart, rn.GracefulRestart)
	same("send_nhc", *n.SendNHC, *rn.SendNHC)
	same("congestion_node.port", c.CongestionNode.Port, ref.CongestionNode.Port)
	same("congestion_node.dscp", c.CongestionNode.DSCP, ref.CongestionNode.DSCP)
	same("congestion_node.ttl", c.CongestionNode.TTL, ref.CongestionNode.TTL)
	same("congestion_node.pace", c.CongestionNode.Pace, ref.CongestionNode.Pace)
	same("congestion_node.detect.mode", c.CongestionNode.Detect.Mode, ref.CongestionNode.Detect.Mode)
	same("congestion_node.detect.gate", c.CongestionNode.Detect.Gate, ref.CongestionNode.Detect.Gate)
	same("congestion_node.detect.flows", c.CongestionNode.Detect.Flows, ref.CongestionNode.Detect.Flows)
	same("proxy.port", c.Proxy.Port, ref.Proxy.Port)
	same("proxy.tap", c.Proxy.Tap, ref.Proxy.Tap)
	same("proxy.tap_ring", c.Proxy.TapRing, ref.Proxy.TapRing)
	same("proxy.tap_flows", c.Proxy.TapFlows, ref.Proxy.TapFlows)
	same("proxy.tap_tunnels", len(c.Proxy.TapTunnels), len(ref.Proxy.TapTunnels))
	same("proxy.advertise", c.Proxy.Advertise, ref.Proxy.Advertise)
	same("proxy.readiness", c.Proxy.Readiness, ref.Proxy.Readiness)
	same("proxy.pace", c.Proxy.Pace, ref.Proxy.Pace)
	same("proxy.map", c.Proxy.Map, ref.Proxy.Map)
	same("proxy.cnp", c.Proxy.CNP, ref.Proxy.CNP)
	same("proxy.emit", c.Proxy.Emit, ref.Proxy.Emit)
	same("proxy.senders[0]", c.Proxy.Senders[0], ref.Proxy.Senders[0])
	if ebgp := c.BGP.Neighbors[1]; *ebgp.SendNHC || ebgp.AcceptEBGP {
		t.Error("an EBGP neighbour must get and give nothing by default")
	}
	if c.Enabled {
		t.Error("the mechanism must be off by default")
	}
}

func TestEmptyIsValidAndOff(t *testing.T) {
	c, err := Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Enabled || c.BGP != nil || c.Proxy != nil || c.CongestionNode != nil || c.Telemetry.Listen != "" {
		t.Errorf("something is on: %+v", c)
	}
}

func TestBadInputNamesLineKeyAndRule(t *testing.T) {
	const cn = "congestion_node:\n  interfaces: [eth2]\n  source_ipv4: 192.0.2.1\n"
	const bgp = "bgp:\n  as: 65000\n  router_id: 192.0.2.1\n  neighbors:\n  - address: 192.0.2.254\n    as: 65000\n"
	const proxy = "proxy:\n  ipv4: 192.0.2.1\n  taps: [eth0]\n  accept_from: [192.0.2.0/24]\n  senders:\n  - prefix: 198.51.100.0/24\n"
	for _, tc := range []struct{ name, yaml, want string }{
		{"unknown key", "enabled: true\nnod: x\n", "line 2: nod: unknown key; did you mean node?"},
		{"unknown nested key", cn + "  ports: 1\n", "line 4: congestion_node.ports: unknown key; did you mean port?"},
		{"key twice", "node: a\nnode: b\n", "line 2: node: given twice; the first is at line 1"},
		{"not YAML", "node: [a\n", "line 1: did not find expected"},
		{"wrong type", "enabled: maybe\n", "line 1: enabled: maybe is not true or false"},
		{"section for a value", "node: {a: b}\n", "line 1: node: a section is not a text"},
		{"list for a section", "log: [a]\n", "line 1: log: a list is not a section of keys"},
		{"out of range", cn + "  port: 70000\n", "line 4: congestion_node.port: 70000 is not a whole number from 0 to 65535"},
		{"zero is not the default", cn + "  port: 0\n", "line 4: congestion_node.port: 0 is not a port"},
		{"DSCP", cn + "  dscp: 64\n", "line 4: congestion_node.dscp: 64 is not between 0 and 63"},
		{"address", cn + "  source_ipv6: 1.2.3\n", `line 4: congestion_node.source_ipv6: "1.2.3" is not an IPv4 or IPv6 address`},
		{"address of the other family", cn + "  source_ipv6: 192.0.2.1\n", "line 4: congestion_node.source_ipv6: 192.0.2.1 is not an IPv6 address"},
		{"multicast source", "congestion_node:\n  interfaces: [a]\n  source_ipv4: 224.0.0.1\n", "line 3: congestion_node.source_ipv4: 224.0.0.1 is not a unicast address"},
		{"interface twice", "congestion_node:\n  source_ipv4: 192.0.2.1\n  interfaces: [a, a]\n", `line 3: congestion_node.interfaces[1]: "a" is given twice`},
		{"long interface", "congestion_node:\n  source_ipv4: 192.0.2.1\n  interfaces: [a234567890123456]\n", `is not an interface's name`},
		{"no interface", "congestion_node:\n  source_ipv4: 192.0.2.1\n", "line 2: congestion_node.interfaces: required"},
		{"duration", cn + "  pace:\n    window: 50\n", `line 5: congestion_node.pace.window: "50" is not a duration`},
		{"negative duration", cn + "  pace:\n    window: -1s\n", "line 5: congestion_node.pace.window: -1s is not between"},
		{"host bits", "static:\n- prefix: 192.0.2.1/24\n  proxy: 192.0.2.9\n", `line 2: static[0].prefix: "192.0.2.1/24" has host bits set; did you mean 192.0.2.0/24?`},
		{"static twice", "static:\n- {prefix: 10.0.0.0/8, proxy: 192.0.2.9}\n- {prefix: 10.0.0.0/8, proxy: 192.0.2.9}\n", "line 3: static[1]: the same as static[0]"},
		{"preference", "resolve:\n  preference: [bgp, bgp, isis, ospf]\n", "line 2: resolve.preference: must name each of static, bgp, isis, ospf once"},
		{"remote metrics", "telemetry:\n  listen: 0.0.0.0:9479\n", "line 2: telemetry.listen: \"0.0.0.0\" is not a loopback address"},
		{"API without TLS", "api:\n  listen: 127.0.0.1:50051\n", "line 2: api.listen: a TCP address needs api.tls.cert and api.tls.key"},
		{"relative socket", "api:\n  listen: unix://pncd.sock\n", "line 2: api.listen: \"unix://pncd.sock\": the path must be absolute"},
		{"no AS", "bgp:\n  router_id: 192.0.2.1\n", "line 2: bgp.as: required"},
		{"router ID", "bgp:\n  as: 65000\n  router_id: \"::1\"\n", "line 3: bgp.router_id: required: an IPv4 unicast address"},
		{"assigned code", bgp + "  pnc_code: 3\n", "line 7: bgp.pnc_code: 3 is reserved or assigned"},
		{"neighbour twice", bgp + "  - address: 192.0.2.254\n    as: 65000\n", "line 7: bgp.neighbors[1].address: 192.0.2.254 is neighbors[0] already"},
		{"range holds ourselves", bgp + "  listen_ranges:\n  - {prefix: 192.0.2.0/24, as: 65000}\n", "bgp.listen_ranges[0].prefix: 192.0.2.0/24 holds 192.0.2.1, which is our own address: a range never holds one of ourselves"},
		{"range twice", bgp + "  listen_ranges:\n  - {prefix: 198.18.0.0/24, as: 65000}\n  - {prefix: 198.18.0.0/24, as: 65000}\n", "bgp.listen_ranges[1].prefix: 198.18.0.0/24 is listen_ranges[0] already"},
		{"range of one address", bgp + "  listen_ranges:\n  - {prefix: 198.18.0.1/32, as: 65000}\n", "bgp.listen_ranges[0].prefix: 198.18.0.1/32 is one address"},
		{"range without limit", bgp + "  listen_ranges:\n  - {prefix: 198.18.0.0/24, as: 65000, limit: 0}\n", "bgp.listen_ranges[0].limit: 0 is not between 1 and 10000"},
		{"range with what only a neighbour has", bgp + "  listen_ranges:\n  - {prefix: 198.18.0.0/24, as: 65000, port: 179}\n", "bgp.listen_ranges[0].port: unknown key"},
		{"range with a misspelt key", bgp + "  listen_ranges:\n  - {prefix: 198.18.0.0/24, as: 65000, pasword: x}\n", "did you mean password?"},
		{"range without AS", bgp + "  listen_ranges:\n  - {prefix: 198.18.0.0/24}\n", "bgp.listen_ranges[0].as: required"},
		{"neighbour is ourselves", bgp + "  listen: [192.0.2.254]\n", "line 5: bgp.neighbors[0].address: 192.0.2.254 is our own address"},
		{"link-local neighbour without interface", bgp + "  - {address: \"fe80::1\", as: 65000}\n", "line 7: bgp.neighbors[1].address: fe80::1 is link-local; name its interface, as in fe80::1%eth1"},
		{"interface of another address", bgp + "  - {address: \"2001:db8::1%eth1\", as: 65000}\n", "line 7: bgp.neighbors[1].address: 2001:db8::1%eth1: only a link-local address has an interface"},
		{"link-local neighbour's interface", bgp + "  - {address: \"fe80::1%e/1\", as: 65000}\n", `line 7: bgp.neighbors[1].address: "e/1" is not an interface's name`},
		{"multicast neighbour with interface", bgp + "  - {address: \"ff02::1%eth1\", as: 65000}\n", "line 7: bgp.neighbors[1].address: ff02::1%eth1 is not a unicast address"},
		{"link-local neighbour with hops", bgp + "  - {address: \"fe80::1%eth1\", as: 65001, multihop_ttl: 2}\n", "line 7: bgp.neighbors[1].multihop_ttl: fe80::1%eth1 is on the link"},
		{"link-local local address", bgp + "  - {address: \"2001:db8::1\", as: 65000, local_address: \"fe80::2\"}\n", "line 7: bgp.neighbors[1].local_address: fe80::2 is link-local and the neighbour's address is not"},
		{"local address with interface", bgp + "  - {address: \"fe80::1%eth1\", as: 65000, local_address: \"fe80::2%eth1\"}\n", `line 7: bgp.neighbors[1].local_address: "fe80::2%eth1" is not an IPv4 or IPv6 address`},
		{"our link-local address", bgp + "  - {address: \"fe80::1%eth1\", as: 65000, local_address: \"fe80::1\"}\n", "line 7: bgp.neighbors[1].local_address: fe80::1 is the neighbour's address"},
		{"two keys of an address", bgp + "  - {address: \"fe80::1%eth1\", as: 65000, password: a}\n  - {address: \"fe80::1%eth2\", as: 65000, password: b}\n", "line 8: bgp.neighbors[2].password: must be that of neighbors[1], which has the same address on another interface"},
		{"two minimum TTLs of an address", bgp + "  - {address: \"fe80::1%eth1\", as: 65000, ttl_min: 255}\n  - {address: \"fe80::1%eth2\", as: 65000}\n", "bgp.neighbors[2].ttl_min: must be that of neighbors[1], which has the same address on another interface"},
		{"hold time", bgp + "    hold_time: 2s\n", "line 7: bgp.neighbors[0].hold_time: 2s is not between 3s and 65535s"},
		{"hold time 0 is not taken for the default", bgp + "    hold_time: 0s\n", "line 7: bgp.neighbors[0].hold_time: 0s is not between 3s and 65535s"},
		{"number too large", "bgp:\n  as: 4294967296\n", "line 2: bgp.as: 4294967296 is not a whole number from 0 to 4294967295"},
		{"telemetry's port", "telemetry:\n  listen: 127.0.0.1:99999\n", `line 2: telemetry.listen: "99999" is not a port`},
		{"API's port", "api:\n  listen: 127.0.0.1:http\n  tls: {cert: a, key: b}\n", `line 2: api.listen: "http" is not a port`},
		{"nothing to enable", "node: a\nenabled: true\n", "line 2: enabled: there is nothing to enable"},
		{"TLS on a unix socket", "api:\n  tls: {cert: a, key: b}\n", "line 2: api.tls: only for a TCP address"},
		{"group on TCP", "api:\n  listen: 127.0.0.1:1\n  group: wheel\n  tls: {cert: a, key: b}\n", "line 3: api.group: only for a unix socket"},
		{"link-local proxy", "static:\n  - {prefix: 10.0.0.0/8, proxy: \"fe80::1\"}\n", "line 2: static[0].proxy: fe80::1 is link-local"},
		{"keepalive", bgp + "    keepalive: 90s\n", "line 7: bgp.neighbors[0].keepalive: must be less than hold_time"},
		{"two passwords", bgp + "    password: a\n    password_file: b\n", "line 8: bgp.neighbors[0].password_file: give either password or password_file"},
		{"GTSM and multihop", bgp + "    ttl_min: 255\n    multihop_ttl: 3\n", "line 7: bgp.neighbors[0].ttl_min: give either"},
		{"family", bgp + "    families: [vpnv4]\n", `line 7: bgp.neighbors[0].families[0]: "vpnv4" is none of`},
		{"passive without a port", bgp + "    passive: true\n  port: -1\n", "line 7: bgp.neighbors[0].passive: a passive session needs a port"},
		{"announced without BGP", proxy + "    mode: originate\n", `line 7: proxy.senders[0].mode: "originate" needs the bgp section`},
		{"path without from", bgp + proxy + "    mode: path\n", "proxy.senders[0].from: required"},
		{"from is no neighbour", bgp + proxy + "    mode: path\n    from: 192.0.2.9\n", "line 14: proxy.senders[0].from: 192.0.2.9 is not one of bgp.neighbors"},
		{"IPv4 next hop of an IPv6 prefix", bgp + strings.Replace(proxy, "198.51.100.0/24", "2001:db8:7::/48", 1) + "    next_hop: 192.0.2.1\n", "line 13: proxy.senders[0].next_hop: 192.0.2.1 is IPv4 and the prefix is IPv6"},
		{"no next hop", bgp + proxy, "proxy.senders[0].next_hop: required with mode originate"},
		{"no next hop of a source", bgp + "proxy: {ipv4: 192.0.2.1, taps: [eth0], accept_from: [192.0.2.0/24], sender_sources: [{interface: eth0}]}\n", "line 7: proxy.sender_sources[0].next_hop: required with mode originate"},
		{"loopback next hop", bgp + proxy + "    next_hop: 127.0.0.1\n", "line 13: proxy.senders[0].next_hop: 127.0.0.1 is a loopback address"},
		{"loopback proxy", bgp + proxy + "    next_hop: 192.0.2.254\n    proxy: \"::1\"\n", "line 14: proxy.senders[0].proxy: ::1 is a loopback address"},
		{"loopback static proxy", "static: [{prefix: 198.51.100.0/24, proxy: 127.0.0.9}]\n", "line 1: static[0].proxy: 127.0.0.9 is a loopback address"},
		{"IPv4 link-local static proxy", "static: [{prefix: 198.51.100.0/24, proxy: 169.254.0.9}]\n", "line 1: static[0].proxy: 169.254.0.9 is link-local"},
		{"default route", bgp + "proxy:\n  ipv4: 192.0.2.1\n  taps: [eth0]\n  accept_from: [192.0.2.0/24]\n  senders: [{prefix: 0.0.0.0/0}]\n", "proxy.senders[0].prefix: a default route can't be announced"},
		{"prefix rule without a prefix", bgp + "    import_prefixes: [{le: 24}]\n", "bgp.neighbors[0].import_prefixes[0].prefix: required"},
		{"le below ge", bgp + "    export_prefixes: [{prefix: 10.0.0.0/8, ge: 24, le: 16}]\n", "bgp.neighbors[0].export_prefixes[0].le: 16 is not between 24 and 32"},
		{"ge below the prefix", bgp + "    export_prefixes: [{prefix: 10.0.0.0/8, ge: 7}]\n", "export_prefixes[0].ge: 7 is not between 8 and 32"},
		{"no community", bgp + "    require_communities: [\"65536:1\"]\n", "require_communities[0]: \"65536:1\" is not a community"},
		{"no community to attach", bgp + "  communities: [blue]\n", "bgp.communities[0]: \"blue\" is not a community"},
		{"relative socket of GoBGP's API", bgp + "  gobgp_socket: gobgp.sock\n", "bgp.gobgp_socket: \"gobgp.sock\": the path must be absolute"},
		{"station without a port", bgp + "  bmp_stations: [{address: 192.0.2.9}]\n", "bgp.bmp_stations[0].address: \"192.0.2.9\" is not a unicast address with a port"},
		{"station to nowhere", bgp + "  bmp_stations: [{address: \"0.0.0.0:11019\"}]\n", "bgp.bmp_stations[0].address: \"0.0.0.0:11019\" is not a unicast address"},
		{"station twice", bgp + "  bmp_stations: [{address: \"192.0.2.9:1\"}, {address: \"192.0.2.9:1\"}]\n", "bgp.bmp_stations[1].address: 192.0.2.9:1 is bmp_stations[0] already"},
		{"station after policies", bgp + "  bmp_stations: [{address: \"192.0.2.9:1\", policy: post-policy}]\n", "bgp.bmp_stations[0].policy: \"post-policy\": only pre-policy can be had"},
		{"statistics of half a second", bgp + "  bmp_stations: [{address: \"192.0.2.9:1\", statistics: 500ms}]\n", "bgp.bmp_stations[0].statistics: 500ms is not a whole number of seconds"},
		{"negative statistics", bgp + "  bmp_stations: [{address: \"192.0.2.9:1\", statistics: -1s}]\n", "bgp.bmp_stations[0].statistics: -1s is not between"},
		{"originator of IPv6", bgp + "  accept_from: [\"2001:db8::/32\"]\n", "bgp.accept_from[0]: 2001:db8::/32 is not an IPv4 prefix"},
		{"neighbour's originator of IPv6", bgp + "    accept_from: [\"::/0\"]\n", "bgp.neighbors[0].accept_from[0]: ::/0 is not an IPv4 prefix"},
		{"border inside", bgp + "    border: true\n", "bgp.neighbors[0].border: only for an EBGP neighbour"},
		{"believed border", bgp + "  - {address: 192.0.2.253, as: 65009, border: true, accept_ebgp: true}\n", "bgp.neighbors[1].border: give either border or accept_ebgp"},
		{"border that gets NHC", bgp + "  - {address: 192.0.2.253, as: 65009, border: true, send_nhc: true}\n", "bgp.neighbors[1].border: no NHC leaves the domain"},
		{"long farewell", bgp + "    shutdown: \"" + strings.Repeat("x", 256) + "\"\n", "shutdown: a shutdown communication has at most 255 octets"},
		{"source of nothing", bgp + proxy + "  sender_sources: [{within: [198.51.100.0/24]}]\n", "line 13: proxy.sender_sources[0]: interface or table is required"},
		{"source twice", bgp + proxy + "  sender_sources: [{table: 7}, {table: 7}]\n", "proxy.sender_sources[1]: the same as sender_sources[0]"},
		{"source is the local table", bgp + proxy + "  sender_sources: [{table: 255}]\n", "proxy.sender_sources[0].table: table 255 holds this host's own addresses"},
		{"source without from", bgp + proxy + "  sender_sources: [{interface: eth0, mode: path}]\n", "proxy.sender_sources[0].from: required"},
		{"source with a bad name", bgp + proxy + "  sender_sources: [{interface: eth/0}]\n", "\"eth/0\" is not an interface's name"},
		{"neither sender nor source", "proxy:\n  ipv4: 192.0.2.1\n  taps: [eth0]\n  accept_from: [192.0.2.0/24]\n", "proxy.senders: required, or sender_sources"},
		{"emit", proxy + "  emit: frames\n", `line 7: proxy.emit: "frames" is none of raw, packet`},
		{"advertise", proxy + "  advertise: maybe\n", `line 7: proxy.advertise: "maybe" is none of always, when-ready`},
		{"traffic within no time", proxy + "  readiness: {traffic_within: 10ms}\n", "line 7: proxy.readiness.traffic_within: 10ms is neither 0s nor between 1s and 168h0m0s"},
		{"more than all lost", proxy + "  readiness: {loss_max: 101}\n", "line 7: proxy.readiness.loss_max: 101 is not between 0 and 100"},
		{"no window", proxy + "  readiness: {window: 0s}\n", "line 7: proxy.readiness.window: 0s is not between 1s and 1h0m0s"},
		{"long hold-down", proxy + "  readiness: {withdraw_after: 2h}\n", "line 7: proxy.readiness.withdraw_after: 2h0m0s is not between"},
		{"negative hold-down", proxy + "  readiness: {announce_after: -1s}\n", "line 7: proxy.readiness.announce_after: -1s is not between"},
		{"short half-life", proxy + "  readiness: {damping: {half_life: 1ms}}\n", "line 7: proxy.readiness.damping.half_life: 1ms is neither 0s nor"},
		{"suppress below one withdrawal", proxy + "  readiness: {damping: {suppress: 999}}\n", "line 7: proxy.readiness.damping.suppress: 999 is not between 1000 and 20000"},
		{"reuse above suppress", proxy + "  readiness: {damping: {suppress: 1500, reuse: 1500}}\n", "line 7: proxy.readiness.damping.reuse: 1500 is not less than suppress, 1500"},
		{"no such tap", proxy + "  tap: netmap\n", "line 7: proxy.tap: "},
		{"no such tunnel", proxy + "  tap_tunnels: [gre, mpls]\n", "line 7: proxy.tap_tunnels[1]: "},
		{"a tunnel twice", proxy + "  tap_tunnels: [gre, gre]\n", "line 7: proxy.tap_tunnels[1]: \"gre\" is given twice"},
		{"too few flows", proxy + "  tap_flows: 10\n", "line 7: proxy.tap_flows: "},
		{"open domain", "proxy:\n  ipv4: 192.0.2.1\n  taps: [eth0]\n  senders: [{prefix: 198.51.100.0/24}]\n", "line 2: proxy.accept_from: required"},
		{"multicast router ID", "bgp:\n  as: 1\n  router_id: 224.0.0.1\n", "line 3: bgp.router_id: required: an IPv4 unicast address"},
		{"RoCEv2's own port", cn + "  port: 4791\n", "line 4: congestion_node.port: 4791 is RoCEv2's own port"},
		{"CNPs marked CE", proxy + "  cnp: {tos: 0xC3}\n", "line 7: proxy.cnp.tos: 0xc3 marks CNPs themselves"},
		{"loopback senders", "proxy:\n  ipv4: 192.0.2.1\n  taps: [eth0]\n  accept_from: [192.0.2.0/24]\n  senders: [{prefix: 127.0.0.0/8}]\n", "line 5: proxy.senders[0].prefix: 127.0.0.0/8 is not a prefix of unicast addresses"},
		{"multicast static", "static: [{prefix: 224.0.0.0/4, proxy: 192.0.2.1}]\n", "line 1: static[0].prefix: 224.0.0.0/4 is not a prefix of unicast"},
		{"control character in the name", "node: \"a\\nb\"\n", "line 1: node: must not hold control characters"},
		{"accept_ebgp for IBGP", bgp + "    accept_ebgp: true\n", "line 7: bgp.neighbors[0].accept_ebgp: only for an EBGP neighbour"},
		{"multihop for IBGP", bgp + "    multihop_ttl: 3\n", "line 7: bgp.neighbors[0].multihop_ttl: only for an EBGP neighbour"},
		{"fraction", "bgp:\n  as: 1.10\n", "line 2: bgp.as: 1.10 is not a whole number from 0 to 4294967295"},
		{"exponent", "bgp:\n  as: 1e4\n", "line 2: bgp.as: 1e4 is not a whole number"},
		{"leading zero", "evidence: {records: 010}\n", "line 1: evidence.records: 010 is not a whole number"},
		{"octal", "evidence: {records: 0o17}\n", "line 1: evidence.records: 0o17 is not a whole number"},
		{"underscore", "evidence: {records: 65_000}\n", "line 1: evidence.records: 65_000 is not a whole number"},
		{"negative", cn + "  ttl: -1\n", "line 4: congestion_node.ttl: -1 is not a whole number from 0 to 255"},
		{"number as text", "evidence: {records: \"5\"}\n", "line 1: evidence.records: \"5\" is not a whole number"},
		{"truth as text", "enabled: \"true\"\n", `line 1: enabled: "true" is not true or false`},
		{"text in single quotes", "enabled: 'no'\n", `line 1: enabled: "no" is not true or false`},
		{"yes", "enabled: yes\n", "line 1: enabled: yes is not true or false"},
		{"no value", "enabled:\n", "line 1: enabled: has no value; leave the key out for the default"},
		{"list for an address", cn + "  source_ipv6: [a]\n", "line 4: congestion_node.source_ipv6: a list is not one value"},
		{"an alias that holds itself", "static: &a\n- *a\n", "is not a section of keys"},
		{"unknown key by merge", "log: {<<: {levle: info}}\n", "line 1: log.levle: unknown key; did you mean level?"},
		{"list for all", "- a\n", "line 1: a list is not a section of keys"},
		{"tab on the first line", "\tnode: a\n", "line 1: found character that cannot start any token"},
		{"control character", "node: a\nlog: {level: \x01}\n", "line 2: control characters are not allowed"},
		{"two documents", "node: a\n---\nnode: b\n", "only one YAML document is allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse([]byte(tc.yaml))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got\n%v\nwant it to hold\n%s", err, tc.want)
			}
			if strings.Contains(err.Error(), "config.") {
				t.Errorf("a Go type shows: %v", err)
			}
		})
	}
}

func TestLongValuesAreCut(t *testing.T) {
	word := strings.Repeat("ä", 3<<19)
	key := strings.Repeat("ä", 400) // YAML takes no longer ones
	for _, yaml := range []string{
		word,
		"enabled: " + word,
		"enabled: \"" + word + "\"",
		"log: {level: " + word + "}",
		"log: {format: " + word + "}",
		"static: [{prefix: " + word + ", proxy: " + word + "}]",
		"static: [{prefix: \"" + word + "\", proxy: 192.0.2.1}]",
		key + ": 1",
		"log: {" + key + ": 1}",
	} {
		_, err := Parse([]byte(yaml))
		if err == nil || !strings.Contains(err.Error(), strings.Repeat("ä", 64)+"...") || len(err.Error()) > 1000 {
			t.Errorf("%.30s: %.300v", yaml, err)
		}
	}
}

func TestEveryProblemIsReported(t *testing.T) {
	for _, yaml := range []string{
		"log: {level: loud, format: xml}\nevidence: {records: 0}\n",  // rules
		"log: {levle: info, format: []}\nevidence: {records: 1.5}\n", // form
	} {
		_, err := Parse([]byte(yaml))
		var e *Error
		if !errors.As(err, &e) || len(e.Problems) != 3 {
			t.Errorf("want three problems, got %v", err)
		}
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pncd.yaml")
	if err := os.WriteFile(path, []byte("x: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.HasPrefix(err.Error(), path+": line 1: x: unknown key") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(path + ".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
}

func TestRedactedHidesPasswordsAndParses(t *testing.T) {
	src := strings.Replace(string(deploy.ReferenceConfig), `password: ""`, `password: hunter2`, 1)
	c, err := Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "hunter2") || !strings.Contains(out, redacted) {
		t.Errorf("the password shows:\n%s", out)
	}
	if c.BGP.Neighbors[0].Password != "hunter2" {
		t.Error("the running configuration lost its password")
	}
	if _, err := Parse([]byte(out)); err != nil {
		t.Errorf("what is shown does not parse: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(deploy.ReferenceConfig)
	f.Add([]byte("bgp: {neighbors: [{}]}"))
	f.Add([]byte("proxy: &a\n  senders: [*a]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := Parse(b); (c == nil) == (err == nil) {
			t.Fatalf("config %v and error %v", c, err)
		}
	})
}

func TestLinkLocalNeighboursAreToldApartByTheirInterface(t *testing.T) {
	c, err := Parse([]byte(`
bgp:
  as: 65000
  router_id: 192.0.2.1
  neighbors:
    - {address: "fe80::1%eth1", as: 65000, local_address: "fe80::2", password: a}
    - {address: "fe80::1%eth2", as: 65000, password: a}
proxy:
  ipv4: 192.0.2.1
  taps: [eth0]
  accept_from: [192.0.2.0/24]
  senders: [{prefix: "2001:db8:1::/48", mode: path, from: "fe80::1%eth2"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"fe80::1%eth1", "fe80::1%eth2"} {
		if n := c.BGP.Neighbors[i]; n.Address.String() != want || !reflect.DeepEqual(n.Families, []string{"ipv6-unicast"}) {
			t.Errorf("%s, %v, want %s", n.Address, n.Families, want)
		}
	}
	if from := c.Proxy.Senders[0].From; from.Addr != c.BGP.Neighbors[1].Address.Addr {
		t.Errorf("from %s", from)
	}
}
