package flowmap

import (
	"testing"
	"time"

	"pncd/dataplane/roce"
)

// The tests of this file hold the numbered rules of rules.go, one by one.

func TestRule1OnlyAckableRequestsAreIndexed(t *testing.T) {
	for _, c := range []struct {
		name    string
		op      uint8
		ackReq  bool
		indexed bool
	}{
		{"SEND first", roce.OpSendFirst, false, false},
		{"SEND middle", roce.OpSendMiddle, false, false},
		{"WRITE middle with AckReq", roce.OpWriteMiddle, true, true},
		{"SEND last", roce.OpSendLast, false, true},
		{"SEND only", roce.OpSendOnly, false, true},
		{"WRITE last", roce.OpWriteLast, false, true},
		{"fetch-add", roce.OpFetchAdd, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, Config{})
			n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
			l.packet(n.ab, roce.Opcode(c.op), highStart, c.ackReq, nil)
			l.wait(10 * time.Microsecond)
			l.ack(n.ba, highStart)
			if hits, _ := l.hits(n.ab, n.ba); (hits == 1) != c.indexed {
				t.Fatalf("hits %d, want indexed=%v", hits, c.indexed)
			}
		})
	}
}

func TestRule1ReadIndexesFirstAndLastPSN(t *testing.T) {
	for _, c := range []struct {
		name        string
		length, psn uint32
		match       bool
	}{
		{"1 packet, its PSN", 100, 0, true},
		{"1 packet, the next PSN", 100, 1, false},
		{"5 packets, the first PSN", 5 * 1024, 0, true},
		{"5 packets, a middle PSN", 5 * 1024, 2, false},
		{"5 packets, the last PSN", 5 * 1024, 4, true},
		{"5 packets, past the last PSN", 5 * 1024, 5, false},
		{"4 packets and an octet, the last PSN", 4*1024 + 1, 4, true},
		{"0 octets take a PSN", 0, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, Config{})
			n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
			l.packet(n.ab, roce.Opcode(roce.OpSendFirst), highStart-2, false, make([]byte, 1024)) // shows the path MTU
			l.packet(n.ab, roce.Opcode(roce.OpSendLast), highStart-1, true, make([]byte, 8))
			l.read(n.ab, highStart, c.length)
			l.wait(10 * time.Microsecond)
			l.ack(n.ba, highStart+c.psn)
			if hits, _ := l.hits(n.ab, n.ba); (hits == 1) != c.match {
				t.Fatalf("hits %d, want match=%v", hits, c.match)
			}
		})
	}
}

func TestRule1NineEntriesForAPSN(t *testing.T) {
	l := newLab(t, Config{})
	y := newConn(hostA, hostB, 0x999, 0x1, 50000, 50001).ba
	for i := range uint32(12) {
		l.request(newConn(hostA, hostB, 0x100+i, 0x200+i, 50000+uint16(i), 0).ab, highStart)
		l.wait(time.Microsecond)
	}
	l.ack(y, highStart)
	s := l.stream(y)
	var found matches
	n, _ := s.pair.votes.index[1].find(highStart, 1, l.now.UnixNano(), lagBoundStart, &found)
	if n != 9 {
		t.Fatalf("%d entries for a PSN, want 9", n)
	}
}

func TestRule2WhatVotes(t *testing.T) {
	for _, c := range []struct {
		name string
		op   uint8
		aeth []byte
		vote bool
	}{
		{"ACK", roce.OpAck, aeth(0x1F, 1), true},
		{"ATOMIC ACK", roce.OpAtomicAck, aeth(0, 1), true},
		{"RNR NAK", roce.OpAck, aeth(0x20, 1), false},
		{"NAK", roce.OpAck, aeth(0x60, 1), false},
		{"READ response first", roce.OpReadRespFirst, aeth(0, 1), true},
		{"READ response middle", roce.OpReadRespMiddle, nil, false},
		{"READ response last", roce.OpReadRespLast, aeth(0, 1), false},
		{"READ response only", roce.OpReadRespOnly, aeth(0, 1), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, Config{})
			n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
			l.request(n.ab, highStart)
			l.wait(10 * time.Microsecond)
			l.packet(n.ba, roce.Opcode(c.op), highStart, false, c.aeth)
			if hits, _ := l.hits(n.ab, n.ba); (hits == 1) != c.vote {
				t.Fatalf("hits %d, want vote=%v", hits, c.vote)
			}
		})
	}
}

func TestRule2RepeatedACKIsOneVote(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	l.request(n.ab, highStart)
	for range 50 {
		l.wait(100 * time.Microsecond)
		l.ack(n.ba, highStart)
	}
	if hits, _ := l.hits(n.ab, n.ba); hits != 1 {
		t.Fatalf("%d hits from one ACK repeated, want 1", hits)
	}
	l.undecided(n)
}

func TestRule2LagBound(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	l.request(n.ab, highStart)
	l.wait(201 * time.Millisecond)
	l.ack(n.ba, highStart)
	if hits, _ := l.hits(n.ab, n.ba); hits != 0 {
		t.Fatal("a request older than 200 ms got a vote")
	}
	var g lags
	for range lagsNeeded {
		g.add(int64(50 * time.Microsecond))
	}
	if want := int64(600 * time.Microsecond); g.limit() != want {
		t.Fatalf("bound %v after 32 lags of 50 us, want 8 x median + 200 us = %v", time.Duration(g.limit()), time.Duration(want))
	}
}

func TestRule2CrowdIsNoExclusiveVote(t *testing.T) {
	l := newLab(t, Config{})
	for i := range uint32(8) {
		l.request(newConn(hostA, hostB, 0x100+i, 0x200+i, 50000, 0).ab, highStart)
	}
	y := flow{from: hostB, to: hostA, qp: 0x100, port: 51000, ttl: 64, mac: 2, ifIndex: 2}
	l.wait(10 * time.Microsecond)
	l.ack(y, highStart)
	x := newConn(hostA, hostB, 0x100, 0x200, 50000, 0).ab
	if hits, hx := l.hits(x, y); hits != 1 || hx != 1 {
		t.Fatalf("among 8: hits %d hx %d, want 1 and 1", hits, hx)
	}
	for i := range uint32(9) {
		l.request(newConn(hostA, hostB, 0x100+i, 0x200+i, 50000, 0).ab, highStart+1)
	}
	l.wait(10 * time.Microsecond)
	l.ack(y, highStart+1)
	if hits, hx := l.hits(x, y); hits != 2 || hx != 1 {
		t.Fatalf("among 9: hits %d hx %d, want 2 and 1", hits, hx)
	}
}

func TestRule3ChanceOfAStranger(t *testing.T) {
	l := newLab(t, Config{})
	conns := make([]conn, 4)
	for i := range conns {
		conns[i] = newConn(hostA, hostB, 0x100+uint32(i), 0x200+uint32(i), 50000, 50000)
		l.request(conns[i].ab, highStart)
	}
	l.wait(10 * time.Microsecond)
	l.ack(conns[0].ba, highStart) // |C| = 4, 4 streams: 3 strangers of 3 matched
	v := l.stream(conns[0].ba).pair.votes
	if got, want := v.chanceOf(), (3+0.5)/(3+8.0); got != want {
		t.Fatalf("b = %v, want %v", got, want)
	}
}

func TestRule4ResponseBeforeRequestEndsThePair(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	l.request(n.ab, highStart)
	l.wait(10 * time.Microsecond)
	l.ack(n.ba, highStart)
	for _, psn := range []uint32{highStart + 1, highStart + 2} {
		l.wait(10 * time.Microsecond)
		l.ack(n.ba, psn) // answers a request of somebody else
		l.wait(240 * time.Microsecond)
		l.request(n.ab, psn) // within the tap's own reordering: no evidence
	}
	if c := findCandidate(l.stream(n.ab), l.stream(n.ba)); c.ended || c.against != 0 {
		t.Fatalf("against %d within the tap's reordering, want 0", c.against)
	}
	for _, psn := range []uint32{highStart + 3, highStart + 4} {
		l.ack(n.ba, psn)
		l.wait(260 * time.Microsecond)
		l.request(n.ab, psn)
	}
	if c := findCandidate(l.stream(n.ab), l.stream(n.ba)); !c.ended {
		t.Fatalf("against %d of %d hits, want the candidate ended", c.against, c.hits)
	}
	l.undecided(n)
}

func TestRule4HoldsOverTheWholePSNSpace(t *testing.T) {
	for _, psns := range []uint32{0, 1 << 22, 1 << 23, 1<<23 + 1<<22, 1 << 24} {
		var h ackHistory
		at := int64(0)
		for psn := uint32(0); psn < psns; psn += 1 << 12 {
			h.add((highStart+psn)&psnMask, at)
			at += 1000
		}
		last := (highStart + psns) & psnMask
		h.add(last, at)
		at += ackSpanLen
		if !h.before(last, at) {
			t.Errorf("after %d PSNs: the last one does not count as acknowledged", psns)
		}
		if h.before((last+1)&psnMask, at) {
			t.Errorf("after %d PSNs: the next one counts as acknowledged", psns)
		}
		if psns < 1<<22 && h.before(highStart-1, at) {
			t.Errorf("after %d PSNs: one before the first seen counts as acknowledged", psns)
		}
	}
}

func TestRule5FormulaPortDecides(t *testing.T) {
	l := newLab(t, Config{})
	n := formulaConn(hostA, hostB, 0x18b, 0x2f00)
	l.exchange(n, 0, 3) // PSNs from 0: never by PSN alone
	l.paired(n, SourcePort)

	older := newConn(hostA, hostC, 0x18b, 0x2f01, olderFormulaPort(0x18b*0x2f01), olderFormulaPort(0x18b*0x2f01))
	l.wait(2 * time.Second) // or A's QP would have a live peer (rule 10)
	l.exchange(older, 0, 3)
	l.paired(older, SourcePort)
}

func TestRule5ChanceEqualPortInACrowdIsUndecided(t *testing.T) {
	l := newLab(t, Config{})
	conns := make([]conn, 12)
	for i := range conns {
		q := uint32(i)
		conns[i] = newConn(hostA, hostB, 0x100+q, 0x200+q, 50000+uint16(i), 60000+uint16(i))
	}
	conns[3].ba.port = conns[7].ab.port // an accident
	for psn := range uint32(40) {
		for i := range conns {
			l.request(conns[i].ab, psn)
			l.wait(time.Microsecond)
		}
		for i := range conns {
			l.ack(conns[i].ba, psn)
			l.wait(time.Microsecond)
		}
		l.wait(time.Millisecond)
	}
	for _, c := range conns {
		l.undecided(c)
	}
}

func TestRule5UniqueSymmetricPortsDecideFewStreams(t *testing.T) {
	play := func(n int, complete bool) *lab {
		l := newLab(t, Config{TapComplete: complete})
		for psn := range uint32(30) {
			for i := range uint32(n) {
				l.request(newConn(hostA, hostB, 0x100+i, 0x200+i, 50000+uint16(i), 0).ab, psn)
			}
			l.wait(20 * time.Microsecond)
			for i := range uint32(n) {
				l.ack(newConn(hostA, hostB, 0x100+i, 0x200+i, 0, 50000+uint16(i)).ba, psn)
			}
			l.wait(time.Millisecond)
		}
		return l
	}
	c := newConn(hostA, hostB, 0x100, 0x200, 50000, 50000)
	if portMatches(0x100, 0x200, 50000) {
		t.Fatal("the test's port satisfies the formula")
	}
	play(11, false).paired(c, SourcePort) // 11 x 11 <= 128
	play(12, false).undecided(c)
	play(12, true).paired(c, SourcePort)
	play(1, false).undecided(c) // one port shows no symmetry
}

func TestRule5ConstantPortIsNotBelievedByFormula(t *testing.T) {
	// Of the 4,096 pairs of 64 streams, some satisfy the formula for the adapter's default port by chance.
	l := newLab(t, Config{})
	var qa, qb uint32
	for qb = 0x200; !portMatches(0x100, qb, 49152); qb++ {
	}
	qa = 0x100
	for psn := range uint32(30) {
		for i := range uint32(8) {
			l.request(newConn(hostA, hostB, qa+i, qb+i, 49152, 49152).ab, psn)
		}
		l.wait(20 * time.Microsecond)
		for i := range uint32(8) {
			l.ack(newConn(hostA, hostB, qa+i, qb+(i+1)%8, 49152, 49152).ba, psn)
		}
		l.wait(time.Millisecond)
	}
	l.undecided(newConn(hostA, hostB, qa, qb, 49152, 49152))
}

func TestRule6IsolatedStreamsAreDecidedByPSN(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	l.exchange(n, highStart, 2)
	l.undecided(n)
	l.exchange(n, highStart+2, 1)
	l.paired(n, SourcePSN)
}

func TestRule6RefusesLowStartsSiblingsAndUnequalPorts(t *testing.T) {
	t.Run("first PSN under 65,536", func(t *testing.T) {
		l := newLab(t, Config{})
		n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
		l.exchange(n, 65_535, 40)
		l.undecided(n)
		l = newLab(t, Config{})
		l.exchange(n, 65_540, 40) // its first message may have been four times as large
		l.paired(n, SourcePSN)
	})
	t.Run("a tap that came late", func(t *testing.T) {
		l := newLab(t, Config{})
		n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
		l.acked = map[Key]uint32{n.ba.key(): highStart - 63} // the first MSN seen is 64
		l.exchange(n, highStart, 40)
		l.undecided(n)
		l = newLab(t, Config{})
		l.acked = map[Key]uint32{n.ba.key(): highStart - 62}
		l.exchange(n, highStart, 40)
		l.paired(n, SourcePSN)
	})
	t.Run("a sibling within reach", func(t *testing.T) {
		l := newLab(t, Config{})
		a := newConn(hostA, hostB, 0x11, 0x22, 49152, 49152)
		b := newConn(hostA, hostB, 0x12, 0x23, 49152, 49152)
		for i := range uint32(20) {
			l.exchange(a, highStart+i, 1)
			l.exchange(b, highStart+900+i, 1)
		}
		l.undecided(a)
		l.undecided(b)
	})
	t.Run("siblings far apart", func(t *testing.T) {
		l := newLab(t, Config{})
		a := newConn(hostA, hostB, 0x11, 0x22, 49152, 49152)
		b := newConn(hostA, hostB, 0x12, 0x23, 49152, 49152)
		for i := range uint32(60) {
			l.exchange(a, highStart+i, 1)
			l.exchange(b, highStart+5000+i, 1)
		}
		l.paired(a, SourcePSN)
		l.paired(b, SourcePSN)
	})
	t.Run("ports symmetric but different here", func(t *testing.T) {
		l := newLab(t, Config{})
		for i := range uint32(2) {
			p := 50000 + uint16(i)
			l.exchange(newConn(hostA, hostB, 0x100+i, 0x200+i, p, p), highStart+i*0x10000, 1)
		}
		odd := newConn(hostA, hostB, 0x300, 0x400, 50002, 50003)
		l.exchange(odd, 0xA00000, 60)
		l.undecided(odd)
	})
}

func TestRule6CompleteTapDecidesStartsFromZero(t *testing.T) {
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49153)
	open, complete := newLab(t, Config{}), newLab(t, Config{TapComplete: true})
	open.exchange(n, 0, 50)
	open.undecided(n)
	complete.exchange(n, 0, 3)
	complete.paired(n, SourcePSN)

	// nX = nY: with a stream more on one side, its peer must be hidden, and the declaration false.
	l := newLab(t, Config{TapComplete: true})
	l.request(newConn(hostA, hostB, 0x13, 0x24, 49152, 0).ab, 7_000)
	l.exchange(n, 0, 50)
	l.undecided(n)
}
