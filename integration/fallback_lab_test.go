package integration

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// fallbackLab is a proxy pa that tells of its sender prefix by BGP, IS-IS and OSPF at once, and a congestion node pb that
// learns all three: BGP in a session between the two, the others through the router r1.
//
//	pa - r1 - pb - receiver
//	     |
//	  sender
//
// The sender's RoCEv2 packets to the receiver are marked CE; pb notifies pa of them. pb forwards them, so r1 has a
// static route through it; no router may have one through pa.
type fallbackLab struct {
	*igpLab
	pb      *bed.Node
	pa      *bed.Node
	traffic *labtraffic.Generator
}

const (
	fallbackSender = "10.3.0.2"
	fallbackPrefix = "10.3.0.0/24"
	fallbackPA     = "10.9.1.10" // the proxy's address
	fallbackPB     = "10.9.3.11"
)

// Timers of hellos are long: what a test sees within seconds was said, and not found out by silence. BGP's hold time is
// what a dead session costs.
const (
	fallbackISIS = "      multiplier: 30\n"
	fallbackHold = 6 * time.Second
	fallbackLink = " isis hello-multiplier 30\n"
	fallbackDead = " ip ospf dead-interval 30\n"
)

// fallbackLeaf is the configuration of a leaf: with other sections, its number and its BGP neighbour. FRR makes two
// versions of an LSA within 50 ms here; one that is refused as too soon comes again seconds later only.
func fallbackLeaf(sections string, n int, neighbor string) string {
	isis := isisOptions{hellos: fallbackISIS}.pncd(fmt.Sprintf("00%d", n), sections)
	return isis + fmt.Sprintf(`ospfv2:
  router_id: 10.254.0.%d
  timers: {min_ls_interval: 200ms, min_ls_arrival: 20ms, ack_delay: 200ms, spf: 100ms, spf_second: 50ms}
  links:
    - interface: eth1
      hello: 1s
      dead: 30s
      retransmit: 2s
bgp:
  as: 65000
  router_id: 10.254.0.%d
  neighbors:
    - {address: %s, as: 65000, connect_retry: 1s, hold_time: %s}
`, n, n, neighbor, fallbackHold)
}

func upFallback(t *testing.T) *fallbackLab {
	t.Helper()
	l := &fallbackLab{igpLab: newIGPLab(t, igp{
		name: "fallback", daemons: []string{"isisd", "ospfd", "ospf6d"},
		routes: []string{"show ip route isis", "show ip route ospf"}, state: []string{"show isis neighbor", "show ip ospf neighbor"},
	})}
	leafLink := func(name string) ospfLink { return ospfLink{name: name, extra: fallbackDead} }
	r1 := isisOptions{circuit: fallbackLink}.frr(1, "eth1", "eth2") + ospfRouter{n: 1, links: []ospfLink{leafLink("eth1"), leafLink("eth2")}}.frr()
	l.build([]igpNode{
		{name: "r1", image: "frr", conf: r1, exec: []string{
			"ip addr add 10.255.0.1/32 dev lo", "ip addr add 10.9.1.1/24 dev eth1", "ip addr add 10.9.3.1/24 dev eth2",
			"ip addr add 10.3.0.1/24 dev eth3", "ip route add 10.2.0.0/24 via " + fallbackPB,
		}},
		{name: "pa", image: "pncd", exec: []string{"ip addr add " + fallbackPA + "/24 dev eth1", "ip route add 10.9.3.0/24 via 10.9.1.1"}, conf: fallbackLeaf(
			fmt.Sprintf("node: pa\nenabled: true\nproxy:\n  ipv4: %s\n  taps: [eth1]\n  accept_from: [10.9.3.0/24]\n  senders:\n    - {prefix: %s, mode: originate, next_hop: 10.9.1.1}", fallbackPA, fallbackPrefix),
			10, fallbackPB)},
		{name: "pb", image: "pncd", forwards: true, exec: []string{
			"ip addr add " + fallbackPB + "/24 dev eth1", "ip addr add 10.2.0.1/24 dev eth2", "ip route add 10.9.1.0/24 via 10.9.3.1", "ip route add 10.3.0.0/24 via 10.9.3.1",
		}, conf: fallbackLeaf(
			fmt.Sprintf("node: pb\nenabled: true\ncongestion_node: {interfaces: [eth2], source_ipv4: %s, pace: {window: 1us, per_flow: 10000}}", fallbackPB),
			11, fallbackPA)},
		{name: "sender", image: "debian", exec: []string{"ip addr add " + fallbackSender + "/24 dev eth1", "ip route add default via 10.3.0.1"}},
		{name: "receiver", image: "debian", exec: []string{"ip addr add 10.2.0.2/24 dev eth1", "ip route add default via 10.2.0.1"}},
	}, [2]string{"pa:eth1", "r1:eth1"}, [2]string{"r1:eth2", "pb:eth1"}, [2]string{"r1:eth3", "sender:eth1"}, [2]string{"pb:eth2", "receiver:eth1"})
	for name, n := range map[string]**bed.Node{"pa": &l.pa, "pb": &l.pb} {
		*n = &bed.Node{Name: name, Records: pncv1.NewRecordServiceClient(l.dial(name))}
	}
	return l
}

// congest begins the sender's traffic: every packet is marked, and of so many flows that next to none is paced.
func (l *fallbackLab) congest() {
	l.t.Helper()
	g, err := labtraffic.NewGenerator(labtraffic.GeneratorConfig{
		Rate: 1000, Flows: labtraffic.FlowConfig{QPs: 16, OneWay: true, CEShare: 1},
		Local: labtraffic.Host{Netns: l.Namespace("sender"), Addr: netip.MustParseAddr(fallbackSender)},
		Peer:  labtraffic.Host{Netns: l.Namespace("receiver"), Addr: netip.MustParseAddr("10.2.0.2")},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.traffic = g
	inBackground(l.t, "generating traffic", g.Run)
}

// ledger reads what became of the congestion events, and of the notifications at the proxy.
func (l *fallbackLab) ledger() (at, to ledger) {
	l.t.Helper()
	at, err := ledgerOf(l.ctx, l.pb, "congestion-node")
	if err == nil {
		to, err = ledgerOf(l.ctx, l.pa, "proxy")
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return at, to
}

// uses waits until pb resolves the sender by the first of these sources, and says of the others that they come after it;
// without any, that there is no route. Then so many notifications must leave by that source that one is not missed.
func (l *fallbackLab) uses(step string, sources ...string) {
	l.t.Helper()
	l.eventually(step, func() string {
		status, text := pncctl(l.t, l, "pb", "resolve", fallbackSender, "-o", "json")
		var r pncv1.ResolveResponse
		if err := protojson.Unmarshal([]byte(text), &r); err != nil {
			return fmt.Sprintf("%v: %s", err, text)
		}
		if len(sources) == 0 {
			if status != 1 || r.GetReason() != pncv1.ResolveReason_RESOLVE_REASON_NO_ROUTE || r.GetExplanation() != "No route matches "+fallbackSender+"." {
				return text
			}
			return ""
		}
		why := ""
		if len(sources) > 1 {
			why = fmt.Sprintf(" By resolve.preference %s comes before %s.", sources[0], strings.Join(sources[1:], " and "))
		}
		if status != 0 || r.GetProxy() != fallbackPA || sourceName(r.GetRoute()) != sources[0] || !strings.HasSuffix(r.GetExplanation(), ")."+why) || len(r.GetCandidates()) != len(sources)-1 {
			return text
		}
		for i, c := range r.GetCandidates() {
			if sourceName(c) != sources[i+1] || c.GetNotUsed() != pncv1.NotUsedReason_NOT_USED_REASON_PREFERENCE {
				return text
			}
		}
		return ""
	})
	if len(sources) == 0 {
		return
	}
	before, _ := l.ledger()
	l.eventually(step+": notifications", func() string {
		if at, _ := l.ledger(); at.by["sent"] < before.by["sent"]+50 {
			return fmt.Sprintf("%d sent, %d before; %d messages", at.by["sent"], before.by["sent"], l.traffic.Messages())
		}
		return ""
	})
}

func sourceName(r *pncv1.CapabilityRoute) string {
	return strings.ToLower(strings.TrimPrefix(r.GetSource().String(), "SOURCE_"))
}

// resolved runs steps and fails when a congestion event of the time ended without a notification being due.
func (l *fallbackLab) resolved(what string, steps func()) {
	l.t.Helper()
	before, _ := l.ledger()
	steps()
	after, _ := l.ledger()
	if got, want := after.otherwise(), before.otherwise(); !maps.Equal(got, want) {
		l.t.Errorf("%s: congestion events ended otherwise than notified: %v, before %v", what, nonzero(got), nonzero(want))
		return
	}
	l.t.Logf("figure: %s: %d congestion events, %d notifications, every one resolved", what, after.received-before.received, after.by["sent"]-before.by["sent"])
}

// arrived waits until events end as no-proxy, so that nothing is on its way any more, and holds that the proxy got
// every notification that was ever sent, from the kernel's port to the daemon's counter.
func (l *fallbackLab) arrived(step string) {
	l.t.Helper()
	before, _ := l.ledger()
	var at, to ledger
	l.eventually(step+": no more notifications", func() string {
		at, to = l.ledger()
		if at.by["no-proxy"] < before.by["no-proxy"]+50 || at.by["sent"] != to.received {
			return fmt.Sprintf("%d sent, %d received by the proxy; %v", at.by["sent"], to.received, nonzero(at.by))
		}
		return ""
	})
	if at.by["sent"] != before.by["sent"] {
		l.t.Errorf("%s: %d notifications were sent without a proxy", step, at.by["sent"]-before.by["sent"])
	}
	l.t.Logf("figure: %s: %d notifications sent since the start, %d received", step, at.by["sent"], to.received)
}

// change edits a leaf's configuration as an operator does.
func (l *fallbackLab) change(leaf, old, new string) {
	l.t.Helper()
	path := filepath.Join(l.dir, leaf+".yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		l.t.Fatalf("the configuration of %s does not hold %q:\n%s", leaf, old, text)
	}
	l.write(leaf+".yaml", strings.Replace(string(text), old, new, 1))
	if status, out := pncctl(l.t, l, leaf, "reload"); status != 0 || strings.Contains(out, "nothing changed") {
		l.t.Fatalf("reload: %d, %s", status, out)
	}
}

// configure gives commands to the router's interface towards pa.
func (l *fallbackLab) configure(commands ...string) {
	l.t.Helper()
	l.vtysh("r1", append([]string{"configure terminal", "interface eth1"}, commands...)...)
}

// cutBGP keeps the packets of the session from r1 on, so that both ends hear nothing more.
func (l *fallbackLab) cutBGP(cut bool) {
	l.t.Helper()
	if !cut {
		l.run("r1", "nft", "delete", "table", "ip", "cut")
		return
	}
	l.run("r1", "sh", "-c", "nft -f - <<END\ntable ip cut {\n  chain forward {\n    type filter hook forward priority 0\n    tcp sport 179 drop\n    tcp dport 179 drop\n  }\n}\nEND")
}
