package config

import (
	"testing"
	"time"
)

func TestValuesByAliasAndMergeKeyAreNotTakenForMissing(t *testing.T) {
	c, err := Parse([]byte(`
bgp:
  as: 65000
  router_id: 192.0.2.1
  neighbors:
  - &peer {address: 192.0.2.2, as: 65000, hold_time: 30s, port: 1179}
  - {<<: *peer, address: 192.0.2.3}
  - {<<: [{hold_time: 60s}, *peer], address: 192.0.2.4, port: 2179}
  - {address: 192.0.2.5, as: 65000}
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		hold time.Duration
		port uint16
	}{{30 * time.Second, 1179}, {30 * time.Second, 1179}, {60 * time.Second, 2179}, {DefaultHoldTime, DefaultBGPPort}} {
		if n := c.BGP.Neighbors[i]; n.HoldTime.Duration != want.hold || n.Port != want.port {
			t.Errorf("neighbors[%d]: hold time %s, port %d; want %s, %d", i, n.HoldTime, n.Port, want.hold, want.port)
		}
	}
	c, err = Parse([]byte(`
congestion_node: {interfaces: [a], source_ipv4: 192.0.2.1, pace: &pace {window: 1ms, burst: 7}}
proxy:
  ipv4: 192.0.2.1
  taps: [a]
  accept_from: [192.0.2.0/24]
  senders: &senders [{prefix: 198.51.100.0/24, mode: none}]
  pace: *pace
`))
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Proxy.Pace; p.Window.Duration != time.Millisecond || p.Burst != 7 || p.Total != DefaultPaceTotal {
		t.Errorf("pace by alias: %+v", p)
	}
}
