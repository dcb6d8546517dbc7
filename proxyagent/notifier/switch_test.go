package notifier

import (
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

// heldSender holds a packet until it is let go.
type heldSender struct{ arrived, release chan struct{} }

func (s heldSender) Send(packets [][]byte) (int, error) {
	close(s.arrived)
	<-s.release
	return len(packets), nil
}

func TestSwitchingOffWaitsForTheEventBeingSent(t *testing.T) {
	r := newRig(t, Config{})
	held := heldSender{make(chan struct{}), make(chan struct{})}
	r.sender = held
	sent, off := make(chan struct{}), make(chan struct{})
	go func() { r.Handle(event(1), start); close(sent) }()
	<-held.arrived
	go func() { r.SetEnabled(false); close(off) }()
	select {
	case <-off:
		t.Error("off, with a packet still on its way")
	case <-time.After(50 * time.Millisecond): // that it does not return can only be waited for
	}
	close(held.release)
	<-sent
	<-off
	if got := r.Handle(event(2), start.Add(time.Second)); got != pncv1.Outcome_OUTCOME_DISABLED {
		t.Errorf("outcome %v", got)
	}
}
