package engine

import (
	"net/netip"
	"runtime"
	"testing"
)

// TestTheQueueStaysBoundedWhileNobodyTakes holds the consumer back while paths change all the time
// and sessions go down and up: what is kept is one event for each path and one or two for each session.
func TestTheQueueStaysBoundedWhileNobodyTakes(t *testing.T) {
	const prefixes, rounds = 2000, 500
	q := newQueue()
	path := func(i, round int) Event {
		return Event{Kind: EventPath, Peer: peer.a, Family: IPv4Unicast, Path: Path{
			Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24), MED: uint32(round),
			NHC: make([]byte, 64), Withdrawn: (i+round)%3 == 0}}
	}
	most := 0
	var base, mem runtime.MemStats
	for round := range rounds {
		if round%10 == 9 { // a flap
			q.add(&Event{Kind: EventState, Peer: peer.a, State: StateIdle})
			q.add(&Event{Kind: EventState, Peer: peer.a, State: StateActive})
			q.add(&Event{Kind: EventState, Peer: peer.a, State: StateEstablished})
		}
		for i := range prefixes {
			ev := path(i, round)
			q.add(&ev)
		}
		most = max(most, len(q.events))
		if round == 20 {
			runtime.GC()
			runtime.ReadMemStats(&base)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&mem)
	if limit := 4*prefixes + 16; most > limit {
		t.Errorf("up to %d events were kept for %d paths and a session, want at most %d", most, prefixes, limit)
	}
	if grown := int64(mem.HeapAlloc) - int64(base.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap grew by %d octets", grown)
	}
	// What is left says the last state of everything.
	last := map[netip.Prefix]uint32{}
	state := StateUnknown
	for _, ev := range q.take() {
		switch ev.Kind {
		case EventState:
			if state = ev.State; !ev.Keep {
				clear(last)
			}
		case EventPath:
			last[ev.Path.Prefix] = ev.Path.MED
		}
	}
	for p, med := range last {
		if med != rounds-1 {
			t.Fatalf("%s is of round %d", p, med)
		}
	}
	if len(last) != prefixes || state != StateEstablished {
		t.Errorf("%d paths, the session %s", len(last), state)
	}
}

// What a restart makes stale, and End-of-RIB then drops, must come out as it went in.
func TestTheQueueKeepsTheOrderThroughAGracefulRestart(t *testing.T) {
	state := func(s State) Event { return Event{Kind: EventState, Peer: peer.a, State: s, Keep: true} }
	eor := Event{Kind: EventEndOfRIB, Peer: peer.a, Family: IPv4Unicast}
	other := Event{Kind: EventPath, Peer: peer.a, Path: Path{Prefix: netip.MustParsePrefix("198.51.100.0/24"), MED: 7}}
	q := newQueue()
	for _, ev := range []Event{event(peer.a, 0, 1), other, event(peer.b, 0, 2), state(StateIdle), state(StateEstablished), event(peer.a, 0, 3), event(peer.b, 0, 4), eor, eor} {
		q.add(&ev)
	}
	got := q.take()
	want := []Event{other, event(peer.b, 0, 4), state(StateIdle), state(StateEstablished), event(peer.a, 0, 3), eor}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i].Kind != want[i].Kind || got[i].State != want[i].State || got[i].Path.MED != want[i].Path.MED {
			t.Errorf("event %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	for range 100 {
		q.add(&eor)
	}
	if n := len(q.take()); n != 1 {
		t.Errorf("%d events of one End-of-RIB", n)
	}
}
