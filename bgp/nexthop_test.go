package bgp_test

import (
	"testing"

	"pncd/bgp"
)

// RFC 8950: an IPv4 prefix whose next hop, and so the header's, is IPv6.
func TestAnIPv4PrefixMayHaveAnIPv6NextHop(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB), Passive: true})
	cfg.Originate = []bgp.OriginateConfig{
		originate("192.0.2.0/24", "198.51.100.7", "2001:db8::1"),
		originate("203.0.113.0/24", "2001:db8::7", "198.51.100.1"),
	}
	a := start(t, cfg)
	b := start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA)}))
	a.Must(request{Enable: ptr(true)})
	for range 2 {
		b.Await("IPv4 next hop", believes("203.0.113.0/24", atA, "2001:db8::7"))
		last := b.Await("IPv6 next hop", believes("192.0.2.0/24", atA, "198.51.100.7"))
		if r := route(last, "192.0.2.0/24", atA); r.NextHop != addr("2001:db8::1") || len(last.Disregarded) != 0 {
			t.Errorf("learned %+v; disregarded %+v", r, last.Disregarded)
		}
		if n := a.Must(request{}).Neighbor(atB); n.Advertised != 2 {
			t.Errorf("%d announcements go to the neighbour, want 2", n.Advertised)
		}
		// A session that begins anew shows its capability anew.
		b.Must(request{Stop: true})
		b = start(t, node(port, 65000, atB, bgp.NeighborConfig{Address: addr(atA)}))
	}
	a.Must(request{Enable: ptr(false)})
	b.Await("withdrawal", func(a answer) bool { return len(a.Routes) == 0 && a.Up(atA) })
}
