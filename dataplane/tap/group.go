package tap

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Group reads several rings and hands their frames over in the order of their capture times. Rings close
// their blocks each at its own time, so a reader for each would show an answer before its question as often
// as after it. A frame waits until no ring can still hold an earlier one: at most twice the longest retire
// timeout, and a millisecond.
//
// Run does the reading; Serve lends it a ring. Both may start first, and rings may come and go.
type Group struct {
	fn      func(*Frame)
	late    atomic.Uint64
	changed atomic.Bool // members came or want to go

	mu      sync.Mutex
	running bool
	wake    int // eventfd of Run
	members []*member
}

// member is a ring in a group. Its Serve waits for done.
type member struct {
	in      *input
	leaving bool
	done    chan struct{} // closed when the group no longer touches the ring
	err     error         // why the group dropped it; read after done
}

// retirePeriods is how many periods of the kernel's timer a frame may spend in an open block: a block that
// was opened after one expiry is closed at the second.
const retirePeriods = 2

// groupSlack is what the timer and this process's wake-up may add.
const groupSlack = time.Millisecond

// NewGroup makes a group that hands each frame to fn, from one goroutine: that of Run. fn must not call the
// group, nor close a ring.
func NewGroup(fn func(*Frame)) *Group { return &Group{fn: fn} }

// Late returns how many frames came after one with a later time had been handed over, because this process
// was held up or the clock was set.
func (g *Group) Late() uint64 { return g.late.Load() }

// Run reads the rings that Serve lends until ctx ends, and then returns nil. It may be called again. What is
// left of the blocks at hand, a few milliseconds of frames, is not handed over.
func (g *Group) Run(ctx context.Context) error {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("tap: group: eventfd: %w", err)
	}
	defer func() { _ = unix.Close(wake) }()
	if !g.start(wake) {
		return fmt.Errorf("tap: group: %w", ErrRunning)
	}
	m := merger{late: &g.late, fn: g.fn, now: time.Now}
	defer g.finish(&m)
	defer signalOnEnd(ctx, wake)()
	for ctx.Err() == nil {
		if g.changed.Swap(false) {
			g.sync(&m)
		}
		sleep, idle := m.step()
		if !idle {
			continue
		}
		in, err := m.poll(wake, sleep)
		if in != nil {
			g.drop(&m, in, fmt.Errorf("tap: %s: %w", in.r.name, err))
		} else if err != nil {
			return fmt.Errorf("tap: group: %w", err)
		}
	}
	return nil
}

// Serve lends a ring to the group until ctx ends (nil) or the ring fails: errors as of Ring.Run. The other
// rings of the group go on. The ring's owner closes it after Serve has returned, or to end it.
func (g *Group) Serve(ctx context.Context, r *Ring) error {
	if err := r.acquire(); err != nil {
		return err
	}
	defer r.running.Unlock()
	mb := &member{in: &input{r: r, f: Frame{IfIndex: r.ifIndex, Context: r.context}}, done: make(chan struct{})}
	g.mu.Lock()
	g.members = append(g.members, mb)
	g.notify()
	g.mu.Unlock()

	var ended error
	select {
	case <-mb.done:
		return mb.err
	case <-r.closing:
		ended = fmt.Errorf("tap: %s: %w", r.name, ErrClosed)
	case <-ctx.Done():
	}
	g.leave(mb)
	<-mb.done
	return ended
}

// leave asks Run to give the ring back, or does it when nobody runs.
func (g *Group) leave(mb *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	mb.leaving = true
	if g.running {
		g.notify()
		return
	}
	g.release(func(other *member) bool { return other == mb })
}

// notify tells Run that the members changed; g.mu is held.
func (g *Group) notify() {
	g.changed.Store(true)
	if g.running {
		signalWake(g.wake)
	}
}

// release ends the membership of those that match; g.mu is held.
func (g *Group) release(match func(*member) bool) {
	g.members = slices.DeleteFunc(g.members, func(mb *member) bool {
		if !match(mb) {
			return false
		}
		mb.in.giveBack()
		close(mb.done)
		return true
	})
}

func (g *Group) start(wake int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running {
		return false
	}
	g.running, g.wake = true, wake
	g.changed.Store(true)
	return true
}

// sync makes the merger read the members that there are now.
func (g *Group) sync(m *merger) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(func(mb *member) bool { return mb.leaving })
	m.in, m.wait = m.in[:0], 0
	for _, mb := range g.members {
		m.in = append(m.in, mb.in)
		m.wait = max(m.wait, retirePeriods*mb.in.r.retire+groupSlack)
	}
}

// drop ends the membership of a ring that failed.
func (g *Group) drop(m *merger, in *input, err error) {
	g.mu.Lock()
	g.release(func(mb *member) bool {
		if mb.in != in {
			return false
		}
		mb.err = err
		return true
	})
	g.mu.Unlock()
	g.sync(m)
}

// finish ends Run: the members stay for another one, with their blocks given back.
func (g *Group) finish(m *merger) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = false
	for _, in := range m.in {
		in.giveBack()
	}
	g.release(func(mb *member) bool { return mb.leaving })
}
