package labtraffic

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// inNetns calls fn with its thread in the named network namespace; in the process's own for an empty
// name. What fn opens stays in that namespace.
func inNetns(name string, fn func() error) error {
	if name == "" {
		return fn()
	}
	runtime.LockOSThread()
	before, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("open the own network namespace: %w", err)
	}
	defer func() { _ = before.Close() }()
	target, err := netns.GetFromName(name)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("network namespace %q: %w", name, err)
	}
	defer func() { _ = target.Close() }()
	if err := netns.Set(target); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter network namespace %q (needs CAP_SYS_ADMIN): %w", name, err)
	}
	ferr := fn()
	if err := netns.Set(before); err != nil {
		// The thread stays locked and ends with its goroutine: it must not serve others from here.
		return fmt.Errorf("leave network namespace %q: %w", name, err)
	}
	runtime.UnlockOSThread()
	return ferr
}
