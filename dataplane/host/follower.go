package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
)

// follower is the shell around what follows the kernel: it subscribes, and calls for a round of
// questions at the start and after whatever may have changed the answers. When the kernel says that
// it dropped notifications, everything is asked again.
type follower struct {
	namespace string
	groups    []uint        // that are subscribed to
	buffer    int           // of the subscription, octets
	settle    time.Duration // how long to wait for the rest of a burst of changes
	log       logrus.FieldLogger

	relevant func(*syscall.NetlinkMessage) bool // whether a notification asks for a round
	round    func(*Host) error

	wake      chan struct{} // something may have changed
	ready     chan struct{} // closed after the first round
	readyOnce sync.Once

	overruns, ignored, rounds atomic.Uint64
}

func newFollower(namespace string, log logrus.FieldLogger) follower {
	return follower{
		namespace: namespace, groups: groups, buffer: 8 << 20, settle: 5 * time.Millisecond, log: log,
		wake: make(chan struct{}, 1), ready: make(chan struct{}),
	}
}

// Ready is closed after the first round.
func (f *follower) Ready() <-chan struct{} { return f.ready }

func (f *follower) poke() {
	select {
	case f.wake <- struct{}{}:
	default: // a round is due already
	}
}

// Run follows until the context ends, which gives nil. It may be called again after it returned.
func (f *follower) Run(ctx context.Context) error {
	h, err := Open(f.namespace)
	if err != nil {
		return err
	}
	defer h.Close()
	// First subscribe, then ask: what changes between the two is asked for again.
	sub, err := subscribe(f.namespace, f.buffer, f.groups)
	if err != nil {
		return err
	}
	reader := make(chan error, 1)
	go func() {
		reader <- sub.run(heard{
			relevant: f.relevant,
			changed:  f.poke,
			ignored:  func() { f.ignored.Add(1) },
			overrun: func() {
				f.log.Warn("the kernel dropped route notifications, asking for everything again")
				f.overruns.Add(1)
				f.poke()
			},
		})
	}()
	err = f.loop(ctx, h, reader)
	sub.close()
	if errors.Is(err, errReader) {
		return err
	}
	return errors.Join(err, <-reader)
}

// errReader is wrapped by the error of a reader that ended by itself.
var errReader = errors.New("following the kernel's routes")

// retryRound is the pause after a round that failed.
const retryRound = time.Second

func (f *follower) loop(ctx context.Context, h *Host, reader <-chan error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		begin := time.Now()
		settle := f.settle
		// A change from here on asks for another round.
		select {
		case <-f.wake:
		default:
		}
		switch err := f.round(h); {
		case errors.Is(err, netlink.ErrDumpInterrupted):
			f.poke() // it changes faster than it can be listed: once more, later
		case err != nil:
			// What is known stays: a kernel short of memory for a moment is no reason to lose it.
			f.log.WithError(err).Warn("asking the kernel failed, trying again")
			settle = max(settle, retryRound)
			f.poke()
		default:
			f.readyOnce.Do(func() { close(f.ready) })
		}
		took := time.Since(begin)
		select {
		case <-ctx.Done():
			return nil
		case err := <-reader:
			return fmt.Errorf("%w: %w", errReader, err)
		case <-f.wake:
		}
		// Wait for the rest of a burst; and with so much to ask that a round takes long, leave most
		// of the processor to others.
		timer.Reset(max(settle, 3*took))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}
