package learner

import (
	"testing"
	"time"

	"pncd/igp/ospf/ospfapi/message"
	"pncd/igp/ospf/packet"
)

func TestTheMirrorFollowsTheDaemon(t *testing.T) {
	d := newDaemon(t, Config{})
	own, two := routerLSA(t, ownRouter, 0, router2), routerLSA(t, router2, 0, ownRouter)
	d.lsas = []packet.LSA{own}
	d.connect()
	d.has("at first", own)
	d.update(two)
	d.has("a router came", own, two)
	d.delete(two)
	d.pass(DefaultSettle - time.Millisecond)
	d.has("the deletion is new", own, two)
	d.pass(time.Millisecond)
	d.has("the deletion counts", own)
	d.delete(two) // not there
	d.pass(time.Minute)
	d.has("nothing more", own)
}

func TestADeletionBeforeANewInstanceChangesNothing(t *testing.T) {
	d := newDaemon(t, Config{})
	first, second := routerLSA(t, router2, 0, ownRouter), routerLSA(t, router2, 1)
	d.lsas = []packet.LSA{first}
	d.connect()
	d.delete(first)
	d.update(second)
	d.pass(time.Minute)
	d.has("replaced", second)
	if got := d.m.Database(packet.Backbone)[0].Sequence; got != second.Sequence {
		t.Errorf("sequence number %#x", uint32(got))
	}
	d.delete(first) // late: of an instance that is not there any more
	d.pass(time.Minute)
	d.has("the old instance is deleted", second)
}

func TestAnLSAAtMaxAgeIsADeletion(t *testing.T) {
	d := newDaemon(t, Config{})
	l := routerLSA(t, router2, 0)
	d.lsas = []packet.LSA{l}
	d.connect()
	old, err := packet.ParseLSA(packet.V2, l.Append(nil, packet.MaxAge))
	if err != nil {
		t.Fatal(err)
	}
	d.update(old)
	d.pass(DefaultSettle)
	d.has("flushed")
}

func TestWhatNobodyRefreshesEnds(t *testing.T) {
	d := newDaemon(t, Config{})
	l := routerLSA(t, router2, 0)
	d.lsas = []packet.LSA{l}
	d.connect()
	d.pass((packet.MaxAge - 1) * time.Second)
	d.has("nearly an hour", l)
	d.pass(time.Second)
	d.has("an hour")
}

func TestWhatIsNotToldAgainGoesOnlyAtTheEndOfTheDatabase(t *testing.T) {
	d := newDaemon(t, Config{})
	own, two := routerLSA(t, ownRouter, 0, router2), routerLSA(t, router2, 0, ownRouter)
	d.lsas = []packet.LSA{own, two}
	d.connect()
	d.m.Disconnected(d.now)
	d.pass(DefaultHold / 2)
	d.has("the daemon is away", own, two)
	d.m.Connected(d.now, 5, nil)
	d.update(own)
	d.pass(time.Second)
	d.has("before the end", own, two)
	d.lsas = []packet.LSA{own}
	d.connect()
	d.has("after the end", own)
	if !d.m.Status().Believed {
		t.Error("not believed")
	}
}

func TestWithoutTheDaemonNothingIsBelievedForLong(t *testing.T) {
	d := newDaemon(t, Config{})
	d.lsas = []packet.LSA{routerLSA(t, ownRouter, 0)}
	d.connect()
	d.m.Disconnected(d.now)
	d.pass(DefaultHold - time.Millisecond)
	if !d.m.Status().Believed {
		t.Error("not believed any more before the time")
	}
	d.pass(time.Millisecond)
	if d.m.Status().Believed {
		t.Error("still believed")
	}
	d.has("given up")
	d.connect()
	d.has("again", d.lsas...)
	if !d.m.Status().Believed {
		t.Error("not believed again")
	}
}

func TestADaemonThatNeverGetsReadyIsNotBelieved(t *testing.T) {
	d := newDaemon(t, Config{})
	d.lsas = []packet.LSA{routerLSA(t, ownRouter, 0)}
	d.connect()
	d.m.Disconnected(d.now)
	d.instance = false
	d.connect()
	d.pass(DefaultHold)
	if d.m.Status().Believed {
		t.Error("still believed")
	}
	d.instance = true
	d.pass(time.Minute)
	d.has("again", d.lsas...)
	if !d.m.Status().Believed {
		t.Error("not believed again")
	}
}

func TestWhatIsNotTakenIsCounted(t *testing.T) {
	d := newDaemon(t, Config{MaxLSAs: 1})
	l := routerLSA(t, ownRouter, 0)
	d.connect()
	d.update(l)
	d.update(routerLSA(t, router2, 0))
	d.update(lsa(t, packet.V2External, 1, router2, 0, make([]byte, 16)))
	bad := routerLSA(t, router2, 5)
	bad.Raw[len(bad.Raw)-1] ^= 1
	d.update(bad)
	d.m.Unreadable()
	d.has("one is enough", l)
	for _, drop := range Drops() {
		if n := d.m.Status().Counters.Dropped[drop]; n != 1 {
			t.Errorf("%s: %d", drop, n)
		}
	}
}

func TestAreasAreApart(t *testing.T) {
	d := newDaemon(t, Config{})
	d.connect()
	l := routerLSA(t, ownRouter, 0)
	for a := range packet.ID(3) {
		d.news(0, message.LSAChange{Area: a, LSA: l})
	}
	d.news(0, message.LSAChange{Deleted: true, Area: 1, LSA: l})
	d.pass(DefaultSettle)
	for a, want := range []int{1, 0, 1} {
		if n := len(d.m.Database(packet.ID(a))); n != want {
			t.Errorf("area %d: %d LSAs, want %d", a, n, want)
		}
	}
}
