package integration

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"

	"pncd/integration/lab"
)

// inNode calls fn with its thread in a node's network namespace: sockets opened there stay there.
func inNode(l *lab.Lab, node string, fn func() error) error {
	done := make(chan error, 1)
	go func() {
		// The thread is not unlocked: it ends with this goroutine and serves nobody else from there.
		runtime.LockOSThread()
		ns, err := netns.GetFromName(l.Namespace(node))
		if err != nil {
			done <- fmt.Errorf("namespace of %s: %w", node, err)
			return
		}
		defer func() { _ = ns.Close() }()
		if err := netns.Set(ns); err != nil {
			done <- fmt.Errorf("enter namespace of %s: %w", node, err)
			return
		}
		done <- fn()
	}()
	return <-done
}
