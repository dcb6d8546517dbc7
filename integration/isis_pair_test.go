package integration

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

// isisPair is pncd beside pncd, without a router.
func isisPair(t *testing.T, o isisOptions, senders []string) *isisLab {
	t.Helper()
	l := newISISLab(t)
	l.build([]igpNode{
		{name: "pa", image: "pncd", conf: o.pncd("0010", igpProxyConf(senders...)), exec: []string{"ip addr add 10.9.1.10/24 dev eth1", "ip addr add " + igpProxy + "/32 dev lo"}},
		{name: "pb", image: "pncd", conf: o.pncd("0011", "node: pb\n"), exec: []string{"ip addr add 10.9.1.11/24 dev eth1", "ip route add " + igpProxy + "/32 via 10.9.1.10"}},
	}, [2]string{"pa:eth1", "pb:eth1"})
	return l
}

// Ten thousand prefixes in many fragments, and one again.
func TestISISPairTenThousandPrefixes(t *testing.T) {
	many := make([]string, 10000)
	for i := range many {
		many[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 64 + byte(i>>14), byte(i >> 6), byte(i << 2)}), 30).String()
	}
	o := isisOptions{}
	l := isisPair(t, o, many[:1])
	l.resolves("10.64.0.1", igpProxy)
	marked := func(want uint32) {
		t.Helper()
		begin := time.Now()
		l.eventually(fmt.Sprintf("pb knows %d marked prefixes", want), func() string {
			if n := l.isis("pb").GetLevels()[0].GetMarked(); n != want {
				return fmt.Sprintf("%d", n)
			}
			return ""
		})
		t.Logf("figure: %d marked prefixes are learned after %s", want, time.Since(begin).Round(time.Millisecond))
	}
	l.reload("pa", o.pncd("0010", igpProxyConf(many...)))
	marked(uint32(len(many)))
	first, last := netip.MustParsePrefix(many[0]).Addr().Next().String(), netip.MustParsePrefix(many[len(many)-1]).Addr().Next().String()
	l.answers(first, igpProxy)
	l.answers(last, igpProxy)
	fragments := len(l.lsps("pb", 2, "pa"))
	if fragments < 100 {
		t.Errorf("10,000 prefixes are in %d fragments", fragments)
	}
	t.Logf("figure: 10,000 prefixes are in %d fragments", fragments)

	l.reload("pa", o.pncd("0010", igpProxyConf(many[0])))
	marked(1)
	l.answers(first, igpProxy)
	l.answers(last, "RESOLVE_REASON_NO_ROUTE")
	// What held the others is purged: on both sides nothing else lives.
	for _, node := range l.leaves {
		l.eventually(node+" has purged the fragments", func() string {
			live := 0
			for _, lsp := range l.lsps(node, 2, "pa") {
				if lsp.GetLifetime() > 0 {
					live++
				}
			}
			if live > 2 { // the first one, and that which the prefix stayed in
				return fmt.Sprintf("%d fragments live", live)
			}
			return ""
		})
	}
	if n := l.neighbor("pb"); n.GetState() != "up" {
		t.Errorf("the adjacency: %v", n)
	}
}

// neighbor is a leaf's only neighbour.
func (l *isisLab) neighbor(node string) *pncv1.IsisNeighbor {
	l.t.Helper()
	st := l.isis(node)
	if n := st.GetCircuits()[0].GetNeighbors(); len(n) == 1 {
		return n[0]
	}
	return nil
}

// From each algorithm to the next in three steps, as docs/isis.md tells an operator to: the adjacency stays,
// and what changes meanwhile arrives. After the last step of each, only the new key is accepted, so that what
// arrives is authenticated with it.
func TestISISPairRollsKeysOver(t *testing.T) {
	algorithms := []string{"hmac-md5", "hmac-sha-1", "hmac-sha-224", "hmac-sha-256", "hmac-sha-384", "hmac-sha-512"}
	key := func(i int) string {
		if i == 0 {
			return "{algorithm: hmac-md5, password: secret0}"
		}
		return fmt.Sprintf("{id: %d, algorithm: %s, password: secret%d}", i, algorithms[i], i)
	}
	with := func(keys ...int) isisOptions {
		var list []string
		for _, k := range keys {
			list = append(list, key(k))
		}
		text := "[" + strings.Join(list, ", ") + "]"
		return isisOptions{keys: "  level_2_keys: " + text + "\n", hellos: "      keys: " + text + "\n"}
	}
	sender := 0
	prefix := func() string { return fmt.Sprintf("10.64.%d.0/24", sender) }
	l := isisPair(t, with(0), []string{prefix()})
	l.resolves("10.64.0.2", igpProxy)
	since := map[string]time.Time{}
	for _, node := range l.leaves {
		since[node] = l.neighbor(node).GetSince().AsTime()
	}
	step := func(o isisOptions) {
		t.Helper()
		sender++
		at := time.Now()
		// One after the other: between the two the ends have different keys.
		for _, node := range l.leaves {
			more := "node: pb\n"
			system := "0011"
			if node == "pa" {
				more, system = igpProxyConf(prefix()), "0010"
			}
			l.reload(node, o.pncd(system, more))
		}
		l.answers(fmt.Sprintf("10.64.%d.2", sender), igpProxy)
		for _, node := range l.leaves {
			l.eventually(node+" hears its neighbour", func() string {
				n := l.neighbor(node)
				if n.GetState() != "up" || !n.GetSince().AsTime().Equal(since[node]) {
					t.Fatalf("%s lost the adjacency: %v", node, n)
				}
				// Two hellos after the change: one may have been on its way.
				if n.GetExpires().AsTime().Before(at.Add(3*time.Second + 1500*time.Millisecond)) {
					return n.String()
				}
				return ""
			})
		}
	}
	for i := 1; i < len(algorithms); i++ {
		step(with(i-1, i))
		step(with(i, i-1))
		step(with(i))
	}
	for _, node := range l.leaves {
		if n := l.isis(node).GetDropped()["authentication"]; n != 0 {
			t.Errorf("%s refused %d PDUs", node, n)
		}
	}

	// A key that pa doesn't have: pb refuses everything, and the adjacency ends.
	o := with(5)
	o.keys, o.hellos = strings.ReplaceAll(o.keys, "secret5", "wrong"), strings.ReplaceAll(o.hellos, "secret5", "wrong")
	l.reload("pb", o.pncd("0011", "node: pb\n"))
	l.answers(fmt.Sprintf("10.64.%d.2", sender), "RESOLVE_REASON_NO_ROUTE")
	if n := l.isis("pb").GetDropped()["authentication"]; n == 0 {
		t.Error("pb refused nothing")
	}
}
