package config

import (
	"strings"
	"testing"
	"time"
)

const isisBase = "isis:\n  net: 49.0001.1921.6800.1001.00\n"

func TestISISDefaults(t *testing.T) {
	cfg, err := Parse([]byte("node: r1\n" + isisBase + "  level: level-1-2\n  circuits:\n    - interface: isis0\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.ISIS
	if s.Hostname != "r1" || s.Flag != 7 || !s.Advertise || s.LinkMetric != 16777214 || s.PrefixMetric != 4261412865 || s.Timers.Refresh.Duration != 15*time.Minute {
		t.Errorf("%+v", s)
	}
	if c := s.Circuits[0]; c.Type != "point-to-point" || c.Level != "level-1-2" || c.Hello.Duration != 10*time.Second || c.Padding != "until-up" {
		t.Errorf("%+v", c)
	}
}

func TestISISProblems(t *testing.T) {
	circuit := isisBase + "  circuits:\n    - interface: isis0\n"
	for _, tc := range []struct{ name, text, want string }{
		{"no NET", "isis:\n  level: level-1\n", "isis.net:"},
		{"NET with a selector", "isis:\n  net: 49.0001.1921.6800.1001.01\n", "line 2: isis.net:"},
		{"NET without a system ID", "isis:\n  net: 49.0001.0000.0000.0000.00\n", "line 2: isis.net:"},
		{"three further areas", isisBase + "  areas: [\"49.0002\", \"49.0003\", \"49.0004\"]\n", "line 3: isis.areas: at most two"},
		{"area", isisBase + "  areas: [x]\n", "isis.areas[0]:"},
		{"level", isisBase + "  level: \"2\"\n", "line 3: isis.level: \"2\" is none of level-1, level-2, level-1-2"},
		{"flag", isisBase + "  flag: 1\n", "isis.flag: bits 0 and 1 are assigned"},
		{"prefix metric", isisBase + "  prefix_metric: 10\n", "isis.prefix_metric: 10 is not above 4261412864"},
		{"link metric", isisBase + "  link_metric: 16777215\n", "isis.link_metric: 16777215 is not between"},
		{"refresh", isisBase + "  timers: {refresh: 30m}\n", "isis.timers.refresh: must be less than lsp_lifetime"},
		{"generation_initial", isisBase + "  timers: {generation: 1s, generation_initial: 2s}\n", "isis.timers.generation_initial:"},
		{"spf_second", isisBase + "  timers: {spf: 100ms, spf_second: 200ms}\n", "isis.timers.spf_second:"},
		{"veth peer", circuit + "      veth: {peer: isis0}\n", "isis.circuits[0].veth.peer: \"isis0\" is the interface itself"},
		{"no veth peer", circuit + "      veth: {mtu: 1500}\n", "isis.circuits[0].veth.peer: \"\" is not an interface's name"},
		{"veth MTU", circuit + "      veth: {peer: r, mtu: 100}\n", "isis.circuits[0].veth.mtu:"},
		{"port with an address", circuit + "      veth: {peer: r, bridge: br0, peer_addresses: [192.0.2.1/31]}\n", "isis.circuits[0].veth.peer_addresses: the port of a bridge has none"},
		{"veth address", circuit + "      veth: {peer: r, addresses: [224.0.0.1/24]}\n", "isis.circuits[0].veth.addresses[0]:"},
		{"circuit twice", circuit + "    - interface: isis0\n", "isis.circuits[1].interface: isis0 is circuits[0] already"},
		{"circuit level", circuit + "      level: level-1\n", "isis.circuits[0].level: level-1 is not one of the system's, level-2"},
		{"circuit type", circuit + "      type: lan\n", "isis.circuits[0].type:"},
		{"interface", isisBase + "  circuits:\n    - interface: \"a b\"\n", "isis.circuits[0].interface:"},
		{"algorithm", circuit + "      keys: [{algorithm: md5, password: x}]\n", "isis.circuits[0].keys[0].algorithm: \"md5\" is none of hmac-md5"},
		{"no secret", circuit + "      keys: [{algorithm: hmac-md5}]\n", "isis.circuits[0].keys[0].password: give either"},
		{"two secrets", isisBase + "  level_2_keys: [{algorithm: hmac-sha-1, password: x, password_file: y}]\n", "isis.level_2_keys[0].password: give either"},
		{"ID of MD5", isisBase + "  level_1_keys: [{id: 2, algorithm: hmac-md5, password: x}]\n", "isis.level_1_keys[0].id: hmac-md5 has no key ID"},
	} {
		if _, err := Parse([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
	}
}

func TestISISSecretsAreNotShown(t *testing.T) {
	cfg, err := Parse([]byte(isisBase + "  level_1_keys: [{algorithm: hmac-md5, password: hidden1}]\n  level_2_keys: [{algorithm: hmac-md5, password: hidden2}]\n" +
		"  circuits:\n    - interface: isis0\n      keys: [{algorithm: hmac-md5, password: hidden3}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.Redacted()
	if err != nil || strings.Contains(text, "hidden") || strings.Count(text, redacted) != 3 {
		t.Errorf("%v\n%s", err, text)
	}
	if cfg.ISIS.Level1Keys[0].Password != "hidden1" {
		t.Error("the configuration itself was changed")
	}
}
