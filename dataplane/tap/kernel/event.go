package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"pncd/dataplane/tap"
)

// Reason says why a packet was handed up.
type Reason uint8

// The reasons; the numbers are those of learn.c.
const (
	ReasonMAD       Reason = 1 // a management datagram: of no flow
	ReasonNew       Reason = 2 // the flow's first packet
	ReasonVote      Reason = 3 // the flow is watched
	ReasonInterval  Reason = 4 // nothing of the flow was handed up for Config.Interval
	ReasonStep      Reason = 5 // a PSN or MSN out of sequence, or the first one of its kind
	ReasonTransport Reason = 6 // another transport than before
	ReasonIdentity  Reason = 7 // another interface, source MAC or TTL than the flow's, which moves nothing
	ReasonSource    Reason = 8 // UD: another source QP than before

	reasons = len(learnCounters{}.Told)
)

var reasonNames = [reasons]string{"", "mad", "new", "vote", "interval", "step", "transport", "identity", "source"}

// String returns the reason's name in lower case.
func (r Reason) String() string {
	if int(r) < reasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Event is one packet that was handed up. It and its data are valid until the function it was handed to returns.
type Event struct {
	tap.Frame
	Reason Reason
	Before Progress // of the flow before this packet; zero for MADs and new flows
}

// State is the flow's state from the packet on, until it is set: a packet that may end the answer makes the flow Watched.
func (e *Event) State() State {
	switch e.Reason {
	case ReasonStep, ReasonTransport, ReasonSource:
		return Watched
	}
	return e.Before.State
}

// Progress is how far the kernel has followed a flow.
type Progress struct {
	State    State
	LastSeen time.Time // some 10 ms exact; zero: never
	Skipped  uint32    // packets since one was handed up
	ReqHigh  uint32    // highest PSN of the requests (of a READ the first one); UD: the last source QP
	RespHigh uint32    // highest PSN of the responses
	MSN      uint32    // highest MSN of the responses
	ReadLen  uint32    // octets of the READ that ReqHigh is of; 0: it is of no READ
	HasReq   bool      // ReqHigh is set
	HasResp  bool      // RespHigh is set
	HasMSN   bool      // MSN is set
}

// Bits of the kernel's 'seen'.
const (
	seenReq = 1 << iota
	seenResp
	seenMSN
)

// readInterval is how long packets may wait in the ring buffer, like the retire timeout of the packet ring.
const readInterval = 2 * time.Millisecond

// readBurst is after how many packets ctx and the clock are looked at again, when there is no pause.
const readBurst = 1024

// Run hands each packet to fn, in the order in which they were seen, until ctx ends (nil) or the tap is closed
// (ErrClosed). Between them, and at least each few milliseconds, it calls idle, unless that is nil. Neither must call
// Close.
func (t *Tap) Run(ctx context.Context, fn func(*Event), idle func()) error {
	t.running.Lock()
	defer t.running.Unlock()
	var rec ringbuf.Record
	var ev Event
	var clock WallClock
	for ctx.Err() == nil {
		select {
		case <-t.closing:
			return fmt.Errorf("kernel tap: %w", ErrClosed)
		default:
		}
		now := time.Now()
		clock.Compare(now)
		t.reader.SetDeadline(now.Add(readInterval))
		for range readBurst {
			err := t.reader.ReadInto(&rec)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if errors.Is(err, os.ErrClosed) {
				return fmt.Errorf("kernel tap: %w", ErrClosed)
			}
			if err != nil {
				return fmt.Errorf("kernel tap: ring buffer: %w", err)
			}
			if ev.decode(rec.RawSample, &clock) {
				fn(&ev)
			}
		}
		if idle != nil {
			idle()
		}
	}
	return nil
}

// decode fills e from a record, whose layout the kernel's program and this package share. Its data is not copied.
func (e *Event) decode(b []byte, clock *WallClock) bool {
	const head = int(unsafe.Sizeof(learnEvent{}))
	if len(b) < head {
		return false
	}
	h := (*learnEvent)(unsafe.Pointer(&b[0]))
	data := b[head:]
	if int(h.Len) > len(data) {
		return false
	}
	e.Frame = tap.Frame{
		Data: data[:h.Len:h.Len], At: clock.Wall(h.At), IfIndex: int(h.Ifindex), Wire: int(h.Wire),
		Truncated: uint32(h.Len) < h.Wire, HasVLAN: h.VlanTpid != 0, VLANTCI: h.VlanTci, VLANTPID: h.VlanTpid,
	}
	e.Reason = Reason(h.Reason)
	e.Before = Progress{
		State: State(h.State), Skipped: h.Skipped, ReqHigh: h.ReqHigh, RespHigh: h.RespHigh, MSN: h.Msn, ReadLen: h.ReadLen,
		HasReq: h.Seen&seenReq != 0, HasResp: h.Seen&seenResp != 0, HasMSN: h.Seen&seenMSN != 0,
	}
	if h.LastSeen != 0 {
		e.Before.LastSeen = clock.Wall(h.LastSeen)
	}
	return true
}
