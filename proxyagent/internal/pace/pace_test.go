package pace

import (
	"testing"
	"time"
)

var start = time.Unix(1_800_000_000, 0)

func try(k *Keyed[int], key int, now time.Time) bool {
	s := k.State(key)
	if !k.Allowed(s, now) {
		return false
	}
	k.Sent(s, now)
	return true
}

func TestAtMostOneInAWindow(t *testing.T) {
	k := NewKeyed[int](Limits{Window: 50 * time.Microsecond, PerSecond: 1000}, 8)
	for _, tc := range []struct {
		after time.Duration
		key   int
		want  bool
	}{
		{0, 1, true},
		{0, 1, false},
		{0, 2, true}, // another key has its own window
		{49_999 * time.Nanosecond, 1, false},
		{50 * time.Microsecond, 1, true},
		{99 * time.Microsecond, 1, false}, // from the one sent, not from the one refused
		{100 * time.Microsecond, 1, true},
	} {
		if got := try(k, tc.key, start.Add(tc.after)); got != tc.want {
			t.Errorf("key %d after %v: %v, want %v", tc.key, tc.after, got, tc.want)
		}
	}
}

func TestAtMostSoManyInASecond(t *testing.T) {
	k := NewKeyed[int](Limits{Window: 50 * time.Microsecond, PerSecond: 1000}, 8)
	for second := range 3 {
		sent := 0
		for i := range 20_000 {
			if try(k, 1, start.Add(time.Duration(second)*time.Second+time.Duration(i)*50*time.Microsecond)) {
				sent++
			}
		}
		if sent != 1000 {
			t.Errorf("second %d: %d sent, want 1000", second, sent)
		}
	}
}

func TestAskingUsesNothingUp(t *testing.T) {
	k := NewKeyed[int](Limits{Window: time.Millisecond, PerSecond: 1}, 8)
	for range 3 {
		if !k.Allowed(k.State(1), start) {
			t.Fatal("refused before anything was sent")
		}
	}
}

func TestAClockSetBackDoesNotSilenceAKey(t *testing.T) {
	k := NewKeyed[int](Limits{Window: 50 * time.Microsecond, PerSecond: 2}, 8)
	try(k, 1, start)
	try(k, 1, start.Add(time.Millisecond))
	back := start.Add(-time.Hour)
	if !try(k, 1, back) {
		t.Error("refused after the clock was set back")
	}
	if try(k, 1, back) {
		t.Error("the window does not hold after the clock was set back")
	}
}

// Two sockets' readers stamp their batches before they wait for each other.
func TestALateTimeIsNoClockSetBack(t *testing.T) {
	k := NewKeyed[int](Limits{Window: 50 * time.Microsecond, PerSecond: 3}, 8)
	try(k, 1, start.Add(30*time.Microsecond))
	if try(k, 1, start.Add(20*time.Microsecond)) {
		t.Error("a time that is 10 us late opens the window")
	}
	sent := 0
	for i := range 100 {
		now := start.Add(time.Duration(i+1) * time.Millisecond)
		for _, at := range []time.Time{now.Add(time.Millisecond), now} {
			if try(k, 2, at) {
				sent++
			}
		}
	}
	if sent != 3 {
		t.Errorf("%d sent in a second of times in disorder, want 3", sent)
	}
}

func TestKeysAreBounded(t *testing.T) {
	k := NewKeyed[int](Limits{Window: time.Second, PerSecond: 1}, 100)
	for i := range 1000 {
		if !try(k, i, start) {
			t.Fatalf("key %d refused", i)
		}
	}
	if k.Len() != 100 || k.Evicted() != 900 {
		t.Errorf("Len %d, Evicted %d; want 100, 900", k.Len(), k.Evicted())
	}
}

func TestNewLimitsKeepWhatWasUsed(t *testing.T) {
	k := NewKeyed[int](Limits{Window: time.Microsecond, PerSecond: 2}, 8)
	try(k, 1, start)
	k.SetLimits(Limits{Window: time.Microsecond, PerSecond: 1})
	if try(k, 1, start.Add(time.Millisecond)) {
		t.Error("the new limit does not count what was sent before it")
	}
}

func TestBucketGivesBurstThenRate(t *testing.T) {
	for _, rate := range []int{1, 3, 1000, 300_000} {
		b := NewBucket(rate, 10)
		taken := 0
		for b.Take(start) {
			taken++
		}
		if taken != 10 {
			t.Errorf("rate %d: burst of %d, want 10", rate, taken)
		}
		taken = 0
		const steps = 1_000_000
		for i := 1; i <= steps; i++ {
			if b.Take(start.Add(time.Duration(i) * time.Second / steps)) {
				taken++
			}
		}
		if taken > rate || float64(taken) < 0.999*float64(rate)-1 {
			t.Errorf("rate %d: %d in a second", rate, taken)
		}
	}
}

func TestBucketAfterALongSilenceHoldsOneBurst(t *testing.T) {
	b := NewBucket(1000, 5)
	for b.Take(start) {
	}
	later := start.Add(200 * 365 * 24 * time.Hour)
	taken := 0
	for b.Take(later) {
		taken++
	}
	if taken != 5 {
		t.Errorf("%d tokens after a long silence, want 5", taken)
	}
}

func TestBucketWithAClockSetBackGoesOn(t *testing.T) {
	b := NewBucket(1000, 1)
	b.Take(start)
	b.Take(start.Add(-time.Hour))
	if !b.Take(start.Add(-time.Hour + time.Millisecond)) {
		t.Error("no token a millisecond after the clock was set back")
	}
}

func TestBucketGivesNothingTwiceForTimesInDisorder(t *testing.T) {
	b := NewBucket(1000, 1)
	taken := 0
	for i := range 1000 {
		for _, back := range []time.Duration{0, 500 * time.Microsecond} {
			if b.Take(start.Add(time.Duration(i)*10*time.Microsecond - back)) {
				taken++
			}
		}
	}
	if taken > 11 { // 10 ms at 1,000 a second, and the burst
		t.Errorf("%d tokens in 10 ms at 1,000 a second", taken)
	}
}

func TestBucketTakesANewRateAndBurst(t *testing.T) {
	b := NewBucket(1000, 1000)
	b.Set(10, 2)
	taken := 0
	for b.Take(start) {
		taken++
	}
	if taken != 2 {
		t.Errorf("burst of %d at once, want 2", taken)
	}
	if b.Take(start.Add(99*time.Millisecond)) || !b.Take(start.Add(100*time.Millisecond)) {
		t.Error("the new rate does not hold")
	}
}

func BenchmarkKeyed(b *testing.B) {
	b.ReportAllocs()
	k := NewKeyed[int](Limits{Window: DefaultWindow, PerSecond: DefaultPerSecond}, DefaultMaxKeys)
	now, i := start, 0
	for b.Loop() {
		now = now.Add(time.Microsecond)
		try(k, i&0xffff, now)
		i++
	}
}
