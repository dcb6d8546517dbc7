package speaker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/packet"
)

// change reconfigures a system.
func (n *world) change(id int, f func(*Config)) error {
	next := n.systems[id].cfg
	next.Circuits = slices.Clone(next.Circuits)
	f(&next)
	return n.systems[id].Reconfigure(n.now, next)
}

func TestAReloadKeepsAdjacencies(t *testing.T) {
	for name, f := range map[string]func(*Config){
		"longer hellos":  func(c *Config) { c.Circuits[0].Hello, c.Circuits[0].Multiple = 30*time.Second, 10 },
		"shorter hellos": func(c *Config) { c.Circuits[0].Hello, c.Circuits[0].Multiple = 100*time.Millisecond, 10 },
		"padding":        func(c *Config) { c.Circuits[0].Padding = adjacency.PadAlways },
		"metrics":        func(c *Config) { c.LinkMetric, c.PrefixMetric = 16777213, 0xFF000000 },
		"timers": func(c *Config) {
			c.LSPLifetime, c.Refresh, c.PSNP, c.CSNP, c.Retransmit = 600*time.Second, 300*time.Second, time.Second, 5*time.Second, time.Second
		},
		"the host name and the LSP size": func(c *Config) { c.Hostname, c.LSPSize = "other", 1200 },
	} {
		t.Run(name, func(t *testing.T) {
			n := chain(t, nil)
			n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
			n.pass(time.Second)
			since := n.systems[1].circuits["10-1"].neighbors(packet.Level2)[0].Since
			seen := len(n.learned[11])
			if err := n.change(10, f); err != nil {
				t.Fatal(err)
			}
			n.pass(400 * time.Second)
			if after := n.systems[1].circuits["10-1"].neighbors(packet.Level2); len(after) != 1 || after[0].Since != since || after[0].State != adjacency.Up {
				t.Errorf("the router's adjacency was since %s: %+v", since, after)
			}
			for _, l := range n.learned[11][seen:] {
				if l.Gone {
					t.Errorf("lost in between: %+v", l)
				}
			}
			if len(n.holds(11)) != 1 {
				t.Error("not learned any more")
			}
		})
	}
}

func TestSPFIsBackedOff(t *testing.T) {
	n := chain(t, func(_ int, c *Config) { c.SPF = backoff.Default })
	n.pass(20 * time.Second)
	graph := n.systems[11].levels[0].graphs[packet.MTStandard]
	for _, runs := range []uint64{1, 2, 3, 4} { // after 50, 250, 650 and 1450 ms
		before, at := graph.Runs(), n.now
		for range 10 { // links that flap all the time
			for _, metric := range []uint32{20, 30} {
				if err := n.change(2, func(c *Config) { c.LinkMetric = metric }); err != nil {
					t.Fatal(err)
				}
				n.pass(150 * time.Millisecond >> (4 - runs))
			}
		}
		if got := graph.Runs() - before; got > runs+1 || got == 0 {
			t.Errorf("%d runs within %s", got, n.now.Sub(at))
		}
		n.pass(20 * time.Second)
	}
}

func TestAMetricThatChangesIsAnnounced(t *testing.T) {
	n := chain(t, nil)
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
	n.pass(time.Second)
	if err := n.change(11, func(c *Config) { c.LinkMetric = 500 }); err != nil {
		t.Fatal(err)
	}
	n.pass(2 * time.Second)
	n.want(11, fmt.Sprintf("10.1.0.0/24 of 0a (s10): 10.255.0.10, cost %d", 500+20))
}

func TestALANsElectionDoesNotBeginAnewWithLongerHellos(t *testing.T) {
	n := build(t, func(id int, c *Config) {
		c.Circuits[0].LAN = true
		if id < 10 {
			c.Circuits[0].Priority = 64
		}
	}, [2]int{10, 1})
	n.pass(40 * time.Second)
	before := n.systems[10].circuits["10-1"].designated[packet.Level2]
	if before == (packet.NodeID{}) {
		t.Fatal("nobody is designated")
	}
	if err := n.change(10, func(c *Config) { c.Circuits[0].Hello = 600 * time.Second }); err != nil {
		t.Fatal(err)
	}
	n.pass(time.Second)
	if after := n.systems[10].circuits["10-1"].designated[packet.Level2]; after != before {
		t.Errorf("designated is %s, was %s", after, before)
	}
}

func TestCircuitsAreAddedAndRemoved(t *testing.T) {
	n := build(t, nil, [2]int{10, 1}, [2]int{1, 2}, [2]int{10, 2}, [2]int{2, 11})
	n.systems[10].Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
	n.pass(3 * time.Second)
	second := n.systems[10].cfg.Circuits[1]
	if err := n.change(10, func(c *Config) { c.Circuits = c.Circuits[1:] }); err != nil {
		t.Fatal(err)
	}
	n.pass(time.Second)
	n.want(11, fmt.Sprintf("10.1.0.0/24 of 0a (s10): 10.255.0.10, cost %d", DefaultLinkMetric+10))
	if err := n.change(10, func(c *Config) { c.Circuits = []CircuitConfig{{Name: "10-1"}, second} }); err != nil {
		t.Fatal(err)
	}
	n.link([2]int{10, 1}, true)
	n.pass(40 * time.Second)
	if up := n.systems[10].circuits["10-1"].neighbors(packet.Level2); len(up) != 1 || up[0].State != adjacency.Up {
		t.Errorf("the circuit that was added: %+v", up)
	}
	numbers := map[int]bool{}
	for _, c := range n.systems[10].circuits {
		numbers[c.number] = true
	}
	if len(numbers) != 2 {
		t.Errorf("circuit numbers %v", numbers)
	}
	if err := n.change(10, func(c *Config) { c.Circuits = nil }); err != nil {
		t.Fatal(err)
	}
	n.pass(40 * time.Second) // the routers hold the adjacency as long as the last hello said
	n.want(11)
}

func TestWhatCanNotChangeIsRefused(t *testing.T) {
	n := chain(t, nil)
	for want, f := range map[string]func(*Config){
		"system ID":                      func(c *Config) { c.System[5]++ },
		"areas":                          func(c *Config) { c.Areas = []packet.Area{{0x49, 0, 2}} },
		"levels":                         func(c *Config) { c.Levels = packet.Level12 },
		"P flag's bit":                   func(c *Config) { c.Flag = 9 },
		"multi-topology":                 func(c *Config) { c.MultiTopology = true },
		"bound":                          func(c *Config) { c.MaxLSPs = 1000 },
		"type and level of circuit 10-1": func(c *Config) { c.Circuits[0].LAN = true },
		"link metric":                    func(c *Config) { c.LinkMetric = 0xFFFFFF },
	} {
		before := n.systems[10].cfg.Hostname
		err := n.change(10, func(c *Config) { c.Hostname = "changed"; f(c) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if n.systems[10].cfg.Hostname != before {
			t.Errorf("%s: something has changed", want)
		}
	}
}
