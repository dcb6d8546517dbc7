package engine

import (
	"net/netip"
	"testing"
)

func TestAnAddressInsideIsNotGivenOutAgainAtOnce(t *testing.T) {
	i := newInside()
	first, err := i.take(peer.a)
	if err != nil || first != insideFirst || !first.IsLoopback() {
		t.Fatal(first, err)
	}
	if i.real(first.String()) != peer.a || i.translate(first.String()) != peer.a.String() {
		t.Error("it isn't the peer's")
	}
	for _, text := range []string{peer.a.String(), "127.0.0.1", "", "no address"} {
		if i.real(text).IsValid() || i.translate(text) != text {
			t.Errorf("%q is taken for a peer's", text)
		}
	}
	i.release(first)
	i.release(first)
	if i.real(first.String()).IsValid() {
		t.Error("it is still the peer's")
	}
	seen := map[netip.Addr]bool{first: true}
	for range 10 * insideRest {
		a, _ := i.take(peer.b)
		if seen[a] && len(i.free) < insideRest {
			t.Fatalf("%s comes back at once", a)
		}
		seen[a] = true
		i.release(a)
	}
	// As many as there are peers at once, and those that rest: GoBGP's listener keeps a key for each.
	if len(seen) > insideRest+1 {
		t.Errorf("%d addresses for one peer", len(seen))
	}
	i.next, i.free = netip.MustParseAddr("128.0.0.0"), nil
	if a, err := i.take(peer.a); err == nil {
		t.Errorf("%s is none of loopback", a)
	}
	if other := newInside(); other.key == i.key || len(i.key) > 80 {
		t.Error("the key isn't a secret of this engine, or too long")
	}
}
