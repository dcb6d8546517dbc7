package daemon

import (
	"testing"

	"pncd/bgp"
	"pncd/bgp/nhc"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/internal/config"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
	"pncd/proxyagent/notifier"
	"pncd/proxyagent/translator"
)

func TestDefaultsOfTheFileAreThoseOfTheParts(t *testing.T) {
	c, err := config.Parse([]byte(`
bgp: {as: 65000, router_id: 192.0.2.1, neighbors: [{address: 192.0.2.254, as: 65000}]}
congestion_node: {interfaces: [a], source_ipv4: 192.0.2.1}
proxy: {ipv4: 192.0.2.1, taps: [a], accept_from: [192.0.2.0/24], senders: [{prefix: 198.51.100.0/24, next_hop: 192.0.2.3}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, file, part any) {
		t.Helper()
		if file != part {
			t.Errorf("%s: %v in the file, %v in the part", what, file, part)
		}
	}
	n := notifierSettings(c.CongestionNode)
	same("notifier port", n.Port, uint16(message.PortFormat1))
	same("notifier DSCP", n.DSCP, notifier.DefaultDSCP)
	same("notifier TTL", n.TTL, uint8(notifier.DefaultTTL))
	same("notifier window", n.PaceWindow, notifier.DefaultPaceWindow)
	same("notifier per flow", n.PerFlowPerSecond, notifier.DefaultPerFlowSecond)
	same("notifier total", n.TotalPerSecond, notifier.DefaultTotalPerSecond)
	same("notifier burst", n.TotalBurst, notifier.DefaultTotalBurst)
	same("notifier flows", n.MaxFlows, notifier.DefaultMaxFlows)

	p := translatorSettings(c.Proxy)
	same("translator port", c.Proxy.Port, uint16(message.PortFormat1))
	same("translator window", p.PaceWindow, translator.DefaultPaceWindow)
	same("translator per QP", p.PerQPPerSecond, translator.DefaultPerQPSecond)
	same("translator total", p.TotalPerSecond, translator.DefaultTotalPerSecond)
	same("translator burst", p.TotalBurst, translator.DefaultTotalBurst)
	same("translator QPs", p.MaxQPs, translator.DefaultMaxQPs)
	same("CNP TOS", p.CNPTOS, uint8(roce.DefaultCNPTOS))
	same("CNP TTL", p.CNPTTL, uint8(roce.DefaultCNPTTL))
	same("CNP P_Key", p.CNPPKey, uint16(roce.DefaultPKey))

	m := mapSettings(c.Proxy)
	same("map entries", m.MaxEntries, flowmap.DefaultMaxEntries)
	same("map age", m.AgeAfter, flowmap.DefaultAgeAfter)
	same("tap ring", c.Proxy.TapRing*tapBlocksPerMiB, tap.DefaultBlocks)
	same("records", c.Evidence.Records, evidence.DefaultCapacity)
	same("history", tableSettings(c).History, pnc.DefaultHistory)
	same("rejected", tableSettings(c).Rejected, pnc.DefaultRejected)

	b, err := bgpSettings(c)
	if err != nil {
		t.Fatal(err)
	}
	same("BGP port", b.ListenPort, bgp.DefaultPort)
	same("PNC code", b.PNCCode, nhc.DefaultPNCCode)
	same("neighbour port", b.Neighbors[0].Port, uint16(bgp.DefaultPort))
	same("hold time", b.Neighbors[0].HoldTime, bgp.DefaultHoldTime)
	same("keepalive", b.Neighbors[0].Keepalive, bgp.DefaultHoldTime/3)
	same("connect retry", b.Neighbors[0].ConnectRetry, bgp.DefaultConnectRetry)
}
