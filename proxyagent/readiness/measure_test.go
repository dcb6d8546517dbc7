package readiness

import (
	"testing"
	"time"
)

func TestMeterGivesWhatWasAddedInTheWindow(t *testing.T) {
	const window = 10 * time.Second
	var m Meter
	for _, s := range []struct {
		second               int
		good, lost           uint64
		addedGood, addedLost uint64
	}{
		{0, 1000, 50, 0, 0}, // what was before the first look doesn't count
		{1, 1100, 50, 100, 0},
		{5, 1200, 60, 200, 10},
		{10, 1300, 60, 300, 10},
		{11, 1300, 60, 200, 10}, // from second 1
		{15, 1400, 60, 200, 0},  // from second 5
		{16, 0, 0, 0, 0},        // begins anew
		{17, 7, 3, 7, 3},
		{100, 8, 3, 1, 0}, // looked at rarely: since the last look
	} {
		good, lost := m.Add(start.Add(time.Duration(s.second)*time.Second), window, s.good, s.lost)
		if good != s.addedGood || lost != s.addedLost {
			t.Errorf("second %d: %d good, %d lost; want %d, %d", s.second, good, lost, s.addedGood, s.addedLost)
		}
	}
}

func TestMeterIsBoundedHoweverOftenItIsAsked(t *testing.T) {
	var m Meter
	now := start
	for i := range uint64(100_000) {
		now = now.Add(time.Millisecond)
		if good, _ := m.Add(now, 10*time.Second, i, 0); i > 20_000 && (good < 10_000 || good > 10_400) {
			t.Fatalf("%d added in 10 s of one a millisecond", good)
		}
	}
	if n := len(m.samples); n > samplesPerWindow+2 {
		t.Errorf("%d samples are kept", n)
	}
}

func TestExceeds(t *testing.T) {
	for _, tc := range []struct {
		good, lost uint64
		percent    int
		want       bool
	}{
		{0, 0, 0, false}, {0, 1, 0, true}, {0, 1, 99, true}, {0, 1, 100, false}, {99, 1, 1, false}, {98, 2, 1, true}, {1 << 60, 1, 1, false},
	} {
		if got := Exceeds(tc.good, tc.lost, tc.percent); got != tc.want {
			t.Errorf("%d good, %d lost, %d %%: %v", tc.good, tc.lost, tc.percent, got)
		}
	}
}

func TestTrafficIsAskedForInBothDirections(t *testing.T) {
	const within = 10 * time.Minute
	ago := func(d time.Duration) time.Time { return start.Add(-d) }
	for _, tc := range []struct {
		name          string
		within        time.Duration
		from, towards time.Time
		want          string
	}{
		{"both", within, ago(within), ago(0), ""},
		{"never", within, time.Time{}, time.Time{}, "no traffic of the senders was seen within 10m0s"},
		{"long ago", within, ago(within + 1), ago(within + 1), "no traffic of the senders was seen within 10m0s"},
		{"one way", within, ago(0), time.Time{}, "no traffic towards the senders was seen within 10m0s"},
		{"the other way", within, ago(within + 1), ago(0), "no traffic from the senders was seen within 10m0s"},
		{"not asked for", 0, time.Time{}, time.Time{}, ""},
	} {
		got := Traffic(start, tc.within, tc.from, tc.towards)
		if tc.want == "" && len(got) != 0 || tc.want != "" && (len(got) != 1 || got[0] != Failure{NoTraffic, tc.want}) {
			t.Errorf("%s: %v, want %q", tc.name, got, tc.want)
		}
	}
}
