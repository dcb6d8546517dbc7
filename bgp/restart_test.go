package bgp

import (
	"testing"
	"time"

	"pncd/bgp/engine"
)

// offers is what a neighbour's OPEN says about IPv4 unicast.
func offers(f engine.FamilyRestart) engine.Restart {
	return engine.Restart{
		Offered: f.Graceful, Time: 120 * time.Second, Families: map[engine.Family]engine.FamilyRestart{engine.IPv4Unicast: f},
	}
}

var (
	nothing   = engine.Restart{}
	graceful  = offers(engine.FamilyRestart{Graceful: true})
	preserved = offers(engine.FamilyRestart{Graceful: true, Preserved: true})
	lasting   = offers(engine.FamilyRestart{
		Graceful: true, Preserved: true, LongLived: true, LongLivedPreserved: true, LongLivedTime: 2 * time.Hour})
)

func up(o engine.Restart, keep bool) engine.Event {
	ev := state(peer1, engine.StateEstablished, keep)
	ev.Restart = o
	return ev
}

var lost = state(peer1, engine.StateIdle, true)

func endOfRIB(f engine.Family) engine.Event {
	return engine.Event{Kind: engine.EventEndOfRIB, Peer: peer1, Family: f}
}

// pass lets time go by, and ends what is due.
func (tb *table) pass(d time.Duration) {
	tb.now = tb.now.Add(d)
	tb.take(tb.r.expire(tb.now))
}

// kept says how peer1's path is there: fresh, stale, long-lived or gone.
func (tb *table) kept() string {
	r := tb.get(peer1, 0)
	switch n := tb.r.peers[peer1].stale; {
	case r == nil && n != 0, r != nil && r.Stale != (n == 1):
		tb.t.Errorf("%d stale paths counted: %+v", n, r)
	case r == nil:
		return "gone"
	case r.Stale && r.LongLived:
		return "long-lived"
	case r.Stale:
		return "stale"
	case r.LongLived:
		return "marked"
	}
	return "fresh"
}

func TestStalePathsStayAndGoByTheRules(t *testing.T) {
	again := pathEvent(t, peer1, 0, nil)
	for name, tt := range map[string]struct {
		offer engine.Restart // of the session that ends
		long  time.Duration  // our bound
		steps func(tb *table)
		want  string
	}{
		"RFC 4724 section 4.2: kept as stale":                          {graceful, 0, func(tb *table) {}, "stale"},
		"RFC 4724 section 4.2: not asked for":                          {nothing, 0, func(tb *table) {}, "gone"},
		"RFC 4724 section 4.2: until the restart time":                 {graceful, 0, func(tb *table) { tb.pass(120*time.Second - 1) }, "stale"},
		"RFC 4724 section 4.2: not back within the restart time":       {graceful, 0, func(tb *table) { tb.pass(120 * time.Second) }, "gone"},
		"RFC 4724 section 4.2: an attempt that fails ends nothing":     {graceful, 0, func(tb *table) { tb.apply(state(peer1, engine.StateOpenConfirm, true), lost) }, "stale"},
		"RFC 4724 section 4.2: back, F bit set":                        {graceful, 0, func(tb *table) { tb.apply(up(preserved, true)) }, "stale"},
		"RFC 4724 section 4.2: back, F bit not set":                    {graceful, 0, func(tb *table) { tb.apply(up(graceful, true)) }, "gone"},
		"RFC 4724 section 4.2: back, no capability":                    {graceful, 0, func(tb *table) { tb.apply(up(nothing, true)) }, "gone"},
		"RFC 4724 section 4.2: refreshed":                              {graceful, 0, func(tb *table) { tb.apply(up(preserved, true), again) }, "fresh"},
		"RFC 4724 section 4.2: refreshed, then End-of-RIB":             {graceful, 0, func(tb *table) { tb.apply(up(preserved, true), again, endOfRIB(engine.IPv4Unicast)) }, "fresh"},
		"RFC 4724 section 4.2: not refreshed at End-of-RIB":            {graceful, 0, func(tb *table) { tb.apply(up(preserved, true), endOfRIB(engine.IPv4Unicast)) }, "gone"},
		"RFC 4724 section 4.2: End-of-RIB of another family":           {graceful, 0, func(tb *table) { tb.apply(up(preserved, true), endOfRIB(engine.IPv6Unicast)) }, "stale"},
		"RFC 4724 section 4.2: no End-of-RIB, the bound isn't reached": {graceful, 0, func(tb *table) { tb.apply(up(preserved, true)); tb.pass(staleTime - 1) }, "stale"},
		"RFC 4724 section 4.2: no End-of-RIB, the bound is reached":    {graceful, 0, func(tb *table) { tb.apply(up(preserved, true)); tb.pass(staleTime) }, "gone"},
		"RFC 4724 section 4.2: a consecutive restart":                  {graceful, 0, func(tb *table) { tb.apply(up(preserved, true), lost) }, "gone"},
		"RFC 4724 section 4.2: a consecutive restart after End-of-RIB": {graceful, 0, func(tb *table) { tb.apply(up(preserved, true), again, endOfRIB(engine.IPv4Unicast), lost) }, "stale"},
		"the session ends for good":                                    {graceful, 0, func(tb *table) { tb.apply(up(preserved, true), state(peer1, engine.StateIdle, false)) }, "gone"},
		"RFC 9494 section 4.2: kept beyond the restart time":           {lasting, time.Hour, func(tb *table) { tb.pass(120 * time.Second) }, "long-lived"},
		"RFC 9494 section 4.2: our bound isn't reached":                {lasting, time.Hour, func(tb *table) { tb.pass(120 * time.Second); tb.pass(time.Hour - 1) }, "long-lived"},
		"RFC 9494 section 4.2: our bound is reached":                   {lasting, time.Hour, func(tb *table) { tb.pass(120 * time.Second); tb.pass(time.Hour) }, "gone"},
		"RFC 9494 section 4.2: the neighbour's time is over":           {lasting, 24 * time.Hour, func(tb *table) { tb.pass(120 * time.Second); tb.pass(2 * time.Hour) }, "gone"},
		"RFC 9494 section 4.2: not switched on":                        {lasting, 0, func(tb *table) { tb.pass(120 * time.Second) }, "gone"},
		"RFC 9494 section 4.2: the neighbour doesn't ask for it":       {graceful, time.Hour, func(tb *table) { tb.pass(120 * time.Second) }, "gone"},
		"RFC 9494 section 4.2: back late, F bit set":                   {lasting, time.Hour, func(tb *table) { tb.pass(120 * time.Second); tb.apply(up(lasting, true)) }, "long-lived"},
		"RFC 9494 section 4.2: back late, F bit not set":               {lasting, time.Hour, func(tb *table) { tb.pass(120 * time.Second); tb.apply(up(preserved, true)) }, "gone"},
		"RFC 9494 section 4.2: back late, the time goes on":            {lasting, 200 * time.Second, func(tb *table) { tb.pass(120 * time.Second); tb.apply(up(lasting, true)); tb.pass(200 * time.Second) }, "gone"},
		"RFC 9494 section 4.2: back late, no End-of-RIB":               {lasting, time.Hour, func(tb *table) { tb.pass(120 * time.Second); tb.apply(up(lasting, true)); tb.pass(staleTime) }, "gone"},
		"RFC 9494 section 4.2: back in time, no End-of-RIB":            {lasting, time.Hour, func(tb *table) { tb.apply(up(lasting, true)); tb.pass(staleTime) }, "gone"},
		"RFC 9494 section 4.2: back late, refreshed": {lasting, time.Hour, func(tb *table) {
			tb.pass(120 * time.Second)
			tb.apply(up(lasting, true), again, endOfRIB(engine.IPv4Unicast))
		}, "fresh"},
		"RFC 9494 section 4.2: back late, not refreshed at End-of-RIB":        {lasting, time.Hour, func(tb *table) { tb.pass(120 * time.Second); tb.apply(up(lasting, true), endOfRIB(engine.IPv4Unicast)) }, "gone"},
		"RFC 9494 section 4.2: a restart time of zero skips the first period": {with(lasting, func(r *engine.Restart) { r.Time = 0 }), time.Hour, func(tb *table) {}, "long-lived"},
		"RFC 9494 section 4.2: in the long-lived capability only":             {with(lasting, onlyLong), time.Hour, func(tb *table) {}, "long-lived"},
	} {
		tb := newTable(t)
		tb.r.peers[peer1].longLived = tt.long
		tb.apply(up(tt.offer, false), pathEvent(t, peer1, 0, nil), endOfRIB(engine.IPv4Unicast))
		tb.apply(lost)
		tb.apply(state(peer1, engine.StateActive, true))
		tt.steps(tb)
		if got := tb.kept(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func with(r engine.Restart, edit func(*engine.Restart)) engine.Restart {
	edit(&r)
	return r
}

func onlyLong(r *engine.Restart) {
	f := r.Families[engine.IPv4Unicast]
	f.Graceful = false
	r.Families = map[engine.Family]engine.FamilyRestart{engine.IPv4Unicast: f}
}

func TestAStalePathIsUsedAndSelectedAsBefore(t *testing.T) {
	tb := newTable(t)
	tb.apply(up(graceful, false), pathEvent(t, peer1, 0, nil), pathEvent(t, peer2, 0, nil))
	tb.apply(lost)
	if r := tb.get(peer1, 0); r == nil || !r.Stale || !r.Best || !r.Believed() {
		t.Errorf("RFC 4724 section 4.2: stale or not, the selection is the same: %+v", r)
	}
}

func TestRFC9494Section43ALongLivedPathIsTheLeastPreferred(t *testing.T) {
	tb := newTable(t)
	tb.r.peers[peer1].longLived = time.Hour
	tb.apply(up(lasting, false), pathEvent(t, peer1, 0, func(p *engine.Path) { p.LocalPref = 500 }), pathEvent(t, peer2, 0, nil))
	tb.apply(lost)
	if !tb.get(peer1, 0).Best {
		t.Error("not yet in the long-lived period")
	}
	tb.pass(120 * time.Second)
	if r := tb.get(peer1, 0); r.Best || !tb.get(peer2, 0).Best || !r.Believed() {
		t.Errorf("%+v", tb.routes)
	}
	tb.apply(withdrawal(peer2, 0))
	if !tb.get(peer1, 0).Best {
		t.Errorf("the only one there is used: %+v", tb.routes)
	}
	// Announced again it counts as before.
	tb.apply(up(lasting, true), pathEvent(t, peer1, 0, nil))
	if r := tb.get(peer1, 0); r.LongLived || r.Stale {
		t.Errorf("%+v", r)
	}
}

func TestRFC9494Section43APathMarkedElsewhereIsTheLeastPreferred(t *testing.T) {
	tb := newTable(t)
	tb.apply(pathEvent(t, peer1, 0, func(p *engine.Path) {
		p.LocalPref, p.Communities = 500, []Community{{Global: 65000, Local: 1}, engine.LLGRStale}
	}), pathEvent(t, peer2, 0, nil))
	if r := tb.get(peer1, 0); r.Best || r.Stale || !r.LongLived || !tb.get(peer2, 0).Best {
		t.Errorf("%+v", tb.routes)
	}
}

func TestRFC9494Section42APathThatRefusesIsNotKeptForLong(t *testing.T) {
	tb := newTable(t)
	tb.r.peers[peer1].longLived = time.Hour
	tb.apply(up(lasting, false), pathEvent(t, peer1, 0, func(p *engine.Path) { p.Communities = []Community{engine.NoLLGR} }))
	tb.apply(lost)
	if got := tb.kept(); got != "stale" {
		t.Errorf("within the restart time: %s", got)
	}
	tb.pass(120 * time.Second)
	if got := tb.kept(); got != "gone" {
		t.Errorf("beyond it: %s", got)
	}
}

func TestAReplayDoesNotMakeStalePathsFresh(t *testing.T) {
	replayed := pathEvent(t, peer1, 0, func(p *engine.Path) { p.Stale = true })
	tb := newTable(t)
	tb.apply(up(graceful, false), pathEvent(t, peer1, 0, nil))
	tb.apply(lost)
	tb.apply(up(preserved, true), replayed)
	if got := tb.kept(); got != "stale" {
		t.Errorf("kept and replayed: %s", got)
	}
	tb.apply(endOfRIB(engine.IPv4Unicast), replayed)
	if got := tb.kept(); got != "gone" {
		t.Errorf("gone and replayed: %s", got)
	}
}

func TestStaleUntilSaysWhenPathsGo(t *testing.T) {
	tb := newTable(t)
	tb.apply(up(graceful, false), pathEvent(t, peer1, 0, nil))
	if until := tb.r.peers[peer1].keptUntil(); !until.IsZero() {
		t.Errorf("nothing is kept: %s", until)
	}
	tb.apply(lost)
	if until := tb.r.peers[peer1].keptUntil(); until != tb.now.Add(120*time.Second) {
		t.Errorf("until %s", until)
	}
}

func TestTheStatusSaysHowLongPathsWouldStay(t *testing.T) {
	for name, tt := range map[string]struct {
		offer             engine.Restart
		helped            bool
		long              time.Duration
		restart, longTime time.Duration
	}{
		"nothing asked for":      {nothing, true, time.Hour, 0, 0},
		"restart":                {graceful, true, time.Hour, 2 * time.Minute, 0},
		"both, within our bound": {lasting, true, time.Hour, 2 * time.Minute, time.Hour},
		"both, the neighbour's":  {lasting, true, 24 * time.Hour, 2 * time.Minute, 2 * time.Hour},
		"not switched on":        {lasting, false, 0, 0, 0},
	} {
		p := &ribPeer{peerInfo: peerInfo{helped: tt.helped, longLived: tt.long}, restart: tt.offer}
		if r, l := p.outlive(); r != tt.restart || l != tt.longTime {
			t.Errorf("%s: %s and %s", name, r, l)
		}
	}
}
