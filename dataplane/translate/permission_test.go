package translate

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// withCapabilities runs fn on a thread that has no others, and ends with it.
func withCapabilities(fn func() error, caps ...uint) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var set [2]unix.CapUserData
		for _, c := range caps {
			set[c/32].Effective |= 1 << (c % 32)
			set[c/32].Permitted |= 1 << (c % 32)
		}
		if err := unix.Capset(&head, &set[0]); err != nil {
			done <- err
			return
		}
		done <- fn()
	}()
	return <-done
}

func openAndClose() error {
	k, err := Open(Config{})
	if err != nil {
		return err
	}
	return k.Close()
}

// Three capabilities are enough; without one of them the error names them.
func TestCapabilities(t *testing.T) {
	if b, err := os.ReadFile("/proc/sys/kernel/unprivileged_bpf_disabled"); os.Geteuid() != 0 || err != nil || strings.TrimSpace(string(b)) == "0" {
		t.Skip("needs root and kernel.unprivileged_bpf_disabled")
	}
	if err := withCapabilities(openAndClose, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_NET_ADMIN); err != nil {
		t.Errorf("with all: %+v", err)
	}
	for _, caps := range [][]uint{{}, {unix.CAP_BPF, unix.CAP_NET_ADMIN}, {unix.CAP_PERFMON, unix.CAP_NET_ADMIN}} {
		if err := withCapabilities(openAndClose, caps...); !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN") {
			t.Errorf("with %v: %v", caps, err)
		}
	}
}
