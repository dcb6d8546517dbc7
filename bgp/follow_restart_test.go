package bgp

import (
	"strings"
	"testing"
	"time"

	"pncd/bgp/engine"
)

// restart lets the router's session end, with what its OPEN had said.
func (d *desk) restart(o engine.Restart) {
	up, down := state(routerPeer, engine.StateEstablished, false), state(routerPeer, engine.StateIdle, true)
	up.Restart = o
	d.event(up)
	d.hear(routerPeer, nil, routerOrigin, routerASPath, routerPref)
	d.event(down)
}

func TestACopyStaysWhileTheRoutersPathIsStale(t *testing.T) {
	for _, m := range []Mode{ModePath, ModePrefer, ModeInline} {
		d := newDesk(t, modeConfig(m, routerPeer))
		d.o.setEnabled(true)
		up := state(routerPeer, engine.StateEstablished, false)
		up.Restart = graceful
		d.event(up)
		d.hear(routerPeer, nil, routerOrigin, routerASPath, routerPref)
		d.one()
		d.event(state(routerPeer, engine.StateIdle, true))
		if c := d.plan(); len(c.announce)+len(c.withdraw) != 0 {
			t.Errorf("%s: the restart changes what is announced: %+v", m, c)
		}
		// The engine gives up when an attempt to come back fails.
		d.raw[routerPeer] = nil
		d.event(state(routerPeer, engine.StateActive, true))
		if c := d.plan(); len(c.announce)+len(c.withdraw) != 0 {
			t.Errorf("%s: an attempt that failed changes what is announced: %+v", m, c)
		}
		d.r.expire(newTable(t).now.Add(graceful.Time))
		d.o.touchFollowers()
		if c := d.plan(); len(c.withdraw) != 1 {
			t.Errorf("%s: after the restart time: %+v", m, c)
		}
	}
}

func TestRFC9494Section42ACopyOfALongLivedPathSaysSo(t *testing.T) {
	const marked = "c00804ffff0006"
	for _, left := range []bool{true, false} { // whether the engine still has the router's path
		d := newDesk(t, modeConfig(ModePath, routerPeer))
		d.o.setEnabled(true)
		d.r.peers[routerPeer].longLived = time.Hour
		d.restart(lasting)
		if a := d.one(); attribute(a, attrCommunities) != "" {
			t.Errorf("marked too early: %v", a)
		}
		if !left {
			d.raw[routerPeer] = nil
		}
		d.r.expire(newTable(t).now.Add(lasting.Time))
		d.o.touchFollowers()
		a := d.one()
		if got := attribute(a, attrCommunities); got != marked {
			t.Errorf("engine has the path: %v: communities %s", left, got)
		}
		if nhc := attribute(a, 39); !strings.HasSuffix(nhc, "c0000207") {
			t.Errorf("engine has the path: %v: NHC %s", left, nhc)
		}
		d.o.touchFollowers()
		if c := d.plan(); len(c.announce)+len(c.withdraw) != 0 {
			t.Errorf("engine has the path: %v: again %+v", left, c)
		}
	}
}
