package bgp

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
)

const blueTarget = "c0 10 08 0002fde800000064" // route target 65000:100

// vpnDesk has contexts blue and green, which import the same target, and the given items.
func vpnDesk(t *testing.T, items ...OriginateConfig) *desk {
	d := newDesk(t)
	label := uint32(LabelImplicitNull)
	blue, green := importing(t, "blue", "65000:100"), importing(t, "green", "65000:100")
	blue.RD, blue.Export, blue.Label = distinguisher(t, "192.0.2.99:1"), []RouteTarget{target(t, "65000:9100")}, &label
	contexts := []ContextConfig{blue, green}
	d.r.importing(contexts)
	d.o = newOriginator(Config{PNCCode: 65400, Contexts: contexts, Originate: items})
	d.o.setEnabled(true)
	return d
}

// hearVPN lets a neighbour announce a prefix in the blue VPN, with label 1001.
func (d *desk) hearVPN(peer netip.Addr, rd string, p netip.Prefix, edit func(*engine.Path), attrs ...string) {
	key := engine.VPNPrefix{RD: distinguisher(d.t, rd), VPN: true, Prefix: p}
	path := engine.Path{Prefix: p, RD: key.RD, PeerID: peer, NextHop: addr("198.51.100.1"), LocalPref: 100, Targets: []RouteTarget{target(d.t, "65000:100")}}
	if edit != nil {
		edit(&path)
	}
	raw := engine.RawPath{PathID: path.PathID, NextHop: path.NextHop, Label: 1001}
	for _, a := range attrs {
		raw.Attributes = append(raw.Attributes, unhex(d.t, a))
	}
	d.vpn[key] = []engine.RawPath{raw}
	d.event(engine.Event{Kind: engine.EventPath, Peer: peer, Family: engine.VPNFamilyOf(p.Addr()), Path: path})
}

func (d *desk) loseVPN(peer netip.Addr, rd string, p netip.Prefix) {
	key := engine.VPNPrefix{RD: distinguisher(d.t, rd), VPN: true, Prefix: p}
	delete(d.vpn, key)
	d.event(engine.Event{Kind: engine.EventPath, Peer: peer, Family: engine.VPNFamilyOf(p.Addr()),
		Path: engine.Path{Prefix: p, RD: key.RD, Withdrawn: true}})
}

func inBlue(m Mode, p netip.Prefix) OriginateConfig {
	return OriginateConfig{Context: "blue", Prefix: p, Mode: m, Proxy: addr("192.0.2.7"), From: routerPeer}
}

func TestInAVPNTheOtherModesKeepTheRoutersRouteDistinguisherLabelAndTargets(t *testing.T) {
	v6 := prefix("2001:db8:7::/48")
	for _, tt := range []struct {
		mode    Mode
		prefix  netip.Prefix
		nextHop string
		nhc     string
		pref    string
	}{
		{ModeInline, pfx, "198.51.100.1", "e02710" + "00018004c6336401" + "ff780004c0000207", "400504000000c8"},
		{ModePath, pfx, "198.51.100.1", "e02710" + "00018004c6336401" + "ff780004c0000207", "400504000000c8"},
		{ModePrefer, pfx, "198.51.100.1", "e02710" + "00018004c6336401" + "ff780004c0000207", "400504000000c9"},
		{ModeInline, v6, "2001:db8::1", "e0271c" + "0002801020010db8000000000000000000000001" + "ff780004c0000207", "400504000000c8"},
		{ModePath, v6, "2001:db8::1", "e0271c" + "0002801020010db8000000000000000000000001" + "ff780004c0000207", "400504000000c8"},
		{ModePrefer, v6, "2001:db8::1", "e0271c" + "0002801020010db8000000000000000000000001" + "ff780004c0000207", "400504000000c9"},
		// An IPv4 core (RFC 4659 section 3.2.1.2): mapped in MP_REACH_NLRI, four octets in the header.
		{ModePath, v6, "::ffff:198.51.100.1", "e02710" + "00028004c6336401" + "ff780004c0000207", "400504000000c8"},
	} {
		d := vpnDesk(t, inBlue(tt.mode, tt.prefix))
		if c := d.plan(); len(c.announce) != 0 {
			t.Fatalf("%s: before the router: %+v", tt.mode, c)
		}
		d.hearVPN(routerPeer, "65000:1", tt.prefix, func(p *engine.Path) { p.NextHop, p.LocalPref = addr(tt.nextHop), 200 },
			routerOrigin, routerPref, routerComms, blueTarget, routerUnknown)
		a := d.one()
		want := []string{clean(routerOrigin), tt.pref, clean(routerComms), "800904c0000201", clean(blueTarget), tt.nhc, clean(routerUnknownP)}
		var got []string
		for _, x := range a.Attributes {
			got = append(got, hex.EncodeToString(x))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %s:\n got %v\nwant %v", tt.mode, tt.prefix, got, want)
		}
		if a.VPN == nil || a.VPN.RD.String() != "65000:1" || a.VPN.Label != 1001 || a.NextHop != addr(tt.nextHop).Unmap() || a.NotTo != routerPeer {
			t.Errorf("%s %s: %+v, %+v", tt.mode, tt.prefix, a, a.VPN)
		}
		d.loseVPN(routerPeer, "65000:1", tt.prefix)
		if c := d.plan(); !slices.Equal(c.withdraw, []netip.Prefix{tt.prefix}) || c.keys[0].RD.String() != "65000:1" {
			t.Errorf("%s %s: after the withdrawal: %+v", tt.mode, tt.prefix, c)
		}
	}
}

func TestARouteWithAnotherRouteDistinguisherIsAnotherRoute(t *testing.T) {
	d := vpnDesk(t, inBlue(ModePath, pfx))
	d.hearVPN(routerPeer, "65000:1", pfx, func(p *engine.Path) { p.LocalPref = 200 }, routerOrigin, blueTarget)
	d.one()
	d.hearVPN(routerPeer, "65000:2", pfx, nil, routerOrigin, blueTarget)
	if c := d.plan(); len(c.announce)+len(c.withdraw) != 0 {
		t.Errorf("a worse route of the same router: %+v", c)
	}
	d.loseVPN(routerPeer, "65000:1", pfx)
	c := d.plan()
	if len(c.announce) != 1 || c.announce[0].VPN.RD.String() != "65000:2" || len(c.keys) != 1 || c.keys[0].RD.String() != "65000:1" {
		t.Errorf("the next best: %+v", c)
	}
	if len(d.o.current) != 1 || len(d.o.owner) != 1 {
		t.Errorf("%v, %v", d.o.current, d.o.owner)
	}
}

// Two contexts that import the same route can't both announce it: for BGP it is one.
func TestOneRouteIsAnnouncedInOneContextOnly(t *testing.T) {
	blue, green := inBlue(ModePath, pfx), inBlue(ModePath, pfx)
	green.Context, green.Proxy = "green", addr("192.0.2.8")
	d := vpnDesk(t, blue, green)
	d.hearVPN(routerPeer, "65000:1", pfx, nil, routerOrigin, blueTarget)
	if a := d.one(); !strings.HasSuffix(attribute(a, nhc.AttributeType), "c0000207") {
		t.Errorf("%+v", a)
	}
	if why := d.o.status[PrefixKey{"green", pfx}]; !strings.Contains(string(why), "context blue already") {
		t.Errorf("green: %q", why)
	}
	d.hearVPN(routerPeer, "65000:1", pfx, nil, routerOrigin, routerMED, blueTarget)
	if a := d.one(); attribute(a, attrMED) == "" {
		t.Errorf("a change: %+v", a)
	}
	// When one gives it up, the other has it.
	delete(d.o.items, PrefixKey{"blue", pfx})
	d.o.touch(PrefixKey{"blue", pfx})
	c := d.plan()
	if len(c.withdraw) != 1 || len(c.announce) != 1 || !strings.HasSuffix(attribute(c.announce[0], nhc.AttributeType), "c0000208") {
		t.Errorf("%+v", c)
	}
}

func TestWithTheMechanismOffInlineInAVPNGoesOnWithTheRoutersOwnNHCWithoutRD(t *testing.T) {
	const foreign = "0100 0004 abcdef01"
	for name, tt := range map[string]struct{ router, off, on string }{
		"without RD": {"c0 27 10 0001 80 04 c6336401" + foreign, "c0 27 10 0001 80 04 c6336401" + foreign,
			"e0 27 18 0001 80 04 c6336401" + foreign + "ff78 0004 c0000207"},
		"with RD": {"e0 27 18 0001 80 0c 0000fde800000001 c6336401" + foreign, "e0 27 10 0001 80 04 c6336401" + foreign,
			"e0 27 18 0001 80 04 c6336401" + foreign + "ff78 0004 c0000207"},
		"of the unicast family": {"c0 27 10 0001 01 04 c6336401" + foreign, "", "e0 27 10 0001 80 04 c6336401 ff78 0004 c0000207"},
	} {
		d := vpnDesk(t, inBlue(ModeInline, pfx))
		d.o.setEnabled(false)
		d.hearVPN(routerPeer, "65000:1", pfx, nil, routerOrigin, blueTarget, tt.router)
		if got := attribute(d.one(), nhc.AttributeType); got != clean(tt.off) {
			t.Errorf("%s, off: %s, want %s", name, got, clean(tt.off))
		}
		d.o.setEnabled(true)
		if got := attribute(d.one(), nhc.AttributeType); got != clean(tt.on) {
			t.Errorf("%s, on: %s, want %s", name, got, clean(tt.on))
		}
	}
}

func TestAVPNsIPv4PrefixWithAnIPv6NextHopIsNotPassedOn(t *testing.T) {
	d := vpnDesk(t, inBlue(ModeInline, pfx))
	d.hearVPN(routerPeer, "65000:1", pfx, func(p *engine.Path) { p.NextHop = addr("2001:db8::1") }, routerOrigin, blueTarget)
	if c := d.plan(); len(c.announce) != 0 || !strings.Contains(string(d.o.status[PrefixKey{"blue", pfx}]), "RFC 8950") {
		t.Errorf("%+v, %q", c, d.o.status)
	}
}

func TestAnAdvertisementInAContextAtRunTime(t *testing.T) {
	r := run(t, soundVPN(t))
	if err := r.SetOriginating(true); err != nil {
		t.Fatal(err)
	}
	o := OriginateConfig{Context: "blue", Prefix: prefix("198.51.100.0/24"), Proxy: addr("192.0.2.7"), NextHop: addr("198.51.100.1")}
	if err := r.Advertise(o, 0); err != nil {
		t.Fatal(err)
	}
	key := engine.VPNPrefix{RD: distinguisher(t, "192.0.2.1:1"), VPN: true, Prefix: o.Prefix}
	announced := func() bool {
		r.f.mu.Lock()
		defer r.f.mu.Unlock()
		_, ok := r.f.announced[key]
		return ok
	}
	if !announced() {
		t.Fatalf("%v", r.f.announced)
	}
	// The same prefix outside of VPNs and in another context is another.
	for _, vpn := range []string{"", "red"} {
		if err := r.Withdraw(vpn, o.Prefix); err == nil || !announced() {
			t.Errorf("withdrawn in %q: %v", vpn, err)
		}
	}
	bad := o
	bad.Context = "green"
	if err := r.Advertise(bad, 0); err == nil || !strings.Contains(err.Error(), "no such context") {
		t.Errorf("%v", err)
	}
	if err := r.Withdraw("blue", o.Prefix); err != nil || announced() {
		t.Errorf("%v", err)
	}
	// A context that goes takes along what was asked for in it.
	if err := r.Advertise(o, 0); err != nil || !announced() {
		t.Fatal(err)
	}
	next := soundVPN(t)
	next.Contexts, next.Originate = next.Contexts[1:], nil
	if err := r.Reconfigure(next); err != nil || announced() || len(r.Advertisements()) != 0 {
		t.Errorf("%v, %+v", err, r.Advertisements())
	}
}
