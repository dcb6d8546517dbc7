package tap

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

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

// merger hands over the frames of several rings in the order of their times.
type merger struct {
	in   []*input
	fds  []unix.PollFd // the one that wakes the merger, then the rings
	wait time.Duration // how long a frame stays while another ring may hold an earlier one
	last time.Time     // the latest frame handed over
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

// poll waits until a ring may have a block, the merger is woken, or the time is over. It returns the input
// whose ring failed, with its error.
func (m *merger) poll(wake int, timeout time.Duration) (*input, error) {
	ms := -1
	if timeout >= 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond)
	}
	m.fds = append(m.fds[:0], unix.PollFd{Fd: int32(wake), Events: unix.POLLIN})
	for _, in := range m.in {
		fd := unix.PollFd{Fd: int32(in.r.fd), Events: unix.POLLIN}
		if in.has {
			fd.Events = 0 // a ring whose block is at hand counts as readable until that is given back
		}
		m.fds = append(m.fds, fd)
		ms = in.r.pollTimeout(ms)
	}
	if _, err := unix.Poll(m.fds, ms); err != nil && !errors.Is(err, unix.EINTR) {
		return nil, fmt.Errorf("poll: %w", err)
	}
	if m.fds[0].Revents != 0 {
		drainWake(wake)
	}
	for i, in := range m.in {
		if err := in.r.checkLink(m.fds[i+1].Revents); err != nil {
			return in, err
		}
	}
	return nil, nil
}
