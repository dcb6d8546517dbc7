package flowmap

import (
	"math/rand/v2"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

func TestRule7UC(t *testing.T) {
	play := func(l *lab, n, packets int, ports func(i uint32) (uint16, uint16)) (conns []conn) {
		for i := range uint32(n) {
			qa, qb := 0x100+3*i, 0x200+5*i
			a, b := ports(i)
			conns = append(conns, newConn(hostA, hostB, qa, qb, a, b))
		}
		for psn := range uint32(packets) {
			for _, c := range conns {
				l.packet(c.ab, roce.Opcode(0x20|roce.OpSendOnly), psn, false, nil)
				l.packet(c.ba, roce.Opcode(0x20|roce.OpSendOnly), psn, false, nil)
			}
			l.wait(time.Millisecond)
		}
		return conns
	}
	formula := func(i uint32) (uint16, uint16) {
		p := formulaPort(uint64(0x100+3*i) * uint64(0x200+5*i))
		return p, p
	}
	unique := func(i uint32) (uint16, uint16) { return 50000 + uint16(i), 50000 + uint16(i) }
	decided := func(l *lab, conns []conn) (n int) {
		for _, c := range conns {
			if e, v := l.m.Lookup(c.ab.key(), l.now); v == Hit {
				if e.SourceQP != c.ba.qp {
					t.Fatalf("%v: wrong pair 0x%x", c.ab.key(), e.SourceQP)
				}
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name       string
		n, packets int
		ports      func(uint32) (uint16, uint16)
		complete   bool
		want       int
	}{
		{"N = 1 with formula", 1, 4, formula, false, 1},
		{"N = 1 with formula, three packets", 1, 3, formula, false, 0},
		{"N = 64 with formula", 64, 8, formula, false, 64},
		{"N = 1 without", 1, 200, unique, false, 0},
		{"N = 64 without", 64, 200, unique, false, 0},
		{"N = 64 without, complete tap", 64, 200, unique, true, 64},
		{"N = 64 without, complete tap, 32 packets", 64, 32, unique, true, 0},
		{"N = 3 without, complete tap: too few ports", 3, 200, unique, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, Config{TapComplete: c.complete})
			if got := decided(l, play(l, c.n, c.packets, c.ports)); got != c.want {
				t.Fatalf("%d of %d decided, want %d", got, c.n, c.want)
			}
		})
	}
}

// TestSimulationUC plays UC with random QPs: by the formula all are decided, save those whose ports collide;
// without it none.
func TestSimulationUC(t *testing.T) {
	for _, n := range []int{1, 64} {
		for _, ports := range []portMode{portFormula, portUnique, portConstant, portUnequal} {
			var sum score
			for seed := range uint64(20) {
				sum.add(simulateUC(n, ports, seed))
			}
			want := 0.0
			if ports == portFormula {
				want = 100
			}
			t.Log(line("UC, "+ports.String()+" ports", false, sum, want))
			if sum.wrong != 0 || sum.share() < want-5 || want == 0 && sum.decided != 0 {
				t.Errorf("UC %d, ports %v: %d wrong, %.1f %% decided, want %.0f", n, ports, sum.wrong, sum.share(), want)
			}
		}
	}
}

func simulateUC(n int, ports portMode, seed uint64) score {
	s := newSim(simConfig{n: n, ports: ports}, seed)
	rng := rand.New(rand.NewPCG(seed, 7))
	now := time.Unix(0, simEpoch)
	for range 200 * n {
		c, from := s.conns[rng.IntN(n)], uint8(rng.IntN(2))
		p := &roce.Packet{Src: simAddr[from], Dst: simAddr[1-from], TTL: 63, SrcPort: c.port[from], SrcMAC: [6]byte{2, 5: from}}
		p.BTH = roce.BTH{Opcode: 0x20 | roce.Opcode(roce.OpSendOnly), DestQP: c.qp[1-from], PSN: c.end[from].next}
		c.end[from].next = (c.end[from].next + 1) & psnMask
		now = now.Add(10 * time.Microsecond)
		s.m.Observe(&Observation{Packet: p, IfIndex: 1 + int(from), At: now})
	}
	s.now = now.UnixNano() - simEpoch
	return truth(s)
}
