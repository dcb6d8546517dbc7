package host

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"pncd/internal/testwait"
)

func TestInterfacesAreFollowedByName(t *testing.T) {
	n := newNamespace(t)
	var mu sync.Mutex
	var now map[string]Interface
	f := NewInterfaces(InterfacesConfig{Namespace: n.path, Names: []string{"a", "late"}, OnChange: func(m map[string]Interface) {
		mu.Lock()
		defer mu.Unlock()
		now = m
	}}, quiet())
	n.veth("a", "b")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	want := func(step string, ok func(map[string]Interface) bool) {
		t.Helper()
		testwait.Until(t, step, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return now != nil && ok(now)
		})
	}
	has := func(name string, carrier bool, addr string) func(map[string]Interface) bool {
		return func(m map[string]Interface) bool {
			i, ok := m[name]
			if addr != "" && !slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.String() == addr }) {
				return false
			}
			return ok && i.Carrier == carrier && i.Index > 0 && len(i.MAC) == 6 && i.MTU == 1500
		}
	}
	want("it is there", has("a", true, ""))
	n.addr("a", "192.0.2.1/24")
	want("its address", has("a", true, "192.0.2.1/24"))
	n.down("b")
	want("without carrier", has("a", false, "192.0.2.1/24"))
	n.up("b")
	want("with carrier again", has("a", true, "192.0.2.1/24"))
	n.ok(n.nl.LinkDel(n.link("a")))
	want("it vanished", func(m map[string]Interface) bool { _, ok := m["a"]; return !ok })
	n.veth("late", "other")
	want("another came", has("late", true, ""))
	n.veth("a", "b")
	want("it is back", has("a", true, ""))
}
