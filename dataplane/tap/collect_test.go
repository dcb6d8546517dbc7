package tap

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"pncd/dataplane/tap/taptest"
)

// open opens a ring inside a namespace for the time of the test.
func open(t *testing.T, ns *taptest.NS, c Config) *Ring {
	t.Helper()
	var r *Ring
	err := ns.Do(func() (err error) {
		r, err = Open(c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// seen is a copy of a Frame.
type seen struct {
	Frame
	data []byte
}

// collector keeps what a tap hands over.
type collector struct {
	mu     sync.Mutex
	frames []seen
	more   chan struct{}
	done   chan error
	cancel context.CancelFunc
}

// collect starts run and keeps its frames.
func collect(t *testing.T, run func(context.Context, func(*Frame)) error) *collector {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &collector{more: make(chan struct{}, 1), done: make(chan error, 1), cancel: cancel}
	go func() {
		c.done <- run(ctx, func(f *Frame) {
			c.mu.Lock()
			c.frames = append(c.frames, seen{*f, bytes.Clone(f.Data)})
			c.mu.Unlock()
			select {
			case c.more <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(cancel)
	return c
}

// wait returns the frames when there are n of them.
func (c *collector) wait(t *testing.T, n int) []seen {
	t.Helper()
	deadline := time.After(patience)
	for {
		c.mu.Lock()
		got := c.frames
		c.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-c.more:
		case err := <-c.done:
			t.Fatalf("tap ended with %d of %d frames: %v", len(got), n, err)
		case <-deadline:
			t.Fatalf("%d of %d frames after %v", len(got), n, patience)
		}
	}
}

// stop ends the tap and returns all it handed over.
func (c *collector) stop(t *testing.T) []seen {
	t.Helper()
	c.cancel()
	if err := c.result(t); err != nil {
		t.Fatal(err)
	}
	return c.frames
}

func (c *collector) result(t *testing.T) error {
	t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(patience):
		t.Fatal("tap did not end")
		return nil
	}
}

func send(t *testing.T, in *taptest.Injector, frames ...[]byte) {
	t.Helper()
	if err := in.Send(frames...); err != nil {
		t.Fatal(err)
	}
}
