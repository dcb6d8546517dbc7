package engine

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"pncd/bgp/guard"
)

// guardFamilies are those of the fuzzed sessions, as the guard and as GoBGP name them.
var (
	guardFamilies = []guard.Family{{AFI: 1, SAFI: 1}, {AFI: 2, SAFI: 1}, {AFI: 1, SAFI: 128}, {AFI: 2, SAFI: 128}}
	gobgpFamilies = []bgp.RouteFamily{bgp.RF_IPv4_UC, bgp.RF_IPv6_UC, bgp.RF_IPv4_VPN, bgp.RF_IPv6_VPN}
)

// behindGuard is an established session and how GoBGP decodes what comes in on it.
type behindGuard struct {
	guard    *guard.Session
	families map[bgp.RouteFamily]bgp.BGPAddPathMode
	options  []*bgp.MarshallingOption
	external bool
	wide     bool // AS numbers of four octets
}

// newBehindGuard makes a session by the low bits of how: AS numbers of two octets, add-path, IPv6 next hops of
// IPv4 prefixes, EBGP.
func newBehindGuard(t testing.TB, how uint8) behindGuard {
	g := behindGuard{families: map[bgp.RouteFamily]bgp.BGPAddPathMode{}, external: how&8 != 0, wide: how&1 == 0}
	var caps []bgp.ParameterCapabilityInterface
	var tuples []*bgp.CapAddPathTuple
	var hops []*bgp.CapExtendedNexthopTuple
	for _, f := range gobgpFamilies {
		caps = append(caps, bgp.NewCapMultiProtocol(f))
		tuples = append(tuples, bgp.NewCapAddPathTuple(f, bgp.BGP_ADD_PATH_BOTH))
		hops = append(hops, bgp.NewCapExtendedNexthopTuple(f, bgp.AFI_IP6))
		g.families[f] = bgp.BGP_ADD_PATH_NONE
		if how&2 != 0 {
			g.families[f] = bgp.BGP_ADD_PATH_BOTH
		}
	}
	if g.wide {
		caps = append(caps, bgp.NewCapFourOctetASNumber(64512))
	}
	if how&2 != 0 {
		caps = append(caps, bgp.NewCapAddPath(tuples))
		g.options = []*bgp.MarshallingOption{{AddPath: g.families}}
	}
	if how&4 != 0 {
		caps = append(caps, bgp.NewCapExtendedNexthop(hops))
	}
	open, err := bgp.NewBGPOpenMessage(64512, 90, "10.0.0.1",
		[]bgp.OptionParameterInterface{bgp.NewOptionParameterCapability(caps)}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	alive, err := bgp.NewBGPKeepAliveMessage().Serialize()
	if err != nil {
		t.Fatal(err)
	}
	g.guard = guard.New(guard.Config{Families: guardFamilies, EBGP: g.external})
	g.guard.ToPeer(open)
	for _, m := range [][]byte{open, alive} {
		if v := g.guard.FromPeer(m); v.Fault != nil {
			t.Fatal(v.Fault)
		}
	}
	return g
}

// accepts does what GoBGP's reader does with a message of an established session, without recovering. It
// fails where GoBGP would end the session.
func (g behindGuard) accepts(msg []byte) error {
	h := &bgp.BGPHeader{}
	if err := h.DecodeFromBytes(msg[:bgp.BGP_HEADER_LENGTH]); err != nil {
		return err
	}
	m, err := bgp.ParseBGPBody(h, msg[bgp.BGP_HEADER_LENGTH:], g.options...)
	if err != nil {
		return err
	}
	u, ok := m.Body.(*bgp.BGPUpdate)
	if !ok {
		return nil
	}
	if ok, err := bgp.ValidateUpdateMsg(u, g.families, g.external, false, false); !ok {
		return err
	}
	if err := g.sameWidth(u); err != nil {
		return err
	}
	// What GoBGP does later, when it makes paths of it.
	for _, a := range u.PathAttributes {
		if _, err := a.Serialize(); err != nil {
			return fmt.Errorf("attribute %d: %w", a.GetType(), err)
		}
		if r, ok := a.(*bgp.PathAttributeMpReachNLRI); ok {
			for _, n := range r.Value {
				bgp.NewPathAttributeMpReachNLRI(r.Nexthop.String(), []bgp.AddrPrefixInterface{n})
				_ = n.String()
			}
		}
	}
	return nil
}

// sameWidth checks that GoBGP's guess at the length of AS numbers is right, and that AS4_PATH doesn't
// precede AS_PATH: GoBGP then writes beyond the end of its list of attributes.
func (g behindGuard) sameWidth(u *bgp.BGPUpdate) error {
	as4Path := false
	aggregator, as4Aggregator := false, false
	for _, a := range u.PathAttributes {
		switch a := a.(type) {
		case *bgp.PathAttributeAsPath:
			if as4Path {
				return fmt.Errorf("AS4_PATH before AS_PATH")
			}
			for _, p := range a.Value {
				if _, four := p.(*bgp.As4PathParam); g.wide && !four {
					return fmt.Errorf("AS_PATH read with two octets")
				}
			}
		case *bgp.PathAttributeAs4Path:
			as4Path = true
		case *bgp.PathAttributeAggregator:
			aggregator = true
		case *bgp.PathAttributeAs4Aggregator:
			as4Aggregator = true
		}
	}
	if as4Aggregator && !aggregator {
		return fmt.Errorf("AS4_AGGREGATOR without AGGREGATOR")
	}
	return nil
}

// accepted is accepts under recover, as it is done with what the guard is unsure of.
func (g behindGuard) accepted(msg []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return g.accepts(msg)
}

// FuzzGuardThenGoBGP: what the guard passes, and is sure of, GoBGP decodes without panic or error; what it
// passes in place of an UPDATE that GoBGP refused, too.
func FuzzGuardThenGoBGP(f *testing.F) {
	for _, body := range [][]byte{
		{0, 0, 0, 0},
		{0, 4, 24, 10, 77, 1, 0, 0},
		{0, 0, 0, 20, 0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfc, 1, 0x40, 3, 4, 192, 0, 2, 1, 24, 10, 77, 1},
		{0, 0, 0, 29, 0x80, 14, 26, 0, 1, 128, 12, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1, 0, 88, 0, 1, 0, 0, 0, 252, 0},
		{0, 0, 0, 11, 0xc0, 16, 8, 6, 9, 0, 0, 0, 0, 0, 0},
		{0, 0, 0, 7, 0xc0, 40, 4, 5, 0, 1, 0},
		{0, 0, 0, 10, 0x80, 14, 7, 0x40, 4, 71, 0, 0, 0, 1},
	} {
		for how := range uint8(16) {
			f.Add(how, uint8(bgp.BGP_MSG_UPDATE), body)
		}
	}
	f.Add(uint8(0), uint8(bgp.BGP_MSG_ROUTE_REFRESH), []byte{0, 1, 0, 1})
	f.Add(uint8(0), uint8(bgp.BGP_MSG_NOTIFICATION), []byte{6, 2, 3, 'a', 'b', 'c'})
	f.Fuzz(func(t *testing.T, how, typ uint8, body []byte) {
		if len(body) > guard.MaxLen-guard.HeaderLen {
			return
		}
		g := newBehindGuard(t, how)
		msg := make([]byte, 16, guard.HeaderLen+len(body))
		for i := range msg {
			msg[i] = 0xff
		}
		msg = binary.BigEndian.AppendUint16(msg, uint16(guard.HeaderLen+len(body)))
		msg = append(append(msg, typ), body...)
		v := g.guard.FromPeer(msg)
		unsure := v.Unsure
		for _, m := range cut(t, g.guard, v.Pass) {
			if !unsure {
				if err := g.accepts(m); err != nil {
					t.Fatalf("GoBGP refuses %x, passed for %x: %v", m, msg, err)
				}
				continue
			}
			if g.accepted(m) == nil {
				continue
			}
			for _, w := range cut(t, g.guard, g.guard.Withdraw(m).Pass) {
				if err := g.accepts(w); err != nil {
					t.Fatalf("GoBGP refuses %x, passed for %x: %v", w, msg, err)
				}
			}
		}
	})
}

// cut makes single messages of what a verdict passes.
func cut(t *testing.T, s *guard.Session, b []byte) (out [][]byte) {
	for b = append([]byte(nil), b...); len(b) > 0; {
		n, f := s.FrameLen(b)
		if f != nil {
			t.Fatal(f)
		}
		out, b = append(out, b[:n:n]), b[n:]
	}
	return out
}

// FuzzGuardThenGoBGPOpen: an OPEN that the guard passes GoBGP decodes, with the same families and add-path.
func FuzzGuardThenGoBGPOpen(f *testing.F) {
	fixed := []byte{4, 0xfc, 0, 0, 90, 10, 0, 0, 1}
	for _, params := range [][]byte{
		{0},
		{8, 2, 6, 1, 4, 0, 1, 0, 1},
		{255, 255, 0, 9, 2, 0, 6, 1, 4, 0, 1, 0, 1},
		{16, 2, 14, 1, 4, 0, 2, 0, 1, 69, 4, 0, 2, 1, 7, 2, 0},
		{9, 2, 7, 73, 5, 2, 'a', 'b', 1, 'c'},
	} {
		f.Add(append(append([]byte(nil), fixed...), params...))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > guard.MaxLen-guard.HeaderLen {
			return
		}
		msg := make([]byte, 16, guard.HeaderLen+len(body))
		for i := range msg {
			msg[i] = 0xff
		}
		msg = binary.BigEndian.AppendUint16(msg, uint16(guard.HeaderLen+len(body)))
		msg = append(append(msg, bgp.BGP_MSG_OPEN), body...)
		v := guard.New(guard.Config{Families: guardFamilies}).FromPeer(msg)
		if v.Fault != nil {
			return
		}
		m, err := bgp.ParseBGPMessage(v.Pass)
		if err != nil {
			t.Fatalf("GoBGP refuses %x, passed for %x: %v", v.Pass, msg, err)
		}
		open := m.Body.(*bgp.BGPOpen)
		if _, err := bgp.ValidateOpenMsg(open, 0, 64999, nil); err != nil {
			t.Fatalf("GoBGP refuses %x: %v", v.Pass, err)
		}
		n := 0
		for _, p := range open.OptParams {
			n += 2
			for _, c := range p.(*bgp.OptionParameterCapability).Capability {
				n += c.Len()
			}
		}
		if n != int(open.OptParamLen) {
			t.Fatalf("GoBGP read %d of %d octets of capabilities in %x", n, open.OptParamLen, v.Pass)
		}
	})
}
