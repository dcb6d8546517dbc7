package translate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"pncd/dataplane/tap/kernel"
)

// Event is one notification that the program decided.
type Event struct {
	At       time.Time
	Took     time.Duration // from then until the packet was ready to go
	Outcome  Outcome
	IfIndex  int
	From     netip.AddrPort
	To       netip.Addr
	TTL      uint8
	Payload  []byte // valid until the function that it was handed to returns
	SourceQP uint32 // of the answer, where one was found
	Version  uint64 // likewise
	NRP      uint64 // likewise: NRPVersion
	Receipt  uint64 // of the CNP; zero when none was sent
}

// pollInterval is how often Run looks at its context while nothing comes.
const pollInterval = 100 * time.Millisecond

// attention is for how long the program's answers are looked after without another word from Run: three of its turns may come late
// before notifications go to user space.
const attention = time.Second

// attend tells the program that its answers are looked after.
func (t *Translator) attend(now time.Time) error {
	var clock kernel.WallClock
	clock.Compare(now)
	if err := t.vars.AttendedUntil.Set(clock.Mono(now.Add(attention))); err != nil {
		return fmt.Errorf("kernel translator: attended: %w", err)
	}
	return nil
}

// burst is after how many events ctx and clock are looked at again.
const burst = 1024

// Run hands each event to fn until ctx ends (nil) or the translator is closed (ErrClosed). fn must not call Close. It
// hands over what is there before it ends. From its first call on, the program decides only while it runs: a process that hangs does
// not learn that an answer is no longer true, so a second later notifications go to user space.
func (t *Translator) Run(ctx context.Context, fn func(*Event)) error {
	t.running.Lock()
	defer t.running.Unlock()
	for ctx.Err() == nil {
		select {
		case <-t.closing:
			return fmt.Errorf("kernel translator: %w", ErrClosed)
		default:
		}
		now := time.Now()
		if err := t.attend(now); err != nil {
			return err
		}
		if _, err := t.read(now.Add(pollInterval), fn); err != nil {
			return err
		}
	}
	for {
		if n, err := t.read(time.Now(), fn); n < burst || err != nil {
			return err
		}
	}
}

// read hands over at most burst events, and waits for the first until the deadline.
func (t *Translator) read(deadline time.Time, fn func(*Event)) (n int, err error) {
	var rec ringbuf.Record
	var ev Event
	var clock kernel.WallClock
	clock.Compare(time.Now())
	t.reader.SetDeadline(deadline)
	for n < burst {
		switch err := t.reader.ReadInto(&rec); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return n, nil
		case errors.Is(err, os.ErrClosed):
			return n, fmt.Errorf("kernel translator: %w", ErrClosed)
		case err != nil:
			return n, fmt.Errorf("kernel translator: ring buffer: %w", err)
		}
		if ev.decode(rec.RawSample, &clock) {
			fn(&ev)
		}
		n++
	}
	return n, nil
}

// decode fills e from a record, whose layout the program and this package share.
func (e *Event) decode(b []byte, clock *kernel.WallClock) bool {
	const size = int(unsafe.Sizeof(translateEvent{}))
	if len(b) < size {
		return false
	}
	h := (*translateEvent)(unsafe.Pointer(&b[0]))
	if int(h.Length) > len(h.Payload) {
		return false
	}
	*e = Event{
		At: clock.Wall(h.At), Took: time.Duration(h.Took), Outcome: Outcome(h.Outcome), IfIndex: int(h.Ifindex),
		From: netip.AddrPortFrom(netip.AddrFrom16(h.From).Unmap(), networkOrder(h.FromPort)),
		To:   netip.AddrFrom16(h.To).Unmap(), TTL: h.Ttl, Payload: h.Payload[:h.Length],
		SourceQP: h.SourceQp, Version: h.Version, NRP: h.NrpVersion, Receipt: h.Receipt,
	}
	return true
}
