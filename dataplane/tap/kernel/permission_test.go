package kernel

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutCapabilities runs fn on a thread that has none, and ends with it.
func withoutCapabilities(fn func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&head, &none[0]); err != nil {
			done <- err
			return
		}
		done <- fn()
	}()
	return <-done
}

func TestMissingCapabilitiesAreNamed(t *testing.T) {
	if b, err := os.ReadFile("/proc/sys/kernel/unprivileged_bpf_disabled"); err != nil || strings.TrimSpace(string(b)) == "0" {
		t.Skip("needs kernel.unprivileged_bpf_disabled")
	}
	for _, m := range []Mode{TCX, XDP} {
		err := withoutCapabilities(func() error {
			k, err := Open(Config{Mode: m})
			if err == nil {
				return errors.Join(errors.New("it opened"), k.Close())
			}
			return err
		})
		if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "CAP_BPF and CAP_NET_ADMIN") {
			t.Errorf("%v: %v", m, err)
		}
	}
}
