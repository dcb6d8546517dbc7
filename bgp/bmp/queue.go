package bmp

import (
	"errors"
	"math"
	"sync"
	"time"
)

// ErrSlow is wrapped when a connection ends because the station doesn't read fast enough.
var ErrSlow = errors.New("bmp: the station is too slow")

var errDone = errors.New("bmp: over")

// queue holds whole messages between those who add and one who takes. Who adds a lot waits for room before.
type queue struct {
	max    int           // octets, after which there is no room
	behind time.Duration // how long it may go on without being empty once, after it was full

	done       chan struct{} // closed when nothing is wanted any more
	room, some chan struct{}

	mu     sync.Mutex
	buf    []byte
	full   time.Time // since when it has not been empty, once it was full
	closed bool
}

func newQueue(max int, behind time.Duration) *queue {
	return &queue{max: max, behind: behind, done: make(chan struct{}), room: make(chan struct{}, 1), some: make(chan struct{}, 1)}
}

// wait waits until there is room. Errors are ErrSlow or errDone.
func (q *queue) wait() error {
	for {
		left := q.left(time.Now())
		switch {
		case left == hasRoom:
			return nil
		case left <= 0:
			return ErrSlow
		}
		timer := time.NewTimer(left)
		select {
		case <-q.done:
			timer.Stop()
			return errDone
		case <-q.room:
		case <-timer.C:
		}
		timer.Stop()
	}
}

const hasRoom = math.MaxInt64 * time.Nanosecond

// left gives how long there may still be no room, or hasRoom.
func (q *queue) left(now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && len(q.buf) < q.max {
		return hasRoom
	}
	if q.full.IsZero() {
		q.full = now
	}
	return q.full.Add(q.behind).Sub(now)
}

// add copies a message, whatever the room.
func (q *queue) add(msg []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.buf = append(q.buf, msg...)
	signal(q.some)
}

// finish adds the last message: nothing gets behind it, and there is no room from now on.
func (q *queue) finish(msg []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.buf = append(q.buf, msg...)
	q.closed = true
	signal(q.some)
}

// take waits for messages and gives all that are there in place of a buffer that isn't used any more. It says false
// when there are none and won't be.
func (q *queue) take(old []byte) ([]byte, bool) {
	for {
		q.mu.Lock()
		got, closed := q.buf, q.closed
		if len(got) > 0 {
			q.buf = old[:0]
			signal(q.room)
		} else {
			q.full = time.Time{}
		}
		q.mu.Unlock()
		if len(got) > 0 {
			return got, true
		}
		if closed {
			return nil, false
		}
		select {
		case <-q.done:
			return nil, false
		case <-q.some:
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
