package spf

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pncd/igp/ospf/packet"
)

// model is an area as it is meant, from which LSAs are made, and costs as the definition says.
type model map[packet.ID]*modelRouter

type modelRouter struct {
	gone      bool // all of its LSAs are at MaxAge
	noTransit bool // OSPFv3
	flags     uint8
	links     []link
	networks  map[int][]packet.ID // as a Designated Router, by number, with the routers
	remote    map[packet.ID]uint32
	parts     int // router LSAs (OSPFv3)
}

const (
	modelRouters = 12
	modelRemote  = 50 // the first router of another area
)

func randomModel(r *rand.Rand, v packet.Version) model {
	m := model{}
	for id := packet.ID(1); id <= modelRouters; id++ {
		m[id] = randomRouter(r, v, id)
	}
	m.agree(r)
	return m
}

// agree makes most of what one router says what the other says, too, or nothing would be reachable.
func (m model) agree(r *rand.Rand) {
	for id := packet.ID(1); id <= modelRouters; id++ {
		for _, l := range m[id].links {
			there := m[l.to]
			routers, ok := there.networks[l.number]
			back := slices.ContainsFunc(there.links, func(b link) bool { return b.kind == packet.LinkPointToPoint && b.to == id })
			switch {
			case r.IntN(6) == 0:
			case l.kind == packet.LinkPointToPoint && !back:
				there.links = append(there.links, p2p(id, uint16(r.IntN(20))))
			case l.kind == packet.LinkTransit && ok && !slices.Contains(routers, id):
				there.networks[l.number] = append(routers, id)
			}
		}
	}
}

func randomRouter(r *rand.Rand, v packet.Version, id packet.ID) *modelRouter {
	x := &modelRouter{gone: r.IntN(15) == 0, noTransit: v == packet.V3 && r.IntN(6) == 0, networks: map[int][]packet.ID{}, remote: map[packet.ID]uint32{}, parts: 1 + r.IntN(3)}
	for number := range r.IntN(3) {
		x.networks[number] = []packet.ID{id}
		x.links = append(x.links, lan(id, number, uint16(r.IntN(20))))
	}
	for range r.IntN(4) {
		to := packet.ID(1 + r.IntN(modelRouters))
		if metric := uint16(r.IntN(20)); r.IntN(2) == 0 {
			x.links = append(x.links, p2p(to, metric))
		} else {
			x.links = append(x.links, lan(to, r.IntN(3), metric))
		}
	}
	if r.IntN(3) == 0 {
		x.flags = border
	}
	for range r.IntN(3) {
		x.remote[packet.ID(modelRemote+r.IntN(4))] = uint32(r.IntN(100))
	}
	return x
}

// lsas are those of a router.
func (m model) lsas(t testing.TB, v packet.Version, id packet.ID) []packet.LSA {
	b, x := newBed(t, v), m[id]
	if v == packet.V3 {
		options := uint32(packet.V3OptR | packet.V3OptV6)
		if x.noTransit {
			options = packet.V3OptV6
		}
		parts := make([][]link, x.parts)
		for i, l := range x.links {
			parts[i%x.parts] = append(parts[i%x.parts], l)
		}
		for i, links := range parts {
			b.routerWith(packet.ID(i), id, x.flags, options, links...)
		}
	} else {
		b.router(id, x.flags, x.links...)
	}
	for number, routers := range x.networks {
		b.network(id, number, routers...)
	}
	for router, metric := range x.remote {
		b.remote(id, router, metric)
	}
	list := b.lsas[id]
	if x.gone {
		for i := range list {
			list[i] = aged(t, v, list[i], packet.MaxAge)
		}
	}
	slices.SortFunc(list, func(x, y packet.LSA) int { return x.Compare(y.Key) })
	return list
}

// place is a router (number -1) or a network of the model.
type place struct {
	router packet.ID
	number int
}

// floyd computes the costs from every place to every other (Floyd and Warshall): from a router over a link that the
// other end knows of, from a network to its routers for nothing.
func (m model) floyd() (at map[place]int, cost [][]uint64) {
	const none = 1 << 40
	at = map[place]int{}
	for id, x := range m {
		if x.gone {
			continue
		}
		at[place{id, -1}] = len(at)
		for number := range x.networks {
			at[place{id, number}] = len(at)
		}
	}
	cost = make([][]uint64, len(at))
	for i := range cost {
		cost[i] = slices.Repeat([]uint64{none}, len(at))
		cost[i][i] = 0
	}
	for id, x := range m {
		if x.gone {
			continue
		}
		from := at[place{id, -1}]
		for _, l := range x.links {
			there := m[l.to]
			if there.gone {
				continue
			}
			if l.kind == packet.LinkPointToPoint {
				if slices.ContainsFunc(there.links, func(b link) bool { return b.kind == packet.LinkPointToPoint && b.to == id }) {
					to := at[place{l.to, -1}]
					cost[from][to] = min(cost[from][to], uint64(l.metric))
				}
			} else if slices.Contains(there.networks[l.number], id) {
				to := at[place{l.to, l.number}]
				cost[from][to], cost[to][from] = min(cost[from][to], uint64(l.metric)), 0
			}
		}
	}
	for via, k := range at {
		if via.number == -1 && m[via.router].noTransit {
			continue
		}
		for i := range cost {
			for j := range cost {
				cost[i][j] = min(cost[i][j], cost[i][k]+cost[k][j])
			}
		}
	}
	return at, cost
}

// reference gives the costs from router 1, of routers of the area and of others.
func (m model) reference() (routers, remote map[packet.ID]uint32) {
	routers, remote = map[packet.ID]uint32{}, map[packet.ID]uint32{}
	at, cost := m.floyd()
	root, ok := at[place{1, -1}]
	if !ok {
		return routers, remote
	}
	for p, i := range at {
		if c := cost[root][i]; p.number == -1 && c < uint64(Unreachable) {
			routers[p.router] = uint32(c)
		}
	}
	for id, c := range routers {
		if id == 1 || m[id].flags&border == 0 {
			continue
		}
		for router, metric := range m[id].remote {
			if old, ok := remote[router]; !ok || c+metric < old {
				remote[router] = c + metric
			}
		}
	}
	return routers, remote
}

func TestAgainstTheReferenceWhileTheAreaChanges(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		r := rand.New(rand.NewPCG(7, uint64(v)))
		reached, through := 0, 0
		for graph := range 300 {
			m, a := randomModel(r, v), New(v, 1)
			for step := range 5 {
				for id := range m {
					if _, err := a.Set(id, m.lsas(t, v, id)); err != nil {
						t.Fatal(err)
					}
				}
				a.Run()
				routers, remote := m.reference()
				for id := packet.ID(0); id < modelRemote+5; id++ {
					if got, want := a.Cost(id), orNone(routers, id); got != want {
						t.Fatalf("graph %d, step %d: cost of %d is %d, want %d", graph, step, id, got, want)
					}
					if got, want := a.InterArea(id), orNone(remote, id); got != want {
						t.Fatalf("graph %d, step %d: cost of %d of another area is %d, want %d", graph, step, id, got, want)
					}
				}
				reached, through = reached+len(routers), through+len(remote)
				// Two routers say something else, and most of the others follow.
				for range 2 {
					id := packet.ID(1 + r.IntN(modelRouters))
					m[id] = randomRouter(r, v, id)
				}
				m.agree(r)
			}
			for id := range m {
				if _, err := a.Set(id, nil); err != nil {
					t.Fatal(err)
				}
			}
			if a.graph.Len() != 0 || len(a.routers) != 0 || len(a.networks) != 0 {
				t.Fatalf("graph %d: left behind: %v, %v", graph, a.routers, a.networks)
			}
		}
		if reached < 300*5*5 || through < 300*5 {
			t.Errorf("%d routers reached, %d of other areas: the graphs are too thin to test anything", reached, through)
		}
	})
}

func orNone(m map[packet.ID]uint32, id packet.ID) uint32 {
	if c, ok := m[id]; ok {
		return c
	}
	return Unreachable
}
