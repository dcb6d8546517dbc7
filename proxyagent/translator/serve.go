package translator

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// refusedInterval is how often wrong checksums and drops are looked for.
	refusedInterval = 100 * time.Millisecond
	// drainTime bounds how long a stop reads what is still queued.
	drainTime = 200 * time.Millisecond
)

// Handler takes what the sockets give. *Translator is one.
type Handler interface {
	Process(batch []Datagram, now time.Time) // datagrams that were read
	Discard(batch []Datagram, now time.Time) // datagrams that were read while stopping
	Lost(l Loss, now time.Time)              // datagrams that the kernel dropped
}

// Serve reads from the listeners, each in a goroutine of its own, and hands what they give to h until
// the context ends or a socket fails. It then reads what is still queued, and returns when all
// goroutines have ended: nil when the context ended. It does not close the listeners.
func Serve(ctx context.Context, h Handler, listeners ...*Listener) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range listeners {
		g.Go(func() error { return l.serve(ctx, h) })
	}
	return g.Wait()
}

func (l *Listener) serve(ctx context.Context, h Handler) error {
	// The loop below ends within refusedInterval of the context; this only makes it end sooner.
	stop := context.AfterFunc(ctx, func() { _ = l.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()

	err := l.loop(ctx, h)
	return errors.Join(err, l.drain(h))
}

func (l *Listener) loop(ctx context.Context, h Handler) error {
	var look time.Time // at what was refused, and when a silent socket's Read ends
	for ctx.Err() == nil {
		now := time.Now()
		if !now.Before(look) {
			if err := l.reportRefused(h, now); err != nil {
				return err
			}
			look = now.Add(refusedInterval)
			if err := l.conn.SetReadDeadline(look); err != nil {
				return err
			}
		}
		batch, err := l.read()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			return err
		default:
			h.Process(batch, batch[0].ReadAt)
		}
	}
	return nil
}

// drain gives what is still queued, and what was dropped until now, its outcome.
func (l *Listener) drain(h Handler) error {
	end := time.Now().Add(drainTime)
	for now := time.Now(); now.Before(end); now = time.Now() {
		batch, err := l.poll()
		if err != nil || len(batch) == 0 {
			break // EAGAIN, or a socket that fails: there is no more to read
		}
		h.Discard(batch, now)
	}
	return l.reportRefused(h, time.Now())
}

func (l *Listener) reportRefused(h Handler, now time.Time) error {
	lost, err := l.Refused(func(batch []Datagram) { h.Process(batch, now) })
	if err != nil {
		return err
	}
	if lost != (Loss{}) {
		h.Lost(lost, now)
	}
	return nil
}
