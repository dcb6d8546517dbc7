package speaker

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/igp"
	"pncd/igp/shell"
)

// Speaker runs a Machine. Its methods are safe for concurrent use, and those that ask something of the
// machine answer only while Run runs.
type Speaker struct {
	machine *Machine
	shell   *shell.Shell[Frame]
}

// ErrStopped is what a question gets when nobody is there to answer.
var ErrStopped = shell.ErrStopped

// stopTimeout is how long a clean stop waits for neighbours to acknowledge the purges.
const stopTimeout = 3 * time.Second

// NewSpeaker makes a speaker; learn is told, from the goroutine of Run, what was learned.
func NewSpeaker(c Config, learn func([]igp.Learned), log logrus.FieldLogger) (*Speaker, error) {
	m, err := New(c, time.Now())
	if err != nil {
		return nil, err
	}
	return &Speaker{machine: m, shell: shell.New(shell.Config[Frame]{
		Protocol: "isis", LinkWord: "circuit", Machine: m, Learn: learn, Log: log,
		LinkOf: func(f Frame) string { return f.Circuit }, StopTimeout: stopTimeout,
	})}, nil
}

// Run speaks until ctx ends, then purges what it announced, waits a little for the acknowledgements, and
// leaves. It is called once.
func (s *Speaker) Run(ctx context.Context) error { return s.shell.Run(ctx) }

// Advertise marks exactly these prefixes from now on. It doesn't wait, and may be called before Run.
func (s *Speaker) Advertise(ads []igp.Advertisement) { s.shell.Advertise(ads) }

// Reconfigure changes the system while it runs, as Machine.Reconfigure does. The links of new circuits are
// down until LinkChanged says otherwise.
func (s *Speaker) Reconfigure(ctx context.Context, c Config) (err error) {
	aerr := s.shell.Ask(ctx, func(now time.Time) {
		if err = s.machine.Reconfigure(now, c); err == nil {
			s.shell.CloseLinks(func(name string) bool { return s.machine.circuits[name] == nil })
		}
	})
	return errors.Join(err, aerr)
}

// Replay tells everything that is known once more.
func (s *Speaker) Replay(ctx context.Context) error {
	return s.shell.Ask(ctx, func(time.Time) { s.machine.Replay() })
}

// Status reads the machine.
func (s *Speaker) Status(ctx context.Context) (st Status, err error) {
	err = s.shell.Ask(ctx, func(now time.Time) {
		s.shell.CountLost()
		st = s.machine.Status(now)
	})
	st.QueueOverflow, st.SendErrors = s.shell.Overflow(), s.shell.SendErrors()
	return st, err
}

// Database reads the database of a level.
func (s *Speaker) Database(ctx context.Context, level uint8) (db []LSPStatus, err error) {
	err = s.shell.Ask(ctx, func(now time.Time) { db = s.machine.Database(now, level) })
	return db, err
}

// LinkChanged takes the state of a circuit's interface. An error says why the circuit can't be used although
// the link is up; the caller tells the state again when something changes.
func (s *Speaker) LinkChanged(ctx context.Context, name string, l Link) (err error) {
	aerr := s.shell.Ask(ctx, func(now time.Time) {
		c := s.machine.circuits[name]
		if c == nil || s.shell.HasLink(name) && c.link.equal(l) {
			return // taken away meanwhile, or told before
		}
		s.shell.CloseLink(name)
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
	if err == nil {
		s.shell.OpenLink(name, circuitSocket{sock, name})
	}
	return err
}
