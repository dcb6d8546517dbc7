package relay

import (
	"net/netip"
	"testing"
)

// ranged is a node that also takes who comes from 127.0.9.0/24, and gives who has knocked.
func ranged(t *testing.T, password string) (*node, netip.AddrPort, chan netip.Addr) {
	t.Helper()
	n, port := passive(t, "127.0.0.40", Peer{})
	knocks := make(chan netip.Addr, 1)
	n.relay.cfg.Knock = func(a netip.Addr) bool { knocks <- a; return true }
	if err := n.relay.SetRanges([]Range{{Prefix: netip.MustParsePrefix("127.0.9.0/24"), Password: password}}); err != nil {
		t.Fatal(err)
	}
	return n, port, knocks
}

// The keys of a connection are those that were in force when it came.
func TestAGuestThatCameWithoutTheKeyIsNotTaken(t *testing.T) {
	prefix, at := netip.MustParsePrefix("127.0.9.0/24"), addr("127.0.9.2")
	for name, change := range map[string]func(*Relay) error{
		"the range gets a key": func(r *Relay) error { return r.SetRanges([]Range{{Prefix: prefix, Password: "secret"}}) },
		"a longer one has one": func(r *Relay) error {
			return r.SetRanges([]Range{{Prefix: prefix}, {Prefix: netip.MustParsePrefix("127.0.9.0/25"), Password: "secret"}})
		},
		"the range goes": func(r *Relay) error { return r.SetRanges(nil) },
		"it is configured then": func(r *Relay) error {
			return r.Add(Peer{Address: at, Passive: true, Password: "secret", HoldTime: deadline, Inside: addr("127.64.0.2")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, port, knocks := ranged(t, "")
			r := connect(t, at.String(), port)
			<-knocks
			if err := change(n.relay); err != nil {
				t.Fatal(err)
			}
			r.closed()
		})
	}
}

func TestAGuestWhoseRangeStaysTheSameWaits(t *testing.T) {
	n, port, knocks := ranged(t, "")
	connect(t, "127.0.9.2", port)
	at := <-knocks
	if err := n.relay.SetRanges([]Range{{Prefix: netip.MustParsePrefix("127.0.8.0/23"), Password: "secret"}, n.relay.ranges[0]}); err != nil {
		t.Fatal(err)
	}
	if n.relay.guests[at] == nil {
		t.Error("dismissed")
	}
}
