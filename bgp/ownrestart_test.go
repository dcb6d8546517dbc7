package bgp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pncd/bgp/engine"
	"pncd/internal/testwait"
)

func TestRFC4724Section41NeighboursHearTheEndWhenAllIsAnnouncedOrLate(t *testing.T) {
	r := OwnRestart{Enabled: true, Restarted: true}
	r.complete()
	start := time.Unix(1000, 0)
	for name, tt := range map[string]struct {
		announced []bool // at each second from the start on
		want      int    // the second at which it is over; -1: not yet
	}{
		"nothing yet":            {[]bool{false, false, false, false}, -1},
		"all at once":            {[]bool{true, true, true, true}, 2},
		"after a while":          {[]bool{false, true, true, true, true}, 3},
		"not for long enough":    {[]bool{true, true, false, true, true, true}, 5},
		"the bound is reached":   {make([]bool, 61), 60},
		"and not before a bound": {make([]bool, 60), -1},
	} {
		c := r.begin(start)
		got := -1
		for s, a := range tt.announced {
			if c.over(start.Add(time.Duration(s)*time.Second), a) {
				got = s
				break
			}
		}
		if got != tt.want {
			t.Errorf("%s: over after %d s, want %d", name, got, tt.want)
		}
	}
	for name, r := range map[string]OwnRestart{"the first start": {Enabled: true}, "switched off": {Restarted: true}} {
		r.complete()
		if c := r.begin(start); c.over(start.Add(time.Hour), true) {
			t.Errorf("%s: nobody waits", name)
		}
	}
}

func TestOwnRestartIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		r    OwnRestart
		want string
	}{
		"the zero value":        {OwnRestart{}, ""},
		"on":                    {OwnRestart{Enabled: true, Keep: true}, ""},
		"the most":              {OwnRestart{Enabled: true, Time: 4095 * time.Second}, ""},
		"more than 12 bits":     {OwnRestart{Enabled: true, Time: 4096 * time.Second}, "restart time"},
		"a part of a second":    {OwnRestart{Enabled: true, Time: 1500 * time.Millisecond}, "restart time"},
		"negative":              {OwnRestart{Enabled: true, Time: -time.Second}, "restart time"},
		"a negative deferral":   {OwnRestart{Enabled: true, Deferral: -1}, "deferral"},
		"keep without anything": {OwnRestart{Keep: true}, "keep"},
	} {
		cfg := sound()
		cfg.Restart = tt.r
		err := cfg.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if e := (&OwnRestart{Time: time.Minute, Restarted: true}).engine(); e != (engine.OwnRestart{}) {
		t.Errorf("switched off, and the engine is told %+v", e)
	}
}

// What speakers tell their engine at a start that is a restart, and at the end.
func TestASpeakerThatRestartedEndsItWhenEverythingIsAnnounced(t *testing.T) {
	ends := func(r *running) (n int) {
		for _, line := range r.f.log() {
			if line == "end of RIB" {
				n++
			}
		}
		return n
	}
	for _, restarted := range []bool{true, false} {
		t.Run(map[bool]string{true: "a restart", false: "another start"}[restarted], func(t *testing.T) {
			cfg := sound()
			cfg.Restart = OwnRestart{Enabled: true, Restarted: restarted}
			r := run(t, cfg)
			if err := r.SetOriginating(true); err != nil {
				t.Fatal(err)
			}
			if !restarted {
				r.comeBack(t.Context())
				if ends(r) != 0 {
					t.Error("End-of-RIB for nobody")
				}
				return
			}
			testwait.Until(t, "End-of-RIB", func() bool { return ends(r) == 1 })
			if !r.f.has(pfx) {
				t.Error("End-of-RIB, and the prefix isn't announced")
			}
		})
	}
}

func TestAStopKeepsOnlyWhenItIsToldTo(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(map[bool]string{true: "keep", false: "withdraw"}[keep], func(t *testing.T) {
			cfg := sound()
			cfg.Restart = OwnRestart{Enabled: true, Keep: !keep}
			r := run(t, cfg)
			// It can change while the program runs.
			cfg.Restart.Keep = keep
			if err := r.Reconfigure(cfg); err != nil {
				t.Fatal(err)
			}
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			log := r.f.log()
			if last := log[len(log)-1]; strings.HasPrefix(last, "leave") != keep {
				t.Errorf("%s", last)
			}
		})
	}
}

func TestWhatNeighboursWereToldAboutRestartsStays(t *testing.T) {
	cfg := sound()
	cfg.Restart = OwnRestart{Enabled: true}
	r := run(t, cfg)
	for _, next := range []OwnRestart{{}, {Enabled: true, Time: time.Second}, {Enabled: true, Deferral: time.Second}} {
		cfg.Restart = next
		if err := r.Reconfigure(cfg); !errors.Is(err, ErrRestart) {
			t.Errorf("%+v: %v", next, err)
		}
	}
}
