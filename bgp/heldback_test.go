package bgp_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"pncd/bgp/engine/enginetest"
	"pncd/bgp/speakertest"
)

// TestAFastNeighbourIsHeldBackByASlowTable has a neighbour announce more prefixes than may wait, each in an UPDATE of
// its own and as fast as TCP takes them, while the table doesn't take any. GoBGP must get no more than may wait, the
// session must outlive its hold time, and afterwards the table must be right.
func TestAFastNeighbourIsHeldBackByASlowTable(t *testing.T) {
	const (
		prefixes = 100_000
		mayWait  = 1<<16 + 1<<12 // events in the engine's queue, and UPDATEs that GoBGP has
		holdTime = 3 * time.Second
	)
	f, err := enginetest.Listen(heldNeighbor, 65000, heldNeighbor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	ask := startHeld(t, heldSide{Port: f.Port(), HoldTime: holdTime})
	ctx, cancel := context.WithTimeout(context.Background(), speakertest.Deadline)
	defer cancel()
	if err := f.Establish(ctx); err != nil {
		t.Fatal(err)
	}
	prefix := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
	}
	attrs := heldAttributes(t, 0)
	if err := f.Send(enginetest.AppendUpdates(nil, attrs, prefix(0))); err != nil {
		t.Fatal(err)
	}
	awaitHeld(t, ask, "the first route", func(s heldState) bool { return s.Routes == 1 })
	ask("hold")
	var updates []byte
	for i := 1; i < prefixes; i++ {
		updates = enginetest.AppendUpdates(updates, attrs, prefix(i))
	}
	keepalive := append(make([]byte, 0, 19), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x13\x04"...)
	sent := make(chan error, 1)
	go func() { // ends with the session at the latest
		err := f.Send(updates)
		sent <- err
		for err == nil { // a neighbour's KEEPALIVEs are behind what it has sent
			select {
			case <-f.Ended():
				return
			case <-time.After(holdTime / 3):
				err = f.Send(keepalive)
			}
		}
	}()
	full := awaitHeld(t, ask, "as much as may wait", func(s heldState) bool { return s.Received >= 1<<16 })
	full = awaitHeld(t, ask, "two hold times", func(s heldState) bool { return s.Held >= full.Held+2*holdTime })
	if full.Received > mayWait || !full.Up {
		t.Errorf("GoBGP has %d paths, the session is up: %v", full.Received, full.Up)
	}
	ask("release")
	after := awaitHeld(t, ask, "all routes", func(s heldState) bool { return s.Routes == prefixes })
	if err := <-sent; err != nil || !after.Up {
		t.Errorf("the session is up: %v, %v", after.Up, err)
	}
	t.Logf("%d of %d paths while held, heap %d MiB; %d MiB with all", full.Received, prefixes, full.Heap>>20, after.Heap>>20)
}
