package bgp

import (
	"net/netip"
	"runtime"
	"testing"

	"pncd/bgp/engine"
	"pncd/internal/testwait"
)

func TestAHundredFlapsLeaveNoRouteNoMemoryAndNoGoroutineBehind(t *testing.T) {
	const flaps, prefixes = 100, 1000
	r := run(t, sound()) // checks for goroutines when it ends
	at := addr("192.0.2.2")
	goroutines := runtime.NumGoroutine()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var before uint64
	for flap := range flaps {
		events := []engine.Event{{Kind: engine.EventState, Peer: at, State: engine.StateEstablished}}
		for i := range prefixes {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
			events = append(events, engine.Event{Kind: engine.EventPath, Peer: at, Family: engine.IPv4Unicast,
				Path: engine.Path{Prefix: p, PeerID: at, NextHop: addr("198.51.100.1"), LocalPref: 100}})
		}
		r.f.report(events...)
		testwait.Until(t, "the routes", func() bool { return r.sink.len() == prefixes })
		r.f.report(engine.Event{Kind: engine.EventState, Peer: at, State: engine.StateIdle})
		testwait.Until(t, "no route", func() bool { return r.sink.len() == 0 })
		if flap == 10 {
			before = heap()
		}
	}
	if c := r.Counters(); c.Paths != 0 || c.Prefixes != 0 {
		t.Errorf("%+v", c)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if after := heap(); after > before+2<<20 {
		t.Errorf("the heap grew from %d to %d octets", before, after)
	}
}
