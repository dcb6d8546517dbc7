package speaker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/ospf/packet"
)

// chaos is a ring of four routers with three leaves, to which anything happens.
type chaos struct {
	*world
	r     *rand.Rand
	pairs [][2]int
	areas map[string]packet.ID
	mtu   map[string]int
	kind  AreaKind // of area 5
}

func newChaos(t *testing.T, v packet.Version, seed uint64) *chaos {
	c := &chaos{r: rand.New(rand.NewPCG(seed, uint64(v))), areas: map[string]packet.ID{}, mtu: map[string]int{}}
	c.pairs = [][2]int{{1, 2}, {2, 3}, {3, 4}, {4, 1}, {10, 1}, {11, 3}, {12, 2}, {12, 4}}
	c.world = build(t, v, func(id int, x *Config) { x.Reoriginate = id == 12 || id == 4 }, c.pairs...)
	return c
}

// configure gives a router the areas as they are now.
func (c *chaos) configure(id int) {
	m := c.systems[id]
	x := m.cfg
	x.Areas = []AreaConfig{{5, c.kind}}
	x.Links = slices.Clone(x.Links)
	for i := range x.Links {
		x.Links[i].Area = c.areas[x.Links[i].Name]
	}
	if err := m.Reconfigure(c.now, x); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chaos) set(p [2]int, up bool) {
	for end, id := range p {
		mtu := 1500
		if v := c.mtu[name(p)]; v != 0 {
			mtu = v
		}
		c.systems[id].LinkChanged(c.now, name(p), Link{Up: up, Index: 100*p[0] + p[1], MTU: mtu, Address: c.address(p, end)})
	}
}

func (c *chaos) ids() (all []int) {
	for id := range c.systems {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

// happen lets something happen.
func (c *chaos) happen() {
	p := c.pairs[c.r.IntN(len(c.pairs))]
	id := c.ids()[c.r.IntN(len(c.systems))]
	switch c.r.IntN(9) {
	case 0, 1:
		c.set(p, false)
	case 2, 3:
		c.set(p, true)
	case 4: // another area at both ends
		c.areas[name(p)] = packet.ID(5 * c.r.IntN(2))
		c.configure(p[0])
		c.configure(p[1])
	case 5:
		c.mtu[name(p)] = []int{0, 60, 100, 1400, 9000}[c.r.IntN(5)]
		c.set(p, true)
	case 6:
		var ads []igp.Advertisement
		for i := range c.r.IntN(5) {
			ads = append(ads, mine(c.v, id+i))
		}
		c.systems[id].Advertise(c.now, ads)
	case 7: // killed, and begun again with nothing
		x := c.systems[id].cfg
		c.systems[id] = c.system(x)
		c.learned[id] = nil
		for _, p := range c.pairs {
			if p[0] == id || p[1] == id {
				c.set(p, c.r.IntN(3) > 0)
			}
		}
	case 8:
		c.kind = AreaKind(c.r.IntN(3))
		for _, id := range c.ids() {
			c.configure(id)
		}
	}
}

// TestAnythingHappens holds that routers that had anything happen to them are as new ones once it is quiet: all mark
// what they shall, learn what others mark and nothing else, and each change is told once.
func TestAnythingHappens(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		rounds := 6
		if testing.Short() {
			rounds = 2
		}
		for seed := range rounds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				c := newChaos(t, v, uint64(seed))
				c.lose = func(Datagram) bool { return c.r.IntN(20) == 0 }
				for range 150 {
					c.happen()
					c.pass(time.Duration(c.r.IntN(3000)) * time.Millisecond)
				}
				c.lose = nil
				clear(c.areas)
				clear(c.mtu)
				for _, id := range c.ids() {
					c.configure(id)
					c.systems[id].Advertise(c.now, []igp.Advertisement{mine(v, id)})
				}
				for _, p := range c.pairs {
					c.set(p, true)
				}
				c.pass(2 * time.Minute)
				c.check()
			})
		}
	})
}

func (c *chaos) check() {
	c.t.Helper()
	for _, id := range c.ids() {
		var want []string
		for _, other := range c.ids() {
			if other != id {
				want = append(want, fmt.Sprintf("%s of %s in 0.0.0.0: %s", mine(c.v, other).Prefix, packet.ID(other), mine(c.v, other).Proxy))
			}
		}
		slices.Sort(want)
		var got []string
		for _, h := range c.holds(id) {
			what, _, _ := strings.Cut(h, ", cost")
			got = append(got, what)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			c.t.Errorf("router %d holds\n %s\nwant\n %s", id, strings.Join(got, "\n "), strings.Join(want, "\n "))
		}
		there := map[string]bool{}
		for _, l := range c.learned[id] {
			k := fmt.Sprintf("%s of %s in %d", l.Prefix, l.Originator, l.Area)
			if l.Gone && !there[k] {
				c.t.Errorf("router %d: gone, but was not there: %s", id, k)
			}
			there[k] = !l.Gone
		}
		st := c.systems[id].Status(c.now)
		sum := st.Used
		for _, n := range st.Drops {
			sum += n
		}
		for _, n := range st.Received {
			sum -= n
		}
		if sum != 0 {
			c.t.Errorf("router %d: %+v", id, st)
		}
		for _, l := range c.systems[id].Database(c.now) {
			if l.LSA.Type.NSSA(c.v) || l.Age >= packet.MaxAge {
				c.t.Errorf("router %d still has %s, age %d", id, l.LSA.Key, l.Age)
			}
		}
	}
}
