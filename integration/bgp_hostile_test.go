package integration

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/engine"
	"pncd/bgp/guard"
	"pncd/bgp/speakertest"
	"pncd/integration/bgpraw"
	"pncd/pnc"
)

// A hostile neighbour over loopback: a speaker in a process of its own gets malformed messages, octet by
// octet. The process survives all of them, the session those that RFC 7606 says it should; else the
// NOTIFICATION is the right one. Every case is counted.

// Neighbours of the speaker, which waits for them on 127.0.0.1.
var (
	hIBGP       = netip.MustParseAddr("127.10.0.1")
	hEBGP       = netip.MustParseAddr("127.10.0.2")
	hTwo        = netip.MustParseAddr("127.10.0.3") // AS numbers of two octets
	hAddPath    = netip.MustParseAddr("127.10.0.4")
	hMade       = netip.MustParseAddr("127.10.0.5") // messages that were made by chance
	hAttributes = netip.MustParseAddr("127.10.0.7")
	hRoutes     = netip.MustParseAddr("127.10.0.8")
	hQuiet      = netip.MustParseAddr("127.10.0.6") // never does anything wrong
	hFault      = netip.MustParseAddr("127.11.0.1") // the first of those whose sessions end
)

const (
	hAS      = 64512
	hOutside = 64513
	hNextHop = "c0000201"
)

// Capabilities.
const (
	hFamilies = "0104 0001 00 01  0104 0002 00 01  0104 0001 00 80"
	hFour     = "4104 0000fc00"
)

func (h *hostile) fault(i int) netip.Addr {
	a := hFault.As4()
	binary.BigEndian.PutUint16(a[2:], uint16(i+1))
	return netip.AddrFrom4(a)
}

// hostile is the speaker and what is needed to reach it.
type hostile struct {
	t     *testing.T
	ctx   context.Context
	p     *speakertest.Process
	at    netip.AddrPort
	marks int // markers sent
	cases int
	quiet *raw
}

// raw is an established session.
type raw struct {
	*bgpraw.Peer
	h       *hostile
	addr    netip.Addr
	addPath bool
}

func newHostile(t *testing.T, faults int) *hostile {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{t: t, ctx: ctx, at: netip.MustParseAddrPort(l.Addr().String())}
	l.Close()
	families := []bgp.Family{bgp.IPv4Unicast, bgp.IPv6Unicast, engine.IPv4VPN}
	neighbor := func(a netip.Addr, as uint32) bgp.NeighborConfig {
		return bgp.NeighborConfig{Address: a, PeerAS: as, Passive: true, Families: families, AcceptEBGP: as != hAS, HoldTime: 180 * time.Second}
	}
	cfg := bgp.Config{
		RouterID: netip.MustParseAddr("10.255.0.1"), AS: hAS,
		ListenPort: int(h.at.Port()), ListenAddresses: []netip.Addr{h.at.Addr()},
		Contexts: []bgp.ContextConfig{{Name: "vpn", Import: []bgp.RouteTarget{must(bgp.ParseRouteTarget("64512:1"))}}},
	}
	for _, a := range []netip.Addr{hIBGP, hTwo, hAddPath, hMade, hAttributes, hRoutes, hQuiet} {
		cfg.Neighbors = append(cfg.Neighbors, neighbor(a, hAS))
	}
	cfg.Neighbors[2].AddPath = true
	cfg.Neighbors = append(cfg.Neighbors, neighbor(hEBGP, hOutside))
	for i := range faults {
		cfg.Neighbors = append(cfg.Neighbors, neighbor(h.fault(i), hAS))
	}
	h.p = speakertest.Start(t, cfg, speakertest.Here)
	h.quiet = h.establish(hQuiet, hFamilies+hFour)
	return h
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// open is the OPEN of a neighbour.
func (h *hostile) open(a netip.Addr, caps string) []byte {
	as := uint16(hAS)
	if a == hEBGP {
		as = hOutside
	}
	id := a.As4()
	id[0] = 10
	return bgpraw.OpenBytes(as, 180, netip.AddrFrom4(id), bgpraw.Hex(caps))
}

func (h *hostile) dial(a netip.Addr) *bgpraw.Peer {
	h.t.Helper()
	p, err := bgpraw.Dial(h.ctx, a, h.at)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (h *hostile) establish(a netip.Addr, caps string) *raw {
	h.t.Helper()
	p := h.dial(a)
	h.t.Cleanup(p.Close)
	if _, err := p.Establish(h.ctx, h.open(a, caps)); err != nil {
		h.t.Fatalf("%s: %v", a, err)
	}
	return &raw{Peer: p, h: h, addr: a, addPath: a == hAddPath}
}

// counted is what is counted for a neighbour.
type counted struct {
	findings    map[guard.Kind]uint64
	faults      uint64
	disregarded map[pnc.DisregardReason]uint64
	flaps       uint64
}

func countedFor(a speakertest.Answer, at netip.Addr) counted {
	n := a.Neighbor(at.String())
	if n == nil {
		return counted{}
	}
	return counted{findings: n.Findings, faults: n.Faults, disregarded: n.Disregarded, flaps: n.Flaps}
}

// The route of cases that need one only.
var (
	hPrefix = netip.MustParsePrefix("10.200.0.0/24")
	hProxy  = netip.MustParseAddr("198.18.0.1")
)

const hMarker = "172.16.0.0/24"

// settle sends a marker and waits until it has arrived: so has everything before it.
func (r *raw) settle(t *testing.T) speakertest.Answer {
	t.Helper()
	r.h.marks++
	proxy := netip.AddrFrom4([4]byte{198, 19, byte(r.h.marks >> 8), byte(r.h.marks)})
	r.send(t, r.announce(netip.MustParsePrefix(hMarker), proxy))
	a := r.h.p.Ask(speakertest.Request{})
	for end := time.Now().Add(speakertest.Deadline); time.Now().Before(end); a = r.h.p.Ask(speakertest.Request{}) {
		for _, route := range a.Of(hMarker) {
			if route.Peer == r.addr.String() && route.Believed() && route.Proxy == proxy {
				return r.h.p.Ask(speakertest.Request{}) // the counters in an answer are older than its routes
			}
		}
		if !r.Alive() {
			t.Fatalf("the session has ended: %+v", a.Neighbor(r.addr.String()))
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the marker doesn't arrive:\n%s", a)
	return a
}

func (r *raw) send(t *testing.T, b ...[]byte) {
	t.Helper()
	if err := r.Send(b...); err != nil {
		t.Fatal(err)
	}
}

// base are the mandatory attributes as this neighbour sends them.
func (r *raw) base() string {
	switch r.addr {
	case hEBGP:
		return "40 01 01 00  40 02 06 02 01 0000fc01  40 03 04" + hNextHop
	case hTwo:
		return "40 01 01 00  40 02 04 02 01 fc01  40 03 04" + hNextHop + "40 05 04 00000064"
	}
	return "40 01 01 00  40 02 00  40 03 04" + hNextHop + "40 05 04 00000064"
}

// announce is an UPDATE of a prefix with a PNC, with nothing wrong.
func (r *raw) announce(p netip.Prefix, proxy netip.Addr) []byte {
	attrs := r.base() + fmt.Sprintf("c0 27 10 0001 01 04 %s ff78 0004 %x", hNextHop, proxy.AsSlice())
	return bgpraw.UpdateBytes(nil, bgpraw.Hex(attrs), r.nlri(p))
}

func (r *raw) nlri(p netip.Prefix) []byte {
	if r.addPath {
		return append([]byte{0, 0, 0, 7}, bgpraw.Prefix(p)...)
	}
	return bgpraw.Prefix(p)
}

func (r *raw) withdraw(p netip.Prefix) []byte { return bgpraw.UpdateBytes(r.nlri(p), nil, nil) }

// after is what became of a route.
type after uint8

const (
	gone     after = iota // withdrawn
	kept                  // there, without a believed PNC
	believed              // there, with the PNC
)

func (a after) String() string { return [...]string{"gone", "kept", "believed"}[a] }

func stateOf(a speakertest.Answer, p netip.Prefix, peer netip.Addr) after {
	for _, r := range a.Of(p.String()) {
		if r.Peer != peer.String() {
			continue
		}
		if r.Believed() {
			return believed
		}
		return kept
	}
	return gone
}

// survival is a message that the session survives, and what becomes of the route in it.
type survival struct {
	name   string
	send   func(r *raw, p netip.Prefix) [][]byte
	after  after
	find   guard.Kind          // counted; zero: none of the guard's
	reason pnc.DisregardReason // counted; none: no PNC is disregarded
	more   []guard.Kind        // other findings that are allowed
}

// survive runs cases on one session. The route is there before each, with a PNC that is believed.
func (r *raw) survive(t *testing.T, cases []survival) {
	before := r.settle(t)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r.h.cases++
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
			r.send(t, r.announce(p, netip.MustParseAddr("198.18.0.1")))
			r.send(t, c.send(r, p)...)
			got := r.settle(t)
			if s := stateOf(got, p, r.addr); s != c.after {
				t.Errorf("the route is %v, must be %v", s, c.after)
			}
			was, is := countedFor(before, r.addr), countedFor(got, r.addr)
			if is.flaps != 1 || is.faults != was.faults {
				t.Errorf("the session came up %d times, faults %d", is.flaps, is.faults)
			}
			for _, k := range guard.Kinds() {
				if rose := is.findings[k] - was.findings[k]; k == c.find && rose == 0 || k != c.find && rose != 0 && !slices.Contains(c.more, k) {
					t.Errorf("finding %v: %d more, want %v", k, rose, c.find)
				}
			}
			for _, d := range pnc.DisregardReasons() {
				if rose := is.disregarded[d] - was.disregarded[d]; (d == c.reason) != (rose != 0) {
					t.Errorf("disregarded %v: %d more, want %v", d, rose, c.reason)
				}
			}
			r.send(t, r.withdraw(p))
			before = got
		})
		if t.Failed() && !r.Alive() {
			return
		}
	}
}

// made sends messages made by chance; the session survives them all, and each is counted.
func (r *raw) made(t *testing.T, msgs [][]byte) {
	g := oracle(r.h.open(r.addr, hFamilies+hFour))
	before := countedFor(r.settle(t), r.addr)
	for _, m := range msgs {
		r.h.cases++
		want := map[guard.Kind]uint64{}
		v := g.FromPeer(m)
		for _, f := range v.Findings {
			want[f.Kind]++
		}
		r.send(t, m)
		is := countedFor(r.settle(t), r.addr)
		for _, k := range guard.Kinds() {
			rose := is.findings[k] - before.findings[k]
			if rose != want[k] && !(v.Unsure && k == guard.Undecodable && rose > want[k]) {
				t.Errorf("%x: finding %v: %d more, want %d", m, k, rose, want[k])
			}
		}
		before = is
	}
	if before.flaps != 1 || before.faults != 0 {
		t.Errorf("the session came up %d times, faults %d", before.flaps, before.faults)
	}
}

func TestBGPHostileNeighbourWithoutReset(t *testing.T) {
	h := newHostile(t, 0)
	t.Run("made by chance", func(t *testing.T) {
		msgs, _ := made(h.open(hMade, hFamilies+hFour), 200, 0)
		h.establish(hMade, hFamilies+hFour).made(t, msgs)
	})
	// NHC comes last: what is disregarded stays in every answer.
	for _, g := range []struct {
		name  string
		from  netip.Addr
		caps  string
		cases []survival
	}{
		{"attributes", hAttributes, hFamilies + hFour, updateCases()},
		{"routes", hRoutes, hFamilies + hFour, familyCases()},
		{"EBGP", hEBGP, hFamilies + "4104 0000fc01", outsideCases()},
		{"two octets", hTwo, hFamilies, twoOctetCases()},
		{"add-path", hAddPath, hFamilies + hFour + "4504 0001 01 02", addPathCases()},
		{"NHC", hIBGP, hFamilies + hFour, nhcCases()},
	} {
		t.Run(g.name, func(t *testing.T) { h.establish(g.from, g.caps).survive(t, g.cases) })
	}
	h.others(t)
}

func TestBGPHostileNeighbourWithReset(t *testing.T) {
	cases := endings()
	_, more := made(bgpraw.OpenBytes(hAS, 180, hIBGP, bgpraw.Hex(hFamilies+hFour)), 0, 40)
	cases = append(cases, more...)
	h := newHostile(t, len(cases))
	h.end(t, cases)
	h.others(t)
}

// others looks at the neighbour that did nothing wrong.
func (h *hostile) others(t *testing.T) {
	got := h.quiet.settle(t)
	if c := countedFor(got, hQuiet); c.flaps != 1 || c.faults != 0 || len(c.findings) != 0 || !h.quiet.Alive() {
		t.Errorf("the neighbour that did nothing wrong: %+v", c)
	}
	if c := got.Counters.Engine; c.CallbackPanics != 0 || c.EnginePanics != 0 {
		t.Errorf("panics: %+v", c)
	}
	t.Logf("%d cases", h.cases)
}
