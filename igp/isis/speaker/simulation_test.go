package speaker

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/isis/packet"
)

// domain is a level of many systems, as their LSPs say, that a machine hears from one router. Systems are
// numbered from 2 on; the router is 2, the machine itself is 1.
type domain struct {
	t         *testing.T
	r         *rand.Rand
	m         *Machine
	now       time.Time
	links     []map[int]uint32        // of each system: neighbour to metric
	prefixes  [][]netip.Prefix        // of each system
	proxies   []map[netip.Prefix]bool // those with the P flag
	sequences []uint32
	learned   map[[2]string]igp.Learned // what the machine told last
}

func newDomain(t *testing.T, systems, links, prefixes, marked int) *domain {
	d := &domain{t: t, r: rand.New(rand.NewPCG(7, 8)), now: start, learned: map[[2]string]igp.Learned{},
		links: make([]map[int]uint32, systems+2), prefixes: make([][]netip.Prefix, systems+2),
		proxies: make([]map[netip.Prefix]bool, systems+2), sequences: make([]uint32, systems+2)}
	for i := range d.links {
		d.links[i], d.proxies[i] = map[int]uint32{}, map[netip.Prefix]bool{}
	}
	for i := 3; i < systems+2; i++ {
		d.join(i, 2+d.r.IntN(i-2))
	}
	for range links - systems {
		d.join(2+d.r.IntN(systems), 2+d.r.IntN(systems))
	}
	for i := range prefixes {
		s := 2 + i%systems
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(11 + i>>16), byte(i >> 8), byte(i), 0}), 24)
		d.prefixes[s] = append(d.prefixes[s], p)
		if i < marked {
			d.proxies[s][p] = true
		}
	}
	m, err := New(Config{System: packet.SystemID{5: 1}, Areas: []packet.Area{{0x49}}, Levels: packet.Level2, Flag: packet.FlagProxy,
		Circuits: []CircuitConfig{{Name: "up"}}, LSPSize: 9000, SPF: backoff.Config{Max: time.Second}, Jitter: func() float64 { return 0 }}, d.now)
	if err != nil {
		t.Fatal(err)
	}
	d.m = m
	m.LinkChanged(d.now, "up", Link{Up: true, MAC: [6]byte{2}, MTU: 1500, IPv4: []netip.Addr{netip.MustParseAddr("192.0.2.1")}})
	d.hello()
	d.links[2][1] = 10
	for s := 2; s < systems+2; s++ {
		d.announce(s)
	}
	d.pass(5 * time.Second)
	return d
}

func (d *domain) id(s int) packet.SystemID { return packet.SystemID{4: byte(s >> 8), 5: byte(s)} }

func (d *domain) join(a, b int) {
	if a != b {
		d.links[a][b], d.links[b][a] = uint32(1+d.r.IntN(60)), uint32(1+d.r.IntN(60))
	}
}

// hello keeps the adjacency with the router.
func (d *domain) hello() {
	h := packet.Hello{Header: packet.Header{Type: packet.P2PHello}, CircuitType: packet.Level2, Source: d.id(2), HoldingTime: 65535,
		TLVs: packet.TLVs{packet.AreasTLV(packet.Area{0x49}), {Type: packet.TLVProtocolsSupported, Value: []byte{packet.NLPIDIPv4}}}}
	raw, err := h.Append(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.m.Receive(d.now, Frame{Circuit: "up", PDU: raw})
}

// announce floods a system's LSPs to the machine: links in the first fragment, prefixes after it.
func (d *domain) announce(s int) {
	d.sequences[s]++
	var links packet.TLVs
	for to, metric := range d.links[s] {
		body, err := packet.ISReach{Neighbor: d.id(to).Node(0), Metric: metric}.Append(nil)
		if err != nil {
			d.t.Fatal(err)
		}
		links = append(links, packet.TLV{Type: packet.TLVExtendedISReach, Value: body})
	}
	d.flood(s, 0, links)
	var prefixes packet.TLVs
	for _, p := range d.prefixes[s] {
		e := packet.Prefix{Prefix: p, Metric: 10}
		if d.proxies[s][p] {
			e.SubTLVs = packet.TLVs{{Type: packet.SubTLVPrefixAttributes, Value: packet.PrefixFlags{}.With(packet.FlagProxy)},
				{Type: packet.SubTLVIPv4SourceRouterID, Value: []byte{198, 51, byte(s >> 8), byte(s)}}}
		}
		body, err := e.Append(nil)
		if err != nil {
			d.t.Fatal(err)
		}
		prefixes = append(prefixes, packet.TLV{Type: packet.TLVExtendedIPReach, Value: body})
	}
	d.flood(s, 1, prefixes)
}

func (d *domain) flood(s int, fragment uint8, tlvs packet.TLVs) {
	p := packet.LSP{Header: packet.Header{Type: packet.L2LSP}, ID: d.id(s).Node(0).Fragment(fragment), Sequence: d.sequences[s], Lifetime: 65535, Flags: 3, TLVs: tlvs}
	raw, err := p.Append(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	packet.SetChecksum(raw)
	d.m.Receive(d.now, Frame{Circuit: "up", PDU: raw})
}

// pass lets time pass and takes what is learned.
func (d *domain) pass(t time.Duration) {
	for end := d.now.Add(t); d.now.Before(end); d.now = d.now.Add(100 * time.Millisecond) {
		d.m.Tick(d.now)
		for _, l := range d.m.Learned() {
			k := [2]string{l.Prefix.String(), l.Originator}
			if delete(d.learned, k); !l.Gone {
				d.learned[k] = l
			}
		}
	}
}

// costs is the reference: shorter as long as something gets shorter, over links that both ends announce.
func (d *domain) costs() []uint32 {
	cost := make([]uint32, len(d.links))
	for i := range cost {
		cost[i] = ^uint32(0)
	}
	cost[2] = DefaultLinkMetric // from the machine to its router
	for changed := true; changed; {
		changed = false
		for s := 2; s < len(d.links); s++ {
			for to, metric := range d.links[s] {
				if _, back := d.links[to][s]; !back || to == 1 || cost[s] == ^uint32(0) {
					continue
				}
				if c := cost[s] + metric; c < cost[to] {
					cost[to], changed = c, true
				}
			}
		}
	}
	return cost
}

func (d *domain) check(step string) {
	d.t.Helper()
	cost, want := d.costs(), 0
	for s := 2; s < len(d.links); s++ {
		for _, p := range d.prefixes[s] {
			got, ok := d.learned[[2]string{p.String(), d.id(s).String()}]
			if reached := cost[s] != ^uint32(0); ok != reached {
				d.t.Fatalf("%s: %s of system %d: learned %v, reachable %v", step, p, s, ok, reached)
			} else if !reached {
				continue
			}
			want++
			if got.Cost != cost[s] || got.P != d.proxies[s][p] || got.P && got.Proxy != netip.AddrFrom4([4]byte{198, 51, byte(s >> 8), byte(s)}) {
				d.t.Fatalf("%s: %s of system %d is %+v, want cost %d, P %v", step, p, s, got, cost[s], d.proxies[s][p])
			}
		}
	}
	if len(d.learned) != want {
		d.t.Fatalf("%s: %d learned, want %d", step, len(d.learned), want)
	}
}

// TestADomainOfAThousandSystems compares everything that is learned with the reference while links fail, come
// back, and change their metrics, and flags are set and taken away.
func TestADomainOfAThousandSystems(t *testing.T) {
	const systems = 1000
	links, prefixes := 4000, 100_000
	if testing.Short() {
		links, prefixes = 1500, 5000
	}
	d := newDomain(t, systems, links, prefixes, prefixes/20)
	d.check("at first")
	marked := 0
	for _, l := range d.learned {
		if l.P {
			marked++
		}
	}
	if marked != prefixes/20 {
		t.Fatalf("%d marked", marked)
	}
	for step := range 25 {
		changed := map[int]bool{}
		for range 1 + d.r.IntN(300) {
			a := 2 + d.r.IntN(systems)
			switch b := 2 + d.r.IntN(systems); d.r.IntN(4) {
			case 0: // a system loses all its links
				for to := range d.links[a] {
					if to != 1 {
						delete(d.links[a], to)
					}
				}
			case 1:
				d.join(a, b)
				changed[b] = true
			case 2:
				for to := range d.links[a] {
					if to != 1 {
						d.links[a][to] = uint32(1 + d.r.IntN(60))
					}
				}
			default:
				p := d.prefixes[a][d.r.IntN(len(d.prefixes[a]))]
				d.proxies[a][p] = !d.proxies[a][p]
			}
			changed[a] = true
		}
		for s := range changed {
			d.announce(s)
		}
		d.pass(3 * time.Second)
		d.check(fmt.Sprintf("step %d", step))
	}
}
