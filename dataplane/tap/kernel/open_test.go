package kernel

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// need opens a tap for the time of the test. Without the privilege, or on a kernel too old, the test is skipped.
func need(t testing.TB, c Config) *Tap {
	t.Helper()
	k, err := Open(c)
	if errors.Is(err, ErrPermission) || errors.Is(err, ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func TestOpenRefusesBadConfigurations(t *testing.T) {
	for want, c := range map[string]Config{
		"mode 9":      {Mode: 9},
		"10 flows":    {MaxFlows: 10},
		"ring of 100": {RingSize: 100},
		"interval":    {Interval: time.Microsecond},
	} {
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}

func TestProgramsPassTheVerifier(t *testing.T) {
	for _, m := range []Mode{TCX, XDP} {
		need(t, Config{Mode: m})
	}
}
