package speaker

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/packet"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is routers joined by point-to-point links, whose names are the two routers' numbers.
type world struct {
	t       *testing.T
	v       packet.Version
	now     time.Time
	systems map[int]*Machine
	learned map[int][]igp.Learned
	lose    func(Datagram) bool
	sent    func(from int, d Datagram)
}

// both runs a test for each version.
func both(t *testing.T, f func(t *testing.T, v packet.Version)) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		t.Run(v.String(), func(t *testing.T) { f(t, v) })
	}
}

// build makes routers with links between the pairs; those below 10 are routed through.
func build(t *testing.T, v packet.Version, change func(n int, c *Config), pairs ...[2]int) *world {
	n := &world{t: t, v: v, now: start, systems: map[int]*Machine{}, learned: map[int][]igp.Learned{}}
	configs := map[int]*Config{}
	for _, p := range pairs {
		for _, id := range p {
			if configs[id] == nil {
				configs[id] = &Config{
					Version: v, Router: packet.ID(id), Carrier: marks.Carrier{Bit: 2}, LinkMetric: 10, transit: id < 10, AckDelay: 100 * time.Millisecond,
					SPF: backoff.Config{Initial: 50 * time.Millisecond, Second: time.Second, Max: time.Second},
				}
				if id >= 10 {
					configs[id].LinkMetric = 0
				}
			}
			configs[id].Links = append(configs[id].Links, LinkConfig{Name: name(p), Hello: time.Second, Dead: 4 * time.Second})
		}
	}
	for id, c := range configs {
		if change != nil {
			change(id, c)
		}
		n.systems[id] = n.system(*c)
	}
	for _, p := range pairs {
		n.link(p, true)
	}
	return n
}

func name(p [2]int) string { return fmt.Sprintf("%d-%d", p[0], p[1]) }

func (n *world) system(c Config) *Machine {
	n.t.Helper()
	m, err := New(c, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	return m
}

// address is that of one of the two ends of a link.
func (n *world) address(p [2]int, end int) netip.Prefix {
	if n.v == packet.V2 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(p[0]), byte(p[1]), byte(end + 1)}), 24)
	}
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xFE, 1: 0x80, 13: byte(p[0]), 14: byte(p[1]), 15: byte(end + 1)}), 64)
}

func (n *world) link(p [2]int, up bool) {
	for end, id := range p {
		if m := n.systems[id]; m != nil {
			m.LinkChanged(n.now, name(p), Link{Up: up, Index: 100*p[0] + p[1], MTU: 1500, Address: n.address(p, end)})
		}
	}
}

// pass lets time pass; packets take a millisecond.
func (n *world) pass(d time.Duration) {
	n.t.Helper()
	end := n.now.Add(d)
	for steps := 0; ; steps++ {
		if steps > 20_000 {
			n.t.Fatal("no end")
		}
		at := end
		for _, m := range n.systems {
			if w := m.Wake(); !w.IsZero() && w.Before(at) {
				at = w
			}
		}
		if at.After(n.now) && steps > 0 { // what was done before is for the first tick
			n.now = at
		}
		type arrival struct {
			to int
			d  Datagram
		}
		var packets []arrival
		for _, id := range slices.Sorted(maps.Keys(n.systems)) {
			m := n.systems[id]
			for _, d := range m.Tick(n.now) {
				if n.sent != nil {
					n.sent(id, d)
				}
				if n.lose != nil && n.lose(d) {
					continue
				}
				var a, b int
				fmt.Sscanf(d.Link, "%d-%d", &a, &b)
				packets = append(packets, arrival{a + b - id, d})
			}
			n.learned[id] = append(n.learned[id], m.Learned()...)
		}
		if len(packets) > 0 {
			n.now = n.now.Add(time.Millisecond)
		}
		for _, x := range packets {
			if m := n.systems[x.to]; m != nil {
				m.Receive(n.now, x.d)
			}
		}
		if len(packets) == 0 && !n.now.Before(end) {
			return
		}
	}
}

// holds gives what a router has learned with the P flag, as a line each.
func (n *world) holds(id int) []string {
	state := map[string]string{}
	for _, l := range n.learned[id] {
		k := fmt.Sprintf("%s of %s in %s", l.Prefix, l.Originator, packet.ID(l.Area))
		if delete(state, k); !l.Gone && l.P {
			state[k] = fmt.Sprintf("%s: %s, cost %d", k, l.Proxy, l.Cost)
			if l.Leaked {
				state[k] += ", leaked"
			}
		}
	}
	var all []string
	for _, s := range state {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

func (n *world) want(id int, want ...string) {
	n.t.Helper()
	if got := n.holds(id); !slices.Equal(got, want) {
		n.t.Fatalf("router %d holds\n %s\nwant\n %s", id, strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

func ad(prefix, proxy string) igp.Advertisement {
	return igp.Advertisement{Prefix: netip.MustParsePrefix(prefix), Proxy: netip.MustParseAddr(proxy)}
}

// mine gives a prefix and a proxy of the version's family.
func mine(v packet.Version, n int) igp.Advertisement {
	if v == packet.V2 {
		return ad(fmt.Sprintf("10.1.%d.0/24", n), fmt.Sprintf("10.255.0.%d", n))
	}
	return ad(fmt.Sprintf("2001:db8:%d::/48", n), fmt.Sprintf("2001:db8::%d", n))
}

// line is what holds gives for it.
func line(a igp.Advertisement, router, area packet.ID, cost int) string {
	return fmt.Sprintf("%s of %s in %s: %s, cost %d", a.Prefix, router, area, a.Proxy, cost)
}

// chain is a leaf, two routers and a leaf.
func chain(t *testing.T, v packet.Version, change func(int, *Config)) *world {
	n := build(t, v, change, [2]int{10, 1}, [2]int{1, 2}, [2]int{2, 11})
	n.pass(10 * time.Second)
	return n
}

const cost = 0xFFFF + 10 + 10 // from leaf 11 to leaf 10, whose link back has the leaf's metric

func TestAMarkedPrefixArrivesAtTheOtherEnd(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		n.want(11)
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1), mine(v, 2), ad("10.3.0.0/16", "2001:db8::10"), ad("2001:db8:3::/48", "10.255.0.3"), {}})
		n.pass(time.Second)
		n.want(11, line(mine(v, 1), 10, 0, cost), line(mine(v, 2), 10, 0, cost))
		if got := n.own(11, 10); len(got) != 3 { // the router LSA and two marks: three of five are not carried
			t.Errorf("11 has %v of 10", got)
		}
		other := mine(v, 1)
		other.Proxy = mine(v, 9).Proxy
		n.systems[10].Advertise(n.now, []igp.Advertisement{other})
		n.pass(6 * time.Second) // MinLSInterval
		n.want(11, line(other, 10, 0, cost))
		n.systems[10].Advertise(n.now, nil)
		n.pass(time.Second)
		n.want(11)
	})
}
