// Package spf finds which nodes of a graph are reachable from one of them, and at which cost: Dijkstra's algorithm
// as IS-IS and OSPF use it (ISO/IEC 10589:2002 annex C.2, RFC 2328 section 16.1). What a node is, and which links
// count, the packages of the protocols know.
//
// It is for believing what a router says only while it is there, and for choosing the nearest of several; not
// for forwarding: there are no next hops. It is pure, and keeps the graph between runs, so that a change of
// anything but links needs no run.
package spf

import (
	"container/heap"
	"slices"
)

// Link is a direction of an adjacency as one node announces it.
type Link[ID comparable] struct {
	To   ID
	Cost uint32
}

// Node is what a node says of itself: a router, or a network that stands for the adjacencies of all routers on it.
type Node[ID comparable] struct {
	Links []Link[ID]
	// Overload: it is reached, but no path goes through it.
	Overload bool
}

// Unreachable is the cost of what can't be reached. Path costs stay below it.
const Unreachable = ^uint32(0)

// Graph is one topology of one level or area. It is not safe for concurrent use.
type Graph[ID comparable] struct {
	index map[ID]int
	ids   []ID
	nodes []vertex
	free  []int
	dirty bool
	cost  []uint32
	root  ID
	runs  uint64
}

type vertex struct {
	present  bool // it says something; else others only point to it
	overload bool
	links    []edge
	refs     int // links of others that point here
}

type edge struct {
	to   int
	cost uint32
}

// New makes a graph as the root sees it.
func New[ID comparable](root ID) *Graph[ID] {
	return &Graph[ID]{index: map[ID]int{}, root: root, dirty: true}
}

// Set says what a node says of itself; nil when it says nothing (any more). It reports whether that changes
// anything for paths.
func (g *Graph[ID]) Set(id ID, n *Node[ID]) (changed bool) {
	if n == nil {
		i, ok := g.index[id]
		if !ok || !g.nodes[i].present {
			return false
		}
		g.replace(i, nil)
		g.nodes[i].present, g.nodes[i].overload = false, false
		g.release(i)
		g.dirty = true
		return true
	}
	i := g.vertexOf(id)
	links := make([]edge, 0, len(n.Links))
	for _, l := range n.Links {
		links = append(links, edge{g.vertexOf(l.To), l.Cost})
	}
	v := &g.nodes[i]
	if v.present && v.overload == n.Overload && slices.Equal(v.links, links) {
		for _, e := range links {
			g.release(e.to)
		}
		return false
	}
	g.replace(i, links)
	v = &g.nodes[i]
	v.present, v.overload = true, n.Overload
	g.dirty = true
	return true
}

// replace puts links in place of those that a vertex has.
func (g *Graph[ID]) replace(i int, links []edge) {
	for _, e := range links {
		g.nodes[e.to].refs++
	}
	old := g.nodes[i].links
	g.nodes[i].links = links
	for _, e := range old {
		g.nodes[e.to].refs--
		g.release(e.to)
	}
}

// vertexOf gives the index of a node, which is made if it is new.
func (g *Graph[ID]) vertexOf(id ID) int {
	if i, ok := g.index[id]; ok {
		return i
	}
	if n := len(g.free); n > 0 {
		i := g.free[n-1]
		g.free = g.free[:n-1]
		g.ids[i], g.nodes[i] = id, vertex{}
		if i < len(g.cost) {
			g.cost[i] = Unreachable // what is there is the cost of the node that was there before
		}
		g.index[id] = i
		return i
	}
	g.ids = append(g.ids, id)
	g.nodes = append(g.nodes, vertex{})
	g.index[id] = len(g.nodes) - 1
	return len(g.nodes) - 1
}

// release forgets a vertex that says nothing and that nobody points to.
func (g *Graph[ID]) release(i int) {
	if v := &g.nodes[i]; v.present || v.refs > 0 {
		return
	}
	if at, ok := g.index[g.ids[i]]; !ok || at != i {
		return
	}
	delete(g.index, g.ids[i])
	g.free = append(g.free, i)
}

// Dirty reports whether Run would compute anew.
func (g *Graph[ID]) Dirty() bool { return g.dirty }

// Runs counts the computations.
func (g *Graph[ID]) Runs() uint64 { return g.runs }

// Len is the number of nodes that say something.
func (g *Graph[ID]) Len() (n int) {
	for i := range g.nodes {
		if g.nodes[i].present {
			n++
		}
	}
	return n
}

// Run computes the costs if something changed.
func (g *Graph[ID]) Run() {
	if !g.dirty {
		return
	}
	g.dirty = false
	g.runs++
	g.cost = slices.Grow(g.cost[:0], len(g.nodes))[:len(g.nodes)]
	for i := range g.cost {
		g.cost[i] = Unreachable
	}
	root, ok := g.index[g.root]
	if !ok || !g.nodes[root].present {
		return
	}
	g.cost[root] = 0
	q := queue{{root, 0}}
	for len(q) > 0 {
		at := heap.Pop(&q).(item)
		v := &g.nodes[at.vertex]
		if at.cost != g.cost[at.vertex] || v.overload && at.vertex != root {
			continue // a better one came first; or nothing goes through it
		}
		for _, e := range v.links {
			w := &g.nodes[e.to]
			cost := at.cost + e.cost
			if cost < at.cost || cost == Unreachable || cost >= g.cost[e.to] || !w.present || !pointsTo(w, at.vertex) {
				continue
			}
			g.cost[e.to] = cost
			heap.Push(&q, item{e.to, cost})
		}
	}
}

// pointsTo is the two-way check: a link counts when the other end announces it too.
func pointsTo(v *vertex, to int) bool {
	for _, e := range v.links {
		if e.to == to {
			return true
		}
	}
	return false
}

// Cost gives the cost of the path to a node, as of the last Run; Unreachable when there is none.
func (g *Graph[ID]) Cost(id ID) uint32 {
	if i, ok := g.index[id]; ok && i < len(g.cost) {
		return g.cost[i]
	}
	return Unreachable
}

type item struct {
	vertex int
	cost   uint32
}

type queue []item

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].cost < q[j].cost }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(item)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
