package daemon

import (
	"context"
	"errors"
	"sync/atomic"

	"pncd/dataplane/emit"
)

// errNoSender is what sending answers while the mechanism is off; the parts that send know that it is
// off before they try.
var errNoSender = errors.New("the mechanism is off: there is no socket to send by")

// senderSwitch is the raw sockets of notifier and translator, which exist only while the mechanism is on.
type senderSwitch struct {
	current atomic.Pointer[emit.Sender]
	counts  atomic.Pointer[sendCounts]
}

// Send implements notifier.Sender and translator.Sender.
func (s *senderSwitch) Send(pkts [][]byte) (int, error) {
	e := s.current.Load()
	if e == nil {
		return 0, errNoSender
	}
	sent, err := e.Send(pkts)
	if c := s.counts.Load(); c != nil {
		c.note(pkts, sent, err)
	}
	return sent, err
}

// open opens the sockets for a unit and puts them in place.
func (s *senderSwitch) open() (runner, error) {
	e, err := emit.Open(emit.Config{})
	if err != nil {
		return nil, err
	}
	s.current.Store(e)
	return senderUnit{s, e}, nil
}

type senderUnit struct {
	s *senderSwitch
	e *emit.Sender
}

// Run implements runner: sending happens on the goroutines of those who send.
func (u senderUnit) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Close implements runner.
func (u senderUnit) Close() error {
	u.s.current.CompareAndSwap(u.e, nil)
	return u.e.Close()
}
