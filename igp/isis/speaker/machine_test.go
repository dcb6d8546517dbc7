package speaker

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/auth"
	"pncd/igp/isis/packet"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is systems joined by point-to-point circuits; circuit names are the two systems' numbers.
type world struct {
	t       *testing.T
	now     time.Time
	systems map[int]*Machine
	cut     map[string]bool
	learned map[int][]igp.Learned
	lose    func(Frame) bool
}

// build makes systems with circuits between the pairs; those below 10 are routers.
func build(t *testing.T, change func(n int, c *Config), pairs ...[2]int) *world {
	n := &world{t: t, now: start, systems: map[int]*Machine{}, cut: map[string]bool{}, learned: map[int][]igp.Learned{}}
	configs := map[int]*Config{}
	for _, p := range pairs {
		for _, id := range p {
			if configs[id] == nil {
				configs[id] = &Config{
					System: packet.SystemID{5: byte(id)}, Areas: []packet.Area{{0x49, 0, 1}}, Levels: packet.Level2,
					Hostname: fmt.Sprintf("s%d", id), Flag: packet.FlagProxy, Generation: backoff.Config{Max: 100 * time.Millisecond, Second: 100 * time.Millisecond}, SPF: backoff.Config{Initial: 50 * time.Millisecond, Second: time.Second, Max: time.Second}, PSNP: 100 * time.Millisecond,
					LinkMetric: 10, transit: id < 10, Jitter: func() float64 { return 0 },
				}
				if id >= 10 {
					configs[id].LinkMetric = 0
				}
			}
			configs[id].Circuits = append(configs[id].Circuits, CircuitConfig{Name: name(p)})
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

func (n *world) link(p [2]int, up bool) {
	for i, id := range p {
		if m := n.systems[id]; m != nil {
			m.LinkChanged(n.now, name(p), Link{Up: up, MAC: [6]byte{2, 0, 0, byte(p[0]), byte(p[1]), byte(i)}, MTU: 1500,
				IPv4: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(p[0]), byte(p[1]), byte(i + 1)})},
				IPv6: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("fe80::%d", id))}})
		}
	}
}

// pass lets time pass; frames take a millisecond.
func (n *world) pass(d time.Duration) {
	n.t.Helper()
	end := n.now.Add(d)
	for steps := 0; ; steps++ {
		if steps > 1_000_000 {
			n.t.Fatal("no end")
		}
		at := end
		for _, m := range n.systems {
			if w := m.Wake(); !w.IsZero() && w.Before(at) {
				at = w
			}
		}
		if at.After(n.now) {
			n.now = at
		}
		type arrival struct {
			to int
			f  Frame
		}
		var frames []arrival
		for id, m := range n.systems {
			for _, f := range m.Tick(n.now) {
				if n.cut[f.Circuit] || n.lose != nil && n.lose(f) {
					continue
				}
				var a, b int
				fmt.Sscanf(f.Circuit, "%d-%d", &a, &b)
				from := byte(0) // as link gives MAC addresses
				if id == b {
					from = 1
				}
				frames = append(frames, arrival{a + b - id, Frame{f.Circuit, [6]byte{2, 0, 0, byte(a), byte(b), from}, f.PDU}})
			}
			n.learned[id] = append(n.learned[id], m.Learned()...)
		}
		if len(frames) > 0 {
			n.now = n.now.Add(time.Millisecond)
		}
		for _, x := range frames {
			if m := n.systems[x.to]; m != nil {
				m.Receive(n.now, x.f)
			}
		}
		if len(frames) == 0 && !n.now.Before(end) {
			return
		}
	}
}

// holds gives what a system has learned with the P flag, as a line each.
func (n *world) holds(id int) []string {
	state := map[string]string{}
	for _, l := range n.learned[id] {
		k := l.Prefix.String() + " of " + l.Originator[12:]
		if delete(state, k); !l.Gone && l.P {
			state[k] = fmt.Sprintf("%s (%s): %s, cost %d", k, l.Name, l.Proxy, l.Cost)
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
		n.t.Fatalf("system %d holds\n %s\nwant\n %s", id, strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

func ad(prefix, proxy string) igp.Advertisement {
	return igp.Advertisement{Prefix: netip.MustParsePrefix(prefix), Proxy: netip.MustParseAddr(proxy)}
}

// chain is a leaf, two routers and a leaf.
func chain(t *testing.T, change func(int, *Config)) *world {
	n := build(t, change, [2]int{10, 1}, [2]int{1, 2}, [2]int{2, 11})
	n.pass(3 * time.Second)
	return n
}

const cost = DefaultLinkMetric + 10 + 10 // from leaf 11 to leaf 10, whose link back has the leaf's metric

func TestAMarkedPrefixArrivesAtTheOtherEnd(t *testing.T) {
	n := chain(t, nil)
	n.want(11)
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10"), ad("2001:db8:1::/48", "2001:db8::10"), ad("10.2.0.0/24", "2001:db8::10")})
	n.pass(time.Second)
	n.want(11,
		fmt.Sprintf("10.1.0.0/24 of 0a (s10): 10.255.0.10, cost %d", cost),
		fmt.Sprintf("10.2.0.0/24 of 0a (s10): 2001:db8::10, cost %d", cost),
		fmt.Sprintf("2001:db8:1::/48 of 0a (s10): 2001:db8::10, cost %d", cost))
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.12")})
	n.pass(time.Second)
	n.want(11, fmt.Sprintf("10.1.0.0/24 of 0a (s10): 10.255.0.12, cost %d", cost))
	n.systems[10].Advertise(n.now, nil)
	n.pass(time.Second)
	n.want(11)
}

func TestAFlagThatChangesRunsNoSPF(t *testing.T) {
	n := chain(t, nil)
	before := n.systems[11].levels[0].graphs[packet.MTStandard].Runs()
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
	n.pass(time.Second)
	if len(n.holds(11)) != 1 {
		t.Fatal("not learned")
	}
	if after := n.systems[11].levels[0].graphs[packet.MTStandard].Runs(); after != before {
		t.Errorf("%d runs", after-before)
	}
}

func TestALeafIsNeverTransit(t *testing.T) {
	// Leaf 10 has circuits to two routers that have no other way to each other.
	n := build(t, nil, [2]int{10, 1}, [2]int{10, 2}, [2]int{2, 11})
	n.systems[1].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.1")})
	n.pass(3 * time.Second)
	n.want(11)
	n.want(10, "10.1.0.0/24 of 01 (s1): 10.255.0.1, cost 16777214")
}

func TestAProxyThatIsCutOffIsNotBelieved(t *testing.T) {
	n := chain(t, nil)
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
	n.pass(time.Second)
	if len(n.holds(11)) != 1 {
		t.Fatal("not learned")
	}
	n.link([2]int{1, 2}, false) // the routers see their link go: the LSP of 10 stays for 20 minutes
	n.pass(time.Second)
	n.want(11)
	if n.systems[11].levels[0].flood.DB().Get(packet.SystemID{5: 10}.Node(0).Fragment(0)) == nil {
		t.Fatal("the LSP is gone: the test shows nothing")
	}
	n.link([2]int{1, 2}, true)
	n.pass(3 * time.Second)
	if len(n.holds(11)) != 1 {
		t.Error("not learned again")
	}
}

func TestACleanStopPurges(t *testing.T) {
	n := chain(t, nil)
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
	n.pass(time.Second)
	if err := n.systems[10].Stop(n.now); err != nil {
		t.Fatal(err)
	}
	n.pass(300 * time.Millisecond)
	if !n.systems[10].Purged() {
		t.Error("the purges aren't acknowledged")
	}
	n.want(11)
	n.pass(61 * time.Second)
	if e := n.systems[11].levels[0].flood.DB().Get(packet.SystemID{5: 10}.Node(0).Fragment(0)); e != nil {
		t.Errorf("after the zero age: %+v", e.Version)
	}
}

func TestARestartRecoversTheSequenceNumber(t *testing.T) {
	n := chain(t, nil)
	for i := range 5 {
		n.systems[10].Advertise(n.now, []igp.Advertisement{ad(fmt.Sprintf("10.1.%d.0/24", i), "10.255.0.10")})
		n.pass(time.Second)
	}
	id := packet.SystemID{5: 10}.Node(0).Fragment(0)
	before := n.systems[2].levels[0].flood.DB().Get(id).Sequence
	n.systems[10] = n.system(n.systems[10].cfg) // killed, and started again with sequence number 1
	n.link([2]int{10, 1}, true)
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.9.0.0/24", "10.255.0.10")})
	n.pass(3 * time.Second)
	n.want(11, fmt.Sprintf("10.9.0.0/24 of 0a (s10): 10.255.0.10, cost %d", cost))
	if after := n.systems[2].levels[0].flood.DB().Get(id).Sequence; after <= before {
		t.Errorf("sequence number %d after %d", after, before)
	}
}

func TestLostFramesAreSentAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	lost := 0
	n := build(t, nil, [2]int{10, 1}, [2]int{1, 2}, [2]int{2, 11})
	n.lose = func(f Frame) bool {
		if typ, _ := packet.Type(f.PDU); typ == packet.P2PHello || r.IntN(3) > 0 {
			return false
		}
		lost++
		return true
	}
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
	n.pass(90 * time.Second)
	if len(n.holds(11)) != 1 || lost < 10 {
		t.Errorf("%d learned, %d frames lost", len(n.holds(11)), lost)
	}
}

func TestTenThousandPrefixesAndBackToOne(t *testing.T) {
	n := chain(t, nil)
	var many []igp.Advertisement
	for i := range 10_000 {
		many = append(many, igp.Advertisement{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(i >> 8), byte(i), 0}), 24), Proxy: netip.MustParseAddr("10.255.0.10")})
	}
	n.systems[10].Advertise(n.now, many)
	n.pass(5 * time.Second)
	if got := len(n.holds(11)); got != 10_000 {
		t.Fatalf("%d learned", got)
	}
	n.systems[10].Advertise(n.now, many[:1])
	n.pass(5 * time.Second)
	if got := len(n.holds(11)); got != 1 {
		t.Fatalf("%d left", got)
	}
	live := 0
	for e := range n.systems[11].levels[0].flood.DB().All() {
		if e.ID.Node().System() == (packet.SystemID{5: 10}) && !e.Purged {
			live++
		}
	}
	if live != 1 {
		t.Errorf("%d fragments", live)
	}
}

func TestAuthentication(t *testing.T) {
	old := auth.Key{ID: 1, Algorithm: auth.HMACSHA256, Secret: "old"}
	fresh := auth.Key{ID: 2, Algorithm: auth.HMACSHA512, Secret: "fresh"}
	both := []auth.Key{old, fresh}
	wrong := auth.Key{ID: 1, Algorithm: auth.HMACSHA256, Secret: "wrong"}
	for _, tc := range []struct {
		name string
		keys func(id int) auth.Chain
		want int
	}{
		{"all have the same key", func(int) auth.Chain { return auth.Chain{Send: old, Accept: both[:1]} }, 1},
		{"roll-over: some send the new one, all accept both", func(id int) auth.Chain { return auth.Chain{Send: both[id%2], Accept: both} }, 1},
		{"one has another", func(id int) auth.Chain {
			if id == 10 {
				return auth.Chain{Send: wrong, Accept: []auth.Key{wrong}}
			}
			return auth.Chain{Send: old, Accept: both}
		}, 0},
		{"one has none", func(id int) auth.Chain {
			if id == 10 {
				return auth.Chain{}
			}
			return auth.Chain{Send: old, Accept: both}
		}, 0},
	} {
		for _, where := range []string{"hellos", "level"} {
			n := chain(t, func(id int, c *Config) {
				if where == "level" {
					c.Authentication = map[uint8]auth.Chain{packet.Level2: tc.keys(id)}
					return
				}
				for i := range c.Circuits {
					c.Circuits[i].Authentication = tc.keys(id)
				}
			})
			n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
			n.pass(2 * time.Second)
			if got := len(n.holds(11)); got != tc.want {
				t.Errorf("%s, %s: %d learned, want %d", tc.name, where, got, tc.want)
			}
			if tc.want == 0 && n.systems[1].drops[DropAuthentication] == 0 {
				t.Errorf("%s, %s: not counted", tc.name, where)
			}
		}
	}
}

func TestKeysAreReplacedWithoutAFlap(t *testing.T) {
	old := auth.Key{ID: 1, Algorithm: auth.HMACMD5, Secret: "old"}
	fresh := auth.Key{ID: 2, Algorithm: auth.HMACSHA512, Secret: "fresh"}
	n := chain(t, func(_ int, c *Config) {
		c.Authentication = map[uint8]auth.Chain{packet.Level2: {Send: old, Accept: []auth.Key{old}}}
		for i := range c.Circuits {
			c.Circuits[i].Authentication = auth.Chain{Send: old, Accept: []auth.Key{old}}
			c.Circuits[i].Padding = adjacency.PadAlways
		}
	})
	var many []igp.Advertisement
	for i := range 300 {
		many = append(many, ad(fmt.Sprintf("10.1.%d.0/24", i%256), "10.255.0.10"))
	}
	n.systems[10].Advertise(n.now, many)
	n.pass(2 * time.Second)
	before := len(n.holds(11))
	seen := len(n.learned[11])
	for _, chain := range []auth.Chain{
		{Send: old, Accept: []auth.Key{old, fresh}}, {Send: fresh, Accept: []auth.Key{old, fresh}}, {Send: fresh, Accept: []auth.Key{fresh}},
	} {
		for _, m := range n.systems { // one after the other, with time between
			next := m.cfg
			next.Authentication = map[uint8]auth.Chain{packet.Level2: chain}
			next.Circuits = slices.Clone(next.Circuits)
			for i := range next.Circuits {
				next.Circuits[i].Authentication = chain
			}
			if err := m.Reconfigure(n.now, next); err != nil {
				t.Fatal(err)
			}
			n.pass(20 * time.Second)
		}
	}
	if before != 256 || len(n.holds(11)) != before || len(n.learned[11]) != seen {
		t.Errorf("%d learned, then %d with %d changes", before, len(n.holds(11)), len(n.learned[11])-seen)
	}
	for id, m := range n.systems {
		if m.drops[DropAuthentication] != 0 {
			t.Errorf("system %d refused %d PDUs", id, m.drops[DropAuthentication])
		}
	}
}

func TestReplayTellsEverythingOnceMore(t *testing.T) {
	n := chain(t, nil)
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
	n.pass(time.Second)
	n.learned[11] = nil
	n.systems[11].Replay()
	n.pass(time.Second)
	if got := n.holds(11); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

func TestMultiTopology(t *testing.T) {
	n := chain(t, func(_ int, c *Config) { c.MultiTopology = true })
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("2001:db8:1::/48", "2001:db8::10"), ad("10.1.0.0/24", "10.255.0.10")})
	n.pass(time.Second)
	n.want(11,
		fmt.Sprintf("10.1.0.0/24 of 0a (s10): 10.255.0.10, cost %d", cost),
		fmt.Sprintf("2001:db8:1::/48 of 0a (s10): 2001:db8::10, cost %d", cost))
	// Without IPv6 between the routers only IPv4 is reachable.
	n = chain(t, func(id int, c *Config) { c.MultiTopology = id != 2 })
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("2001:db8:1::/48", "2001:db8::10"), ad("10.1.0.0/24", "10.255.0.10")})
	n.pass(time.Second)
	n.want(11, fmt.Sprintf("10.1.0.0/24 of 0a (s10): 10.255.0.10, cost %d", cost))
}

func TestLSPsOfAStrangerAreDropped(t *testing.T) {
	n := chain(t, nil)
	m := n.systems[11]
	raw, err := packet.LSP{Header: packet.Header{Type: packet.L2LSP}, ID: packet.SystemID{5: 66}.Node(0).Fragment(0), Sequence: 1, Lifetime: 1200}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	packet.SetChecksum(raw)
	n.link([2]int{2, 11}, false)
	m.Receive(n.now, Frame{Circuit: "2-11", PDU: raw})
	n.link([2]int{2, 11}, true)
	m.Receive(n.now, Frame{Circuit: "2-11", PDU: raw})
	m.Receive(n.now, Frame{Circuit: "nowhere", PDU: raw})
	n.pass(2 * time.Second)
	m.Receive(n.now, Frame{Circuit: "2-11", PDU: raw[:20]})
	l1 := slices.Clone(raw)
	l1[4] = byte(packet.L1LSP)
	m.Receive(n.now, Frame{Circuit: "2-11", PDU: l1})
	raw[26] ^= 0x40
	m.Receive(n.now, Frame{Circuit: "2-11", PDU: raw})
	for d, want := range map[Drop]uint64{DropCircuit: 2, DropNoAdjacency: 1, DropMalformed: 1, DropLevel: 1, DropRefused: 1} {
		if m.drops[d] != want {
			t.Errorf("%s: %d, want %d", d, m.drops[d], want)
		}
	}
	st := m.Status(n.now)
	received, outcomes := uint64(0), st.Used
	for _, c := range st.Received {
		received += c
	}
	for _, c := range st.Drops {
		outcomes += c
	}
	if received == 0 || st.Used == 0 || received != outcomes {
		t.Errorf("%d PDUs received, %d are accounted for: %v", received, outcomes, st)
	}
	if m.levels[0].flood.DB().Get(packet.SystemID{5: 66}.Node(0).Fragment(0)) != nil {
		t.Error("stored")
	}
}

func TestTheProxysAddress(t *testing.T) {
	six := netip.MustParseAddr("2001:db8::1")
	four := netip.MustParseAddr("192.0.2.1")
	te := netip.MustParseAddr("192.0.2.2")
	router := netip.MustParseAddr("192.0.2.3")
	p4, p6 := netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")
	host := map[netip.Prefix]entry{netip.PrefixFrom(router, 32): {}}
	for _, tc := range []struct {
		name string
		s    said
		p    netip.Prefix
		e    entry
		want netip.Addr
	}{
		{"its own, of the prefix's family", said{v4: te}, p4, entry{v4: four, v6: six}, four},
		{"its own, of the prefix's family, IPv6", said{v4: te}, p6, entry{v4: four, v6: six}, six},
		{"its own, of the other family", said{v4: te}, p4, entry{v6: six}, six},
		{"the TE router ID", said{v4: te, router: router, prefixes: host}, p4, entry{}, te},
		{"the router ID that is a host prefix", said{router: router, prefixes: host}, p4, entry{}, router},
		{"the router ID that is none", said{router: router}, p4, entry{}, netip.Addr{}},
		{"nothing", said{}, p4, entry{}, netip.Addr{}},
	} {
		if got := tc.s.proxy(tc.p, tc.e); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestConfigCheckNamesTheField(t *testing.T) {
	good := Config{System: packet.SystemID{5: 1}, Areas: []packet.Area{{0x49}}, Levels: 2, Circuits: []CircuitConfig{{Name: "a"}}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"net":                 func(c *Config) { c.System = packet.SystemID{} },
		"areas":               func(c *Config) { c.Areas = nil },
		"level":               func(c *Config) { c.Levels = 0 },
		"prefix metric":       func(c *Config) { c.PrefixMetric = 10 },
		"link metric":         func(c *Config) { c.LinkMetric = 0xFFFFFF },
		"LSP size":            func(c *Config) { c.LSPSize = 100 },
		"generation":          func(c *Config) { c.Generation = backoff.Config{Initial: 2, Max: 1} },
		"SPF":                 func(c *Config) { c.SPF = backoff.Config{Second: 2, Max: 1} },
		"refresh":             func(c *Config) { c.Refresh = time.Hour },
		"lifetime":            func(c *Config) { c.LSPLifetime, c.Refresh = 100*time.Hour, time.Hour },
		"without a name":      func(c *Config) { c.Circuits[0].Name = "" },
		"twice":               func(c *Config) { c.Circuits = append(c.Circuits, CircuitConfig{Name: "a"}) },
		"one of the system's": func(c *Config) { c.Circuits[0].Levels = 1 },
		"priority 200":        func(c *Config) { c.Circuits[0].Priority = 200 },
	} {
		c := good
		c.Circuits = slices.Clone(good.Circuits)
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
