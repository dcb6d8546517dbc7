package kernel

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/taptest"
)

func TestMissingCapabilitiesAreNamed(t *testing.T) {
	taptest.NeedPrivilegedBPF(t)
	need(t, Config{}) // what the kernel can do is asked once in a process, and without the capabilities it can little
	for _, m := range []Mode{TCX, XDP} {
		err := taptest.WithCapabilities(func() error {
			k, err := Open(Config{Mode: m})
			if err == nil {
				return errors.Join(errors.New("it opened"), k.Close())
			}
			return err
		})
		if !errors.Is(err, ErrPermission) || !errors.Is(err, unix.EPERM) ||
			!strings.HasSuffix(err.Error(), ": needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: run as root or grant the capabilities (operation not permitted)") {
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
		root := taptest.BPFFS(t)
		without := taptest.WithCapabilities(func() error {
			_, err := Open(Config{Mode: m, MaxFlows: 1024, RingSize: 1 << 16})
			return err
		}, unix.CAP_BPF, unix.CAP_NET_ADMIN)
		err := a.Do(func() error {
			if err := taptest.SetCapabilities(unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_NET_ADMIN); err != nil {
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
