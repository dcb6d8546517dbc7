package speaker

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

func TestAFlagThatChangesRunsNoSPF(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		before := n.systems[11].areas[0].Status().SPFRuns
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(time.Second)
		if len(n.holds(11)) != 1 {
			t.Fatal("not learned")
		}
		if after := n.systems[11].areas[0].Status().SPFRuns; after != before {
			t.Errorf("%d runs", after-before)
		}
	})
}

func TestALeafIsNeverTransit(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		// Leaf 10 has links to two routers that have no other way to each other.
		n := build(t, v, nil, [2]int{10, 1}, [2]int{10, 2}, [2]int{2, 11})
		n.systems[1].Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(10 * time.Second)
		n.want(11)
		n.want(10, line(mine(v, 1), 1, 0, 0xFFFF))
	})
}

func TestALeafAnnouncesAnotherLinkWhenTheFirstIsGone(t *testing.T) {
	n := build(t, packet.V2, nil, [2]int{10, 1}, [2]int{10, 2}, [2]int{1, 2}, [2]int{2, 11})
	n.systems[10].Advertise(n.now, []igp.Advertisement{mine(packet.V2, 1)})
	n.pass(10 * time.Second)
	n.want(11, line(mine(packet.V2, 1), 10, 0, 0xFFFF+20)) // by way of router 1
	n.link([2]int{10, 1}, false)
	n.pass(7 * time.Second)
	n.want(11, line(mine(packet.V2, 1), 10, 0, 0xFFFF+10))
}

func TestAProxyThatIsCutOffIsNotBelieved(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(time.Second)
		n.want(11, line(mine(v, 1), 10, 0, cost))
		before := n.systems[11].areas[0].Status().SPFRuns
		held := n.own(11, 10)
		n.link([2]int{1, 2}, false) // the routers see their link go: the LSAs of 10 stay for an hour
		n.pass(6 * time.Second)
		n.want(11)
		if n.systems[11].areas[0].Status().SPFRuns == before || !slices.Equal(n.own(11, 10), held) {
			t.Fatal("the LSA is gone: the test shows nothing")
		}
		n.link([2]int{1, 2}, true)
		n.pass(10 * time.Second)
		n.want(11, line(mine(v, 1), 10, 0, cost))
	})
}

// own lists what a router's databases hold of another.
func (n *world) own(at int, of packet.ID) (keys []packet.Key) {
	for _, l := range n.systems[at].Database(n.now) {
		if l.LSA.Adv == of {
			keys = append(keys, l.LSA.Key)
		}
	}
	return keys
}

// leftNothing holds that nobody in a chain has or believes anything of leaf 10, nor takes it for a neighbour.
func (n *world) leftNothing() {
	n.t.Helper()
	n.want(11)
	for _, at := range []int{1, 2, 11} {
		if left := n.own(at, 10); len(left) > 0 {
			n.t.Errorf("router %d still has %v", at, left)
		}
	}
	for _, l := range n.systems[1].Status(n.now).Links {
		if l.Name == "10-1" && len(l.Neighbors) > 0 && l.Neighbors[0].State > neighbor.Init {
			n.t.Errorf("the neighbour is still %s", l.Neighbors[0].State)
		}
	}
}

func TestAStopFlushesEverything(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1), mine(v, 2)})
		n.pass(time.Second)
		if len(n.own(11, 10)) != 3 {
			t.Fatalf("11 has %v of 10", n.own(11, 10))
		}
		if err := n.systems[10].Stop(n.now); err != nil {
			t.Fatal(err)
		}
		if n.systems[10].Purged() {
			t.Error("purged before anybody was told")
		}
		n.pass(500 * time.Millisecond)
		if !n.systems[10].Purged() {
			t.Error("not purged half a second after the stop")
		}
		n.leftNothing()
	})
}

func TestARestartAfterKillReplacesWhatWasLeft(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1), mine(v, 2), mine(v, 3)})
		n.pass(time.Second)
		cfg := n.systems[10].cfg
		n.systems[10] = n.system(cfg) // nobody was told
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 2)})
		n.link([2]int{10, 1}, true)
		n.pass(15 * time.Second)
		n.want(11, line(mine(v, 2), 10, 0, cost))
		want := 2
		if got := n.own(11, 10); len(got) != want {
			t.Errorf("11 has %v of 10, want %d", got, want)
		}
	})
}

func TestPacketsThatGetLost(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := build(t, v, nil, [2]int{10, 1}, [2]int{1, 2}, [2]int{2, 11})
		r := rand.New(rand.NewPCG(1, uint64(v)))
		n.lose = func(Datagram) bool { return r.IntN(5) == 0 }
		var want []string
		var ads []igp.Advertisement
		for i := range 100 {
			ads = append(ads, mine(v, i+1))
			want = append(want, line(mine(v, i+1), 10, 0, cost))
		}
		slices.Sort(want)
		n.systems[10].Advertise(n.now, ads)
		n.pass(5 * time.Minute)
		n.lose = nil
		n.pass(time.Minute)
		n.want(11, want...)
	})
}

func TestWhatCannotBeSaidIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Config)
	}{
		{"no router ID", func(c *Config) { c.Router = 0 }},
		{"version", func(c *Config) { c.Version = 4 }},
		{"stub backbone", func(c *Config) { c.Areas = []AreaConfig{{0, Stub}} }},
		{"an area twice", func(c *Config) { c.Areas = []AreaConfig{{1, Stub}, {1, NSSA}} }},
		{"a link twice", func(c *Config) { c.Links = append(c.Links, c.Links[0]) }},
		{"a link without a name", func(c *Config) { c.Links[0].Name = "" }},
		{"instance of OSPFv2", func(c *Config) { c.Links[0].Instance = 1 }},
		{"hello of half a second", func(c *Config) { c.Links[0].Hello = 500 * time.Millisecond }},
		{"dead before hello", func(c *Config) { c.Links[0].Dead = c.Links[0].Hello }},
		{"MD5 in OSPFv3", func(c *Config) {
			c.Version = packet.V3
			c.Links[0].Authentication.Send = auth.Key{Algorithm: auth.MD5, Secret: "x"}
		}},
		{"TLV flags in OSPFv3", func(c *Config) { c.Version = packet.V3; c.Carrier.TLVFlags = 8 }},
		{"refresh of an hour", func(c *Config) { c.Refresh = time.Hour }},
		{"refresh before now", func(c *Config) { c.Refresh = -time.Second }},
		{"MinLSInterval", func(c *Config) { c.MinLSInterval = -time.Second }},
		{"MinLSArrival", func(c *Config) { c.MinLSArrival = -time.Second }},
		{"acknowledgment delay", func(c *Config) { c.AckDelay = -time.Second }},
		{"fewer LSAs than none", func(c *Config) { c.MaxLSAs = -1 }},
		{"fewer neighbours than none", func(c *Config) { c.Links[0].MaxNeighbors = -1 }},
		{"retransmit interval", func(c *Config) { c.Links[0].Retransmit = -time.Second }},
		{"transmit delay of an hour", func(c *Config) { c.Links[0].TransmitDelay = 3600 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Config{Version: packet.V2, Router: 1, Links: []LinkConfig{{Name: "a", Hello: time.Second, Dead: 4 * time.Second}}}
			if err := cfg.Check(); err != nil {
				t.Fatal(err)
			}
			c.edit(&cfg)
			if _, err := New(cfg, start); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestEveryPacketIsCountedOnce(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		m := n.systems[11]
		before := m.Status(n.now)
		from := unzoned(n.address([2]int{2, 11}, 0))
		good := 0
		for _, b := range [][]byte{nil, {2}, make([]byte, 100), {byte(v), 9, 0, 24}} {
			m.Receive(n.now, Datagram{Link: "2-11", Source: from, Destination: from, Payload: b})
			m.Receive(n.now, Datagram{Link: "nowhere", Source: from, Destination: from, Payload: b})
			good += 2
		}
		m.Receive(n.now, Datagram{Link: "2-11", Source: netip.Addr{}, Destination: netip.Addr{}, Payload: nil})
		st := m.Status(n.now)
		sum, drops := uint64(0), uint64(0)
		for _, c := range st.Received {
			sum += c
		}
		for _, c := range st.Drops {
			drops += c
		}
		already := uint64(0)
		for _, c := range before.Drops {
			already += c
		}
		if drops != already+uint64(good+1) || sum != st.Used+drops {
			t.Errorf("%d received, %d used, %d dropped, want %d dropped", sum, st.Used, drops, good+1)
		}
	})
}

// chainOf gives a chain of keys of a version; the first is sent.
func chainOf(v packet.Version, ids ...uint16) (c auth.Chain) {
	for _, id := range ids {
		c.Accept = append(c.Accept, auth.Key{ID: id, Algorithm: auth.HMACSHA256, Secret: "secret of " + string(rune('a'+id))})
	}
	c.Send = c.Accept[0]
	return c
}

func TestKeysRollOverWithoutAFlap(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, func(id int, c *Config) {
			for i := range c.Links {
				c.Links[i].Authentication = chainOf(v, 1)
			}
		})
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(time.Second)
		n.want(11, line(mine(v, 1), 10, 0, cost))
		since := n.systems[10].Status(n.now).Links[0].Neighbors[0].Since
		for _, keys := range [][]uint16{{1, 2}, {2, 1}, {2}} {
			for _, m := range n.systems {
				c := m.cfg
				c.Links = slices.Clone(c.Links)
				for i := range c.Links {
					c.Links[i].Authentication = chainOf(v, keys...)
				}
				if err := m.Reconfigure(n.now, c); err != nil {
					t.Fatal(err)
				}
			}
			n.pass(20 * time.Second)
		}
		if got := n.systems[10].Status(n.now).Links[0].Neighbors[0]; got.State != neighbor.Full || got.Since != since {
			t.Errorf("%s since %s", got.State, got.Since)
		}
		if d := n.systems[10].Status(n.now).Drops[DropAuthentication]; d != 0 {
			t.Errorf("%d packets refused", d)
		}
		c := n.systems[10].cfg
		c.Links = slices.Clone(c.Links)
		c.Links[0].Authentication = chainOf(v, 3)
		if err := n.systems[10].Reconfigure(n.now, c); err != nil {
			t.Fatal(err)
		}
		n.pass(6 * time.Second)
		n.want(11)
		st := n.systems[1].Status(n.now)
		l := st.Links[slices.IndexFunc(st.Links, func(l LinkStatus) bool { return l.Name == "10-1" })]
		if d := st.Drops[DropAuthentication]; d == 0 || l.Dropped[DropAuthentication] != d {
			t.Errorf("a wrong key is counted %d times, and %d times for the link", d, l.Dropped[DropAuthentication])
		}
		if want := "authentication, from " + unzoned(n.address([2]int{10, 1}, 0)).String() + ": "; !strings.HasPrefix(l.Last, want) || !strings.Contains(l.Last, "unknown key") {
			t.Errorf("refused last: %s", l.Last)
		}
		var told []string
		for _, c := range n.systems[10].Changes() {
			told = append(told, c.Link+" "+c.Router.String()+" "+c.To.String())
		}
		if want := []string{"10-1 0.0.0.1 full", "10-1 0.0.0.1 down"}; !slices.Contains(told, want[0]) || told[len(told)-1] != want[1] {
			t.Errorf("the neighbour changed: %v", told)
		}
	})
}

func TestWhatChangesWhileTheRouterRuns(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		m := n.systems[10]
		m.Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(time.Second)
		for what, edit := range map[string]func(*Config){
			"router ID": func(c *Config) { c.Router = 77 },
			"version":   func(c *Config) { c.Version ^= 1 },
			"carrier":   func(c *Config) { c.Carrier.Bit = 9 },
			"bound":     func(c *Config) { c.MaxLSAs = 5 },
		} {
			c := m.cfg
			edit(&c)
			if err := m.Reconfigure(n.now, c); err == nil {
				t.Errorf("%s: changed", what)
			}
		}
		n.want(11, line(mine(v, 1), 10, 0, cost))
		// Another area on the link: the adjacency ends, and everything that was said in the old one.
		c := m.cfg
		c.Links = slices.Clone(c.Links)
		c.Links[0].Area = 5
		if err := m.Reconfigure(n.now, c); err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		n.want(11)
		c.Links = nil
		if err := m.Reconfigure(n.now, c); err != nil {
			t.Fatal(err)
		}
		if st := m.Status(n.now); len(st.Links) != 0 || len(st.Areas) != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// areas are a leaf in area 1, a router that has a link in area 1 and one in area 0, and so on; borders gives the
// area of each link.
func TestMarksCrossAreasThroughAHelper(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		// 10 - 12 in area 1, 12 - 13 in the backbone, 13 - 14 in area 2; 12 and 13 are the borders' helpers.
		areas := map[string]packet.ID{"10-12": 1, "12-13": 0, "13-14": 2}
		n := build(t, v, func(id int, c *Config) {
			c.Reoriginate = id == 12 || id == 13
			for i := range c.Links {
				c.Links[i].Area = areas[c.Links[i].Name]
			}
		}, [2]int{10, 12}, [2]int{12, 13}, [2]int{13, 14})
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(20 * time.Second)
		n.want(12, line(mine(v, 1), 10, 1, 0xFFFF))
		n.want(13, line(mine(v, 1), 12, 0, 0xFFFF)+", leaked")
		n.want(14, line(mine(v, 1), 13, 2, 0xFFFF)+", leaked")
		n.systems[10].Advertise(n.now, nil)
		n.pass(20 * time.Second)
		for _, id := range []int{12, 13, 14} {
			n.want(id)
		}
	})
}

// TestNothingOfTheDomainsScopeIsSent holds that no LSA of a domain's scope goes out by a leaf's own doing,
// whatever it is configured to do: an Extended Prefix LSA of that scope crashes ospfd of FRR 8.4.
func TestNothingOfTheDomainsScopeIsSent(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		for _, carrier := range []marks.Carrier{{Bit: 2}, {Bit: 200}, {TLVFlags: 8}} {
			if v == packet.V3 && carrier.TLVFlags != 0 {
				continue
			}
			for _, kind := range []AreaKind{Normal, Stub, NSSA} {
				for _, again := range []bool{false, true} {
					n := build(t, v, func(id int, c *Config) {
						c.Carrier, c.Reoriginate, c.Refresh, c.Areas = carrier, again, 20*time.Second, []AreaConfig{{3, kind}}
						for i := range c.Links {
							if c.Links[i].Name == "10-1" {
								c.Links[i].Area = 3
							}
						}
					}, [2]int{10, 1}, [2]int{1, 2}, [2]int{2, 10})
					updates := 0
					n.sent = func(from int, d Datagram) {
						p, err := packet.Parse(v, d.Payload)
						if err != nil {
							t.Fatal(err)
						}
						u, ok := p.Body.(*packet.Update)
						if !ok {
							return
						}
						for _, l := range u.LSAs {
							updates++
							if s := l.Type.Scope(v); s == packet.ScopeAS {
								t.Fatalf("%d sent %s", from, l.Key)
							}
						}
					}
					n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1), mine(v, 2)})
					n.systems[2].Advertise(n.now, []igp.Advertisement{mine(v, 3)})
					n.pass(60 * time.Second)
					n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 2)})
					n.pass(10 * time.Second)
					if err := n.systems[10].Stop(n.now); err != nil {
						t.Fatal(err)
					}
					n.pass(time.Second)
					if updates < 20 {
						t.Fatalf("%d LSAs: the test shows nothing", updates)
					}
					w := flooding.Where{Scope: packet.ScopeAS}
					for _, typ := range []packet.LSType{packet.V2OpaqueAS, packet.V2External, packet.V3External, packet.V3EExternal} {
						if typ.Scope(v) == packet.ScopeAS && n.systems[10].flood.Originate(n.now, w, typ, packet.OpaqueID(packet.OpaqueExtendedPrefix, 1), 0, nil) == nil {
							t.Errorf("%#x is originated", typ)
						}
					}
				}
			}
		}
	})
}

// TestNothingIsToldTooSoon holds that a router that becomes a neighbour's does not change an LSA within MinLSArrival
// of when the neighbour got it: it would be dropped, and come again only after RxmtInterval.
func TestNothingIsToldTooSoon(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := build(t, v, func(_ int, c *Config) { c.MinLSInterval = time.Nanosecond }, [2]int{10, 1}, [2]int{1, 2}, [2]int{2, 11})
		n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(6 * time.Second)
		n.want(11, line(mine(v, 1), 10, 0, cost))
		for id, m := range n.systems {
			if c := m.Status(n.now).Counters; c.TooSoon != 0 || c.Retransmitted != 0 {
				t.Errorf("%d: %+v", id, c)
			}
		}
	})
}

func TestALinkThatIsTakenAwayLeavesNothing(t *testing.T) {
	partsWithNothingLeft(t, func(c *Config) { c.Links = nil })
}

func TestALinkThatGoesToAnotherAreaLeavesNothingInTheOld(t *testing.T) {
	partsWithNothingLeft(t, func(c *Config) { c.Links[0].Area = 5 })
}

// partsWithNothingLeft takes the link of a leaf out of the chain's area.
func partsWithNothingLeft(t *testing.T, edit func(*Config)) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		m := n.systems[10]
		m.Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		n.pass(2 * time.Second)
		n.want(11, line(mine(v, 1), 10, 0, cost))
		c := m.cfg
		c.Links = slices.Clone(c.Links)
		edit(&c)
		if err := m.Reconfigure(n.now, c); err != nil {
			t.Fatal(err)
		}
		n.pass(500 * time.Millisecond)
		n.leftNothing()
	})
}

// LSAs of type 7 are an NSSA's alone: left in the database of an area that is none any more, they would be described to
// neighbours, which begin the exchange anew each time (RFC 2328 section 10.6).
func TestAnAreaThatBecomesAnotherKindBeginsEmpty(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		kind := NSSA
		n := build(t, v, func(_ int, c *Config) {
			c.Areas = []AreaConfig{{5, kind}}
			for i := range c.Links {
				c.Links[i].Area = 5
			}
		}, [2]int{10, 1}, [2]int{10, 2})
		n.pass(10 * time.Second)
		typ := map[packet.Version]packet.LSType{packet.V2: packet.V2NSSA, packet.V3: packet.V3NSSA}[v]
		m := n.systems[1]
		m.originate(n.now, flooding.Where{Scope: packet.ScopeArea, Area: 5}, typ, 1, make([]byte, map[packet.Version]int{packet.V2: 16, packet.V3: 8}[v]))
		n.pass(2 * time.Second)
		if !slices.Contains(n.own(10, 1), packet.Key{Type: typ, ID: 1, Adv: 1}) {
			t.Fatal("the LSA didn't come")
		}
		for _, m := range n.systems {
			c := m.cfg
			c.Areas = nil
			if err := m.Reconfigure(n.now, c); err != nil {
				t.Fatal(err)
			}
		}
		n.pass(20 * time.Second)
		for id := range n.systems {
			if slices.Contains(n.own(id, 1), packet.Key{Type: typ, ID: 1, Adv: 1}) {
				t.Errorf("router %d still has it", id)
			}
			for _, l := range n.systems[id].Status(n.now).Links {
				if len(l.Neighbors) != 1 || l.Neighbors[0].State != neighbor.Full {
					t.Errorf("router %d, %s: %+v", id, l.Name, l.Neighbors)
				}
			}
		}
	})
}

func TestALinkWithoutAnAddressOfTheVersionIsNotUsed(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := build(t, v, nil, [2]int{10, 1})
		m := n.systems[10]
		for _, address := range []string{"10.0.0.1/24", "fe80::1/64"} {
			p := netip.MustParsePrefix(address)
			m.LinkChanged(n.now, "10-1", Link{Up: true, Index: 7, MTU: 1500, Address: p})
			if got, want := m.links["10-1"].running(), p.Addr().Is4() == (v == packet.V2); got != want {
				t.Errorf("%s: used is %t", address, got)
			}
			n.pass(time.Second)
		}
	})
}

// The number of a prefix that was marked a moment ago is its LSA's until that is flushed: another prefix with the same
// number would wait for MinLSInterval, and the old one stay marked as long.
func TestPrefixesThatFollowEachOtherDontWaitForEachOther(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		for i := range 5 {
			n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, i+1)})
			n.pass(300 * time.Millisecond)
		}
		n.pass(1500 * time.Millisecond)
		n.want(11, line(mine(v, 5), 10, 0, cost))
		n.pass(10 * time.Second)
		for i := range 20 { // all are gone by now, and their numbers are used again
			n.systems[10].Advertise(n.now, []igp.Advertisement{mine(v, i+1)})
			n.pass(10 * time.Second)
			n.want(11, line(mine(v, i+1), 10, 0, cost))
		}
		if got := n.systems[10].marking.last; got > 10 {
			t.Errorf("%d numbers were used", got)
		}
	})
}

func TestALSAThatBreaksItsFormatIsNotPassedOn(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n := chain(t, v, nil)
		m, link := n.systems[2], [2]int{2, 11}
		typ := map[packet.Version]packet.LSType{packet.V2: packet.V2External, packet.V3: packet.V3External}[v]
		var list []packet.LSA
		for i, size := range []int{17, 16} {
			body := make([]byte, size)
			if v == packet.V3 && i == 1 {
				body = body[:8]
			}
			l, err := packet.NewLSA(v, packet.Header{Key: packet.Key{Type: typ, ID: packet.ID(i + 1), Adv: 11}, Sequence: packet.InitialSequence}, body)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, l)
		}
		to := unzoned(n.address(link, 0))
		a := auth.Addresses{Source: unzoned(n.address(link, 1)), Destination: to}
		raw, err := (auth.Chain{}).Seal(&packet.Packet{Version: v, Router: 11, Body: &packet.Update{LSAs: list}}, a, &auth.Sequence{}, n.now)
		if err != nil {
			t.Fatal(err)
		}
		m.Receive(n.now, Datagram{Link: name(link), Source: a.Source, Destination: to, Payload: raw})
		n.pass(3 * time.Second)
		if got := m.Status(n.now).Malformed; got != 1 {
			t.Errorf("%d are malformed, want 1", got)
		}
		for _, at := range []int{1, 2, 10} {
			keys := slices.DeleteFunc(n.own(at, 11), func(k packet.Key) bool { return k.Type != typ })
			if len(keys) != 1 || keys[0].ID != 2 {
				t.Errorf("router %d has %v of the two", at, keys)
			}
		}
	})
}
