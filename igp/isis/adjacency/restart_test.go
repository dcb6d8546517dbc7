package adjacency

import (
	"slices"
	"testing"
	"time"

	"pncd/igp/isis/packet"
)

// RFC 8706 section 3.2.1 a: only the first hello of a restart refreshes the holding time.
func TestANeighborThatNeverEndsItsRestartIsLost(t *testing.T) {
	now := start
	p, b := NewP2P(config(1), now), NewP2P(config(2), now)
	pair(t, &now, start.Add(time.Second), p, b)
	l := newLAN(now, 0, 64)
	l.run(t, &now, now.Add(time.Second))
	lan := l[mac1]
	p2pHello, lanHello := NewP2P(config(2), now).hello(now), NewLAN(config(2), packet.Level2, now).hello(now)
	for _, h := range []*packet.Hello{&p2pHello, &lanHello} {
		h.TLVs = append(h.TLVs, packet.Restart{Request: true}.TLV())
	}
	p.Events()
	lan.Events()
	for end := now.Add(60 * time.Second); now.Before(end); now = now.Add(3 * time.Second) {
		if p.Tick(now); len(p.Neighbors()) > 0 && p.Neighbors()[0].State == Up {
			p.Receive(now, wire(t, p2pHello), mac2)
		}
		if lan.Tick(now); len(lan.Neighbors()) > 0 && lan.Neighbors()[0].State == Up {
			lan.Receive(now, wire(t, lanHello), mac2)
		}
	}
	for _, got := range [][]string{changes(p.Events()), changes(lan.Events())} {
		if len(got) == 0 || got[len(got)-1] != "02 down: hold-time" {
			t.Errorf("%q", slices.Compact(got))
		}
	}
}

// The designated system is known as soon as the election begins, not with the hello after it.
func TestALANWakesForItsElection(t *testing.T) {
	l := NewLAN(config(1), packet.Level2, start)
	l.Tick(start)
	l.Tick(start.Add(15 * time.Second)) // the next hello is due 10 s later
	if at := l.Wake(); !at.Equal(start.Add(20 * time.Second)) {
		t.Errorf("wakes after %v", at.Sub(start))
	}
	l.Tick(start.Add(20 * time.Second))
	if at := l.Wake(); !at.Equal(start.Add(25 * time.Second)) {
		t.Errorf("then after %v", at.Sub(start))
	}
}
