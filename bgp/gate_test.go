package bgp

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pncd/bgp/nhc"
)

func gateOf(proxy netip.Addr, released ...netip.Prefix) Gate {
	g := Gate{Proxies: []netip.Addr{proxy}, Released: map[PrefixKey]struct{}{}}
	for _, p := range released {
		g.Released[PrefixKey{Prefix: p}] = struct{}{}
	}
	return g
}

func TestWhatTheGateHoldsBackIsWithdrawnAndInlineGoesOnWithoutNHC(t *testing.T) {
	proxy := addr("192.0.2.7")
	for _, mode := range []Mode{ModeOriginate, ModePath, ModePrefer, ModeInline} {
		var from netip.Addr
		if mode != ModeOriginate {
			from = routerPeer
		}
		d := newDesk(t, modeConfig(mode, from))
		d.hear(routerPeer, nil, routerOrigin)
		d.o.setGate(gateOf(proxy))
		d.o.setEnabled(true)
		held := func(what string, first bool) {
			t.Helper()
			c, status := d.plan(), d.o.status[here]
			if mode == ModeInline {
				if len(c.announce) != 1 || attribute(c.announce[0], nhc.AttributeType) != "" || status != inactiveHeld+inactiveInline {
					t.Errorf("%s, %s: %+v, %q", mode, what, c, status)
				}
			} else if len(c.announce) != 0 || (len(c.withdraw) == 0) != first || status != inactiveHeld {
				t.Errorf("%s, %s: %+v, %q", mode, what, c, status)
			}
		}
		held("from the start", true)
		d.o.setGate(gateOf(proxy, pfx))
		if a := d.one(); attribute(a, nhc.AttributeType) == "" || d.o.status[here] != active {
			t.Errorf("%s, released: %+v", mode, a)
		}
		d.o.setGate(gateOf(proxy, pfx, prefix("10.99.0.0/16")))
		if c := d.plan(); len(c.announce)+len(c.withdraw) != 0 {
			t.Errorf("%s: another prefix's release is told to the neighbours: %+v", mode, c)
		}
		d.o.setGate(gateOf(proxy))
		held("again", false)
		d.o.setGate(Gate{})
		d.one()
	}
}

func TestTheGateHoldsNothingOfAnotherProxy(t *testing.T) {
	d := newDesk(t, modeConfig(ModeOriginate, netip.Addr{}))
	d.o.setGate(gateOf(addr("192.0.2.8")))
	d.o.setEnabled(true)
	d.one()
}

func TestTheGateHoldsVPNPrefixesByContext(t *testing.T) {
	c, err := soundVPN(t).complete()
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	d.o = newOriginator(c)
	d.o.setEnabled(true)
	first := c.Originate[0]
	g := gateOf(first.Proxy, first.Prefix) // outside of VPNs
	g.Proxies = append(g.Proxies, c.Originate[1].Proxy)
	d.o.setGate(g)
	if got := d.plan(); len(got.announce)+len(got.withdraw) != 0 || d.o.status[first.key()] != inactiveHeld {
		t.Errorf("held back: %+v, %q", got, d.o.status)
	}
	one := g
	one.Released = maps.Clone(g.Released)
	one.Released[first.key()] = struct{}{}
	d.o.setGate(one)
	if got := d.plan(); len(got.announce) != 1 || len(got.withdraw) != 0 {
		t.Errorf("one released: %+v", got)
	}
	d.o.setGate(g)
	if got := d.plan(); len(got.announce) != 0 || len(got.withdraw) != 1 {
		t.Errorf("held back again: %+v", got)
	}
}

func TestARequestIsTakenAndHeldBackUntilItsPrefixIsReleased(t *testing.T) {
	r := run(t, sound())
	req := at("10.9.0.0/16")
	if err := r.SetGate(gateOf(req.Proxy)); err != nil {
		t.Fatal(err)
	}
	if err := r.SetOriginating(true); err != nil {
		t.Fatal(err)
	}
	if err := r.Advertise(req, 0); err != nil || r.f.has(req.Prefix) || !slices.Equal(r.Requested(), []OriginateConfig{req}) {
		t.Errorf("%v, announced %v, requested %v", err, r.f.has(req.Prefix), r.Requested())
	}
	g := gateOf(req.Proxy, req.Prefix)
	if err := r.SetGate(g); err != nil || !r.f.has(req.Prefix) {
		t.Errorf("released: %v, announced %v", err, r.f.has(req.Prefix))
	}
	delete(g.Released, PrefixKey{Prefix: req.Prefix}) // the speaker has a copy
	if err := r.SetGate(gateOf(req.Proxy)); err != nil || r.f.has(req.Prefix) {
		t.Errorf("held back again: %v, announced %v", err, r.f.has(req.Prefix))
	}
}
