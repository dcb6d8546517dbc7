package pnc

import (
	"testing"
	"time"
)

func TestWatchGetsEventsAndCountsDrops(t *testing.T) {
	tb := New(Config{})
	w := tb.Watch(2, false)
	defer w.Close()
	a := route(SourceBGP, "10.1.0.0/16", "198.51.100.1")
	flip := func(n int) {
		for i := range n {
			a.Metric = uint32(i + 100)
			tb.Apply(t0, add(a)...)
		}
	}
	tb.Apply(t0, add(a)...)
	if d := <-w.C; d.Event.Kind != EventLearned || d.Dropped != 0 {
		t.Errorf("%+v", d)
	}
	flip(5) // two fit
	for i := range 2 {
		if d := <-w.C; d.Event.Kind != EventChanged || d.Event.Route.Metric != uint32(100+i) || d.Dropped != 0 {
			t.Errorf("%+v", d)
		}
	}
	tb.Apply(t0, withdraw(a)...)
	if d := <-w.C; d.Event.Kind != EventWithdrawn || d.Dropped != 3 {
		t.Errorf("%+v, want 3 dropped", d)
	}
	if w.Dropped() != 3 || tb.Counters().WatchDropped != 3 {
		t.Errorf("dropped %d and %d, want 3", w.Dropped(), tb.Counters().WatchDropped)
	}
}

func TestWatchHistoryComesFirstOldestFirst(t *testing.T) {
	tb := New(Config{})
	a := route(SourceBGP, "10.1.0.0/16", "198.51.100.1")
	tb.Apply(t0, add(a)...)
	tb.Disregard(t0.Add(time.Second), Event{Route: a, Reason: DisregardDuplicatePNC})
	tb.Apply(t0.Add(2*time.Second), withdraw(a)...)
	w := tb.Watch(0, true)
	defer w.Close()
	want := []EventKind{EventLearned, EventDisregarded, EventWithdrawn}
	if len(w.History) != len(want) {
		t.Fatalf("history %+v", w.History)
	}
	for i, e := range w.History {
		if e.Kind != want[i] {
			t.Errorf("event %d is %s, want %s", i, e.Kind, want[i])
		}
	}
	if len(w.C) != 0 {
		t.Error("the history came by the channel too")
	}
}

func TestWatchCloseMoreThanOnce(t *testing.T) {
	tb := New(Config{})
	w := tb.Watch(0, false)
	w.Close()
	w.Close()
	tb.Apply(t0, add(route(SourceBGP, "10.1.0.0/16", "198.51.100.1"))...)
	if d, open := <-w.C; open {
		t.Errorf("got %+v after Close", d)
	}
}

func TestWatchEventIsVisibleInTheTable(t *testing.T) {
	tb := New(Config{})
	w := tb.Watch(0, false)
	defer w.Close()
	done := make(chan uint64)
	go func() {
		d := <-w.C
		done <- d.Event.Route.Version - min(d.Event.Route.Version, tb.Snapshot().Version())
	}()
	tb.Apply(t0, add(route(SourceBGP, "10.1.0.0/16", "198.51.100.1"))...)
	if behind := <-done; behind != 0 {
		t.Errorf("the table was %d versions behind an event", behind)
	}
}

func TestThisNodesOwnAnnouncementsAreHistoryToo(t *testing.T) {
	tb := New(Config{})
	a := route(SourceBGP, "10.1.0.0/16", "198.51.100.1")
	before := tb.Snapshot().Version()
	tb.Own(t0, Event{Kind: EventHeldBack, Route: a, Reason: DisregardDuplicatePNC, Detail: "tap-down: eth1"})
	tb.Own(t0.Add(time.Second), Event{Kind: EventAnnounced, Route: a})
	tb.Own(t0.Add(2*time.Second), Event{Kind: EventLearned, Route: a}) // not for others to say
	got := tb.History()
	if len(got) != 2 || got[0].Kind != EventHeldBack || got[0].Detail != "tap-down: eth1" || got[0].Reason != DisregardNone ||
		got[1].Kind != EventAnnounced || !got[1].At.Equal(t0.Add(time.Second)) || got[1].Route.Prefix != a.Prefix {
		t.Errorf("%+v", got)
	}
	if tb.Snapshot().Version() != before || tb.Counters().Learned != 0 {
		t.Error("a route changed")
	}
}
