package bmp

import (
	"errors"
	"sync"
	"time"
)

// ErrSlow is wrapped when a connection ends because the station doesn't read fast enough.
var ErrSlow = errors.New("bmp: the station is too slow")

var errDone = errors.New("bmp: over")

// queue holds whole messages between a goroutine that puts and one that takes. What is full makes put wait.
type queue struct {
	max    int           // octets
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

// put copies a message. Errors are ErrSlow or errDone.
func (q *queue) put(msg []byte) error {
	for {
		left, ok := q.tryPut(msg, time.Now())
		if ok {
			return nil
		}
		if left <= 0 {
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

func (q *queue) tryPut(msg []byte, now time.Time) (left time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && (len(q.buf) == 0 || len(q.buf)+len(msg) <= q.max) {
		q.buf = append(q.buf, msg...)
		signal(q.some)
		return 0, true
	}
	if q.full.IsZero() {
		q.full = now
	}
	return q.full.Add(q.behind).Sub(now), false
}

// finish puts a last message, whatever the room; put waits from now on.
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
