package spf

import (
	"math/rand/v2"
	"testing"

	"pncd/igp/ospf/packet"
)

// domain is an area of 1,000 routers with 4,000 point-to-point links and 100 networks of 10 routers each, as LSAs by
// router, and as links for the baseline: the networks are nodes 1001 and up.
func domain(b *testing.B, v packet.Version) (*bed, []map[int]uint32) {
	const routers, links, networks = 1000, 4000, 100
	r := rand.New(rand.NewPCG(5, 6))
	edges := make([]map[int]uint32, 1+routers+networks)
	for i := range edges {
		edges[i] = map[int]uint32{}
	}
	join := func(a, b int) {
		if a != b {
			edges[a][b], edges[b][a] = uint32(1+r.IntN(100)), uint32(1+r.IntN(100))
		}
	}
	for i := 2; i <= routers; i++ {
		join(i, 1+r.IntN(i-1))
	}
	for range links - routers + 1 {
		join(1+r.IntN(routers), 1+r.IntN(routers))
	}
	for n := routers + 1; n <= routers+networks; n++ {
		for range 10 {
			router := 1 + r.IntN(routers)
			edges[router][n], edges[n][router] = uint32(1+r.IntN(100)), 0
		}
	}
	area := newBed(b, v)
	for i := 1; i <= routers; i++ {
		var out []link
		for to, metric := range edges[i] {
			if to > routers {
				out = append(out, lan(1, to-routers, uint16(metric)))
			} else {
				out = append(out, p2p(packet.ID(to), uint16(metric)))
			}
		}
		area.router(packet.ID(i), 0, out...)
	}
	for n := routers + 1; n <= routers+networks; n++ {
		var on []packet.ID
		for router := range edges[n] {
			on = append(on, packet.ID(router))
		}
		area.network(1, n-routers, on...)
	}
	area.run()
	return area, edges
}

// baseline computes the costs as the definition says: shorter as long as something gets shorter.
func baseline(edges []map[int]uint32) []uint32 {
	cost := make([]uint32, len(edges))
	for i := range cost {
		cost[i] = Unreachable
	}
	cost[1] = 0
	for changed := true; changed; {
		changed = false
		for i, to := range edges {
			for n, metric := range to {
				if cost[i] != Unreachable && cost[i]+metric < cost[n] {
					cost[n], changed = cost[i]+metric, true
				}
			}
		}
	}
	return cost
}

// BenchmarkRun1000 takes a changed router LSA and computes all costs.
func BenchmarkRun1000(b *testing.B) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		b.Run(v.String(), func(b *testing.B) {
			area, edges := domain(b, v)
			for i, want := range baseline(edges)[:1001] {
				if got := area.area.Cost(packet.ID(i)); got != want {
					b.Fatalf("cost of %d is %d, want %d", i, got, want)
				}
			}
			other := newBed(b, v)
			other.router(1000, 0, p2p(1, 1))
			said := [2][]packet.LSA{area.lsas[1000], other.lsas[1000]}
			b.ReportAllocs()
			turn := 0
			for b.Loop() {
				turn = 1 - turn
				if changed, err := area.area.Set(1000, said[turn]); err != nil || !changed {
					b.Fatal(changed, err)
				}
				area.area.Run()
			}
		})
	}
}

// BenchmarkReference1000 is the baseline of BenchmarkRun1000.
func BenchmarkReference1000(b *testing.B) {
	_, edges := domain(b, packet.V2)
	for b.Loop() {
		baseline(edges)
	}
}
