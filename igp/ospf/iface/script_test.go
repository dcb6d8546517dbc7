package iface

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pncd/igp/internal/exchanges"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// The exchanges of testdata/exchanges.txt, each for OSPFv2 and OSPFv3, unless its name begins with one of them.
// This system is router 2; router N has the address 10.0.0.N or fe80::N. Routers stand for themselves in dr=.
//
//	== name
//	p2p                                  not a broadcast network
//	fits 2                               the MTU lets a hello name so many neighbours
//	overhead 16                          authentication adds so many octets to a packet
//	up | down
//	> 3 hello [pri=1] [dr=3] [bdr=4] [sees] [int=5] [dead=9] [mask=24] [e] [n] [area=1] [ver] [inst=1] [to=dr] [from=9]
//	> 3 dd | > 3 last                    a first description as master, and one that ends the exchange
//	help 3 60s | help-ends 3             the neighbour is helped through a restart
//	! reason                             the packet before was dropped for this reason
//	. 2s                                 time passes, Tick is called at each Wake; what is sent must follow,
//	< all hello dr=3 bdr=4 3 4           with where it goes: all, or a router
//	< 3 dd
//	= dr-other                           the interface's state
//	n 3 full | n 3 none                  a neighbour's state
func TestExchanges(t *testing.T) {
	for _, e := range exchanges.Read(t, "testdata/exchanges.txt", 18) {
		for _, v := range []packet.Version{packet.V2, packet.V3} {
			if strings.HasPrefix(e.Name, "OSPFv") && !strings.HasPrefix(e.Name, v.String()) {
				continue
			}
			e.Run(t, v.String()+"/"+e.Name, func(s *exchanges.Script) exchanges.Verbs { return &script{Script: s, v: v, cfg: config(v)} })
		}
	}
}

var begin = exchanges.Begin

type empty struct{}

func (empty) Summary(time.Time) iter.Seq[packet.Header] { return func(func(packet.Header) bool) {} }
func (empty) Lookup(time.Time, packet.Key) (packet.Header, bool) {
	return packet.Header{}, false
}
func (empty) Append(dst []byte, _ time.Time, _ packet.Key) ([]byte, bool) { return dst, false }

func config(v packet.Version) Config {
	return Config{Config: neighbor.Config{Version: v, Router: 2, Options: packet.OptionE, MTU: 1500}, Broadcast: true, Prefix: netip.PrefixFrom(address(v, 2), 24), MaxNeighbors: 3}
}

func address(v packet.Version, n int) netip.Addr {
	if v == packet.V2 {
		return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
	}
	return netip.AddrFrom16([16]byte{0: 0xFE, 1: 0x80, 14: byte(n >> 8), 15: byte(n)})
}

// named is how DR fields name a router.
func named(v packet.Version, n int) packet.ID {
	if v == packet.V2 && n != 0 {
		return packet.ID(10<<24 | n)
	}
	return packet.ID(n)
}

type script struct {
	*exchanges.Script
	v   packet.Version
	cfg Config
	m   *Machine
}

func (s *script) Wake() time.Time { return s.m.Wake() }

func (s *script) Do(f []string) bool {
	switch f[0] {
	case "p2p":
		s.cfg.Broadcast = false
	case "fits":
		s.fits(s.Number(f[1]))
	case "overhead":
		s.cfg.Overhead = s.Number(f[1])
	case "up":
		s.m = New(s.cfg, empty{})
		s.m.Up(s.Now)
	case "down":
		s.m.Down(s.Now)
	case ">":
		s.receive(s.Number(f[1]), f[2], f[3:])
	case "help":
		n := s.m.Neighbor(packet.ID(s.Number(f[1])))
		s.Dropped(n.Help(s.Now, neighbor.Grace{Period: s.Duration(f[2]), Allowed: true}))
	case "help-ends":
		s.m.Neighbor(packet.ID(s.Number(f[1]))).HelpEnds(s.Now)
	case "=":
		if got := s.m.State().String(); got != f[1] {
			s.Fatalf("is %s", got)
		}
	case "n":
		got := "none"
		if n := s.m.Neighbor(packet.ID(s.Number(f[1]))); n != nil {
			state, _ := n.State()
			got = state.String()
		}
		if got != f[2] {
			s.Fatalf("is %s", got)
		}
	default:
		return false
	}
	return true
}

// fits sets the MTU: a hello has 20 octets and 4 for each neighbour. One octet less than another takes is left over.
func (s *script) fits(neighbors int) {
	s.cfg.MTU = 20 + s.v.HeaderLen() + 20 + 4*neighbors + 3
	if s.v == packet.V3 {
		s.cfg.MTU += 20
	}
	if s.m != nil {
		s.m.Reconfigure(s.cfg)
	}
}

func (s *script) Tick() (sent []string) {
	for _, out := range s.m.Tick(s.Now) {
		sent = append(sent, s.describe(out))
	}
	return sent
}

func (s *script) describe(out Send) string {
	what := "all"
	if out.To != AllSPFRouters(s.v) {
		a := out.To.AsSlice()
		what = strconv.Itoa(int(a[len(a)-1]))
	}
	h, ok := out.Body.(*packet.Hello)
	if !ok {
		return what + " dd"
	}
	if h.Priority != 0 {
		s.Fatalf("a priority of %d", h.Priority)
	}
	what += fmt.Sprintf(" hello dr=%d bdr=%d", h.DR&0xFF, h.BDR&0xFF)
	for _, n := range h.Neighbors {
		what += fmt.Sprintf(" %d", uint32(n))
	}
	return what
}

func (s *script) receive(router int, kind string, f []string) {
	p := &packet.Packet{Version: s.v, Router: packet.ID(router)}
	from, to := address(s.v, router), AllSPFRouters(s.v)
	h := &packet.Hello{Mask: 0xFFFFFF00, Options: packet.OptionE, Priority: 1, Interval: 10, Dead: 40}
	for _, w := range f {
		k, v, _ := strings.Cut(w, "=")
		n := 0
		if v != "" && v != "dr" {
			n = s.Number(v)
		}
		switch k {
		case "pri":
			h.Priority = uint8(n)
		case "dr":
			h.DR = named(s.v, n)
		case "bdr":
			h.BDR = named(s.v, n)
		case "sees":
			h.Neighbors = []packet.ID{2}
		case "int":
			h.Interval = uint16(n)
		case "dead":
			h.Dead = uint32(n)
		case "mask":
			h.Mask = 0xFFFFFFFF << (32 - n)
		case "e":
			h.Options ^= packet.OptionE
		case "n":
			h.Options ^= packet.OptionN
		case "area":
			p.Area = packet.ID(n)
		case "ver":
			p.Version = 5 - s.v
		case "inst":
			p.Instance = uint8(n)
		case "to":
			to = AllDRouters(s.v)
		case "from":
			from = address(s.v, n)
		default:
			s.Fatalf("unknown %q", w)
		}
	}
	p.Body = h
	switch kind {
	case "dd":
		p.Body = &packet.Description{MTU: 1500, Options: packet.OptionE | packet.V2OptO, Flags: 7, Sequence: 7}
	case "last":
		p.Body = &packet.Description{MTU: 1500, Options: packet.OptionE | packet.V2OptO, Flags: packet.FlagMaster, Sequence: 8}
	}
	if s.v == packet.V3 {
		from, to = from.WithZone("eth0"), to.WithZone("eth0")
	}
	_, why := s.m.Receive(s.Now, from, to, p)
	s.Dropped(why)
}

// TestDestinations holds where packets go: RFC 2328 sections 8.1 and 13.3 for a DROther.
func TestDestinations(t *testing.T) {
	for v, want := range map[packet.Version][2]string{packet.V2: {"224.0.0.6", "224.0.0.5"}, packet.V3: {"ff02::6", "ff02::5"}} {
		c := config(v)
		n := &Neighbor{Address: address(v, 3)}
		if m := New(c, empty{}); m.Flood().String() != want[0] || m.Direct(n) != n.Address {
			t.Errorf("%s, broadcast: %s and %s", v, m.Flood(), m.Direct(n))
		}
		c.Broadcast = false
		if m := New(c, empty{}); m.Flood().String() != want[1] || m.Direct(n) != m.Flood() {
			t.Errorf("%s, point-to-point: %s and %s", v, m.Flood(), m.Direct(n))
		}
	}
}

// FuzzReceive holds that no packets break an interface, or make it remember more neighbours than it may.
func FuzzReceive(f *testing.F) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		var in []byte
		for r := range 3 {
			h := &packet.Hello{Mask: 0xFFFFFF00, Options: packet.OptionE, Priority: 1, Interval: 10, Dead: 40, DR: named(v, r+3), Neighbors: []packet.ID{2}}
			in = append((&packet.Packet{Version: v, Router: packet.ID(r + 3), Body: h}).Append(in), byte(r))
		}
		f.Add(uint8(v), true, in)
	}
	f.Fuzz(func(t *testing.T, version uint8, broadcast bool, in []byte) {
		c, now := config(packet.V2+packet.Version(version&1)), begin
		c.Broadcast = broadcast
		m := New(c, empty{})
		m.Up(now)
		for len(in) > 0 {
			p, err := packet.Parse(c.Version, in)
			if err != nil {
				in = in[1:]
				continue
			}
			in = in[packet.Length(in):]
			if len(in) > 0 {
				now = now.Add(time.Duration(in[0]) * time.Second / 8)
			}
			m.Receive(now, address(c.Version, int(p.Router&0xFF)), AllSPFRouters(c.Version), p)
			for range 3 {
				m.Tick(now)
			}
			if at := m.Wake(); !at.After(now) {
				t.Fatalf("wants a tick at %v again, it is %v", at, now)
			}
			all := m.Neighbors()
			if len(all) > 3 || slices.ContainsFunc(all, func(n *Neighbor) bool { return n.Router() == 2 }) {
				t.Fatalf("%d neighbours", len(all))
			}
		}
	})
}
