package bgp

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
)

// The sender's rules of draft-ietf-idr-nhc, held on what really goes out: each mode, both families, inside
// and outside of VPNs. What the codec refuses is in package nhc.

// sent is an announcement with its NHC attribute.
type sent struct {
	name string
	engine.Announcement
	nhc nhc.Attribute
}

// everythingSent announces a prefix in each way that there is.
func everythingSent(t *testing.T) []sent {
	t.Helper()
	var out []sent
	add := func(name string, as ...engine.Announcement) {
		for _, a := range as {
			s := sent{name: name, Announcement: a}
			n := 0
			for _, raw := range a.Attributes {
				if raw.Type() != nhc.AttributeType {
					continue
				}
				n++
				var err error
				if s.nhc, err = nhc.Parse(raw); err != nil {
					t.Fatalf("%s: what goes out is malformed: %v", name, err)
				}
			}
			if n != 1 {
				t.Fatalf("%s: %d NHC attributes in %v", name, n, hexes(a.Attributes))
			}
			out = append(out, s)
		}
	}
	// TLVs of the router's own for the same next hop: out of order, one twice.
	const routers = "c0 27 20 0001 01 04 c6336401 fff0 0004 00000001 0100 0004 abcdef01 fff0 0004 00000001"
	for _, m := range []Mode{ModeOriginate, ModeInline, ModePath, ModePrefer} {
		for name, tlvs := range map[string]string{"": "", " beside the router's own": routers} {
			from := routerPeer
			if m == ModeOriginate {
				from = netip.Addr{}
			}
			d := newDesk(t, modeConfig(m, from))
			d.o.setEnabled(true)
			attrs := []string{routerOrigin, routerASPath, routerMED, routerPref}
			if tlvs != "" {
				attrs = append(attrs, tlvs)
			}
			d.hear(routerPeer, nil, attrs...)
			add(m.String()+name, d.one())
		}
	}
	for _, nextHop := range []string{"198.51.100.1", "2001:db8::1"} {
		c := modeConfig(ModeOriginate, netip.Addr{})
		c.NextHop = addr(nextHop)
		d := newDesk(t, c)
		d.o.setEnabled(true)
		add("IPv4 prefix by "+nextHop, d.one())
	}
	six := OriginateConfig{Prefix: prefix("2001:db8:7::/48"), Proxy: addr("192.0.2.7"), NextHop: addr("2001:db8::1")}
	d := newDesk(t, six)
	d.o.setEnabled(true)
	add("IPv6 prefix", d.one())
	c, err := soundVPN(t).complete()
	if err != nil {
		t.Fatal(err)
	}
	d = newDesk(t)
	d.o = newOriginator(c)
	d.o.setEnabled(true)
	vpn := d.plan().announce
	if len(vpn) != 2 {
		t.Fatalf("%d announcements inside VPNs", len(vpn))
	}
	add("VPN", vpn...)
	for _, m := range []Mode{ModeInline, ModePath, ModePrefer} {
		d := vpnDesk(t, inBlue(m, pfx))
		d.hearVPN(routerPeer, "65000:1", pfx, nil, routerOrigin, blueTarget)
		add(m.String()+" in a VPN", d.one())
	}
	return out
}

func TestSenderHeaderIsTheRoutesNextHop(t *testing.T) {
	for _, s := range everythingSent(t) {
		afi, safi := nhc.AFIIPv4, nhc.SAFIUnicast
		if s.Prefix.Addr().Is6() {
			afi = nhc.AFIIPv6
		}
		if s.VPN != nil {
			safi = nhc.SAFIVPN
		}
		if err := s.nhc.Match(nhc.Route{AFI: afi, SAFI: safi, NextHop: s.NextHop}); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestSenderAlwaysSetsAnExplicitNextHop(t *testing.T) {
	for _, s := range everythingSent(t) {
		if nh := s.NextHop; !nh.IsValid() || nh.IsUnspecified() || nh.IsLinkLocalUnicast() {
			t.Errorf("%s: next hop %s", s.name, nh)
		}
	}
	// A router's next hop that means nothing elsewhere gives no announcement, and so no NHC.
	for _, nh := range []string{"0.0.0.0", "::", "fe80::1"} {
		for _, m := range []Mode{ModeInline, ModePath, ModePrefer} {
			d := newDesk(t, modeConfig(m, routerPeer))
			d.o.setEnabled(true)
			d.hear(routerPeer, func(p *engine.Path) { p.NextHop = addr(nh) }, routerOrigin)
			if c := d.plan(); len(c.announce) != 0 || d.o.status[here] == active {
				t.Errorf("%s by %s: %+v, %q", m, nh, c, d.o.status[here])
			}
		}
	}
}

func TestSenderNextHopNeverPointsAtThisNode(t *testing.T) {
	for _, m := range []Mode{ModeInline, ModePath, ModePrefer} {
		d := newDesk(t, modeConfig(m, routerPeer))
		d.o.setEnabled(true)
		d.hear(routerPeer, func(p *engine.Path) { p.NextHop = addr("198.51.100.77") }, routerOrigin)
		if a := d.one(); a.NextHop != addr("198.51.100.77") {
			t.Errorf("%s: next hop %s, the router's is 198.51.100.77", m, a.NextHop)
		}
	}
}

func TestSenderTLVsAreInIncreasingOrderAndNeverIdentical(t *testing.T) {
	several := 0
	for _, s := range everythingSent(t) {
		if len(s.nhc.TLVs) > 1 {
			several++
		}
		if err := s.nhc.CheckSend(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if !slices.IsSortedFunc(s.nhc.TLVs, func(a, b nhc.TLV) int { return int(a.Code) - int(b.Code) }) {
			t.Errorf("%s: %v", s.name, s.nhc.TLVs)
		}
		for i, tlv := range s.nhc.TLVs {
			for _, o := range s.nhc.TLVs[:i] {
				if o.Code == tlv.Code && slices.Equal(o.Value, tlv.Value) {
					t.Errorf("%s: code %d twice", s.name, tlv.Code)
				}
			}
		}
	}
	if several != 3 {
		t.Errorf("%d announcements with several TLVs, want those of the modes that follow a router", several)
	}
}

func TestSenderNeverSendsNHCWithoutAPNC(t *testing.T) {
	for _, s := range everythingSent(t) {
		if p := s.nhc.PNC(nhc.DefaultPNCCode); p.Proxy != addr("192.0.2.7") || p.Different != 0 {
			t.Errorf("%s: %+v of %v", s.name, p, s.nhc.TLVs)
		}
	}
}

// RFC 4271 section 5: Partial says that the attribute was attached to, or passed on with, another's route.
func TestSenderSetsPartialWhereNHCIsAttachedToAnothersRoute(t *testing.T) {
	for _, s := range everythingSent(t) {
		followed := s.name != "VPN" && slices.Contains([]string{"inline", "path", "prefer"}, firstWord(s.name))
		if s.nhc.Partial() != followed {
			t.Errorf("%s: Partial %v", s.name, s.nhc.Partial())
		}
	}
}

func firstWord(s string) string {
	for i, r := range s {
		if r == ' ' {
			return s[:i]
		}
	}
	return s
}

func TestPartialStaysAsReceived(t *testing.T) {
	for _, flags := range []string{"c0", "e0"} {
		const value = " 27 10 0001 01 04 c6336401 0100 0004 abcdef01"
		d := newDesk(t, modeConfig(ModeInline, routerPeer))
		d.hear(routerPeer, nil, routerOrigin, flags+value, flags+" 63 03 010203")
		// The mechanism is off: the router's path goes on as it came, but for Partial on what isn't recognised.
		a := d.one()
		if got := attribute(a, nhc.AttributeType); got != clean(flags+value) {
			t.Errorf("NHC came as %s and goes as %s", flags, got[:2])
		}
		if got := attribute(a, 0x63); got != "e06303010203" {
			t.Errorf("an attribute that isn't recognised came as %s and goes as %s", flags, got[:2])
		}
		// Learned, it is shown as it came.
		b, err := hex.DecodeString(flags)
		if err != nil {
			t.Fatal(err)
		}
		tb := newTable(t)
		tb.apply(pathEvent(t, peer1, 0, func(p *engine.Path) { p.NHCFlags = b[0] }))
		if r := tb.get(peer1, 0); r.Partial != (flags == "e0") || !r.Believed() {
			t.Errorf("%s: learned as %+v", flags, r)
		}
	}
}
