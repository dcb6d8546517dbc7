package tap

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Group reads several rings and hands their frames over in the order of their capture times. Rings close
// their blocks each at its own time, so a reader for each would show an answer before its question as often
// as after it. A frame waits until no ring can still hold an earlier one: at most twice the longest retire
// timeout, and a millisecond.
type Group struct {
	rings []*Ring
	wait  time.Duration
	late  atomic.Uint64
}

// retirePeriods is how many periods of the kernel's timer a frame may spend in an open block: a block that
// was opened after one expiry is closed at the second.
const retirePeriods = 2

// groupSlack is what the timer and this process's wake-up may add.
const groupSlack = time.Millisecond

// NewGroup makes a group of rings, which it does not own: closing them is the caller's part.
func NewGroup(rings ...*Ring) *Group {
	g := &Group{rings: rings}
	for _, r := range rings {
		g.wait = max(g.wait, retirePeriods*r.retire+groupSlack)
	}
	return g
}

// Late returns how many frames came after one with a later time had been handed over, because this process
// was held up or the clock was set.
func (g *Group) Late() uint64 { return g.late.Load() }

// Run hands each frame to fn until ctx ends (nil), or one of the rings fails: errors as of Ring.Run, with
// the interface's name. A group without rings waits for ctx. fn must not call Close.
func (g *Group) Run(ctx context.Context, fn func(*Frame)) error {
	if len(g.rings) == 0 {
		<-ctx.Done()
		return nil
	}
	m := merger{wait: g.wait, late: &g.late, fn: fn, now: time.Now}
	for _, r := range g.rings {
		if err := r.acquire(); err != nil {
			return err
		}
		defer r.running.Unlock()
		m.in = append(m.in, &input{r: r, f: Frame{IfIndex: r.ifIndex}})
		m.fds = append(m.fds, unix.PollFd{Fd: int32(r.fd)}, unix.PollFd{Fd: int32(r.wake), Events: unix.POLLIN})
	}
	defer m.giveBack()
	defer signalOnEnd(ctx, g.rings[0].wake)()
	for ctx.Err() == nil {
		for _, in := range m.in {
			if in.r.isClosing() {
				return fmt.Errorf("tap: %s: %w", in.r.name, ErrClosed)
			}
		}
		sleep, idle := m.step()
		if !idle {
			continue
		}
		if err := m.poll(sleep); err != nil {
			return err
		}
	}
	return nil
}

// input is one ring of a merge: the block that is being read, and its next frame.
type input struct {
	r   *Ring
	c   cursor
	has bool // f is the next frame of the block in c
	f   Frame
}

// refill finds the next frame, in the block at hand or a newly closed one.
func (in *input) refill() bool {
	for !in.has {
		if in.c.b != nil {
			if in.has = in.c.next(&in.f); in.has {
				break
			}
			in.giveBack()
		}
		b, ok := in.r.ready()
		if !ok {
			return false
		}
		in.c = b.cursor()
	}
	return true
}

func (in *input) giveBack() {
	if in.c.b != nil {
		in.r.done(in.c.b)
		in.c, in.has = cursor{}, false
	}
}

type merger struct {
	in   []*input
	fds  []unix.PollFd
	wait time.Duration
	last time.Time // the latest frame handed over
	late *atomic.Uint64
	fn   func(*Frame)
	now  func() time.Time
}

// step hands over the frames of the ring that has the earliest one, for as long as that is sure. With idle
// it handed over none: sleep is how long to wait at most, negative for ever.
func (m *merger) step() (sleep time.Duration, idle bool) {
	var first *input
	var second time.Time // earliest frame of the others; zero without one
	missing := false     // a ring has no frame to show, and may still hold an earlier one
	for _, in := range m.in {
		switch {
		case !in.refill():
			missing = true
		case first == nil:
			first = in
		case in.f.At.Before(first.f.At):
			first, second = in, first.f.At
		case second.IsZero() || in.f.At.Before(second):
			second = in.f.At
		}
	}
	if first == nil {
		return -1, true
	}
	var now time.Time
	if missing {
		now = m.now()
		if left := m.tooEarly(first, now); left > 0 {
			return left, true
		}
	}
	for {
		if first.f.At.Before(m.last) {
			m.late.Add(1)
		} else {
			m.last = first.f.At
		}
		m.fn(&first.f)
		first.has = first.c.next(&first.f)
		if !first.has || !second.IsZero() && first.f.At.After(second) || missing && m.tooEarly(first, now) > 0 {
			return 0, false
		}
	}
}

// tooEarly returns how long the frame must still wait. A frame from the future means that the clock was set
// back, and waits for nothing.
func (m *merger) tooEarly(in *input, now time.Time) time.Duration {
	age := now.Sub(in.f.At)
	if age < -m.wait {
		return 0
	}
	return m.wait - age
}

// poll waits until a ring may have a block, somebody signalled, or the time is over.
func (m *merger) poll(timeout time.Duration) error {
	ms := -1
	if timeout >= 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond)
	}
	for i, in := range m.in {
		// A ring whose block is at hand counts as readable until that is given back.
		m.fds[2*i].Events = unix.POLLIN
		if in.has {
			m.fds[2*i].Events = 0
		}
	}
	if _, err := unix.Poll(m.fds, ms); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("tap: poll: %w", err)
	}
	for i, in := range m.in {
		if m.fds[2*i].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
			if err := in.r.socketError(); err != nil {
				return fmt.Errorf("tap: %s: %w", in.r.name, err)
			}
		}
	}
	return nil
}

// giveBack returns the blocks at hand. Their unread frames are lost: the caller has stopped reading.
func (m *merger) giveBack() {
	for _, in := range m.in {
		in.giveBack()
	}
}
