package taptest

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// WithCapabilities runs fn on a thread that has these capabilities (unix.CAP_...) and no others, and ends with it.
func WithCapabilities(fn func() error, caps ...uint) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if err := SetCapabilities(caps...); err != nil {
			done <- err
			return
		}
		done <- fn()
	}()
	return <-done
}

// SetCapabilities leaves the calling thread these capabilities and no others. It is for threads that end afterwards, as that of NS.Do.
func SetCapabilities(caps ...uint) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var set [2]unix.CapUserData
	for _, c := range caps {
		set[c/32].Effective |= 1 << (c % 32)
		set[c/32].Permitted |= 1 << (c % 32)
	}
	return unix.Capset(&head, &set[0])
}

// NeedPrivilegedBPF skips the test where every process may load some programs, so that no capability is missed.
func NeedPrivilegedBPF(tb testing.TB) {
	tb.Helper()
	if b, err := os.ReadFile("/proc/sys/kernel/unprivileged_bpf_disabled"); err != nil || strings.TrimSpace(string(b)) == "0" {
		tb.Skip("needs kernel.unprivileged_bpf_disabled")
	}
}
