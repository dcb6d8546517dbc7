package daemon

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"pncd/internal/testwait"
)

// fakePart counts what happens to it and fails when told to.
type fakePart struct {
	opens, closes, running atomic.Int32
	fail                   chan error
	openErr                atomic.Pointer[error]
}

func newFakePart() *fakePart { return &fakePart{fail: make(chan error)} }

func (p *fakePart) spec(name, key string) unitSpec {
	return unitSpec{name: name, key: key, open: func() (runner, error) {
		if err := p.openErr.Load(); err != nil {
			return nil, *err
		}
		p.opens.Add(1)
		return p, nil
	}}
}

func (p *fakePart) Run(ctx context.Context) error {
	p.running.Add(1)
	defer p.running.Add(-1)
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.fail:
		return err
	}
}

func (p *fakePart) Close() error { p.closes.Add(1); return nil }

func testUnits(t *testing.T) *unitSet {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	log := logrus.New()
	log.SetOutput(io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	s := newUnitSet(ctx, log)
	s.first = time.Millisecond
	t.Cleanup(func() {
		c, _ := s.prepare(nil)
		c.commit()
		cancel()
	})
	return s
}

func apply(t *testing.T, s *unitSet, specs ...unitSpec) {
	t.Helper()
	c, err := s.prepare(specs)
	if err != nil {
		t.Fatal(err)
	}
	c.commit()
}

func TestUnitsUnchangedAreLeftAlone(t *testing.T) {
	s := testUnits(t)
	a, b, c := newFakePart(), newFakePart(), newFakePart()
	apply(t, s, a.spec("a", "a1"), b.spec("b", "b1"))
	apply(t, s, a.spec("a", "a1"), c.spec("b", "b2"))
	if a.opens.Load() != 1 || a.closes.Load() != 0 {
		t.Errorf("a was opened %d times and closed %d times", a.opens.Load(), a.closes.Load())
	}
	if b.closes.Load() != 1 || c.opens.Load() != 1 {
		t.Errorf("b was not replaced: closed %d, opened %d", b.closes.Load(), c.opens.Load())
	}
}

func TestUnitsChangeAsAWholeOrNotAtAll(t *testing.T) {
	s := testUnits(t)
	a, b, bad := newFakePart(), newFakePart(), newFakePart()
	apply(t, s, a.spec("a", "a1"))
	refused := errors.New("no such interface")
	bad.openErr.Store(&refused)
	if _, err := s.prepare([]unitSpec{b.spec("b", "b1"), bad.spec("bad", "bad1")}); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	if b.opens.Load() != 1 || b.closes.Load() != 1 {
		t.Errorf("b was opened %d times and closed %d times", b.opens.Load(), b.closes.Load())
	}
	if got := s.statuses(); len(got) != 1 || got[0].name != "a" || a.closes.Load() != 0 {
		t.Errorf("the running units changed: %+v", got)
	}
}

func TestFailedUnitIsStartedAgain(t *testing.T) {
	s := testUnits(t)
	a := newFakePart()
	apply(t, s, a.spec("a", "a1"))
	testwait.Until(t, "a runs", func() bool { return a.running.Load() == 1 })
	gone := errors.New("interface vanished")
	a.openErr.Store(&gone)
	a.fail <- gone
	testwait.Until(t, "the failure shows", func() bool {
		st := s.statuses()[0]
		return st.state == unitFailed && errors.Is(st.err, gone)
	})
	a.openErr.Store(nil)
	testwait.Until(t, "a runs again", func() bool {
		return s.statuses()[0].state == unitRunning && a.opens.Load() == 2 && a.running.Load() == 1
	})
}
