package relay

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"pncd/internal/testwait"
)

// flows are connections of two neighbours.
func flows() (a, b *flow) {
	all := new(atomic.Int64)
	a, b = newFlow(all), newFlow(all)
	a.begin()
	b.begin()
	return a, b
}

func TestAFlowIsFullUntilHalfOfItIsHandled(t *testing.T) {
	f, _ := flows()
	msg := update(1000)
	n := 0
	for ; !f.full(false); n++ {
		f.passed(append(append([]byte{}, keepalive...), msg...))
	}
	if want := window/len(msg) + 1; n != want {
		t.Errorf("full after %d UPDATEs, want %d", n, want)
	}
	for ; f.full(true); n-- {
		f.handled()
	}
	if n*len(msg) > window/2 || (n+1)*len(msg) <= window/2 {
		t.Errorf("%d UPDATEs of %d octets wait when it is no more full", n, len(msg))
	}
	if f.full(false) {
		t.Error("full again at once")
	}
}

func TestManyNeighboursShareWhatMayWait(t *testing.T) {
	a, b := flows()
	b.passed(update(1000))
	a.add(windows) // others
	if b.full(false) {
		t.Error("less than its share waits")
	}
	for range share/len(update(1000)) + 1 {
		b.passed(update(1000))
	}
	if !b.full(false) {
		t.Error("more than its share waits, and too much of all")
	}
	a.forget()
	if b.full(true) {
		t.Error("nobody else has anything that waits")
	}
	b.forget()
	if n := a.all.Load(); n != 0 {
		t.Errorf("%d octets wait", n)
	}
}

func TestWhatIsReportedOfASessionBeforeIsNotOfThisOne(t *testing.T) {
	f := newFlow(new(atomic.Int64))
	f.passed(update(1))
	f.handled()
	if f.octets == 0 {
		t.Error("handled before the session's begin")
	}
	f.begin()
	f.handled()
	f.handled() // of nothing
	if f.octets != 0 {
		t.Errorf("%d octets wait", f.octets)
	}
}

func TestWhatIsNeverReportedIsLost(t *testing.T) {
	f, _ := flows()
	if now := time.Now().Add(time.Hour); f.lost(now) {
		t.Error("there is nothing")
	}
	f.passed(update(1))
	f.passed(update(1))
	if f.lost(f.since.Add(lostTime - 1)) {
		t.Error("too early")
	}
	if !f.lost(f.since.Add(lostTime)) {
		t.Error("nothing was handled for too long")
	}
}

// held is a session whose neighbour sends as much as TCP takes, of which the speaker handles nothing. It gives how
// many UPDATEs there are all in all.
func held(t *testing.T, n *node, r *remote, msg []byte) (sent chan int) {
	t.Helper()
	const total = 64 << 20 // more than the buffers of the kernel and the relay have room for
	r.SetWriteDeadline(time.Now().Add(time.Second))
	k := 0
	for ; k < total/len(msg); k++ {
		if m, err := r.Write(msg); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			sent = make(chan int, 1)
			go func() { // the rest of the message that was cut
				r.SetWriteDeadline(time.Now().Add(deadline))
				r.Write(msg[m:])
				n.change(func() { sent <- k + 1 })
			}()
			return sent
		}
	}
	t.Fatalf("the neighbour could send %d octets", k*len(msg))
	return nil
}

// TestANeighbourIsHeldBackAndNotLost holds the speaker back: TCP must hold the neighbour back then, the speaker's hold
// timer must not run out meanwhile, and nothing may be missing afterwards.
func TestANeighbourIsHeldBackAndNotLost(t *testing.T) {
	n, r := up(t, "127.0.0.40", Peer{HoldTime: 3 * time.Second})
	n.relay.Begun(n.peer.Address)
	msg := update(1000)
	sent := held(t, n, r, msg)
	n.await("KEEPALIVEs in place of those that aren't read", func() bool { return n.up >= 4 })
	if got := len(n.seen().got) - 1; got != window/len(msg)+1 {
		t.Errorf("the speaker got %d UPDATEs, want %d", got, window/len(msg)+1)
	}
	for handled, total := 0, -1; handled != total; {
		n.await("the next UPDATE", func() bool { return len(n.got)-1 > handled || len(sent) > 0 })
		select {
		case total = <-sent:
		default:
		}
		waiting := len(n.seen().got) - 1 - handled
		if waiting*len(msg) > window+len(msg) {
			t.Fatalf("%d octets wait", waiting*len(msg))
		}
		if waiting > 0 {
			n.relay.Handled(n.peer.Address)
			handled++
		}
	}
	if all := n.relay.waiting.Load(); all != 0 {
		t.Errorf("%d octets wait in the end", all)
	}
}

// TestHoldStopsReadingAndEndingIsPossibleAllTheSame shuts the gate for all.
func TestHoldStopsReadingAndEndingIsPossibleAllTheSame(t *testing.T) {
	n, r := up(t, "127.0.0.40", Peer{HoldTime: 3 * time.Second})
	n.relay.Hold(true)
	n.relay.Hold(true)
	msg := update(1000)
	sent := held(t, n, r, msg)
	n.await("a KEEPALIVE", func() bool { return n.up >= 2 })
	if got := len(n.seen().got) - 1; got != 1 {
		t.Errorf("the speaker got %d UPDATEs after the gate was shut", got)
	}
	n.relay.Hold(false)
	n.await("more", func() bool { return len(n.got)-1 > window/len(msg) })
	n.leg().Close() // the speaker ends the session
	n.await("the end", func() bool { return len(n.ended) == 1 })
	<-sent
}

func TestNobodySpeaksForANeighbourThatSaysNothing(t *testing.T) {
	n, r := up(t, "127.0.0.40", Peer{})
	n.relay.Hold(true)
	r.Write(update(1))
	n.await("the UPDATE", func() bool { return len(n.got) == 2 })
	nb := n.relay.neighbor(n.peer.Address)
	nb.mu.Lock()
	c := nb.bound
	nb.mu.Unlock()
	if c.unread() {
		t.Error("everything was read")
	}
	r.Write(keepalive)
	testwait.Until(t, "a KEEPALIVE waits to be read", c.unread)
}
