package kernel

import (
	"testing"
	"time"
)

func TestRateOfTheTimerInterruptsIsFound(t *testing.T) {
	const early = uint64(20 * time.Millisecond) // the clock is zero before the first one
	for _, hz := range rates {
		for _, up := range []time.Duration{time.Second, time.Minute, 10 * time.Minute, 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
			nanos := (1e9 + hz/2) / hz
			count := 1<<32 - 300*hz + uint64(up)/nanos
			if j := newJiffies(count, uint64(up)+early); j.nanos != nanos || j.from != count {
				t.Errorf("%d a second, up for %v: %+v", hz, up, j)
			}
		}
	}
}

func TestRateThatIsNotCertainIsNotTaken(t *testing.T) {
	for _, tt := range []struct {
		name      string
		count, at uint64
	}{
		{"all rates fit", 1 << 32, uint64(5 * time.Minute)},
		{"none fits", 1<<32 - 300*250 + 250*3600, uint64(2 * time.Hour)},
		{"no count", 0, 0},
	} {
		if j := newJiffies(tt.count, tt.at); j != (jiffies{}) {
			t.Errorf("%s: %+v", tt.name, j)
		}
	}
}

// The program's times must be CLOCK_MONOTONIC's, whichever way it reads them.
func TestProgramTellsTheTimeBothWays(t *testing.T) {
	need(t, Config{MaxFlows: 1024, RingSize: 1 << 16}).Close()
	j, err := readJiffies()
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%+v", j); j.nanos == 0 {
		return // the program reads the clock: some 5 minutes after the machine's start, and on a kernel with another rate
	}
	var clock WallClock
	clock.Compare(time.Now())
	again, err := readJiffies()
	if err != nil {
		t.Fatal(err)
	}
	at := j.at + (again.from-j.from)*j.nanos
	if d := int64(at - again.at); d > int64(j.nanos) || d < -int64(j.nanos) {
		t.Errorf("by the count it is %d, by the clock %d", at, again.at)
	}
}
