// Package shell is what IS-IS and OSPF share around their state machines: one goroutine that owns the machine, a
// clock, and a socket with a reader for each link that is up. It knows nothing of what frames say.
package shell

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/igp"
)

// Machine is a protocol's state machine; F is a frame or datagram with the name of its link. Only the goroutine
// of Run calls it.
type Machine[F any] interface {
	Advertise(now time.Time, ads []igp.Advertisement)
	Receive(now time.Time, f F)
	// Tick does what is due and gives what to send.
	Tick(now time.Time) []F
	// Wake is when Tick is due next; zero: not before something else happens.
	Wake() time.Time
	// Learned gives what is new since the last call.
	Learned() []igp.Learned
	// Stop purges what was announced. An error says what could not be.
	Stop(now time.Time) error
	// Purged reports, after Stop, that nobody is waited for.
	Purged() bool
}

// Config is what a Shell runs.
type Config[F any] struct {
	Protocol string // begins what is logged: isis, ospfv2
	LinkWord string // what the protocol calls a link; the field of the log
	Machine  Machine[F]
	LinkOf   func(F) string      // the name of a frame's link
	Learn    func([]igp.Learned) // told from the goroutine of Run; nil: nobody
	// AfterStep is called in the goroutine of Run after the machine did something; nil: nobody wants to know.
	AfterStep func()
	Log       logrus.FieldLogger
	// StopTimeout is how long a clean stop waits for neighbours to acknowledge the purges.
	StopTimeout time.Duration
}

// Shell runs a Machine. Run, Advertise, Ask, Overflow and SendErrors are safe for concurrent use; the methods of
// links are for functions that Ask runs.
type Shell[F any] struct {
	Config[F]

	do     chan func(now time.Time)
	wanted atomic.Pointer[wanted] // by Advertise, until the goroutine of Run has taken it
	poke   chan struct{}
	frames chan F
	done   chan struct{} // closed when Run has returned

	links      map[string]*link[F]
	overflow   atomic.Uint64
	sendErrors atomic.Uint64
}

type wanted struct{ ads []igp.Advertisement }

// ErrStopped is what a question gets when nobody is there to answer.
var ErrStopped = errors.New("the speaker doesn't run")

// queueLen bounds the frames that wait for the machine; more are lost, as on a wire, and sent again.
const queueLen = 1024

// New makes a shell whose links are all closed.
func New[F any](c Config[F]) *Shell[F] {
	return &Shell[F]{
		Config: c, do: make(chan func(time.Time)), frames: make(chan F, queueLen),
		poke: make(chan struct{}, 1), done: make(chan struct{}), links: map[string]*link[F]{},
	}
}

// Run runs the machine until ctx ends, then purges what was announced, waits a little for the acknowledgements,
// and closes all links. It is called once.
func (s *Shell[F]) Run(ctx context.Context) error {
	defer close(s.done)
	defer s.CloseLinks(func(string) bool { return true })
	stop := ctx.Done()
	var deadline <-chan time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			stop = nil
			if err := s.Machine.Stop(time.Now()); err != nil {
				s.Log.WithError(err).Warn(s.Protocol + ": not everything was purged")
			}
			deadline = time.After(s.StopTimeout)
		case <-deadline:
			s.Log.Warn(s.Protocol + ": not every neighbour acknowledged the purges")
			return nil
		case <-s.poke:
			if w := s.wanted.Swap(nil); w != nil {
				s.Machine.Advertise(time.Now(), w.ads)
			}
		case f := <-s.do:
			f(time.Now())
		case f := <-s.frames:
			s.receive(f)
		case <-timer.C:
		}
		s.Step()
		if stop == nil && s.Machine.Purged() {
			return nil
		}
		next := time.Hour
		if at := s.Machine.Wake(); !at.IsZero() {
			next = max(time.Until(at), 0)
		}
		timer.Reset(next)
	}
}

// receive takes a frame and those that wait behind it, so that a burst is one step: what follows from many
// frames is computed once, not for each of them.
func (s *Shell[F]) receive(f F) {
	for taken := 1; ; taken++ {
		s.Machine.Receive(time.Now(), f)
		if taken == queueLen { // timers have their turn, too
			return
		}
		select {
		case f = <-s.frames:
		default:
			return
		}
	}
}

// Step lets the machine do what is due.
func (s *Shell[F]) Step() {
	for _, f := range s.Machine.Tick(time.Now()) {
		s.send(f)
	}
	if l := s.Machine.Learned(); len(l) > 0 && s.Learn != nil {
		s.Learn(l)
	}
	if s.AfterStep != nil {
		s.AfterStep()
	}
}

// Ask runs f in the goroutine of Run, where it may use the machine, and waits for it. It gives ErrStopped when
// Run has returned, or the context's error.
func (s *Shell[F]) Ask(ctx context.Context, f func(now time.Time)) error {
	finished := make(chan struct{})
	select {
	case s.do <- func(now time.Time) { defer close(finished); f(now) }:
		<-finished
		return nil
	case <-s.done:
		return fmt.Errorf("%s: %w", s.Protocol, ErrStopped)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Advertise marks exactly these prefixes from now on. It doesn't wait, and may be called before Run.
func (s *Shell[F]) Advertise(ads []igp.Advertisement) {
	s.wanted.Store(&wanted{ads})
	select {
	case s.poke <- struct{}{}:
	default: // the goroutine of Run will take the last one
	}
}

// Overflow is how many frames were lost because too many waited, here or in the kernel as far as CountLost has
// looked.
func (s *Shell[F]) Overflow() uint64 { return s.overflow.Load() }

// SendErrors is how many frames could not be sent.
func (s *Shell[F]) SendErrors() uint64 { return s.sendErrors.Load() }
