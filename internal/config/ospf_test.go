package config

import (
	"strings"
	"testing"
	"time"
)

const (
	ospfv2Base = "ospfv2:\n  router_id: 192.0.2.1\n"
	ospfv3Base = "ospfv3:\n  router_id: 192.0.2.1\n"
)

func TestOSPFDefaults(t *testing.T) {
	cfg, err := Parse([]byte(ospfv2Base + "  areas: [{id: 1, type: stub}]\n  links:\n    - {interface: ospf0, area: 1}\n" + ospfv3Base + "  links: [{interface: ospf0}]\n" +
		"  timers: {spf: 100ms}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.OSPFv2
	if !s.Advertise || s.Carrier != CarrierExtFlags || s.Flag != 2 || s.FlagMask != 0 || s.LinkMetric != 65535 || s.MaxLSAs != 131072 || !s.GracefulRestartHelper || s.Reoriginate ||
		s.Timers.Refresh.Duration != 30*time.Minute || s.Areas[0].ID.String() != "0.0.0.1" {
		t.Errorf("%+v", s)
	}
	if x := s.Links[0]; x.Type != "point-to-point" || x.Area != 1 || x.Hello.Duration != 10*time.Second || x.Dead.Duration != 40*time.Second || x.MaxNeighbors != 256 {
		t.Errorf("%+v", x)
	}
	if v3 := cfg.OSPFv3; v3.LinkMetric != 0 || v3.Section() != "ospfv3" || v3.Links[0].Area != 0 || v3.Timers.SPFSecond.Duration != 100*time.Millisecond {
		t.Errorf("%+v", v3)
	}
	if got := len(cfg.OSPFs()); got != 2 {
		t.Errorf("%d routers", got)
	}
	cfg, err = Parse([]byte("ospfapi: {carrier: tlv-flags}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if a := cfg.OSPFAPI; a.Address.String() != "127.0.0.1" || a.Port != 2607 || a.MaxLSAs != 131072 || a.FlagMask != 8 {
		t.Errorf("%+v", a)
	}
}

func TestOSPFProblems(t *testing.T) {
	link := ospfv2Base + "  links:\n    - interface: ospf0\n"
	link3 := ospfv3Base + "  links:\n    - interface: ospf0\n"
	for _, tc := range []struct{ name, text, want string }{
		{"no router ID", "ospfv2:\n  advertise: true\n", "line 2: ospfv2.router_id: required: a dotted quad"},
		{"router ID 0", "ospfv3:\n  router_id: 0.0.0.0\n", "line 2: ospfv3.router_id: required"},
		{"router ID of IPv6", "ospfv3:\n  router_id: \"2001:db8::1\"\n", "line 2: ospfv3.router_id: required"},
		{"carrier", ospfv2Base + "  carrier: flags\n", "line 3: ospfv2.carrier: \"flags\" is none of ext-flags, tlv-flags"},
		{"carrier of the other version", ospfv3Base + "  carrier: tlv-flags\n", "line 3: ospfv3.carrier: tlv-flags: the flags octet of the TLV is OSPFv2's"},
		{"assigned flag", ospfv2Base + "  flag: 1\n", "line 3: ospfv2.flag: bits 0 and 1 are assigned"},
		{"flag", ospfv2Base + "  flag: 256\n", "line 3: ospfv2.flag: 256 is not a whole number from 0 to 255"},
		{"assigned mask", ospfv2Base + "  carrier: tlv-flags\n  flag_mask: 0x40\n", "line 4: ospfv2.flag_mask: 0x40 is none of 0x08"},
		{"two masks", ospfv2Base + "  carrier: tlv-flags\n  flag_mask: 0x0C\n", "line 4: ospfv2.flag_mask: 0x0c is none of"},
		{"mask without its carrier", ospfv2Base + "  flag_mask: 0x08\n", "line 3: ospfv2.flag_mask: only with carrier tlv-flags"},
		{"metric", ospfv2Base + "  link_metric: 0\n", "line 3: ospfv2.link_metric: 0 is not between"},
		{"metric of OSPFv3", ospfv3Base + "  link_metric: 1\n", "line 3: ospfv3.link_metric: only OSPFv2 needs it"},
		{"refresh", ospfv2Base + "  timers: {refresh: 1h}\n", "line 3: ospfv2.timers.refresh: 1h0m0s is not between 10s and 59m59s"},
		{"min_ls_interval", ospfv2Base + "  timers: {refresh: 20s, min_ls_interval: 20s}\n", "ospfv2.timers.min_ls_interval: must be less than refresh"},
		{"spf_initial", ospfv2Base + "  timers: {spf: 1s, spf_initial: 2s}\n", "ospfv2.timers.spf_initial:"},
		{"databases", ospfv2Base + "  max_lsas: 10\n", "line 3: ospfv2.max_lsas: 10 is not between"},
		{"a scope", ospfv2Base + "  scope: as\n", "line 3: ospfv2.scope: unknown key"},
		{"area", ospfv2Base + "  areas: [{id: x}]\n", "line 3: ospfv2.areas[0].id: \"x\" is not an area such as 0.0.0.1 or 1"},
		{"area type", ospfv2Base + "  areas: [{id: 1, type: totally}]\n", "ospfv2.areas[0].type: \"totally\" is none of normal, stub, nssa"},
		{"stub backbone", ospfv2Base + "  areas: [{id: 0, type: stub}]\n", "ospfv2.areas[0].type: the backbone is neither"},
		{"area twice", ospfv2Base + "  areas: [{id: 1}, {id: 0.0.0.1}]\n", "ospfv2.areas[1].id: 0.0.0.1 is areas[0] already"},
		{"link twice", link + "    - interface: ospf0\n", "line 5: ospfv2.links[1].interface: ospf0 is links[0] already"},
		{"interface", ospfv2Base + "  links: [{interface: \"a b\"}]\n", "ospfv2.links[0].interface:"},
		{"type", link + "      type: nbma\n", "line 5: ospfv2.links[0].type: \"nbma\" is none of point-to-point, broadcast"},
		{"key ID twice", link + "      keys: [{id: 1, algorithm: md5, password: a}, {id: 1, algorithm: hmac-sha-1, password: b}]\n", "line 5: ospfv2.links[0].keys[1].id: 1 is keys[0] already"},
		{"half seconds", link + "      hello: 1500ms\n", "line 5: ospfv2.links[0].hello: 1.5s is not a whole number of seconds"},
		{"no hello", link + "      hello: 0s\n", "ospfv2.links[0].hello: 0s is not between"},
		{"dead", link + "      hello: 10s\n      dead: 10s\n", "line 6: ospfv2.links[0].dead: must be more than hello"},
		{"retransmit", link + "      retransmit: 1s\n", "ospfv2.links[0].retransmit: must be more than timers.ack_delay"},
		{"delay", link + "      transmit_delay: 100ms\n", "ospfv2.links[0].transmit_delay:"},
		{"neighbours", link + "      max_neighbors: 0\n", "ospfv2.links[0].max_neighbors: 0 is not between"},
		{"instance of OSPFv2", link + "      instance: 1\n", "line 5: ospfv2.links[0].instance: only OSPFv3"},
		{"algorithm of OSPFv3", link3 + "      keys: [{algorithm: md5, password: x}]\n", "ospfv3.links[0].keys[0].algorithm: \"md5\" is none of hmac-sha-1"},
		{"algorithm", link + "      keys: [{algorithm: hmac-md5, password: x}]\n", "ospfv2.links[0].keys[0].algorithm: \"hmac-md5\" is none of simple, md5"},
		{"no secret", link + "      keys: [{algorithm: md5}]\n", "ospfv2.links[0].keys[0].password: give either"},
		{"long password", link + "      keys: [{algorithm: simple, password: \"123456789\"}]\n", "ospfv2.links[0].keys[0].password: a simple password has at most 8"},
		{"long secret", link + "      keys: [{algorithm: md5, password: \"12345678901234567\"}]\n", "ospfv2.links[0].keys[0].password: a secret for md5 has at most 16"},
		{"ID of a password", link + "      keys: [{id: 1, algorithm: simple, password: x}]\n", "ospfv2.links[0].keys[0].id: simple has no key ID"},
		{"great ID", link + "      keys: [{id: 256, algorithm: md5, password: x}]\n", "ospfv2.links[0].keys[0].id: 256 is more than 255"},
		{"bound MD5", link + "      keys: [{algorithm: md5, password: x, bind_source: true}]\n", "ospfv2.links[0].keys[0].bind_source: only for hmac-sha of OSPFv2"},
		{"bound OSPFv3", link3 + "      keys: [{algorithm: hmac-sha-1, password: x, bind_source: true}]\n", "ospfv3.links[0].keys[0].bind_source:"},
		{"swapped OSPFv2", link + "      keys: [{algorithm: hmac-sha-1, password: x, swap_protocol_id: true}]\n", "ospfv2.links[0].keys[0].swap_protocol_id: only OSPFv3"},
		{"veth peer", link + "      veth: {peer: ospf0}\n", "ospfv2.links[0].veth.peer: \"ospf0\" is the interface itself"},
		{"veth twice", link + "      veth: {peer: r}\n" + link3 + "      veth: {peer: r}\n", "line 10: ospfv3.links[0].veth: ospf0 is made by ospfv2.links[0].veth already"},
		{"API beside OSPFv2", ospfv2Base + "ospfapi: {address: 127.0.0.1}\n", "line 3: ospfapi: give either ospfapi or ospfv2"},
		{"API's address", "ospfapi: {address: \"::1\"}\n", "line 1: ospfapi.address: an IPv4 address is required"},
		{"API elsewhere", "ospfapi: {address: 192.0.2.1}\n", "ospfapi.local_address: required with an ospfd on another host"},
		{"API here", "ospfapi: {local_address: 192.0.2.1}\n", "line 1: ospfapi.local_address: not with an ospfd on this host"},
		{"API's port", "ospfapi: {port: 0}\n", "line 1: ospfapi.port: 0 is not a port"},
		{"API's database", "ospfapi: {max_lsas: 1}\n", "line 1: ospfapi.max_lsas: 1 is not between"},
		{"API's flag", "ospfapi: {flag: 0}\n", "line 1: ospfapi.flag: bits 0 and 1"},
	} {
		if _, err := Parse([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
	}
}

func TestOSPFKeysOfBothVersions(t *testing.T) {
	_, err := Parse([]byte(ospfv2Base + "  links: [{interface: ospf0, keys: [{id: 255, algorithm: hmac-sha-512, password: x, bind_source: true}, {algorithm: simple, password: x}]}]\n" +
		ospfv3Base + "  links: [{interface: ospf0, instance: 3, keys: [{id: 65535, algorithm: hmac-sha-1, password: x, swap_protocol_id: true}]}]\n"))
	if err != nil {
		t.Error(err)
	}
}

func TestOSPFSecretsAreNotShown(t *testing.T) {
	cfg, err := Parse([]byte(ospfv2Base + "  links: [{interface: ospf0, keys: [{algorithm: md5, password: hidden1}]}]\n" +
		ospfv3Base + "  links: [{interface: ospf0, area: 3, keys: [{algorithm: hmac-sha-1, password: hidden2}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.Redacted()
	if err != nil || strings.Contains(text, "hidden") || strings.Count(text, redacted) != 2 || !strings.Contains(text, "area: 0.0.0.3") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := Parse([]byte(text)); err != nil {
		t.Errorf("what is shown doesn't parse: %v", err)
	}
	if cfg.OSPFv2.Links[0].Keys[0].Password != "hidden1" {
		t.Error("the configuration itself was changed")
	}
	next, err := Parse([]byte(ospfv2Base + "  links: [{interface: ospf0, area: 1, keys: [{algorithm: md5, password: hidden3}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	diff, err := Diff(cfg, next)
	changes := strings.Join(diff, "\n")
	if err != nil || strings.Contains(changes, "hidden") || !strings.Contains(changes, "ospfv2.links[ospf0].area: 0.0.0.0 -> 0.0.0.1") || !strings.Contains(changes, "ospfv2.links[ospf0].keys[0].password: (secret) -> (secret)") {
		t.Errorf("%v\n%s", err, changes)
	}
}
