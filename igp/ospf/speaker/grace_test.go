package speaker

import (
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// restarting makes router 1 of a chain ask its neighbours for help, and takes it away.
func restarting(t *testing.T, v packet.Version, change func(int, *Config), period time.Duration) (*world, Config) {
	n := chain(t, v, change)
	n.systems[11].Advertise(n.now, []igp.Advertisement{mine(v, 1)})
	n.pass(time.Second)
	if len(n.holds(10)) != 1 {
		t.Fatal("nothing learned")
	}
	m := n.systems[1]
	typ, id := packet.V3Grace, packet.ID(101)
	if v == packet.V2 {
		typ, id = packet.V2OpaqueLink, packet.OpaqueID(packet.OpaqueGrace, 0)
	}
	g := packet.Grace{Period: period, Reason: packet.GraceRestart}
	for _, l := range m.links {
		if v == packet.V2 {
			g.Address = unzoned(l.state.Address)
		}
		m.originate(n.now, flooding.Where{Scope: packet.ScopeLink, Link: l.id}, typ, id, g.Append(nil))
	}
	n.pass(time.Second)
	delete(n.systems, 1)
	return n, m.cfg
}

func TestARouterThatRestartsIsHelped(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		n, cfg := restarting(t, v, nil, 60*time.Second)
		want := n.holds(10)
		told := len(n.learned[10])
		n.pass(20 * time.Second) // five times the dead interval
		if got := n.systems[10].Status(n.now).Links[0].Neighbors; len(got) != 1 || got[0].State != neighbor.Full || got[0].Helping.IsZero() {
			t.Fatalf("%+v", got)
		}
		n.systems[1] = n.system(cfg) // without its databases, and without a grace LSA
		n.link([2]int{10, 1}, true)
		n.link([2]int{1, 2}, true)
		n.pass(100 * time.Second)
		n.want(10, want...)
		if len(n.learned[10]) != told {
			t.Errorf("while the router restarted %v was learned", n.learned[10][told:])
		}
		if got := n.systems[10].Status(n.now).Links[0].Neighbors; len(got) != 1 || got[0].State != neighbor.Full || !got[0].Helping.IsZero() {
			t.Errorf("%+v", got)
		}
	})
}

func TestHelpEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(int, *Config)
		period  time.Duration
		changed bool
	}{
		"not allowed":          {func(_ int, c *Config) { c.NoHelp = true }, time.Minute, false},
		"the period is over":   {nil, 3 * time.Second, false},
		"the topology changed": {nil, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, v packet.Version) {
				n, _ := restarting(t, v, c.change, c.period)
				if c.changed { // the leaf hears of it as if by another router of the area
					m := n.systems[10]
					m.endHelp(n.now, flooding.Where{Scope: packet.ScopeArea}, packet.Key{Type: map[packet.Version]packet.LSType{packet.V2: packet.V2Router, packet.V3: packet.V3Router}[v], Adv: 2})
				}
				n.pass(10 * time.Second)
				n.want(10)
				if got := n.systems[10].Status(n.now).Links[0].Neighbors; len(got) != 0 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}
