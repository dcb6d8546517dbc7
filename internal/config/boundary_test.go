package config

import (
	"strings"
	"testing"
	"time"
)

const boundaryProxy = "proxy:\n  ipv4: 192.0.2.1\n  port: 2021\n  taps: [eth0]\n  accept_from: [192.0.2.0/24]\n  accept_interfaces: [eth1]\n  senders: [{prefix: 198.51.100.0/24}]\n"

func TestTheBorderFiltersDefaults(t *testing.T) {
	c, err := Parse([]byte(boundaryProxy + "boundary: {border_interfaces: [ext0]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	b := c.Boundary
	if b.Family != "auto" || len(b.AcceptFrom) != 1 || !b.RefuseCNPs || len(b.Ports) != 2 || b.Ports[0] != 1022 || b.Ports[1] != 2021 ||
		b.Limits != (BoundaryLimits{400000, 40000, 200000, 20000, 4096, Duration{time.Minute}}) {
		t.Errorf("%+v", b)
	}
	if c, err = Parse([]byte("boundary: {border_interfaces: [ext0], refuse_cnps: false, limits: {total_pps: 0}}\n")); err != nil {
		t.Fatal(err)
	}
	if b = c.Boundary; b.RefuseCNPs || b.Limits.TotalPPS != 0 || b.Ports[0] != 1021 {
		t.Errorf("what is given: %+v", b)
	}
	if c, err = Parse([]byte("node: x\n")); err != nil || c.Boundary != nil {
		t.Errorf("left out: %+v, %v", c, err)
	}
}

func TestATapInXDPModeStandsBesideTheTranslatorOnOtherInterfaces(t *testing.T) {
	for _, rest := range []string{
		"  translate: kernel\n  translate_interfaces: [eth2]\n  tap: xdp\n",
		"  translate: kernel\n  translate_interfaces: [eth0]\n  tap: tcx\n",
		"  translate: user\n  translate_interfaces: [eth0]\n  tap: xdp\n",
	} {
		if _, err := Parse([]byte(boundaryProxy + rest)); err != nil {
			t.Errorf("%s: %v", rest, err)
		}
	}
}

func TestTheBorderFiltersRules(t *testing.T) {
	for in, want := range map[string]string{
		"boundary: {}\n": "boundary.border_interfaces: required without a proxy section",
		"boundary: {border_interfaces: [a, a]}\n":                                                                               `boundary.border_interfaces[1]: "a" is given twice`,
		"boundary: {border_interfaces: [a], family: bridge}\n":                                                                  `boundary.family: "bridge" is none of auto, netdev, inet`,
		"boundary: {border_interfaces: [a], ports: []}\n":                                                                       "boundary.ports: at least one is required",
		"boundary: {border_interfaces: [a], ports: [0]}\n":                                                                      "boundary.ports[0]: 0 is not a port",
		"boundary: {border_interfaces: [a], ports: [4791]}\n":                                                                   "boundary.ports[0]: 4791 is RoCEv2's own port",
		"boundary: {border_interfaces: [a], ports: [5, 5]}\n":                                                                   "boundary.ports[1]: 5 is given twice",
		boundaryProxy + "boundary: {accept_from: []}\n":                                                                         "boundary.accept_from: at least one prefix",
		"boundary: {border_interfaces: [a], ttl_min: 3}\n":                                                                      "boundary.accept_from: only with a proxy section",
		boundaryProxy + "boundary: {ports: [1021]}\n":                                                                           "boundary.ports: 2021 of proxy.port is missing",
		boundaryProxy + "boundary: {border_interfaces: [eth1]}\n":                                                               "boundary.border_interfaces[0]: eth1 is one of proxy.accept_interfaces",
		boundaryProxy + "  translate: kernel\n  translate_interfaces: [eth2]\nboundary: {border_interfaces: [eth2]}\n":          "boundary.border_interfaces[0]: eth2 is one of proxy.translate_interfaces",
		boundaryProxy + "  translate: kernel\n  translate_interfaces: [eth2]\nboundary: {accept_from: [192.0.2.9/32]}\n":        "boundary.accept_from: is not proxy.accept_from",
		boundaryProxy + "  translate: kernel\n  translate_interfaces: [eth2]\nboundary: {ttl_min: 9}\n":                         "boundary.ttl_min: 9 is above proxy.ttl_min",
		boundaryProxy + "  translate: kernel\n":                                                                                 "proxy.translate_interfaces: required with translate: kernel",
		boundaryProxy + "  translate: kernel\n  translate_interfaces: [eth2, eth0]\n  tap: xdp\n":                               "proxy.translate_interfaces[1]: eth0 is one of proxy.taps with tap: xdp",
		boundaryProxy + "  translate: hardware\n":                                                                               `proxy.translate: "hardware" is none of user, kernel`,
		boundaryProxy + "  translate_records: 0\n":                                                                              "proxy.translate_records: 0 is not between",
		"boundary: {border_interfaces: [a], limits: {total_pps: -1}}\n":                                                         "boundary.limits.total_pps: -1 is not between",
		"boundary: {border_interfaces: [a], limits: {total_burst: 1}}\n":                                                        "boundary.limits.total_burst: 1 is not between",
		"boundary: {border_interfaces: [a], limits: {per_source_pps: 20000000}}\n":                                              "boundary.limits.per_source_pps: 20000000 is not between",
		"boundary: {border_interfaces: [a], limits: {per_source_burst: 9}}\n":                                                   "boundary.limits.per_source_burst: 9 is not between",
		"boundary: {border_interfaces: [a], limits: {sources: 0}}\n":                                                            "boundary.limits.sources: 0 is not between",
		"boundary: {border_interfaces: [a], limits: {source_age: 1500ms}}\n":                                                    "boundary.limits.source_age: 1.5s is not in whole seconds",
		"boundary: {border_interfaces: [a], colour: red}\n":                                                                     "colour",
		"congestion_node: {interfaces: [a], source_ipv4: 192.0.2.1, port: 7}\nboundary: {border_interfaces: [b], ports: [8]}\n": "boundary.ports: 7 of congestion_node.port is missing",
	} {
		if _, err := Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}
