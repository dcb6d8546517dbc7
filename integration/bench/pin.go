package bench

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// pinTo keeps the calling goroutine on one processor of those that it may use, until the function that is given is called.
func pinTo(nth int) (unpin func(), err error) {
	runtime.LockOSThread()
	var before, here unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("affinity: %w", err)
	}
	nth %= before.Count()
	cpu := 0
	for ; !before.IsSet(cpu) || nth > 0; cpu++ {
		if before.IsSet(cpu) {
			nth--
		}
	}
	here.Set(cpu)
	if err := unix.SchedSetaffinity(0, &here); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("affinity: %w", err)
	}
	return func() {
		if unix.SchedSetaffinity(0, &before) == nil { // else the thread ends with the goroutine
			runtime.UnlockOSThread()
		}
	}, nil
}
