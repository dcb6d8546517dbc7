package kernel

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
)

// Try runs the program on a frame without an interface (BPF_PROG_TEST_RUN), and hands what it hands up to fn. It is for
// simulations and tests, and must not be called while Run is. TCX takes frames from 54 octets on there.
func (t *Tap) Try(frame []byte, fn func(*Event)) error {
	ret, err := t.progs[0].Run(&ebpf.RunOptions{Data: frame, Repeat: 1})
	if err != nil {
		return fmt.Errorf("kernel tap: test run: %w", err)
	}
	want := uint32(0xFFFFFFFF) // TCX_NEXT
	if t.mode != TCX && t.mode != Clsact {
		want = 2 // XDP_PASS
	}
	if ret != want {
		return fmt.Errorf("kernel tap: the program returned %#x, want %#x: a packet must go on", ret, want)
	}
	var clock WallClock
	clock.Compare(time.Now())
	var rec ringbuf.Record
	var ev Event
	for {
		t.reader.SetDeadline(time.Unix(1, 0)) // only what is there
		err := t.reader.ReadInto(&rec)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("kernel tap: ring buffer: %w", err)
		}
		if !ev.decode(rec.RawSample, &clock) {
			return fmt.Errorf("kernel tap: bad record %x", rec.RawSample)
		}
		fn(&ev)
	}
}
