package translate

import (
	"context"
	"errors"
	"testing"
	"time"

	"pncd/dataplane/tap/kernel"
	"pncd/internal/testwait"
)

// A process that hangs takes no answer away: the program must not go on with what it had.
func TestAnswersThatNobodyLooksAfterAreNotUsed(t *testing.T) {
	b := newBench(t, Config{}, true)
	if err := putFlow(b.Translator, 1); err != nil {
		t.Fatal(err)
	}
	const now = uint64(time.Hour)
	until := func(at uint64) {
		t.Helper()
		if err := errors.Join(b.vars.TurnedTo.Set(now), b.vars.AttendedUntil.Set(at)); err != nil {
			t.Fatal(err)
		}
	}
	until(now - 1)
	if a := b.notify(t, 1); a != xdpPass {
		t.Errorf("unattended: action %d", a)
	}
	if c := b.counters(t); c.Up[UpUnattended] != 1 || c.Outcomes != [64]uint64{} {
		t.Errorf("unattended: %+v", c)
	}
	until(now)
	b.notify(t, 1)
	if c := b.counters(t); c.Up[UpUnattended] != 1 || c.Outcomes[Translated] != 1 {
		t.Errorf("attended: %+v", c)
	}
}

func TestRunLooksAfterTheAnswers(t *testing.T) {
	b := newBench(t, Config{}, false)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, func(*Event) {}) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	until := func() (at uint64) {
		if err := b.vars.AttendedUntil.Get(&at); err != nil {
			t.Error(err)
		}
		return at
	}
	var clock kernel.WallClock
	clock.Compare(time.Now())
	soon := func(at uint64) bool { return at <= clock.Mono(time.Now().Add(attention+time.Second)) }
	testwait.Until(t, "the first word", func() bool { return soon(until()) })
	first := until()
	testwait.Until(t, "another word", func() bool { return until() > first && soon(until()) })
}
