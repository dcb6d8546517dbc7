package bgp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
)

var (
	routerPeer = addr("192.0.2.1")
	reflector  = addr("192.0.2.2")
	here       = PrefixKey{"", pfx}
)

// desk is an originator over a RIB and the raw paths behind it.
type desk struct {
	t   *testing.T
	o   *originator
	r   *rib
	raw map[netip.Addr][]engine.RawPath
	vpn map[engine.VPNPrefix][]engine.RawPath
	err error
}

func newDesk(t *testing.T, items ...OriginateConfig) *desk {
	d := &desk{t: t, raw: map[netip.Addr][]engine.RawPath{}, vpn: map[engine.VPNPrefix][]engine.RawPath{}, r: newRIB(testLearning())}
	for _, a := range []netip.Addr{routerPeer, reflector} {
		d.r.addPeer(a, peerInfo{addr: a, name: a.String(), accept: true})
	}
	d.o = newOriginator(Config{PNCCode: 65400, Originate: items})
	return d
}

// hear lets a neighbour announce the test prefix; the raw attributes are what GoBGP would have.
func (d *desk) hear(peer netip.Addr, edit func(*engine.Path), attrs ...string) {
	p := engine.Path{Prefix: pfx, PeerID: peer, NextHop: addr("198.51.100.1"), LocalPref: 100}
	if edit != nil {
		edit(&p)
	}
	raw := engine.RawPath{PathID: p.PathID, NextHop: p.NextHop}
	for _, a := range attrs {
		b := unhex(d.t, a)
		raw.Attributes = append(raw.Attributes, b)
		if b[1] == nhc.AttributeType {
			p.HasNHC, p.NHCFlags, p.NHC = true, b[0], b[3:]
		}
	}
	d.raw[peer] = append(slices.DeleteFunc(d.raw[peer], func(x engine.RawPath) bool { return x.PathID == p.PathID }), raw)
	d.event(engine.Event{Kind: engine.EventPath, Peer: peer, Path: p})
}

func (d *desk) event(ev engine.Event) {
	d.r.apply(newTable(d.t).now, []engine.Event{ev})
	d.o.notice([]engine.Event{ev})
}

func (d *desk) lose(peer netip.Addr) {
	d.raw[peer] = nil
	d.event(withdrawal(peer, 0))
}

// change is what the engine is told.
type change struct {
	announce []engine.Announcement
	withdraw []netip.Prefix
	keys     []engine.VPNPrefix // of what is withdrawn
}

// plan plans and does until nothing is left to do.
func (d *desk) plan() (c change) {
	d.t.Helper()
	for len(d.o.dirty) > 0 {
		for _, s := range d.o.next(2, d.r, d.fetch) {
			if !errors.Is(s.err, d.err) {
				d.t.Fatal(s.err)
			}
			if s.announce != nil {
				c.announce = append(c.announce, *s.announce)
			}
			if s.withdraw != nil {
				c.withdraw, c.keys = append(c.withdraw, s.withdraw.Prefix), append(c.keys, *s.withdraw)
			}
			d.o.done(s, nil)
		}
	}
	slices.SortFunc(c.announce, func(x, y engine.Announcement) int { return x.Prefix.Compare(y.Prefix) })
	return c
}

func (d *desk) fetch(peer netip.Addr, p engine.VPNPrefix) ([]engine.RawPath, error) {
	if p.VPN {
		return d.vpn[p], d.err
	}
	return d.raw[peer], d.err
}

func (d *desk) one() engine.Announcement {
	d.t.Helper()
	c := d.plan()
	if len(c.announce) != 1 || len(c.withdraw) != 0 {
		d.t.Fatalf("planned %+v, want one announcement; status %q", c, d.o.status)
	}
	return c.announce[0]
}

func attribute(a engine.Announcement, typ uint8) string {
	for _, x := range a.Attributes {
		if x.Type() == typ {
			return hex.EncodeToString(x)
		}
	}
	return ""
}

func modeConfig(m Mode, from netip.Addr) OriginateConfig {
	c := OriginateConfig{Prefix: pfx, Mode: m, Proxy: addr("192.0.2.7"), From: from}
	if m == ModeOriginate {
		c.NextHop = addr("198.51.100.1")
	}
	return c
}

const (
	// What a router may send along, in order of type.
	routerOrigin   = "40 01 01 00"
	routerASPath   = "40 02 06 02 01 0000fde9"
	routerMED      = "80 04 04 00000032"
	routerPref     = "40 05 04 000000c8"
	routerComms    = "c0 08 04 fde80001"
	routerComms2   = "e0 08 04 fde80001" // Partial from an earlier hop
	routerExt      = "c0 10 08 0002fde800000001"
	routerLarge    = "c0 20 0c 0000fde80000000100000002"
	routerUnknown  = "c0 63 03 010203"
	routerUnknownP = "e0 63 03 010203"
	routerNonTrans = "80 62 02 0102"

	nhcOriginated = "c0 27 10 0001 01 04 c6336401 ff78 0004 c0000207"
	nhcAttached   = "e0 27 10 0001 01 04 c6336401 ff78 0004 c0000207"
)

func clean(s string) string { return strings.ReplaceAll(s, " ", "") }

func TestOriginateAnnouncesOurOwnRoute(t *testing.T) {
	d := newDesk(t, modeConfig(ModeOriginate, netip.Addr{}))
	if c := d.plan(); len(c.announce) != 0 || d.o.status[here] != inactiveOff {
		t.Fatalf("while off: %+v, %q", c, d.o.status[here])
	}
	d.o.setEnabled(true)
	a := d.one()
	if a.NextHop != addr("198.51.100.1") || a.NotTo.IsValid() || attribute(a, attrOrigin) != "40010100" {
		t.Errorf("%+v", a)
	}
	if got := attribute(a, nhc.AttributeType); got != clean(nhcOriginated) {
		t.Errorf("NHC %s: header is the next hop, no Partial on our own route", got)
	}
	if d.o.status[here] != active {
		t.Errorf("status %q", d.o.status[here])
	}
	d.o.setEnabled(false)
	if c := d.plan(); !slices.Equal(c.withdraw, []netip.Prefix{pfx}) {
		t.Errorf("switched off: %+v", c)
	}
}

func TestInlineAndPathKeepEveryAttributeOfTheRouter(t *testing.T) {
	all := []string{routerOrigin, routerASPath, routerMED, routerPref, routerComms2, routerExt, routerLarge, routerUnknown, routerNonTrans}
	for _, mode := range []Mode{ModeInline, ModePath} {
		d := newDesk(t, modeConfig(mode, routerPeer))
		d.o.setEnabled(true)
		d.hear(routerPeer, nil, all...)
		a := d.one()
		want := []string{routerOrigin, routerASPath, routerMED, routerPref, routerComms2,
			"80 09 04 c0000201", // ORIGINATOR_ID: the router
			routerExt, routerLarge, nhcAttached,
			routerUnknownP} // not recognised here: Partial; the non-transitive one stays behind
		var got []string
		for _, x := range a.Attributes {
			got = append(got, hex.EncodeToString(x))
		}
		for i := range want {
			want[i] = clean(want[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", mode, got, want)
		}
		if a.NextHop != addr("198.51.100.1") || a.NotTo != routerPeer {
			t.Errorf("%s: next hop %s, not to %s", mode, a.NextHop, a.NotTo)
		}
	}
}

func TestWhatTheRouterSentIsNotWrittenTo(t *testing.T) {
	d := newDesk(t, modeConfig(ModeInline, routerPeer))
	d.o.setEnabled(true)
	d.hear(routerPeer, nil, routerOrigin, routerUnknown)
	before := bytes.Clone(d.raw[routerPeer][0].Attributes[1])
	d.one()
	if !bytes.Equal(before, d.raw[routerPeer][0].Attributes[1]) {
		t.Error("the Partial bit was set in the router's own attribute")
	}
}

func TestOriginatorAndClusterInAReflectorMesh(t *testing.T) {
	reflected := []string{routerOrigin, "80 09 04 c0000205", "80 0a 08 c0000202 c0000203"}
	hear := func(d *desk) {
		d.hear(reflector, func(p *engine.Path) {
			p.OriginatorID = addr("192.0.2.5")
			p.ClusterList = []netip.Addr{addr("192.0.2.2"), addr("192.0.2.3")}
		}, reflected...)
	}
	d := newDesk(t, modeConfig(ModeInline, reflector))
	d.o.setEnabled(true)
	hear(d)
	a := d.one()
	if attribute(a, attrOriginatorID) != "800904c0000205" || attribute(a, attrClusterList) != "800a08c0000202c0000203" || a.NotTo != reflector {
		t.Errorf("inline: ORIGINATOR_ID and CLUSTER_LIST stay, and it doesn't go back: %+v", a)
	}
	d = newDesk(t, modeConfig(ModePath, reflector))
	d.o.setEnabled(true)
	hear(d)
	a = d.one()
	if attribute(a, attrOriginatorID) != "800904c0000205" || attribute(a, attrClusterList) != "" || a.NotTo != addr("192.0.2.5") {
		t.Errorf("path: the copy goes to the reflector, which must not take it for a loop: %+v", a)
	}
}

func TestTheRoutersPathTakesThePNCAlong(t *testing.T) {
	for _, mode := range []Mode{ModeInline, ModePath} {
		d := newDesk(t, modeConfig(mode, routerPeer))
		d.o.setEnabled(true)
		if c := d.plan(); len(c.announce) != 0 || d.o.status[here] != inactiveRouter {
			t.Fatalf("%s: before the router: %+v, %q", mode, c, d.o.status[here])
		}
		d.hear(routerPeer, nil, routerOrigin, routerMED)
		d.one()
		d.hear(routerPeer, nil, routerOrigin, routerMED)
		if c := d.plan(); len(c.announce)+len(c.withdraw) != 0 {
			t.Errorf("%s: the same again: %+v", mode, c)
		}
		d.hear(routerPeer, nil, routerOrigin, "80 04 04 00000033")
		if a := d.one(); attribute(a, attrMED) != "80040400000033" {
			t.Errorf("%s: a change is followed: %+v", mode, a)
		}
		d.lose(routerPeer)
		if c := d.plan(); !slices.Equal(c.withdraw, []netip.Prefix{pfx}) || d.o.status[here] != inactiveRouter {
			t.Errorf("%s: after the withdrawal: %+v", mode, c)
		}
		d.hear(routerPeer, nil, routerOrigin)
		d.one()
		d.raw[routerPeer] = nil
		d.event(state(routerPeer, engine.StateIdle, false))
		if c := d.plan(); !slices.Equal(c.withdraw, []netip.Prefix{pfx}) {
			t.Errorf("%s: after the session: %+v", mode, c)
		}
	}
}

func TestWithTheMechanismOffInlineGoesOnWithoutNHCAndPathIsWithdrawn(t *testing.T) {
	d := newDesk(t, modeConfig(ModeInline, routerPeer))
	d.hear(routerPeer, nil, routerOrigin)
	if a := d.one(); attribute(a, nhc.AttributeType) != "" || d.o.status[here] != inactiveOff+inactiveInline {
		t.Errorf("off from the start: %+v, %q", a, d.o.status[here])
	}
	d.o.setEnabled(true)
	if a := d.one(); attribute(a, nhc.AttributeType) != clean(nhcAttached) || d.o.status[here] != active {
		t.Errorf("on: %+v", a)
	}
	d.o.setEnabled(false)
	if a := d.one(); attribute(a, nhc.AttributeType) != "" {
		t.Errorf("off again: %+v", a)
	}

	d = newDesk(t, modeConfig(ModePath, routerPeer))
	d.hear(routerPeer, nil, routerOrigin)
	if c := d.plan(); len(c.announce) != 0 {
		t.Errorf("path, off: %+v", c)
	}
	d.o.setEnabled(true)
	d.one()
	d.o.setEnabled(false)
	if c := d.plan(); !slices.Equal(c.withdraw, []netip.Prefix{pfx}) {
		t.Errorf("path, off again: %+v", c)
	}
}

func TestTheRoutersOwnCharacteristicsStayBesideThePNC(t *testing.T) {
	const foreign = "0100 0004 abcdef01"
	for name, tt := range map[string]struct {
		router, want string
		off          string // what goes out while the mechanism is off
	}{
		"of the same next hop": {"c0 27 10 0001 01 04 c6336401" + foreign,
			"e0 27 18 0001 01 04 c6336401" + foreign + "ff78 0004 c0000207", "c0 27 10 0001 01 04 c6336401" + foreign},
		"of another next hop": {"c0 27 10 0001 01 04 c6336402" + foreign, nhcAttached, ""},
		"malformed":           {"c0 27 05 0001 01 05 c6", nhcAttached, ""},
		"without TLVs":        {"c0 27 08 0001 01 04 c6336401", nhcAttached, ""},
		"a BGP Identifier of a wrong length": {"c0 27 17 0001 01 04 c6336401 0003 0003 c00002" + foreign,
			"e0 27 18 0001 01 04 c6336401" + foreign + "ff78 0004 c0000207", ""},
		"a TLV cut short": {"c0 27 12 0001 01 04 c6336401" + foreign + "0001",
			"e0 27 18 0001 01 04 c6336401" + foreign + "ff78 0004 c0000207", ""},
	} {
		d := newDesk(t, modeConfig(ModeInline, routerPeer))
		d.hear(routerPeer, nil, routerOrigin, tt.router)
		if got := attribute(d.one(), nhc.AttributeType); got != clean(tt.off) {
			t.Errorf("%s: off: got %s, want %s: as it came, or nothing that is malformed or about another next hop", name, got, clean(tt.off))
		}
		d.o.setEnabled(true)
		if got := attribute(d.one(), nhc.AttributeType); got != clean(tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, clean(tt.want))
		}
	}
}

func TestWithoutANamedRouter(t *testing.T) {
	byReflector := func(p *engine.Path) {
		p.OriginatorID, p.ClusterList = addr("192.0.2.5"), []netip.Addr{reflector}
	}
	d := newDesk(t, modeConfig(ModeInline, netip.Addr{}))
	d.o.setEnabled(true)
	d.hear(reflector, byReflector, routerOrigin)
	if c := d.plan(); len(c.announce) != 0 {
		t.Errorf("inline followed a reflected path: %+v", c)
	}
	d.hear(routerPeer, nil, routerOrigin)
	if a := d.one(); a.NotTo != routerPeer {
		t.Errorf("inline: %+v", a)
	}

	d = newDesk(t, modeConfig(ModePath, netip.Addr{}))
	d.o.setEnabled(true)
	d.hear(reflector, byReflector, routerOrigin)
	d.one()
}

// Two nodes that follow each other's copy would keep the prefix alive after the router withdrew it.
func TestAnotherNodesCopyIsNeverFollowed(t *testing.T) {
	for _, mode := range []Mode{ModeInline, ModePath} {
		d := newDesk(t, modeConfig(mode, netip.Addr{}))
		d.o.setEnabled(true)
		d.hear(reflector, nil, routerOrigin, "e0 27 10 0001 01 04 c6336401 ff78 0004 c0000208")
		if c := d.plan(); len(c.announce) != 0 {
			t.Errorf("%s: followed a path with a PNC on it: %+v", mode, c)
		}
	}
}

func TestANextHopThatMeansNothingBeyondTheLinkIsNotPassedOn(t *testing.T) {
	d := newDesk(t, modeConfig(ModeInline, routerPeer))
	d.o.setEnabled(true)
	d.hear(routerPeer, func(p *engine.Path) { p.NextHop = addr("fe80::1") }, routerOrigin)
	if c := d.plan(); len(c.announce) != 0 || !strings.Contains(string(d.o.status[here]), "fe80::1") {
		t.Errorf("%+v, %q", c, d.o.status[here])
	}
}

func TestAPathThatCannotBeReadIsTriedAgainAndWhatIsAnnouncedStays(t *testing.T) {
	d := newDesk(t, modeConfig(ModeInline, routerPeer))
	d.o.setEnabled(true)
	d.hear(routerPeer, nil, routerOrigin)
	d.one()
	d.err = errors.New("busy")
	d.hear(routerPeer, nil, routerOrigin, routerMED)
	if c := d.plan(); len(c.announce)+len(c.withdraw) != 0 || len(d.o.failed) != 1 || !strings.Contains(string(d.o.status[here]), "busy") {
		t.Errorf("%+v, failed %v, %q", c, d.o.failed, d.o.status[here])
	}
	d.err = nil
	d.o.retry()
	if a := d.one(); attribute(a, attrMED) == "" {
		t.Errorf("%+v", a)
	}
}

func TestReconfiguringKeepsWhatStaysAndWhatWasAskedFor(t *testing.T) {
	x, y := modeConfig(ModeOriginate, netip.Addr{}), modeConfig(ModeOriginate, netip.Addr{})
	y.Prefix = prefix("192.0.2.0/24")
	d := newDesk(t, x, y)
	d.o.setEnabled(true)
	z := prefix("10.9.0.0/16")
	it := item{OriginateConfig: x, requested: true}
	it.Prefix = z
	d.o.items[PrefixKey{"", z}] = it
	d.o.touch(PrefixKey{"", z})
	d.plan()
	y.Proxy = addr("192.0.2.8")
	d.o.configure(Config{PNCCode: 65400, Originate: []OriginateConfig{y}})
	c := d.plan()
	if len(c.announce) != 1 || c.announce[0].Prefix != y.Prefix || !slices.Equal(c.withdraw, []netip.Prefix{pfx}) {
		t.Errorf("%+v", c)
	}
	if _, ok := d.o.current[PrefixKey{"", z}]; !ok {
		t.Error("what was asked for at run time is gone")
	}
	d.o.configure(Config{PNCCode: 65401, Originate: []OriginateConfig{y}})
	if c := d.plan(); len(c.announce) != 2 {
		t.Errorf("another code: %+v", c)
	}
}
