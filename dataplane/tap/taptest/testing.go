package taptest

import (
	"errors"
	"testing"
)

// Need makes a namespace for a test and lets it go at its end. Without the privilege the test is skipped.
func Need(tb testing.TB) *NS {
	tb.Helper()
	n, err := New()
	if errors.Is(err, ErrPermission) {
		tb.Skip("needs CAP_NET_ADMIN and CAP_SYS_ADMIN (run as root)")
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := n.Close(); err != nil {
			tb.Error(err)
		}
	})
	return n
}

// Pair makes two namespaces joined by a veth pair: va in the first, vb in the second.
func Pair(tb testing.TB) (a, b *NS) {
	tb.Helper()
	a, b = Need(tb), Need(tb)
	if err := Veth(a, "va", b, "vb"); err != nil {
		tb.Fatal(err)
	}
	return a, b
}

// NeedInjector opens an injector for a test and closes it at its end.
func NeedInjector(tb testing.TB, n *NS, name string) *Injector {
	tb.Helper()
	in, err := NewInjector(n, name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := in.Close(); err != nil {
			tb.Error(err)
		}
	})
	return in
}
