package tcx

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/kernel"
	"pncd/dataplane/tap/taptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const eachPacket time.Duration = -1 // as Config.Gate

// need opens a detector in a namespace for the time of the test. Without the privilege, or on a kernel too old, the test is
// skipped.
func need(t testing.TB, ns *taptest.NS, c Config) *Detector {
	t.Helper()
	var d *Detector
	err := ns.Do(func() (err error) {
		d, err = Open(c)
		return err
	})
	if errors.Is(err, kernel.ErrPermission) || errors.Is(err, kernel.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	good := Queue{Rate: 1e9, Kmin: 1000, Kmax: 2000, Pmax: 0.1}
	queue := func(change func(*Queue)) Config {
		q := good
		change(&q)
		return Config{Queue: &q}
	}
	for _, tt := range []struct {
		config Config
		want   string
	}{
		{Config{}, "neither CE marks nor a virtual queue"},
		{Config{CE: true, Gate: time.Hour}, "gate 1h0m0s"},
		{Config{CE: true, Flows: 10}, "10 flows"},
		{Config{CE: true, Flows: 1 << 23}, "8388608 flows"},
		{queue(func(q *Queue) { q.Rate = 1000 }), "rate of 1000 b/s"},
		{queue(func(q *Queue) { q.Rate = 2 * MaxRate }), "rate of"},
		{queue(func(q *Queue) { q.Kmin = 2000 }), "Kmin of 2000 octets"},
		{queue(func(q *Queue) { q.Kmax = 1 << 31 }), "Kmax of"},
		{queue(func(q *Queue) { q.Rate, q.Kmax = MinRate, MinRate/8+1 }), "a second of the rate"},
		{queue(func(q *Queue) { q.Pmax = 0 }), "Pmax of 0"},
		{queue(func(q *Queue) { q.Pmax = 1.1 }), "Pmax of 1.1"},
	} {
		if _, err := Open(tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.config, err, tt.want)
		}
	}
	err := taptest.Need(t).Do(func() error { _, err := Open(Config{Interface: "none", CE: true}); return err })
	if !errors.Is(err, ErrNoInterface) || !strings.Contains(err.Error(), "none") {
		t.Errorf("no interface: %v", err)
	}
}

func TestMissingCapabilitiesAreNamed(t *testing.T) {
	taptest.NeedPrivilegedBPF(t)
	err := taptest.WithCapabilities(func() error {
		d, err := Open(Config{Interface: "lo", CE: true})
		if err == nil {
			return errors.Join(errors.New("it opened"), d.Close())
		}
		return err
	})
	if !errors.Is(err, kernel.ErrPermission) || !strings.Contains(err.Error(), "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN") {
		t.Error(err)
	}
}

// The capabilities that are named are enough.
func TestNamedCapabilitiesAreEnough(t *testing.T) {
	a, _ := taptest.Pair(t)
	need(t, a, Config{Interface: "va", CE: true})
	err := a.Do(func() error {
		if err := taptest.SetCapabilities(unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_NET_ADMIN); err != nil {
			return err
		}
		d, err := Open(Config{Interface: "va", CE: true, Queue: &slow})
		if err != nil {
			return err
		}
		return d.Close()
	})
	if err != nil {
		t.Error(err)
	}
}
