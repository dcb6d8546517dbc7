package flowmap

import (
	"math/rand/v2"
	"testing"
	"time"
)

// decided returns a lab with a pair decided by the port formula.
func decided(t *testing.T) (*lab, conn) {
	l := newLab(t, Config{})
	n := formulaConn(hostA, hostB, 0x11, 0x2200)
	l.exchange(n, highStart, 5)
	l.paired(n, SourcePort)
	return l, n
}

func TestRule8OneJumpSuspendsASecondClears(t *testing.T) {
	l, n := decided(t)
	l.request(n.ab, highStart+5+32768+1)
	l.undecided(n)
	l.exchange(n, highStart+5, 1)
	l.undecided(n)
	l.exchange(n, highStart+6, 1) // in sequence twice: the jump was a stray packet
	l.paired(n, SourcePort)
	l.request(n.ab, highStart+0x100000)
	l.request(n.ab, highStart+0x100001)
	l.undecided(n)
	l.exchange(n, highStart+7, 1) // now this is the jump
	l.undecided(n)
}

func TestRule8BackAfterIdling(t *testing.T) {
	l, n := decided(t)
	l.exchange(n, highStart+5, 100)
	l.wait(90 * time.Millisecond)
	l.request(n.ab, highStart+20) // retransmission by timeout, of what was acknowledged: no answer
	l.undecided(n)                // until B acknowledges again
	l.wait(20 * time.Microsecond)
	l.ack(n.ba, highStart+104)
	l.paired(n, SourcePort)
	l.wait(101 * time.Millisecond)
	l.request(n.ab, highStart+104-64)
	l.paired(n, SourcePort)
	l.wait(101 * time.Millisecond)
	l.request(n.ab, highStart+104-64-1)
	l.undecided(n)
}

func TestRule8MSNStartsAgain(t *testing.T) {
	for _, c := range []struct {
		name      string
		from, msn uint32
		clears    bool
	}{
		{"back by 4", 66, 62, false},
		{"back by 5 to under 64", 66, 61, true},
		{"back to 64", 1000, 64, false},
		{"back to 1", 1000, 1, true},
		{"wrap", 0xFFFFFE, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, n := decided(t)
			l.stream(n.ba).msnSeen = false
			l.request(n.ab, highStart+5)
			l.packet(n.ba, rcAck, highStart+5, false, aeth(0, c.from))
			l.wait(time.Millisecond)
			l.request(n.ab, highStart+6)
			l.packet(n.ba, rcAck, highStart+6, false, aeth(0, c.msn))
			_, v := l.m.Lookup(n.ab.key(), l.now)
			if (v == Undecided) != c.clears {
				t.Fatalf("MSN %d to %d: %v", c.from, c.msn, v)
			}
		})
	}
}

func TestRule8LateMSNIsNoRestart(t *testing.T) {
	for _, c := range []struct {
		late   time.Duration
		clears bool
	}{{250 * time.Microsecond, false}, {251 * time.Microsecond, true}} {
		l, n := decided(t)
		for i := range uint32(20) {
			l.request(n.ab, highStart+5+i)
		}
		l.stream(n.ba).msnSeen = false
		l.packet(n.ba, rcAck, highStart+24, false, aeth(0, 20))
		l.wait(c.late)
		l.packet(n.ba, rcAck, highStart+14, false, aeth(0, 10))
		if _, v := l.m.Lookup(n.ab.key(), l.now); (v == Undecided) != c.clears {
			t.Fatalf("MSN back after %v: %v", c.late, v)
		}
	}
}

func TestRule8PortChangeClears(t *testing.T) {
	for _, back := range []bool{false, true} {
		l, n := decided(t)
		f := n.ab
		if back {
			f = n.ba
		}
		f.port++
		l.request(f, highStart+5)
		l.undecided(n)
	}
}

func TestRule8FourACKsOutsideTheWindow(t *testing.T) {
	for _, c := range []struct {
		psn  uint32
		step int32
	}{{highStart + 4 + 1024 + 1, 1}, {highStart + 4 - 131072 - 1, -1}} {
		l, n := decided(t)
		l.stream(n.ba).resp.high = c.psn // as if its ACKs had crept there without a jump
		for i := range int32(3) {
			l.ack(n.ba, c.psn+uint32(i*c.step))
		}
		l.paired(n, SourcePort)
		l.ack(n.ba, c.psn+uint32(3*c.step))
		l.undecided(n)
	}
	l, n := decided(t)
	for range 8 { // at the window's edge, and one outside now and then
		l.ack(n.ba, highStart+4+1024)
		l.ack(n.ba, highStart+4+1024+1)
	}
	l.paired(n, SourcePort)
}

func TestRule8ResponseBeforeRequestEndsADecidedPair(t *testing.T) {
	l, n := decided(t)
	for i := range uint32(8) {
		l.ack(n.ba, highStart+5+i)
		l.wait(time.Millisecond)
		l.request(n.ab, highStart+5+i)
	}
	l.undecided(n)
}

func TestRule8RivalOfAPSNOnlyPair(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	l.exchange(n, highStart, 4)
	l.paired(n, SourcePSN)
	rival := newConn(hostA, hostB, 0x33, 0x44, 49152, 49153) // its ACKs answer n's requests too
	for i := range uint32(3) {
		l.request(n.ab, highStart+4+i)
		l.wait(20 * time.Microsecond)
		l.ack(rival.ba, highStart+4+i)
		l.wait(time.Millisecond)
	}
	l.undecided(n)
}

func TestRule8PSNStepWaitsForAResponse(t *testing.T) {
	l, n := decided(t)
	l.request(n.ab, highStart+5+2*1024) // the tap lost some packets, or the QP is reused
	l.undecided(n)
	l.wait(20 * time.Microsecond)
	l.ack(n.ba, highStart+5+2*1024)
	l.paired(n, SourcePort)
	l.request(n.ab, highStart)
	l.wait(101 * time.Millisecond)
	l.request(n.ab, highStart+1)
	l.undecided(n)
	if l.stream(n.ab).link != nil {
		t.Fatal("a step without a response for 100 ms left the pair in place")
	}
}

func TestRule8RivalOfAPSNOnlyPairThatWasRerouted(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	l.exchange(n, highStart, 4)
	l.paired(n, SourcePSN)
	n.ab.ifIndex, n.ab.mac = 7, 9
	l.wait(1100 * time.Millisecond)
	l.exchange(n, highStart+4, 4)
	l.paired(n, SourcePSN)
	rival := newConn(hostA, hostB, 0x33, 0x44, 49152, 49153)
	for i := range uint32(3) {
		l.request(n.ab, highStart+8+i)
		l.wait(20 * time.Microsecond)
		l.ack(rival.ba, highStart+8+i)
		l.wait(time.Millisecond)
	}
	l.undecided(n)
}

func TestRule9CandidateSlots(t *testing.T) {
	l := newLab(t, Config{})
	y := flow{from: hostB, to: hostA, qp: 0x100, port: 51000, ttl: 64, mac: 2, ifIndex: 2}
	xs := make([]flow, 40)
	for i := range xs {
		xs[i] = newConn(hostA, hostB, 0, 0x200+uint32(i), 50000+uint16(i), 0).ab
	}
	psn := uint32(highStart)
	vote := func(f flow) {
		psn += 300
		l.request(f, psn)
		l.wait(10 * time.Microsecond)
		l.ack(y, psn)
		l.wait(10 * time.Microsecond)
	}
	for range 2 {
		for _, x := range xs[:10] {
			vote(x) // two votes each: they stay
		}
	}
	for _, x := range xs[10:] {
		vote(x) // one vote each: they give way, the one silent longest first
	}
	s := l.stream(y)
	if len(s.cands) != maxCandidates {
		t.Fatalf("%d slots taken, want %d", len(s.cands), maxCandidates)
	}
	for i, x := range xs {
		hits, _ := l.hits(x, y)
		want := uint32(2)
		if i >= 10 {
			want = 0
		}
		if i >= 34 {
			want = 1
		}
		if hits != want {
			t.Errorf("stream %d: %d hits, want %d", i, hits, want)
		}
	}
}

func TestRule9FlowLabelBreaksATie(t *testing.T) {
	const qa, qb = 0x30, 0x40
	p := formulaPort(qa * qb)
	qa2 := uint32(qa + 1)
	for !portMatches(qa2, qb, p) {
		qa2++
	}
	for _, labels := range []bool{false, true} {
		l := newLab(t, Config{})
		c := newConn(hostA, hostB, qa, qb, p, p)
		tie := newConn(hostA, hostB, qa2, 0x50, p, p) // its Y satisfies the formula with c's X
		for i := range uint32(4) {                    // other ports, so that p tells something
			q := 50000 + uint16(i)
			l.exchange(newConn(hostA, hostB, 0x700+i, 0x800+i, q, q), 900*i, 1)
		}
		if labels {
			c.ab.label, c.ba.label = 0x12345, 0x12345
		}
		for i := range uint32(12) {
			l.request(c.ab, i)
			l.request(tie.ab, i)
			l.wait(20 * time.Microsecond)
			l.ack(c.ba, i)
			l.ack(tie.ba, i)
			l.wait(time.Millisecond)
		}
		if labels {
			l.paired(c, SourcePort)
		} else {
			l.undecided(c)
		}
	}
}

func TestRule10ALivePairBeatsAClaimThatNamesAnotherPeer(t *testing.T) {
	l, n := decided(t)
	// B sends requests to C, and C answers with ACKs that name B's QP, which has A as its peer.
	claim := formulaConn(hostC, hostB, 0x77, n.ab.qp)
	for i := range uint32(20) {
		l.exchange(n, highStart+5+i, 1)
		l.exchange(claim, 0x700000+i, 1)
	}
	l.paired(n, SourcePort)
	l.undecided(claim)
	if l.m.Counters().Refused == 0 {
		t.Fatal("no refused claim was counted")
	}
	l.wait(1100 * time.Millisecond) // A's pair is silent: the QP has a new peer
	l.exchange(claim, 0x700014, 3)
	l.paired(claim, SourcePort)
	if _, v := l.m.Lookup(n.ab.key(), l.now); v == Hit {
		t.Fatal("the old pair still answers")
	}
}

func TestRule11IngressMustMatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*flow)
		fits   bool
	}{
		{"interface", func(f *flow) { f.ifIndex++ }, false},
		{"source MAC", func(f *flow) { f.mac++ }, false},
		{"TTL by 1", func(f *flow) { f.ttl++ }, true},
		{"TTL by 2", func(f *flow) { f.ttl += 2 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, Config{})
			n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
			l.exchange(n, highStart, 1)
			forged := n.ba
			c.change(&forged)
			l.request(n.ab, highStart+1)
			l.wait(time.Millisecond)
			l.ack(forged, highStart+1)
			want := uint32(1)
			if c.fits {
				want = 2
			}
			if hits, _ := l.hits(n.ab, n.ba); hits != want {
				t.Fatalf("%d hits, want %d", hits, want)
			}
		})
	}
}

func TestRule11ReroutedStreamTakesItsNewWay(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	l.exchange(n, highStart, 1)
	n.ba.ifIndex, n.ba.mac = 7, 9
	l.wait(1100 * time.Millisecond)
	l.exchange(n, highStart+1, 4)
	l.paired(n, SourcePSN)
}

func TestRule11VotesSpanAMillisecond(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	for i := range uint32(60) {
		l.request(n.ab, highStart+i)
		l.wait(5 * time.Microsecond)
		l.ack(n.ba, highStart+i)
		l.wait(5 * time.Microsecond)
	}
	l.undecided(n)
	l.wait(time.Millisecond)
	l.exchange(n, highStart+60, 1)
	l.paired(n, SourcePSN)
}

func TestRule11MillionBlindACKs(t *testing.T) {
	l := newLab(t, Config{})
	rng := rand.New(rand.NewPCG(1, 11))
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49152)
	forged := n.ba // as B's packets look, but with a QP that has no connection, and without knowing PSNs
	forged.qp = 0x4711
	psn := uint32(highStart)
	packets := 1_000_000
	if raceEnabled {
		packets /= 10
	}
	for i := range packets {
		if i%10 == 0 {
			l.request(n.ab, psn)
			psn++
		}
		l.packet(forged, rcAck, rng.Uint32()&psnMask, false, aeth(0, 1))
		l.wait(10 * time.Microsecond)
	}
	if _, v := l.m.Lookup(n.ab.key(), l.now); v == Hit {
		t.Fatal("blind ACKs made a decision")
	}
	if _, v := l.m.Lookup(forged.key(), l.now); v == Hit {
		t.Fatal("blind ACKs made a decision")
	}
}

func TestPSNWrap(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	l.exchange(n, 0xFFFFF0, 40)
	l.paired(n, SourcePSN)
	if c := l.m.Counters(); c.Withdrawn != 0 {
		t.Fatalf("%d withdrawn over the wrap, want none", c.Withdrawn)
	}
}

func TestOnePairAnswersForBothDirectionsAndOnlyInItsContext(t *testing.T) {
	l, n := decided(t)
	l.paired(n, SourcePort)
	other := n.ab
	other.context = 7
	l.want(other, Miss, 0)
	swapped := Key{Sender: hostA, Receiver: hostB, DestQP: n.ba.qp}
	if _, v := l.m.Lookup(swapped, l.now); v != Miss {
		t.Fatalf("A's own QP as a Destination QP at B: %v, want miss", v)
	}
}
