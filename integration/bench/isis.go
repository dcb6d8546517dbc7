package bench

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"pncd/igp/isis/packet"
	"pncd/igp/isis/spf"
)

// ISISParse measures how long an LSP of 1,492 octets takes to be read, with every prefix in it. Baseline: its
// checksum alone, which a receiver has to compute anyway.
func ISISParse() ([]Result, error) {
	raw, err := packet.LSP{Header: packet.Header{Type: packet.L2LSP}, Sequence: 1, Lifetime: 1200, Flags: 3}.Append(nil)
	if err != nil {
		return nil, err
	}
	for len(raw) < 1492 {
		room := min(255, 1492-len(raw)-2)
		value := make([]byte, 0, room)
		for i := 0; len(value)+8 <= room; i++ {
			value = append(value, 0, 0, 0, 10, 24, 10, byte(len(raw)), byte(i))
		}
		if len(value) == 0 {
			break
		}
		raw = append(append(raw, packet.TLVExtendedIPReach, uint8(len(value))), value...)
	}
	packet.SetLength(raw)
	packet.SetChecksum(raw)
	parse := func() error {
		p, err := packet.ParseLSP(raw)
		if err != nil {
			return err
		}
		for _, t := range p.TLVs {
			if _, err := packet.ParsePrefixes(t.Value, false); err != nil {
				return err
			}
		}
		return nil
	}
	sum := func() error {
		if !packet.ChecksumOK(raw) {
			return fmt.Errorf("isis-parse: the checksum doesn't verify")
		}
		return nil
	}
	value, base, allocs, err := alternate(20_000, parse, sum)
	return []Result{{Name: "isis-parse", Value: value, Unit: "ns", Baseline: base, Allocs: allocs,
		Note: fmt.Sprintf("an LSP of %d octets with all its prefixes; baseline: its checksum", len(raw))}}, err
}

// ISISSPF measures SPF over 1,000 systems and 4,000 links. Baseline: the definition, shorter as long as
// something gets shorter, over the same links.
func ISISSPF() ([]Result, error) {
	id := func(i int) packet.NodeID { return packet.NodeID{4: byte(i >> 8), 5: byte(i)} }
	edges := benchGraph()
	nodes := make([]spf.Node, len(edges))
	g := spf.New(id(0))
	for i, to := range edges {
		for n, metric := range to {
			nodes[i].Links = append(nodes[i].Links, spf.Link{To: id(n), Cost: metric})
		}
		g.Set(id(i), &nodes[i])
	}
	overload := false
	run := func() error {
		// A system that nothing goes through or not: something has to change for a run.
		overload = !overload
		n := nodes[len(edges)-1]
		n.Overload = overload
		g.Set(id(len(edges)-1), &n)
		g.Run()
		if g.Cost(id(len(edges)/2)) == spf.Unreachable {
			return fmt.Errorf("isis-spf-1000: a system is not reached")
		}
		return nil
	}
	value, base, allocs, err := alternate(50, run, func() error { relax(edges); return nil })
	return []Result{{Name: "isis-spf-1000", Value: value / 1000, Unit: "us", Baseline: base / 1000, Allocs: allocs,
		Note: "1,000 systems, 4,000 links; baseline: the definition"}}, err
}

// benchGraph makes 1,000 routers with about 4,000 links between them: of each the neighbours and the costs.
func benchGraph() []map[int]uint32 {
	const routers, links = 1000, 4000
	r := rand.New(rand.NewPCG(5, 6))
	edges := make([]map[int]uint32, routers)
	for i := range edges {
		edges[i] = map[int]uint32{}
	}
	join := func(a, b int) {
		if a != b {
			edges[a][b], edges[b][a] = uint32(1+r.IntN(100)), uint32(1+r.IntN(100))
		}
	}
	for i := 1; i < routers; i++ {
		join(i, r.IntN(i))
	}
	for range links - routers + 1 {
		join(r.IntN(routers), r.IntN(routers))
	}
	return edges
}

// relax computes all costs from the first router by the definition: shorter as long as something gets shorter.
func relax(edges []map[int]uint32) []uint32 {
	const far = ^uint32(0)
	cost := make([]uint32, len(edges))
	for i := range cost {
		cost[i] = far
	}
	cost[0] = 0
	for changed := true; changed; {
		changed = false
		for i, to := range edges {
			if cost[i] == far {
				continue
			}
			for n, metric := range to {
				if c := cost[i] + metric; c < cost[n] {
					cost[n], changed = c, true
				}
			}
		}
	}
	return cost
}

// alternate runs f and the baseline in turns of n calls, and gives the median ns of a call of each, and the
// heap allocations of a call of f.
func alternate(n int, f, baseline func() error) (value, base, allocs float64, err error) {
	const turns = 9
	var values, bases []float64
	perCall := func(f func() error) float64 {
		begin := time.Now()
		for range n {
			if e := f(); e != nil {
				err = e
			}
		}
		return float64(time.Since(begin).Nanoseconds()) / float64(n)
	}
	var before, after runtime.MemStats
	for range turns {
		runtime.ReadMemStats(&before)
		values = append(values, perCall(f))
		runtime.ReadMemStats(&after)
		bases = append(bases, perCall(baseline))
	}
	return median(values), median(bases), float64((after.Mallocs - before.Mallocs) / uint64(n)), err
}
