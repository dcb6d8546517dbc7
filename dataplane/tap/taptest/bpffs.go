package taptest

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// BPFFS mounts a BPF filesystem at no place, and gives a folder of it that is not there yet: it goes with the test's file,
// whatever happens.
func BPFFS(t testing.TB) string {
	t.Helper()
	fs, err := unix.Fsopen("bpf", unix.FSOPEN_CLOEXEC)
	if errors.Is(err, unix.EPERM) {
		t.Skip("needs CAP_SYS_ADMIN (run as root)")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigCreate(fs); err != nil {
		t.Fatal(err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(mount) })
	return fmt.Sprintf("/proc/self/fd/%d/pncd", mount)
}
