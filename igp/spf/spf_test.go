package spf

import (
	"math/rand/v2"
	"testing"
)

func links(l ...int) *Node[int] { // to, cost, to, cost ...
	n := &Node[int]{}
	for i := 0; i < len(l); i += 2 {
		n.Links = append(n.Links, Link[int]{l[i], uint32(l[i+1])})
	}
	return n
}

func graph(nodes map[int]*Node[int]) *Graph[int] {
	g := New(1)
	for id, n := range nodes {
		g.Set(id, n)
	}
	g.Run()
	return g
}

func TestPaths(t *testing.T) {
	overloaded := func(n *Node[int]) *Node[int] { n.Overload = true; return n }
	for _, tc := range []struct {
		name  string
		nodes map[int]*Node[int]
		want  map[int]uint32
	}{
		{"the cheaper of two paths", map[int]*Node[int]{1: links(2, 10, 3, 1), 2: links(1, 10, 3, 1), 3: links(1, 1, 2, 1)}, map[int]uint32{1: 0, 2: 2, 3: 1}},
		{"the cost of the direction of the path", map[int]*Node[int]{1: links(2, 10), 2: links(1, 99)}, map[int]uint32{2: 10}},
		{"the two-way check: one end doesn't announce the link", map[int]*Node[int]{1: links(2, 10), 2: links(3, 1), 3: links(2, 1)}, map[int]uint32{2: Unreachable, 3: Unreachable}},
		{"a node that says nothing", map[int]*Node[int]{1: links(2, 10)}, map[int]uint32{2: Unreachable, 9: Unreachable}},
		{"overload: reached, but nothing behind it", map[int]*Node[int]{1: links(2, 1), 2: overloaded(links(1, 1, 3, 1)), 3: links(2, 1)}, map[int]uint32{2: 1, 3: Unreachable}},
		{"overload of the root itself", map[int]*Node[int]{1: overloaded(links(2, 1)), 2: links(1, 1)}, map[int]uint32{2: 1}},
		{"links between the same nodes: the best counts", map[int]*Node[int]{1: links(2, 10, 2, 4), 2: links(1, 1)}, map[int]uint32{2: 4}},
		{"zero costs", map[int]*Node[int]{1: links(2, 0), 2: links(1, 0, 3, 0), 3: links(2, 0)}, map[int]uint32{2: 0, 3: 0}},
		{"the root says nothing", map[int]*Node[int]{2: links(1, 1)}, map[int]uint32{1: Unreachable, 2: Unreachable}},
		{"a link to itself", map[int]*Node[int]{1: links(1, 1, 2, 1), 2: links(1, 1, 2, 1)}, map[int]uint32{1: 0, 2: 1}},
	} {
		g := graph(tc.nodes)
		for id, want := range tc.want {
			if got := g.Cost(id); got != want {
				t.Errorf("%s: cost of %d is %d, want %d", tc.name, id, got, want)
			}
		}
	}
}

func TestCostsDontWrap(t *testing.T) {
	nodes := map[int]*Node[int]{}
	const n = 400 // 400 links of 2^24-2 are more than 2^32
	for i := 1; i <= n; i++ {
		nodes[i] = links(i-1, 0xFFFFFE, i+1, 0xFFFFFE)
	}
	g := graph(nodes)
	last := uint32(0)
	for i := 1; i <= n; i++ {
		c := g.Cost(i)
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
	g := graph(map[int]*Node[int]{1: links(2, 1), 2: links(1, 1)})
	if g.Set(2, links(1, 1)) || g.Dirty() {
		t.Error("the same links")
	}
	if !g.Set(2, links(1, 2)) || !g.Dirty() {
		t.Error("another metric goes unnoticed")
	}
	g.Run()
	g.Run()
	if g.Runs() != 2 {
		t.Errorf("%d runs", g.Runs())
	}
	if g.Set(7, nil) {
		t.Error("nothing became nothing")
	}
}

func TestANodeThatIsNewIsNotReachedBeforeARun(t *testing.T) {
	g := graph(map[int]*Node[int]{1: links(2, 1), 2: links(1, 1)})
	g.Set(1, links(3, 1))
	g.Set(2, nil) // nobody points to it any more: it is forgotten
	g.Set(4, links(1, 1))
	if got := g.Cost(4); got != Unreachable {
		t.Errorf("cost %d, as that of the node whose place it took", got)
	}
}

// reference computes costs as the definition says: shorter as long as something gets shorter.
func reference(nodes map[int]*Node[int], root int) map[int]uint32 {
	cost := map[int]uint64{root: 0}
	if nodes[root] == nil {
		return nil
	}
	has := func(a, b int) bool {
		if nodes[a] == nil {
			return false
		}
		for _, l := range nodes[a].Links {
			if l.To == b {
				return true
			}
		}
		return false
	}
	for changed := true; changed; {
		changed = false
		for id, n := range nodes {
			c, ok := cost[id]
			if !ok || n.Overload && id != root {
				continue
			}
			for _, l := range n.Links {
				if !has(l.To, id) {
					continue
				}
				if old, ok := cost[l.To]; !ok || c+uint64(l.Cost) < old {
					cost[l.To] = c + uint64(l.Cost)
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
	nodes, g := map[int]*Node[int]{}, New(1)
	for step := range 3000 {
		id := 1 + r.IntN(n)
		if r.IntN(4) == 0 {
			delete(nodes, id)
		} else {
			x := &Node[int]{Overload: r.IntN(8) == 0}
			for range r.IntN(6) {
				x.Links = append(x.Links, Link[int]{1 + r.IntN(n), uint32(r.IntN(50))})
			}
			nodes[id] = x
		}
		g.Set(id, nodes[id])
		g.Run()
		want := reference(nodes, 1)
		for id := 1; id <= n; id++ {
			w, ok := want[id]
			if !ok {
				w = Unreachable
			}
			if got := g.Cost(id); got != w {
				t.Fatalf("step %d: cost of %d is %d, want %d", step, id, got, w)
			}
		}
		if g.Len() != len(nodes) {
			t.Fatalf("step %d: %d nodes, want %d", step, g.Len(), len(nodes))
		}
	}
	for id := range nodes {
		g.Set(id, nil)
	}
	if len(g.index) != 0 || len(g.free) != len(g.nodes) {
		t.Errorf("%d nodes are left, %d of %d free", len(g.index), len(g.free), len(g.nodes))
	}
}

// domain is a random connected graph of n nodes with about links links each way.
func domain(n, count int) map[int]*Node[int] {
	r := rand.New(rand.NewPCG(5, 6))
	nodes := map[int]*Node[int]{}
	for i := 1; i <= n; i++ {
		nodes[i] = &Node[int]{}
	}
	join := func(a, b int) {
		m := uint32(1 + r.IntN(100))
		nodes[a].Links = append(nodes[a].Links, Link[int]{b, m})
		nodes[b].Links = append(nodes[b].Links, Link[int]{a, m})
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
