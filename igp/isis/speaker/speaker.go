package speaker

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/igp"
)

// Speaker runs a Machine. Its methods are safe for concurrent use, and those that ask something of the
// machine answer only while Run runs.
type Speaker struct {
	log     logrus.FieldLogger
	machine *Machine
	learn   func([]igp.Learned)

	do     chan func(now time.Time)
	wanted atomic.Pointer[wanted] // by Advertise, until the goroutine of Run has taken it
	poke   chan struct{}
	frames chan Frame
	done   chan struct{} // closed when Run has returned

	sockets    map[string]*running
	overflow   atomic.Uint64
	sendErrors atomic.Uint64
}

type wanted struct{ ads []igp.Advertisement }

// running is the socket of a circuit whose link is up.
type running struct {
	*socket
	readers sync.WaitGroup
}

// ErrStopped is what a question gets when nobody is there to answer.
var ErrStopped = errors.New("isis: the speaker doesn't run")

// stopTimeout is how long a clean stop waits for neighbours to acknowledge the purges.
const stopTimeout = 3 * time.Second

// queueLen bounds the frames that wait for the machine; more are lost, as on a wire, and sent again.
const queueLen = 1024

// NewSpeaker makes a speaker; learn is told, from the goroutine of Run, what was learned.
func NewSpeaker(c Config, learn func([]igp.Learned), log logrus.FieldLogger) (*Speaker, error) {
	m, err := New(c, time.Now())
	if err != nil {
		return nil, err
	}
	return &Speaker{
		log: log, machine: m, learn: learn, do: make(chan func(time.Time)), frames: make(chan Frame, queueLen),
		poke: make(chan struct{}, 1), done: make(chan struct{}), sockets: map[string]*running{},
	}, nil
}

// Run speaks until ctx ends, then purges what it announced, waits a little for the acknowledgements, and
// leaves. It is called once.
func (s *Speaker) Run(ctx context.Context) error {
	defer close(s.done)
	defer s.closeAll()
	stop := ctx.Done()
	var deadline <-chan time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			stop = nil
			if err := s.machine.Stop(time.Now()); err != nil {
				s.log.WithError(err).Warn("isis: not everything was purged")
			}
			deadline = time.After(stopTimeout)
		case <-deadline:
			s.log.Warn("isis: not every neighbour acknowledged the purges")
			return nil
		case <-s.poke:
			if w := s.wanted.Swap(nil); w != nil {
				s.machine.Advertise(time.Now(), w.ads)
			}
		case f := <-s.do:
			f(time.Now())
		case f := <-s.frames:
			s.receive(f)
		case <-timer.C:
		}
		s.step()
		if stop == nil && s.machine.Purged() {
			return nil
		}
		next := time.Hour
		if at := s.machine.Wake(); !at.IsZero() {
			next = max(time.Until(at), 0)
		}
		timer.Reset(next)
	}
}

// receive takes a frame and those that wait behind it, so that a burst is one step: what follows from the
// fragments of a system is computed once, not for each of them.
func (s *Speaker) receive(f Frame) {
	for taken := 1; ; taken++ {
		s.machine.Receive(time.Now(), f)
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

// step lets the machine do what is due.
func (s *Speaker) step() {
	for _, f := range s.machine.Tick(time.Now()) {
		r := s.sockets[f.Circuit]
		if r == nil {
			continue
		}
		if err := r.send(f.PDU, f.MAC); err != nil {
			s.sendErrors.Add(1)
			s.log.WithError(err).WithField("circuit", f.Circuit).Debug("isis: frame not sent")
		}
	}
	if l := s.machine.Learned(); len(l) > 0 && s.learn != nil {
		s.learn(l)
	}
}

// ask runs f in the goroutine of Run.
func (s *Speaker) ask(ctx context.Context, f func(now time.Time)) error {
	finished := make(chan struct{})
	select {
	case s.do <- func(now time.Time) { defer close(finished); f(now) }:
		<-finished
		return nil
	case <-s.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Advertise marks exactly these prefixes from now on. It doesn't wait, and may be called before Run.
func (s *Speaker) Advertise(ads []igp.Advertisement) {
	s.wanted.Store(&wanted{ads})
	select {
	case s.poke <- struct{}{}:
	default: // the goroutine of Run will take the last one
	}
}

// Reconfigure changes the system while it runs, as Machine.Reconfigure does. The links of new circuits are
// down until LinkChanged says otherwise.
func (s *Speaker) Reconfigure(ctx context.Context, c Config) (err error) {
	aerr := s.ask(ctx, func(now time.Time) {
		if err = s.machine.Reconfigure(now, c); err != nil {
			return
		}
		for name := range s.sockets {
			if s.machine.circuits[name] == nil {
				s.close(name)
			}
		}
	})
	return errors.Join(err, aerr)
}

// Replay tells everything that is known once more.
func (s *Speaker) Replay(ctx context.Context) error {
	return s.ask(ctx, func(time.Time) { s.machine.Replay() })
}

// Status reads the machine.
func (s *Speaker) Status(ctx context.Context) (st Status, err error) {
	err = s.ask(ctx, func(now time.Time) {
		for _, r := range s.sockets {
			s.overflow.Add(r.lost())
		}
		st = s.machine.Status(now)
	})
	st.QueueOverflow, st.SendErrors = s.overflow.Load(), s.sendErrors.Load()
	return st, err
}

// Database reads the database of a level.
func (s *Speaker) Database(ctx context.Context, level uint8) (db []LSPStatus, err error) {
	err = s.ask(ctx, func(now time.Time) { db = s.machine.Database(now, level) })
	return db, err
}

// LinkChanged takes the state of a circuit's interface. An error says why the circuit can't be used although
// the link is up; the caller tells the state again when something changes.
func (s *Speaker) LinkChanged(ctx context.Context, name string, l Link) (err error) {
	aerr := s.ask(ctx, func(now time.Time) {
		c := s.machine.circuits[name]
		if c == nil {
			return // taken away meanwhile
		}
		if old := s.sockets[name]; old != nil {
			if c.link.equal(l) {
				return
			}
			s.close(name)
		}
		if l.Up {
			if err = s.open(name, l.Index); err != nil {
				l.Up = false
			}
		}
		s.machine.LinkChanged(now, name, l)
	})
	return errors.Join(err, aerr)
}

func (s *Speaker) open(name string, index int) error {
	sock, err := openSocket(index, name)
	if err != nil {
		return err
	}
	r := &running{socket: sock}
	r.readers.Go(func() { s.read(r, name) })
	s.sockets[name] = r
	return nil
}

// read brings frames to the machine until the socket is closed.
func (s *Speaker) read(r *running, name string) {
	buf := make([]byte, 1<<16) // no interface has a greater MTU
	for {
		pdu, mac, err := r.receive(buf)
		if err != nil {
			if !errors.Is(err, errClosed) {
				s.log.WithError(err).WithField("circuit", name).Error("isis: the circuit can't be read any more")
			}
			return
		}
		select {
		case s.frames <- Frame{Circuit: name, MAC: mac, PDU: bytes.Clone(pdu)}: // a full queue holds no more than what came
		default:
			s.overflow.Add(1)
		}
	}
}

func (s *Speaker) close(name string) {
	if r := s.sockets[name]; r != nil {
		s.overflow.Add(r.lost())
		r.close()
		r.readers.Wait()
		delete(s.sockets, name)
	}
}

func (s *Speaker) closeAll() {
	for name := range s.sockets {
		s.close(name)
	}
}
