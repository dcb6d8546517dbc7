package kernel

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/taptest"
)

func TestMissingCapabilitiesAreNamed(t *testing.T) {
	if b, err := os.ReadFile("/proc/sys/kernel/unprivileged_bpf_disabled"); err != nil || strings.TrimSpace(string(b)) == "0" {
		t.Skip("needs kernel.unprivileged_bpf_disabled")
	}
	for _, m := range []Mode{TCX, XDP} {
		err := taptest.WithoutCapabilities(func() error {
			k, err := Open(Config{Mode: m})
			if err == nil {
				return errors.Join(errors.New("it opened"), k.Close())
			}
			return err
		})
		if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN") {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// The service's own capabilities are enough: no more are named anywhere.
func TestNamedCapabilitiesAreEnough(t *testing.T) {
	a, _ := taptest.Pair(t)
	need(t, Config{})
	for _, m := range []Mode{TCX, XDP, Clsact} {
		var pins *Pins
		root := bpffs(t)
		var without error
		err := a.Do(func() error {
			head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var three [2]unix.CapUserData
			three[0].Effective = 1 << unix.CAP_NET_ADMIN
			three[1].Effective = 1<<(unix.CAP_BPF-32) | 1<<(unix.CAP_PERFMON-32)
			for i := range three {
				three[i].Permitted = three[i].Effective
			}
			fewer := three
			fewer[1].Effective = 1 << (unix.CAP_BPF - 32)
			if err := unix.Capset(&head, &fewer[0]); err != nil {
				return err
			}
			_, without = Open(Config{Mode: m, MaxFlows: 1024, RingSize: 1 << 16})
			if err := unix.Capset(&head, &three[0]); err != nil {
				return err
			}
			var err error
			if pins, err = OpenPins(root); err != nil {
				return err
			}
			k, err := Open(Config{Mode: m, MaxFlows: 1024, RingSize: 1 << 16, Pins: pins})
			if err != nil {
				return err
			}
			_, err = k.Attach("va")
			return errors.Join(err, k.Close(), pins.Close())
		})
		if err != nil {
			t.Errorf("%v: %v", m, err)
		}
		if !errors.Is(without, ErrPermission) {
			t.Errorf("%v without CAP_PERFMON: %v", m, without)
		}
	}
}
