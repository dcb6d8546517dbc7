package daemon

import (
	"context"
	"time"

	"pncd/dataplane/detect"
	"pncd/proxyagent/notifier"
)

// detector hands the congestion events of one link to the notifier.
type detector struct {
	context string // that the link carries; empty: the default one
	ce      *detect.CE
	handle  func(*notifier.Event, time.Time)
	now     func() time.Time
	closing func()
}

func openDetector(context, iface string, n *notifier.Notifier, now func() time.Time, book *ringBook) (runner, error) {
	ce, err := detect.OpenCE(detect.Config{Interface: iface})
	if err != nil {
		return nil, err
	}
	d := &detector{context: context, ce: ce, now: now, handle: func(ev *notifier.Event, now time.Time) { n.Handle(ev, now) }}
	d.closing = book.opened(inContext(context, iface), roleDetector, func() ringStats {
		s := ce.Stats()
		return ringStats{
			Packets: s.Events + s.Ignored + s.Malformed, Drops: s.Drops, Freezes: s.Freezes, Downs: s.Downs,
			Ignored: s.Ignored, Malformed: s.Malformed,
		}
	})
	return d, nil
}

// Run implements runner.
func (d *detector) Run(ctx context.Context) error {
	source := detect.SourceCE + " " + inContext(d.context, d.ce.Interface())
	var ev notifier.Event
	return d.ce.Run(ctx, func(e detect.Event) {
		ev = notifier.Event{
			Context: d.context, Sender: e.Sender, Receiver: e.Receiver, SrcPort: e.SrcPort, DstPort: e.DstPort, Proto: e.Proto,
			DestQP: e.DestQP, CECount: e.CECount, Source: source, At: e.At,
		}
		d.handle(&ev, d.now())
	})
}

// Close implements runner.
func (d *detector) Close() error {
	d.closing()
	return d.ce.Close()
}
