package flowmap

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

// copyOf keeps a copy of a map's answers as OnAnswer says that one should.
type copyOf struct {
	mu      sync.Mutex
	answers map[Key]Entry
}

func follow(m *Map, now func() time.Time) *copyOf {
	c := &copyOf{answers: map[Key]Entry{}}
	m.OnAnswer(func(k Key) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if e, v := m.Lookup(k, now()); v == Hit {
			c.answers[k] = e
		} else {
			delete(c.answers, k)
		}
	})
	return c
}

// differs says whether the copy gives another answer than the map.
func (c *copyOf) differs(m *Map, k Key, now time.Time) bool {
	e, v := m.Lookup(k, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	got, there := c.answers[k]
	return there != (v == Hit) || there && (got.SourceQP != e.SourceQP || got.PKey != e.PKey || got.Version != e.Version)
}

func TestCopyOfAnswersIsNeverBehind(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	held := 0
	for i := range 20 * seedsFor(false) {
		cfg := randomSettings(rng)
		if i%2 == 0 && !cfg.lockstep {
			cfg.reuse = 3
		}
		s := newSim(cfg, rng.Uint64())
		c := follow(s.m, func() time.Time { return time.Unix(0, simEpoch+s.now) })
		packets := 0
		compare := func(now time.Time) {
			s.m.Range(now, func(e Entry) bool {
				if c.differs(s.m, e.Key, now) {
					t.Errorf("%v after %d packets: %+v", e.Key, packets, e)
				}
				return !t.Failed()
			})
		}
		s.run(func(_ *simConn, _ uint8, now time.Time) {
			if packets++; packets%16 == 0 && !t.Failed() {
				compare(now)
			}
		})
		compare(time.Unix(0, simEpoch+s.now))
		if t.Failed() {
			t.Fatalf("run %d: %+v", i, cfg)
		}
		held += len(c.answers)
	}
	if held == 0 {
		t.Error("no answer was ever held")
	}
}

// What a look-up combines or another shard revokes is told, too.
func TestCopyOfAnswersFollowsVLANsPartitionsAndOtherPairs(t *testing.T) {
	l := newLab(t, Config{})
	c := follow(l.m, func() time.Time { return l.now })
	check := func(what string, f flow, want bool) {
		t.Helper()
		if c.differs(l.m, f.key(), l.now) {
			t.Errorf("%s: the copy differs", what)
		}
		if _, there := c.answers[f.key()]; there != want {
			t.Errorf("%s: there %v, want %v", what, there, want)
		}
	}
	n := formulaConn(hostA, hostB, 0x11, 0x2200)
	l.exchange(n, highStart, 5)
	check("learned", n.ab, true)

	p := &roce.Packet{Src: hostA, Dst: hostB, TTL: n.ab.ttl, SrcPort: n.ab.port, SrcMAC: [6]byte{2, 5: n.ab.mac}}
	p.BTH = roce.BTH{Opcode: rcSend, PKey: 0x8123, DestQP: n.ab.qp, PSN: highStart + 5, AckReq: true}
	l.m.Observe(&Observation{Packet: p, IfIndex: n.ab.ifIndex, At: l.now})
	check("another P_Key", n.ab, true)
	if got := c.answers[n.ab.key()].PKey; got != 0x8123 {
		t.Errorf("P_Key %#x", got)
	}

	tagged := n
	tagged.ab.vlan = 7
	l.request(tagged.ab, 100)
	check("undecided in a VLAN", n.ab, false)

	l = newLab(t, Config{})
	c = follow(l.m, func() time.Time { return l.now })
	// A QP that another host's connection takes: the old pair may be another shard's.
	for i := range 32 {
		other := netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})
		n := formulaConn(hostA, hostB, uint32(0x11+i), uint32(0x2200+i))
		l.exchange(n, highStart, 5)
		check("learned", n.ab, true)
		l.wait(time.Duration(liveFor) + time.Millisecond)
		l.exchange(formulaConn(hostA, other, uint32(0x11+i), uint32(0x3300+i)), highStart, 5)
		check("taken by another peer", n.ab, false)
	}
	l.m.OnAnswer(nil)
	before := len(c.answers)
	l.exchange(formulaConn(hostA, hostC, 0x99, 0x9900), highStart, 5)
	if len(c.answers) != before {
		t.Error("told after the end")
	}
}
