package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

// reloaded gives a leaf another configuration, and waits until it is in force.
func (l *ospfLab) reloaded(node, conf string) {
	l.t.Helper()
	l.write(node+".yaml", conf)
	ctx, cancel := context.WithTimeout(l.ctx, 20*time.Second)
	defer cancel()
	if _, err := pncv1.NewNodeServiceClient(l.dial(node)).Reload(ctx, &pncv1.ReloadRequest{}); err != nil {
		l.t.Fatal(err)
	}
}

// twoLeaves are the configurations of pa and pb with these keys for OSPFv2; OSPFv3 has the interface of OSPFv2.
func twoLeaves(pb int, keys string) (string, string) {
	link := func(name, more string) string {
		return fmt.Sprintf("  links: [{interface: %s, hello: 1s, dead: 4s%s}]\n", name, more)
	}
	conf := func(id, name, more string) string {
		return "ospfv2:\n  router_id: " + id + "\n" + link(name, more+", keys: ["+keys+"]") + "ospfv3:\n  router_id: " + id + "\n" + link(name, "")
	}
	veth := fmt.Sprintf(", veth: {peer: ospf-p, namespace: %q, addresses: [10.9.4.10/31], peer_addresses: [10.9.4.11/31]}", fmt.Sprint(pb))
	return igpProxyConf("10.1.0.0/24") + conf("10.255.0.11", "ospf0", veth), "node: pb\n" + conf("10.255.0.12", "ospf-p", "")
}

func TestOSPFBothVersionsOnAPairThatPncdMakes(t *testing.T) {
	l := newOSPFLab(t)
	const first, second = "{id: 1, algorithm: md5, password: one}", "{id: 2, algorithm: hmac-sha-256, password: two}"
	alone := "ospfv2: {router_id: 10.255.0.11}\nospfv3: {router_id: 10.255.0.11}\n"
	_, pb := twoLeaves(0, first)
	l.build([]igpNode{
		{name: "pa", image: "pncd", conf: igpProxyConf("10.1.0.0/24") + alone, exec: []string{"ip addr add 10.9.1.10/24 dev eth1", "ip addr add " + igpProxy + "/32 dev lo"}},
		{name: "pb", image: "pncd", conf: pb, exec: []string{"ip addr add 10.9.1.11/24 dev eth1", "ip route add " + igpProxy + "/32 via 10.9.1.10"}},
	}, [2]string{"pa:eth1", "pb:eth1"})
	namespace := l.Programs("pb")[0].Pid()
	use := func(keys string) {
		pa, pb := twoLeaves(namespace, keys)
		l.reloaded("pa", pa)
		l.reloaded("pb", pb)
	}
	use(first)

	since := map[uint32]time.Time{} // by version: when pb's neighbour became full
	hellos := func() (out [2]uint64) {
		for i, r := range l.ospf("pb") {
			out[i] = r.GetReceived()["hello"]
		}
		return out
	}
	l.eventually("both versions are full", func() string {
		for _, r := range l.ospf("pb") {
			n := r.GetLinks()[0].GetNeighbors()
			if len(n) != 1 || n[0].GetState() != "full" || n[0].GetRouterId() != "10.255.0.11" {
				return r.String()
			}
			since[r.GetVersion()] = n[0].GetSince().AsTime()
		}
		return ""
	})
	l.answers("10.1.0.2", igpProxy)

	for _, keys := range []string{first + ", " + second, second + ", " + first, second} {
		use(keys)
		before := hellos()
		l.eventually("hellos come for longer than the dead interval", func() string {
			if now := hellos(); now[0] < before[0]+6 || now[1] < before[1]+6 {
				return fmt.Sprintf("%v, then %v", before, now)
			}
			return ""
		})
	}
	for _, node := range l.leaves {
		for _, r := range l.ospf(node) {
			if n := r.GetDropped()["authentication"]; n > 0 {
				t.Errorf("%s, OSPFv%d: %d packets were refused while the keys changed", node, r.GetVersion(), n)
			}
			if n := r.GetLinks()[0].GetNeighbors(); len(n) != 1 || n[0].GetState() != "full" || node == "pb" && !n[0].GetSince().AsTime().Equal(since[r.GetVersion()]) {
				t.Errorf("%s, OSPFv%d: the adjacency did not stay: %v, since %s at first", node, r.GetVersion(), n, since[r.GetVersion()])
			}
		}
	}
	l.answers("10.1.0.2", igpProxy)

	if err := l.Programs("pa")[0].Stop(); err != nil {
		t.Errorf("pncd's end: %v", err)
	}
	l.answers("10.1.0.2", "RESOLVE_REASON_NO_ROUTE")
	if a, b := l.run("pa", "ip", "-o", "link"), l.run("pb", "ip", "-o", "link"); strings.Contains(a, "ospf0") || strings.Contains(b, "ospf-p") {
		t.Errorf("left after a clean stop:\n%s%s", a, b)
	}
	text, err := os.ReadFile(l.Programs("pa")[0].Log())
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); strings.Contains(s, "not every neighbour acknowledged") || strings.Contains(s, "stopping was not clean") {
		t.Errorf("the stop was not clean:\n%s", s)
	}
}
