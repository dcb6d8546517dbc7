package bgp

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
)

func TestPreferIsACopyWithAHigherLocalPref(t *testing.T) {
	for _, tt := range []struct {
		name       string
		configured uint32
		router     uint32
		attrs      []string
		want       string // LOCAL_PREF; empty: not announced
	}{
		{"one more than the router's", 0, 200, []string{routerOrigin, routerPref}, "400504000000c9"},
		{"one more than the default", 0, 100, []string{routerOrigin}, "40050400000065"},
		{"as configured", 300, 200, []string{routerOrigin, routerPref}, "4005040000012c"},
		{"not higher than the router's", 200, 200, []string{routerOrigin, routerPref}, ""},
		{"the router's is the highest there is", 0, math.MaxUint32, []string{routerOrigin, "40 05 04 ffffffff"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t, modeConfig(ModePrefer, routerPeer))
			d.o.prefer = tt.configured
			d.o.setEnabled(true)
			d.hear(routerPeer, func(p *engine.Path) { p.LocalPref = tt.router }, tt.attrs...)
			if tt.want == "" {
				if c := d.plan(); len(c.announce) != 0 || !strings.Contains(string(d.o.status[here]), "LOCAL_PREF") {
					t.Errorf("%+v, %q", c, d.o.status[here])
				}
				return
			}
			a := d.one()
			prefs := slices.DeleteFunc(slices.Clone(a.Attributes), func(x engine.RawAttribute) bool { return x.Type() != attrLocalPref })
			if len(prefs) != 1 || attribute(a, attrLocalPref) != tt.want {
				t.Errorf("LOCAL_PREF %x, want %s once", prefs, tt.want)
			}
			if a.NextHop != addr("198.51.100.1") || a.NotTo != routerPeer || attribute(a, attrOriginatorID) != "800904c0000201" || attribute(a, nhc.AttributeType) != clean(nhcAttached) {
				t.Errorf("otherwise as mode path: %+v", a)
			}
		})
	}
}

// The reflector would take the path back that the copy follows, and both would come and go for ever.
func TestPreferNeverFollowsWhatItWouldPushOut(t *testing.T) {
	reflected := func(id uint32) func(*engine.Path) {
		return func(p *engine.Path) {
			p.PathID, p.OriginatorID, p.ClusterList = id, addr("192.0.2.5"), []netip.Addr{reflector}
		}
	}
	for _, from := range []netip.Addr{reflector, {}} {
		d := newDesk(t, modeConfig(ModePrefer, from))
		d.o.setEnabled(true)
		d.hear(reflector, reflected(0), routerOrigin)
		if c := d.plan(); len(c.announce) != 0 || d.o.status[here] != inactiveReflected {
			t.Errorf("from %s: %+v, %q", from, c, d.o.status[here])
		}
		d.hear(reflector, reflected(2), routerOrigin)
		if a := d.one(); a.NotTo != addr("192.0.2.5") {
			t.Errorf("from %s: with add-path the router's path stays: %+v", from, a)
		}
	}
}

func TestPreferGoesWithTheRoutersPathAndWithTheMechanism(t *testing.T) {
	d := newDesk(t, modeConfig(ModePrefer, routerPeer))
	d.hear(routerPeer, nil, routerOrigin)
	if c := d.plan(); len(c.announce) != 0 {
		t.Errorf("off: %+v", c)
	}
	d.o.setEnabled(true)
	d.one()
	d.o.configure(Config{PNCCode: 65400, PreferLocalPref: 500, Originate: []OriginateConfig{modeConfig(ModePrefer, routerPeer)}})
	if a := d.one(); attribute(a, attrLocalPref) != "400504000001f4" {
		t.Errorf("another LOCAL_PREF: %+v", a)
	}
	d.lose(routerPeer)
	if c := d.plan(); !slices.Equal(c.withdraw, []netip.Prefix{pfx}) || d.o.status[here] != inactiveRouter {
		t.Errorf("%+v, %q", c, d.o.status[here])
	}
}
