package readiness

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var (
	start = time.Unix(1_700_000_000, 0)
	one   = Key{Prefix: netip.MustParsePrefix("198.51.100.0/24")}
	cfg   = Config{
		WithdrawAfter: 30 * time.Second, AnnounceAfter: 60 * time.Second,
		Damping: Damping{HalfLife: 5 * time.Minute, Suppress: 2000, Reuse: 1000},
	}
	always = Config{Always: true, WithdrawAfter: 30 * time.Second, AnnounceAfter: 60 * time.Second}
)

// moment is one step of a timeline: at a second, with what is wrong (a reason, or "off"), the state
// expected and for how many seconds it lasts; -1: until something changes.
type moment struct {
	second int
	wrong  string
	state  State
	lasts  int
}

func input(k Key, wrong string) (enabled bool, in []Input) {
	i := Input{Key: k}
	for _, r := range Reasons() {
		if strings.Contains(wrong, r.String()) {
			i.Failed = append(i.Failed, Failure{r, "detail of " + r.String()})
		}
	}
	return wrong != "off", []Input{i}
}

func TestStates(t *testing.T) {
	for _, tc := range []struct {
		name string
		cfg  Config
		line []moment
	}{
		{"always announces whatever is wrong", always, []moment{
			{0, "tap-down", Announced, -1}, {100, "", Announced, -1}, {200, "no-route", Announced, -1},
		}},
		{"off is off, also always", always, []moment{{0, "off", Off, -1}, {1, "", Announced, -1}, {2, "off", Off, -1}}},
		{"the first announcement waits too", cfg, []moment{
			{0, "", Waiting, 60}, {59, "", Waiting, 1}, {60, "", Announced, -1},
		}},
		{"not ready is held, for as long as it takes", cfg, []moment{
			{0, "no-traffic", Held, -1}, {100_000, "no-traffic", Held, -1}, {100_001, "", Waiting, 60}, {100_061, "", Announced, -1},
		}},
		{"a short failure withdraws nothing", cfg, []moment{
			{0, "", Waiting, 60}, {60, "", Announced, -1}, {70, "tap-down", Losing, 30}, {99, "tap-down", Losing, 1},
			{100, "", Announced, -1}, {110, "tap-down", Losing, 30},
		}},
		{"a failure that lasts withdraws, whatever fails meanwhile", cfg, []moment{
			{0, "", Waiting, 60}, {60, "", Announced, -1}, {70, "tap-down", Losing, 30}, {80, "tap-loss", Losing, 20},
			{100, "no-route", Held, -1}, {101, "", Waiting, 60}, {161, "", Announced, -1},
		}},
		{"waiting begins anew after a failure", cfg, []moment{
			{0, "", Waiting, 60}, {50, "map-full", Held, -1}, {51, "", Waiting, 60}, {110, "", Waiting, 1}, {111, "", Announced, -1},
		}},
		{"switching off withdraws at once, switching on waits", cfg, []moment{
			{0, "", Waiting, 60}, {60, "", Announced, -1}, {61, "off", Off, -1}, {62, "", Waiting, 60}, {122, "", Announced, -1},
		}},
		{"without hold-downs it follows at once", Config{}, []moment{
			{0, "", Announced, -1}, {1, "socket-down", Held, -1}, {2, "", Announced, -1},
		}},
		{"a look that comes late", cfg, []moment{{0, "", Waiting, 60}, {1000, "", Announced, -1}, {2000, "tap-down", Losing, 30}, {3000, "tap-down", Held, -1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := NewBook(tc.cfg)
			for _, m := range tc.line {
				now := start.Add(time.Duration(m.second) * time.Second)
				enabled, in := input(one, m.wrong)
				b.Step(now, enabled, in)
				st, _ := b.Get(one)
				if st.State != m.state || st.Ready != (m.wrong == "") {
					t.Fatalf("second %d: %s, ready %v; want %s", m.second, st.State, st.Ready, m.state)
				}
				want := time.Time{}
				if m.lasts >= 0 {
					want = now.Add(time.Duration(m.lasts) * time.Second)
				}
				if !st.Until.Equal(want) || !b.Wake().Equal(want) {
					t.Fatalf("second %d: until %v, wake %v, want %v", m.second, st.Until, b.Wake(), want)
				}
			}
		})
	}
}

// flap lets the prefix lose readiness and be withdrawn, and become ready again, and gives the time.
func flap(b *Book, now time.Time) time.Time {
	for _, s := range []struct {
		after time.Duration
		wrong string
	}{{time.Second, "tap-down"}, {cfg.WithdrawAfter, "tap-down"}, {time.Second, ""}, {cfg.AnnounceAfter, ""}} {
		now = now.Add(s.after)
		enabled, in := input(one, s.wrong)
		b.Step(now, enabled, in)
	}
	return now
}

func TestDampingSuppressesWhatComesAndGoes(t *testing.T) {
	b := NewBook(cfg)
	now := start
	for _, after := range []time.Duration{0, time.Minute} {
		now = now.Add(after)
		b.Step(now, true, []Input{{Key: one}})
	}
	// Two withdrawals in three minutes stay below 2000, because the first has decayed; the third does not.
	for i := 1; i <= 2; i++ {
		now = flap(b, now)
		if st, _ := b.Get(one); st.State != Announced {
			t.Fatalf("after %d withdrawals: %s, penalty %.0f", i, st.State, st.Penalty)
		}
	}
	now = flap(b, now)
	st, _ := b.Get(one)
	if st.State != Suppressed || !st.Ready || st.Penalty <= float64(cfg.Damping.Reuse) {
		t.Fatalf("after 3 withdrawals: %+v", st)
	}
	want := time.Duration(float64(cfg.Damping.HalfLife) * math.Log2(st.Penalty/float64(cfg.Damping.Reuse)))
	if left := st.Until.Sub(now); left < want || left > want+time.Second {
		t.Errorf("suppressed for another %s, want %s", left, want)
	}
	if c := b.Counters(); c.Suppressed != 1 || c.Withdrawn[TapDown] != 3 || c.Announced != 3 || c.Prefixes[Suppressed] != 1 {
		t.Errorf("counters %+v", c)
	}
	b.Step(st.Until.Add(-time.Second), true, []Input{{Key: one}})
	if x, _ := b.Get(one); x.State != Suppressed {
		t.Errorf("a second before its end: %s", x.State)
	}
	b.Step(st.Until, true, []Input{{Key: one}})
	if x, _ := b.Get(one); x.State != Announced {
		t.Errorf("at its end: %s, penalty %.1f", x.State, x.Penalty)
	}
}

func TestSuppressionHasAnEndHoweverOftenAPrefixFlaps(t *testing.T) {
	b := NewBook(Config{Damping: cfg.Damping})
	longest := time.Duration(float64(cfg.Damping.HalfLife) * math.Log2((2000.+FlapPenalty)/1000))
	now := start
	for range 10_000 {
		for _, wrong := range []string{"", "tap-down"} {
			now = now.Add(time.Second)
			enabled, in := input(one, wrong)
			b.Step(now, enabled, in)
			if st, _ := b.Get(one); st.Until.Sub(now) > longest+time.Second || st.Penalty >= 2000+FlapPenalty {
				t.Fatalf("%+v", st)
			}
		}
	}
	// What the others see is bounded too: about one withdrawal for each time that the penalty takes to decay.
	if n := b.Counters().Withdrawn[TapDown]; n < 30 || n > 90 {
		t.Errorf("%d withdrawals in %s", n, now.Sub(start))
	}
}

func TestDampingSurvivesAPrefixThatIsTakenBack(t *testing.T) {
	b := NewBook(Config{Damping: cfg.Damping})
	now := start
	for range 3 {
		for _, wrong := range []string{"", "tap-down"} {
			now = now.Add(time.Second)
			enabled, in := input(one, wrong)
			b.Step(now, enabled, in)
		}
	}
	now = now.Add(time.Second)
	b.Step(now, true, nil)
	if n := len(b.Status()); n != 0 {
		t.Fatalf("%d prefixes are left", n)
	}
	b.Step(now.Add(time.Second), true, []Input{{Key: one}})
	if st, _ := b.Get(one); st.State != Suppressed {
		t.Errorf("back again: %s", st.State)
	}
	b.Step(now.Add(2*time.Second), true, nil)
	b.Step(now.Add(time.Hour), true, nil)
	if len(b.gone) != 0 {
		t.Errorf("%d penalties are kept an hour later", len(b.gone))
	}
}

func TestChangedConfiguration(t *testing.T) {
	b := NewBook(cfg)
	step := func(second int, wrong string) State {
		t.Helper()
		enabled, in := input(one, wrong)
		b.Step(start.Add(time.Duration(second)*time.Second), enabled, in)
		st, _ := b.Get(one)
		return st.State
	}
	step(0, "no-traffic")
	b.Configure(always, start)
	if s := step(1, "no-traffic"); s != Announced {
		t.Errorf("from when-ready to always: %s", s)
	}
	b.Configure(cfg, start)
	if s := step(20, "no-traffic"); s != Losing {
		t.Errorf("back to when-ready, unready for less than the hold-down: %s", s)
	}
	if s := step(30, "no-traffic"); s != Held {
		t.Errorf("at its end: %s", s)
	}
	before, _ := b.Get(one)
	off := cfg
	off.Damping = Damping{}
	b.Configure(off, start.Add(30*time.Second))
	if s := step(31, "no-traffic"); s != Held || before.Penalty != FlapPenalty {
		t.Errorf("%s, penalty %v", s, before.Penalty)
	}
	if st, _ := b.Get(one); st.Penalty != 0 {
		t.Errorf("without damping the penalty is %v", st.Penalty)
	}
}

func TestChangesAreToldOnceAndCounted(t *testing.T) {
	b := NewBook(cfg)
	two := Key{Context: "blue", Prefix: netip.MustParsePrefix("203.0.113.0/24")}
	both := func(a, z string) []Input {
		_, x := input(one, a)
		_, y := input(two, z)
		return append(y, x...)
	}
	var got []string
	for _, s := range []struct {
		second int
		a, z   string
	}{
		{0, "", "no-route no-traffic"}, {1, "", "no-traffic"}, {60, "", ""}, {61, "tap-loss", ""}, {70, "tap-down", ""}, {91, "tap-down", ""}, {120, "", "tap-down"},
	} {
		for _, c := range b.Step(start.Add(time.Duration(s.second)*time.Second), true, both(s.a, s.z)) {
			got = append(got, fmt.Sprintf("%d %s%s %s>%s %v", s.second, c.Context, c.Prefix, c.From, c.State, c.Withdrawn()))
		}
	}
	want := []string{
		"0 198.51.100.0/24 off>waiting false", "0 blue203.0.113.0/24 off>held false",
		"60 198.51.100.0/24 waiting>announced false", "60 blue203.0.113.0/24 held>waiting false",
		"61 198.51.100.0/24 announced>losing false", "91 198.51.100.0/24 losing>held true",
		"120 198.51.100.0/24 held>waiting false", "120 blue203.0.113.0/24 waiting>held false",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	c := b.Counters()
	if c.Announced != 1 || c.Withdrawn != [reasonCount]uint64{TapDown: 1} || c.Lost != [reasonCount]uint64{TapLoss: 1, TapDown: 1} {
		t.Errorf("counters %+v", c)
	}
	if s := b.Status(); len(s) != 2 || s[0].Key != one || s[1].Key != two || s[1].Failed[0].Reason != TapDown {
		t.Errorf("status %+v", s)
	}
}

func TestAPrefixThatIsNamedTwiceCountsOnce(t *testing.T) {
	b := NewBook(Config{})
	if c := b.Step(start, true, []Input{{Key: one}, {Key: one, Failed: []Failure{{TapDown, ""}}}}); len(c) != 1 || c[0].State != Announced {
		t.Errorf("%+v", c)
	}
}

func TestNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range append(Reasons(), None, reasonCount) {
		if r.String() == "" || seen[r.String()] {
			t.Errorf("reason %d is %q", r, r)
		}
		seen[r.String()] = true
	}
	seen = map[string]bool{}
	for _, s := range append(States(), stateCount) {
		if s.String() == "" || seen[s.String()] {
			t.Errorf("state %d is %q", s, s)
		}
		seen[s.String()] = true
	}
}
