package spf

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pncd/igp/isis/packet"
)

func node(n int) packet.NodeID { return packet.NodeID{3: byte(n >> 16), 4: byte(n >> 8), 5: byte(n)} }

func links(l ...int) *Node { // to, metric, to, metric ...
	n := &Node{}
	for i := 0; i < len(l); i += 2 {
		n.Links = append(n.Links, Link{node(l[i]), uint32(l[i+1])})
	}
	return n
}

func graph(nodes map[int]*Node) *Graph {
	g := New(node(1))
	for id, n := range nodes {
		g.Set(node(id), n)
	}
	g.Run()
	return g
}

func TestPaths(t *testing.T) {
	overloaded := func(n *Node) *Node { n.Overload = true; return n }
	for _, tc := range []struct {
		name  string
		nodes map[int]*Node
		want  map[int]uint32
	}{
		{"the cheaper of two paths", map[int]*Node{1: links(2, 10, 3, 1), 2: links(1, 10, 3, 1), 3: links(1, 1, 2, 1)}, map[int]uint32{1: 0, 2: 2, 3: 1}},
		{"the metric of the direction of the path", map[int]*Node{1: links(2, 10), 2: links(1, 99)}, map[int]uint32{2: 10}},
		{"the two-way check: one end doesn't announce the link", map[int]*Node{1: links(2, 10), 2: links(3, 1), 3: links(2, 1)}, map[int]uint32{2: Unreachable, 3: Unreachable}},
		{"a system that says nothing", map[int]*Node{1: links(2, 10)}, map[int]uint32{2: Unreachable, 9: Unreachable}},
		{"overload: reached, but nothing behind it", map[int]*Node{1: links(2, 1), 2: overloaded(links(1, 1, 3, 1)), 3: links(2, 1)}, map[int]uint32{2: 1, 3: Unreachable}},
		{"overload of the root itself", map[int]*Node{1: overloaded(links(2, 1)), 2: links(1, 1)}, map[int]uint32{2: 1}},
		{"RFC 5305: metric 2^24-1 is no link", map[int]*Node{1: links(2, 0xFFFFFF), 2: links(1, 1)}, map[int]uint32{2: Unreachable}},
		{"RFC 5305: metric 2^24-2 is one", map[int]*Node{1: links(2, 0xFFFFFE), 2: links(1, 1)}, map[int]uint32{2: 0xFFFFFE}},
		{"links between the same systems: the best counts", map[int]*Node{1: links(2, 10, 2, 4), 2: links(1, 1)}, map[int]uint32{2: 4}},
		{"zero metrics", map[int]*Node{1: links(2, 0), 2: links(1, 0, 3, 0), 3: links(2, 0)}, map[int]uint32{2: 0, 3: 0}},
		{"the root says nothing", map[int]*Node{2: links(1, 1)}, map[int]uint32{1: Unreachable, 2: Unreachable}},
		{"a link to itself", map[int]*Node{1: links(1, 1, 2, 1), 2: links(1, 1, 2, 1)}, map[int]uint32{1: 0, 2: 1}},
	} {
		g := graph(tc.nodes)
		for id, want := range tc.want {
			if got := g.Cost(node(id)); got != want {
				t.Errorf("%s: cost of %d is %d, want %d", tc.name, id, got, want)
			}
		}
	}
}

func TestCostsDontWrap(t *testing.T) {
	nodes := map[int]*Node{}
	const n = 400 // 400 links of 2^24-2 are more than 2^32
	for i := 1; i <= n; i++ {
		nodes[i] = links(i-1, 0xFFFFFE, i+1, 0xFFFFFE)
	}
	g := graph(nodes)
	last := uint32(0)
	for i := 1; i <= n; i++ {
		c := g.Cost(node(i))
		if c < last {
			t.Fatalf("cost of %d is %d, less than %d", i, c, last)
		}
		last = c
	}
	if last != Unreachable {
		t.Errorf("cost %d", last)
	}
}

func TestWhatChangesNoLinkNeedsNoRun(t *testing.T) {
	g := graph(map[int]*Node{1: links(2, 1), 2: links(1, 1)})
	if g.Set(node(2), links(1, 1)) || g.Dirty() {
		t.Error("the same links")
	}
	if !g.Set(node(2), links(1, 2)) || !g.Dirty() {
		t.Error("another metric goes unnoticed")
	}
	g.Run()
	g.Run()
	if g.Runs() != 2 {
		t.Errorf("%d runs", g.Runs())
	}
	if g.Set(node(7), nil) {
		t.Error("nothing became nothing")
	}
}

// reference computes costs as the definition says: shorter as long as something gets shorter.
func reference(nodes map[int]*Node, root int) map[int]uint32 {
	cost := map[int]uint64{root: 0}
	if nodes[root] == nil {
		return nil
	}
	has := func(a, b int) bool {
		if nodes[a] == nil {
			return false
		}
		for _, l := range nodes[a].Links {
			if l.To == node(b) && l.Metric < packet.MaxLinkMetric {
				return true
			}
		}
		return false
	}
	byID := map[packet.NodeID]int{}
	for id := range nodes {
		byID[node(id)] = id
	}
	for changed := true; changed; {
		changed = false
		for id, n := range nodes {
			c, ok := cost[id]
			if !ok || n.Overload && id != root {
				continue
			}
			for _, l := range n.Links {
				to, there := byID[l.To]
				if !there || l.Metric >= packet.MaxLinkMetric || !has(to, id) {
					continue
				}
				if old, ok := cost[to]; !ok || c+uint64(l.Metric) < old {
					cost[to] = c + uint64(l.Metric)
					changed = true
				}
			}
		}
	}
	out := map[int]uint32{}
	for id, c := range cost {
		out[id] = uint32(c)
	}
	return out
}

func TestAgainstTheReferenceWhileTheGraphChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const n = 60
	nodes, g := map[int]*Node{}, New(node(1))
	for step := range 3000 {
		id := 1 + r.IntN(n)
		if r.IntN(4) == 0 {
			delete(nodes, id)
		} else {
			x := &Node{Overload: r.IntN(8) == 0}
			for range r.IntN(6) {
				m := uint32(r.IntN(50))
				if r.IntN(20) == 0 {
					m = packet.MaxLinkMetric
				}
				x.Links = append(x.Links, Link{node(1 + r.IntN(n)), m})
			}
			nodes[id] = x
		}
		g.Set(node(id), nodes[id])
		g.Run()
		want := reference(nodes, 1)
		for id := 1; id <= n; id++ {
			w, ok := want[id]
			if !ok {
				w = Unreachable
			}
			if got := g.Cost(node(id)); got != w {
				t.Fatalf("step %d: cost of %d is %d, want %d", step, id, got, w)
			}
		}
		if g.Len() != len(nodes) {
			t.Fatalf("step %d: %d nodes, want %d", step, g.Len(), len(nodes))
		}
	}
	for id := range nodes {
		g.Set(node(id), nil)
	}
	if len(g.index) != 0 || len(g.free) != len(g.nodes) {
		t.Errorf("%d nodes are left, %d of %d free", len(g.index), len(g.free), len(g.nodes))
	}
}

func TestFromLSPs(t *testing.T) {
	reach := func(to int, metric uint32) []byte {
		b, err := packet.ISReach{Neighbor: node(to), Metric: metric}.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	mt := func(id packet.MTID, value []byte) []byte { return append(packet.AppendMT(nil, id), value...) }
	fragment := func(number uint8, flags uint8, tlvs ...packet.TLV) packet.LSP {
		return packet.LSP{ID: node(2).Fragment(number), Flags: flags, TLVs: tlvs}
	}
	plain := packet.TLV{Type: packet.TLVExtendedISReach, Value: append(reach(3, 5), reach(4, 6)...)}
	six := packet.TLV{Type: packet.TLVMTISReach, Value: mt(packet.MTIPv6, reach(5, 7))}
	zero := packet.TLV{Type: packet.TLVMTISReach, Value: mt(packet.MTStandard, reach(6, 8))}
	topologies := packet.TopologiesTLV(packet.Topology{}, packet.Topology{ID: packet.MTIPv6, Overload: true})
	for _, tc := range []struct {
		name string
		lsps []packet.LSP
		mt   packet.MTID
		want string
	}{
		{"standard", []packet.LSP{fragment(0, 3, plain), fragment(2, 3, packet.TLV{Type: 22, Value: reach(9, 1)})}, 0, "{[{3 5} {4 6} {9 1}] false}"},
		{"overload", []packet.LSP{fragment(0, packet.LSPOverload)}, 0, "{[] true}"},
		{"without the first fragment", []packet.LSP{fragment(1, 3, plain)}, 0, "none"},
		{"nothing", nil, 0, "none"},
		{"topology 0 in TLV 222 is ignored", []packet.LSP{fragment(0, 3, zero)}, 0, "{[] false}"},
		{"IPv6's topology, overloaded there", []packet.LSP{fragment(0, 3, topologies, plain, six)}, packet.MTIPv6, "{[{5 7}] true}"},
		{"a system that is no part of IPv6's topology", []packet.LSP{fragment(0, 3, plain, six)}, packet.MTIPv6, "none"},
		{"an entry that is cut: the others count", []packet.LSP{fragment(0, 3, packet.TLV{Type: 22, Value: reach(3, 5)[:15-4]}, packet.TLV{Type: 22, Value: append(reach(4, 6), 1, 2)})}, 0, "{[{3 5} {4 6}] false} error"},
	} {
		n, err := FromLSPs(tc.lsps, tc.mt)
		got := "none"
		if n != nil {
			got = "{["
			for i, l := range n.Links {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("{%d %d}", l.To[5], l.Metric)
			}
			got += fmt.Sprintf("] %v}", n.Overload)
		}
		if err != nil {
			got += " error"
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	pseudo := packet.LSP{ID: packet.NodeID{5: 2, 6: 1}.Fragment(0), TLVs: packet.TLVs{plain}}
	if n, err := FromLSPs([]packet.LSP{pseudo}, packet.MTIPv6); err != nil || n == nil || len(n.Links) != 2 {
		t.Errorf("a pseudonode in IPv6's topology: %+v, %v", n, err)
	}
}

// domain is a random connected graph of n systems with about links links each way.
func domain(n, count int) map[int]*Node {
	r := rand.New(rand.NewPCG(5, 6))
	nodes := map[int]*Node{}
	for i := 1; i <= n; i++ {
		nodes[i] = &Node{}
	}
	join := func(a, b int) {
		m := uint32(1 + r.IntN(100))
		nodes[a].Links = append(nodes[a].Links, Link{node(b), m})
		nodes[b].Links = append(nodes[b].Links, Link{node(a), m})
	}
	for i := 2; i <= n; i++ {
		join(i, 1+r.IntN(i-1))
	}
	for range count - n + 1 {
		join(1+r.IntN(n), 1+r.IntN(n))
	}
	return nodes
}

func BenchmarkRun1000(b *testing.B) {
	nodes := domain(1000, 4000)
	g := graph(nodes)
	b.ReportAllocs()
	for b.Loop() {
		g.dirty = true
		g.Run()
	}
}

func BenchmarkReference1000(b *testing.B) {
	nodes := domain(1000, 4000)
	for b.Loop() {
		reference(nodes, 1)
	}
}
