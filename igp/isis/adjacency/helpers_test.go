package adjacency

import (
	"net/netip"
	"testing"
	"time"

	"pncd/igp/isis/packet"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	mac1  = [6]byte{2, 0, 0, 0, 0, 1}
	mac2  = [6]byte{2, 0, 0, 0, 0, 2}
	mac3  = [6]byte{2, 0, 0, 0, 0, 3}
	area  = packet.Area{0x49, 0, 1}
)

// config is system n's circuit; its hellos have no jitter.
func config(n byte) Config {
	return Config{
		System: packet.SystemID{5: n}, Areas: []packet.Area{area}, Levels: packet.Level2, Circuit: uint32(n), MTU: 1497,
		IPv4: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, n})}, MAC: [6]byte{2, 0, 0, 0, 0, n},
		Jitter: func() float64 { return 0 },
	}
}

// wire writes and reads a hello, as a frame does.
func wire(t *testing.T, h packet.Hello) packet.Hello {
	t.Helper()
	raw, err := h.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := packet.ParseHello(raw)
	if err != nil {
		t.Fatalf("%x: %v", raw, err)
	}
	return got
}

// changes describes events.
func changes(events []Event) (all []string) {
	for _, e := range events {
		what := e.Neighbor.System.String()[12:]
		switch {
		case e.Resync:
			what += " resync"
		case e.Up:
			what += " up"
		default:
			what += " down: " + e.Reason.String()
		}
		all = append(all, what)
	}
	return all
}
