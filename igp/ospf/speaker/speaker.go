package speaker

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/igp"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/shell"
)

// Speaker runs a Machine. Its methods are safe for concurrent use, and those that ask something of the machine
// answer only while Run runs.
type Speaker struct {
	machine *Machine
	shell   *shell.Shell[Datagram]
}

// ErrStopped is what a question gets when nobody is there to answer.
var ErrStopped = shell.ErrStopped

// stopTimeout is how long a clean stop waits for neighbours to acknowledge what was flushed: a packet that was lost
// is sent once more after RxmtInterval, and the acknowledgment may be delayed.
const stopTimeout = neighbor.DefaultRetransmit + 2*time.Second

// NewSpeaker makes a speaker; learn is told, from the goroutine of Run, what was learned.
func NewSpeaker(c Config, learn func([]igp.Learned), log logrus.FieldLogger) (*Speaker, error) {
	m, err := New(c, time.Now())
	if err != nil {
		return nil, err
	}
	return &Speaker{machine: m, shell: shell.New(shell.Config[Datagram]{
		AfterStep: func() { logChanges(log, m.Changes()) },
		Protocol:  c.Version.String(), LinkWord: "link", Machine: m, Learn: learn, Log: log,
		LinkOf: func(d Datagram) string { return d.Link }, StopTimeout: stopTimeout,
	})}, nil
}

// logChanges tells of neighbours that came and went; of the steps between only to those who look for them.
func logChanges(log logrus.FieldLogger, list []Change) {
	for _, c := range list {
		l := log.WithFields(logrus.Fields{"link": c.Link, "neighbor": c.Router.String(), "address": c.Address.String(), "from": c.From.String(), "to": c.To.String()})
		switch {
		case c.To == neighbor.Full:
			l.Info("ospf: the neighbour is full")
		case c.From == neighbor.Full || c.To == neighbor.Down:
			l.WithField("reason", c.Reason.String()).Info("ospf: the neighbour's state fell")
		default:
			l.WithField("reason", c.Reason.String()).Debug("ospf: the neighbour's state changed")
		}
	}
}

// Run speaks until ctx ends, then flushes what it announced, waits a little for the acknowledgments, and leaves.
// It is called once.
func (s *Speaker) Run(ctx context.Context) error { return s.shell.Run(ctx) }

// Advertise marks exactly these prefixes from now on. It doesn't wait, and may be called before Run.
func (s *Speaker) Advertise(ads []igp.Advertisement) { s.shell.Advertise(ads) }

// Reconfigure changes the router while it runs, as Machine.Reconfigure does. New links are down until LinkChanged
// says otherwise.
func (s *Speaker) Reconfigure(ctx context.Context, c Config) (err error) {
	aerr := s.shell.Ask(ctx, func(now time.Time) {
		if err = s.machine.Reconfigure(now, c); err == nil {
			s.shell.Step() // the last packets of links that are taken away
			s.shell.CloseLinks(func(name string) bool { return s.machine.links[name] == nil })
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

// Database reads all databases.
func (s *Speaker) Database(ctx context.Context) (db []LSAStatus, err error) {
	err = s.shell.Ask(ctx, func(now time.Time) { db = s.machine.Database(now) })
	return db, err
}

// LinkChanged takes the state of a link's interface. An error says why the link can't be used although the
// interface is up; the caller tells the state again when something changes.
func (s *Speaker) LinkChanged(ctx context.Context, name string, l Link) (err error) {
	aerr := s.shell.Ask(ctx, func(now time.Time) {
		x := s.machine.links[name]
		if x == nil {
			return // taken away meanwhile
		}
		usable := l.usable(s.machine.cfg.Version)
		if !usable || l.Index != x.state.Index {
			s.shell.CloseLink(name)
		}
		if usable && !s.shell.HasLink(name) { // the socket does not depend on the address, nor on the MTU
			if err = s.open(name, l.Index); err != nil {
				l.Up = false
			}
		}
		s.machine.LinkChanged(now, name, l)
	})
	return errors.Join(err, aerr)
}

func (s *Speaker) open(name string, index int) error {
	sock, err := openSocket(s.machine.cfg.Version, index, name)
	if err == nil {
		s.shell.OpenLink(name, sock)
	}
	return err
}
