package speaker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/packet"
)

// Sizes of the simulated domain.
const (
	simAreas   = 20
	simRouters = 50 // of an area
	simLANs    = 8
)

// region is an area of many routers, as their LSAs say, that a leaf hears from one of them, a machine that is fed
// with what the others say. Router 0 of the region is that machine.
type region struct {
	area     packet.ID
	hub      *Machine
	links    [simRouters]map[int]uint16 // of each router: neighbour to metric
	lans     [simLANs]map[int]uint16    // routers of each network, with their metric; router 0 is on none
	gone     [simRouters]bool           // all its LSAs are at MaxAge
	marked   [simRouters]map[int]bool   // prefixes by number; with the P flag or without
	sequence map[packet.Key]int32
	bodies   map[packet.Key][]byte // as they were told last
}

func (g *region) router(n int) packet.ID { return packet.ID(1000*int(g.area) + 1000 + n) }

// feed is who tells the hub.
type feed packet.ID

func (f feed) Router() packet.ID                              { return packet.ID(f) }
func (feed) Flooding() bool                                   { return true }
func (feed) Full() bool                                       { return true }
func (feed) Requested(packet.Key) (h packet.Header, yes bool) { return h, false }
func (feed) Satisfy(packet.Key)                               {}
func (feed) Opaque() bool                                     { return true }
func (feed) Designated() bool                                 { return false }

const feedLink flooding.InterfaceID = 99

// sim is a leaf in all areas at once.
type sim struct {
	*world
	r       *rand.Rand
	leaf    *Machine
	regions []*region
}

const leafID = 9999

func newSim(t *testing.T, v packet.Version) *sim {
	var pairs [][2]int
	for i := range simAreas {
		pairs = append(pairs, [2]int{leafID, i + 1})
	}
	s := &sim{r: rand.New(rand.NewPCG(11, uint64(v)))}
	s.world = build(t, v, func(id int, c *Config) {
		c.Refresh = 50 * time.Minute
		if id != leafID {
			c.Router, c.transit = (&region{area: packet.ID(id - 1)}).router(0), true
		}
		for i := range c.Links {
			var leaf, hub int
			fmt.Sscanf(c.Links[i].Name, "%d-%d", &leaf, &hub)
			c.Links[i].Area = packet.ID(hub - 1)
			c.Links[i].Hello, c.Links[i].Dead = 60*time.Second, 240*time.Second
		}
	}, pairs...)
	s.leaf = s.systems[leafID]
	for i := range simAreas {
		g := &region{area: packet.ID(i), hub: s.systems[i+1], sequence: map[packet.Key]int32{}, bodies: map[packet.Key][]byte{}}
		for n := range simRouters {
			g.links[n], g.marked[n] = map[int]uint16{}, map[int]bool{}
		}
		g.hub.flood.SetInterface(feedLink, flooding.Area{ID: g.area}, 1400)
		g.hub.flood.SetPeer(feedLink, feed(g.router(1)))
		for n := 1; n < simRouters; n++ {
			s.join(g, n, s.r.IntN(n))
		}
		for range simRouters {
			s.join(g, s.r.IntN(simRouters), s.r.IntN(simRouters))
		}
		for l := range g.lans {
			g.lans[l] = map[int]uint16{}
			for range 2 + s.r.IntN(5) {
				g.lans[l][1+s.r.IntN(simRouters-1)] = uint16(1 + s.r.IntN(60))
			}
		}
		for range simRouters {
			g.marked[1+s.r.IntN(simRouters-1)][s.r.IntN(40)] = s.r.IntN(2) == 0
		}
		s.regions = append(s.regions, g)
	}
	s.pass(70 * time.Second) // two hellos
	for _, g := range s.regions {
		for n := range simRouters {
			s.say(g, n)
		}
	}
	s.pass(30 * time.Second)
	return s
}

func (s *sim) join(g *region, a, b int) {
	if a != b && (a != 0 || b != 0) {
		g.links[a][b], g.links[b][a] = uint16(1+s.r.IntN(60)), uint16(1+s.r.IntN(60))
	}
}

// lan is who is Designated Router: the greatest number on it.
func (g *region) lan(l int) int { return slices.Max(slices.Collect(maps.Keys(g.lans[l]))) }

// lanID names a network: its Designated Router's address, or interface ID.
func (s *sim) lanID(g *region, l int) packet.ID {
	if s.v == packet.V3 {
		return packet.ID(500 + l)
	}
	return packet.ID(0xAC100000 + 256*int(g.area) + l)
}

// say floods what router n says now.
func (s *sim) say(g *region, n int) {
	if n == 0 {
		s.sayHub(g)
		return
	}
	now := map[packet.Key][]byte{}
	if !g.gone[n] {
		s.compose(g, n, now)
	}
	for k := range g.sequence {
		if k.Adv == g.router(n) && now[k] == nil {
			s.tell(g, k, nil)
			delete(g.sequence, k)
		}
	}
	for k, body := range now {
		s.tell(g, k, body)
	}
}

// sayHub adds the simulated links to what the hub says of the one to the leaf.
func (s *sim) sayHub(g *region) {
	w := flooding.Where{Scope: packet.ScopeArea, Area: g.area}
	if s.v == packet.V2 {
		body, err := packet.ParseV2Router(g.hub.v2Router(g.area))
		if err != nil {
			s.t.Fatal(err)
		}
		for to, metric := range g.links[0] {
			body.Links = append(body.Links, packet.V2Link{ID: g.router(to), Data: 1, Kind: packet.LinkPointToPoint, Metric: metric})
		}
		g.hub.originate(s.now, w, packet.V2Router, g.hub.cfg.Router, body.Append(nil))
		return
	}
	body, err := packet.ParseV3Router(g.hub.v3Router(g.area))
	if err != nil {
		s.t.Fatal(err)
	}
	for to, metric := range g.links[0] {
		body.Links = append(body.Links, packet.V3RouterLink{Kind: packet.LinkPointToPoint, Metric: metric, Interface: 1, NeighborInterface: 2, Neighbor: g.router(to)})
	}
	g.hub.originate(s.now, w, packet.V3Router, 0, body.Append(nil))
}

// compose adds the bodies of a router's LSAs.
func (s *sim) compose(g *region, n int, out map[packet.Key][]byte) {
	me := g.router(n)
	var v2 packet.V2RouterLSA
	v3 := packet.V3RouterLSA{Options: packet.V3OptR | packet.V3OptV6 | packet.OptionE}
	for to, metric := range g.links[n] {
		v2.Links = append(v2.Links, packet.V2Link{ID: g.router(to), Data: 1, Kind: packet.LinkPointToPoint, Metric: metric})
		v3.Links = append(v3.Links, packet.V3RouterLink{Kind: packet.LinkPointToPoint, Metric: metric, Interface: 1, NeighborInterface: 2, Neighbor: g.router(to)})
	}
	for l := range g.lans {
		metric, on := g.lans[l][n]
		if !on {
			continue
		}
		dr := g.lan(l)
		v2.Links = append(v2.Links, packet.V2Link{ID: s.lanID(g, l), Data: 1, Kind: packet.LinkTransit, Metric: metric})
		v3.Links = append(v3.Links, packet.V3RouterLink{Kind: packet.LinkTransit, Metric: metric, Interface: 3, NeighborInterface: uint32(s.lanID(g, l)), Neighbor: g.router(dr)})
		if dr != n {
			continue
		}
		body := []byte{255, 255, 255, 0}
		typ := packet.V2Network
		if s.v == packet.V3 {
			typ = packet.V3Network
			body = []byte{0, 0, 0, packet.V3OptR | packet.V3OptV6 | packet.OptionE}
		}
		for to := range g.lans[l] {
			id := g.router(to)
			body = append(body, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
		}
		out[packet.Key{Type: typ, ID: s.lanID(g, l), Adv: me}] = body
	}
	if s.v == packet.V2 {
		out[packet.Key{Type: packet.V2Router, ID: me, Adv: me}] = v2.Append(nil)
	} else {
		out[packet.Key{Type: packet.V3Router, Adv: me}] = v3.Append(nil)
	}
	for p, marked := range g.marked[n] {
		a := mine(s.v, p)
		k := packet.Key{Type: packet.V3EIntraAreaPrefix, ID: packet.ID(p + 1), Adv: me}
		if s.v == packet.V2 {
			k.Type, k.ID = packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueExtendedPrefix, uint32(p+1))
		}
		writer := Machine{cfg: g.hub.cfg}
		if !marked {
			writer.cfg.Carrier.Bit ^= 1
		}
		out[k] = writer.markBody(a.Prefix, mark{proxy: a.Proxy})
	}
}

// tell floods an LSA to the hub; without a body it is flushed.
func (s *sim) tell(g *region, k packet.Key, body []byte) {
	h := packet.Header{Key: k, Sequence: packet.InitialSequence + g.sequence[k]}
	g.sequence[k]++
	if body == nil {
		h.Age, body = packet.MaxAge, g.bodies[k]
	}
	g.bodies[k] = body
	lsa, err := packet.NewLSA(s.v, h, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := g.hub.flood.ReceiveUpdate(s.now, feedLink, g.router(1), &packet.Update{LSAs: []packet.LSA{lsa}}); err != nil {
		s.t.Fatal(err)
	}
	g.hub.settle(s.now)
}

// reference computes the cost of each router by relaxing all edges until nothing changes, from what is simulated
// and not from LSAs.
func (s *sim) reference(g *region) [simRouters]uint64 {
	const far = 1 << 40
	var cost [simRouters]uint64
	var lan [simLANs]uint64
	for n := range cost {
		cost[n] = far
	}
	for l := range lan {
		lan[l] = far
	}
	cost[0] = 0xFFFF // the leaf's link
	better := func(at *uint64, v uint64) bool {
		if v < *at {
			*at = v
			return true
		}
		return false
	}
	for again := true; again; {
		again = false
		for n := range simRouters {
			if g.gone[n] || cost[n] == far {
				continue
			}
			for to, metric := range g.links[n] {
				if _, back := g.links[to][n]; back && !g.gone[to] {
					again = better(&cost[to], cost[n]+uint64(metric)) || again
				}
			}
			for l := range g.lans {
				if metric, on := g.lans[l][n]; on && !g.gone[g.lan(l)] {
					again = better(&lan[l], cost[n]+uint64(metric)) || again
				}
			}
		}
		for l := range g.lans {
			for n := range g.lans[l] {
				if !g.gone[n] && !g.gone[g.lan(l)] {
					again = better(&cost[n], lan[l]) || again
				}
			}
		}
	}
	return cost
}

// check compares what the leaf holds with the reference.
func (s *sim) check(what string) {
	s.t.Helper()
	want := []string{}
	for _, g := range s.regions {
		cost := s.reference(g)
		for n := 1; n < simRouters; n++ {
			for p, marked := range g.marked[n] {
				if marked && !g.gone[n] && cost[n] < 1<<32 {
					want = append(want, line(mine(s.v, p), g.router(n), g.area, int(cost[n])))
				}
			}
		}
	}
	slices.Sort(want)
	got := s.holds(leafID)
	if slices.Equal(got, want) {
		return
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			s.t.Errorf("%s: not learned: %s", what, w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			s.t.Errorf("%s: learned: %s", what, g)
		}
	}
	s.t.FailNow()
}

// TestADomainOf1000RoutersIn20Areas holds what a leaf believes to a reference while links, networks, routers and
// marks come and go.
func TestADomainOf1000RoutersIn20Areas(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		s := newSim(t, v)
		s.check("at the begin")
		if len(s.holds(leafID)) < 100 {
			t.Fatalf("%d marks: the test shows little", len(s.holds(leafID)))
		}
		rounds := 40
		if testing.Short() {
			rounds = 5
		}
		for round := range rounds {
			touched := map[*region]map[int]bool{}
			touch := func(g *region, routers ...int) {
				if touched[g] == nil {
					touched[g] = map[int]bool{}
				}
				for _, n := range routers {
					touched[g][n] = true
				}
			}
			for range 30 {
				g := s.regions[s.r.IntN(simAreas)]
				n := 1 + s.r.IntN(simRouters-1)
				switch s.r.IntN(6) {
				case 0: // a link goes at both ends, or at one
					for to := range g.links[n] {
						delete(g.links[n], to)
						if s.r.IntN(2) == 0 {
							delete(g.links[to], n)
						}
						touch(g, n, to)
						break
					}
				case 1:
					to := s.r.IntN(simRouters)
					s.join(g, n, to)
					touch(g, n, to)
				case 2:
					g.gone[n] = !g.gone[n]
					touch(g, n)
				case 3, 4:
					p := s.r.IntN(40)
					if _, there := g.marked[n][p]; there && s.r.IntN(2) == 0 {
						delete(g.marked[n], p)
					} else {
						g.marked[n][p] = s.r.IntN(3) > 0
					}
					touch(g, n)
				case 5:
					l := s.r.IntN(simLANs)
					was := slices.Collect(maps.Keys(g.lans[l]))
					if _, on := g.lans[l][n]; on && len(was) > 1 {
						delete(g.lans[l], n)
					} else {
						g.lans[l][n] = uint16(1 + s.r.IntN(60))
					}
					touch(g, append(was, n)...)
				}
			}
			for g, routers := range touched {
				for n := range routers {
					s.say(g, n)
				}
			}
			s.pass(10 * time.Second)
			s.check(fmt.Sprintf("round %d", round))
		}
	})
}
