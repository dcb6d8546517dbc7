package tcx

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"pncd/dataplane/detect"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
)

const (
	// checkInterval is how often Run looks whether the program is still on the link.
	checkInterval = time.Second

	protoUDP = 17
)

// sourceNames are the names of S_CE and S_QUEUE.
var sourceNames = [...]string{detect.SourceCE, detect.SourceVirtualQueue}

// Run calls fn for each event until ctx ends (nil), the detector is closed (ErrClosed), or the program is no longer on the
// link (ErrDetached). Events that are ready when ctx ends are handed over before. fn must not call Close.
func (d *Detector) Run(ctx context.Context, fn func(detect.Event)) error {
	d.running.Lock()
	defer d.running.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = d.reader.Flush() })
	defer stop()
	var (
		rec   ringbuf.Record
		clock kernel.WallClock
		check time.Time
	)
	for {
		now := time.Now()
		if now.Sub(check) >= checkInterval {
			if err := d.Check(); err != nil && ctx.Err() == nil && !d.isClosing() {
				return err
			}
			check = now
			d.reader.SetDeadline(now.Add(checkInterval))
		}
		clock.Compare(now)
		switch err := d.reader.ReadInto(&rec); {
		case err == nil:
			if ev, ok := d.decode(rec.RawSample, &clock); ok {
				fn(ev)
			}
		case ctx.Err() != nil:
			return nil
		case d.isClosing():
			return fmt.Errorf("detector: %s: %w", d.name, ErrClosed)
		case errors.Is(err, ringbuf.ErrFlushed): // of a Run before
		case errors.Is(err, os.ErrDeadlineExceeded):
			check = time.Time{}
		default:
			return fmt.Errorf("detector: %s: ring buffer: %w", d.name, err)
		}
	}
}

func (d *Detector) isClosing() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// decode makes an event of a record, whose layout the program and this package share. It is false for a record that
// the program does not make.
func (d *Detector) decode(b []byte, clock *kernel.WallClock) (detect.Event, bool) {
	if len(b) < int(unsafe.Sizeof(detectEvent{})) {
		return detect.Event{}, false
	}
	e := (*detectEvent)(unsafe.Pointer(&b[0]))
	if int(e.Source) >= len(sourceNames) {
		return detect.Event{}, false
	}
	return detect.Event{
		Sender: address(e.Addr.Src), Receiver: address(e.Addr.Dst), SrcPort: e.SrcPort, DstPort: roce.UDPPort, Proto: protoUDP,
		DestQP: e.DestQp, CECount: e.Packets, Source: sourceNames[e.Source], Interface: d.name, VLAN: e.Vlan,
		QueueDepth: e.Depth, At: clock.Wall(e.At),
	}, true
}

// address makes one of four words in network order.
func address(w [4]uint32) netip.Addr {
	return netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(&w))).Unmap()
}
