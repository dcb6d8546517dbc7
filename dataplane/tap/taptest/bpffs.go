package taptest

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// BPFFS gives a folder of a BPF filesystem of the test's own that is not there yet.
func BPFFS(t testing.TB) string {
	t.Helper()
	root, closing, err := NewBPFFS()
	if errors.Is(err, unix.EPERM) {
		t.Skip("needs CAP_SYS_ADMIN (run as root)")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closing)
	return root
}

// NewBPFFS mounts a BPF filesystem at no place, and gives a folder of it that is not there yet: it goes with the process's
// file, whatever happens. It needs CAP_SYS_ADMIN.
func NewBPFFS() (root string, closing func(), err error) {
	fs, err := unix.Fsopen("bpf", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return "", nil, fmt.Errorf("BPF filesystem: %w", err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigCreate(fs); err != nil {
		return "", nil, fmt.Errorf("BPF filesystem: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("BPF filesystem: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/pncd", mount), func() { _ = unix.Close(mount) }, nil
}
