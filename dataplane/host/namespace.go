package host

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ErrNamespacePermission is wrapped by the errors of a process that may not enter network namespaces.
var ErrNamespacePermission = errors.New("entering a network namespace needs CAP_SYS_ADMIN: grant it (docs/vpn.md has a drop-in for the unit)")

// openNamespace opens the file of a network namespace.
func openNamespace(path string) (netns.NsHandle, error) {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return ns, fmt.Errorf("network namespace %s: %w; 'ip netns list' shows the named ones, which are files in /run/netns", path, err)
	}
	return ns, nil
}

// Inside runs fn on a thread that is in a network namespace, named as NamespacePath reads it; empty: on the
// caller's thread, where it is. What fn opens stays in the namespace. fn must start no goroutine that expects to
// be there. The thread is given back only after it has left the namespace, else it ends.
func Inside(namespace string, fn func() error) error {
	path := NamespacePath(namespace)
	if path == "" {
		return fn()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err, left := enter(path, fn)
		if left {
			runtime.UnlockOSThread() // without it the thread ends with this goroutine
		}
		done <- err
	}()
	return <-done
}

// enter runs fn inside; left says whether the thread is where it was before.
func enter(path string, fn func() error) (err error, left bool) {
	own, err := netns.Get()
	if err != nil {
		return fmt.Errorf("this thread's network namespace: %w", err), true
	}
	defer own.Close()
	there, err := openNamespace(path)
	if err != nil {
		return err, true
	}
	defer there.Close()
	if err := netns.Set(there); err != nil {
		switch {
		case errors.Is(err, unix.EPERM):
			err = fmt.Errorf("%w: %w", ErrNamespacePermission, err)
		case errors.Is(err, unix.EINVAL):
			err = fmt.Errorf("it is no network namespace (%w)", err)
		}
		return fmt.Errorf("network namespace %s: %w", path, err), true
	}
	err = fn()
	return err, netns.Set(own) == nil
}

// NamespaceID identifies the namespace that a name stands for now, so that another one in its place shows; empty
// for the empty name.
func NamespaceID(namespace string) (string, error) {
	path := NamespacePath(namespace)
	if path == "" {
		return "", nil
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("network namespace %s: %w", path, err)
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}
