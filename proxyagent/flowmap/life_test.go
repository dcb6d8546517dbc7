package flowmap

import (
	"net/netip"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

func TestLifeAgesWithoutTrafficAndIsForgotten(t *testing.T) {
	for _, ticks := range []bool{false, true} { // a look-up does not depend on Tick
		l := newLab(t, Config{AgeAfter: 10 * time.Second})
		n := formulaConn(hostA, hostB, 0x11, 0x2200)
		l.exchange(n, highStart, 5)
		for range 3 { // traffic of either direction refreshes both
			l.wait(9 * time.Second)
			l.ack(n.ba, highStart+4)
			if ticks {
				l.m.Tick(l.now)
			}
			l.paired(n, SourcePort)
		}
		l.wait(10*time.Second + 2*time.Millisecond)
		if ticks {
			l.m.Tick(l.now)
		}
		l.want(n.ab, Aged, 0)
		if e := l.want(n.ba, Aged, 0); e.State != StateAged {
			t.Fatalf("state %v, want aged", e.State)
		}
		if !ticks {
			continue
		}
		if c := l.m.Counters(); c.Aged != 2 {
			t.Fatalf("%d aged, want 2", c.Aged)
		}
		l.wait(11 * time.Second)
		l.m.Tick(l.now)
		l.want(n.ab, Miss, 0)
		if known, total := l.m.Len(); known != 0 || total != 0 {
			t.Fatalf("%d known of %d left", known, total)
		}
	}
}

func TestLifeAgedFlowIsLearnedAnew(t *testing.T) {
	l := newLab(t, Config{AgeAfter: time.Second})
	n := formulaConn(hostA, hostB, 0x11, 0x2200)
	l.exchange(n, highStart, 5)
	l.wait(1100 * time.Millisecond)
	l.m.Tick(l.now)
	l.request(n.ab, highStart+5)
	l.want(n.ab, Undecided, 0)
	l.exchange(n, highStart+6, 4)
	l.paired(n, SourcePort)
}

func TestLifeClosedFlowOpensAgainWithNewTraffic(t *testing.T) {
	l, d := testDialogue(t)
	d.connect()
	l.exchange(d.c, d.psnB, 3)
	d.a(roce.CMDREQ)
	l.wait(1100 * time.Millisecond)
	clear(l.acked)               // a new connection's MSN starts anew
	l.exchange(d.c, 0x700000, 5) // the same QPs, another sequence, no CM
	l.paired(d.c, SourcePSN)
}

func TestVersionStepsAndEntriesRememberIt(t *testing.T) {
	l := newLab(t, Config{})
	n := formulaConn(hostA, hostB, 0x11, 0x2200)
	l.request(n.ab, highStart)
	v := l.m.Version()
	if e := l.want(n.ab, Undecided, 0); e.Version != v || !e.ChangedAt.Equal(l.now) || !e.LearnedAt.IsZero() {
		t.Fatalf("at version %d: %+v", v, e)
	}
	l.request(n.ab, highStart+1)
	if l.m.Version() != v {
		t.Fatal("a packet that changes no entry stepped the version")
	}
	l.exchange(n, highStart+2, 5)
	e := l.want(n.ab, Hit, 0x11)
	if e.Version <= v || e.Version > l.m.Version() || e.Votes < 2 || e.LearnedAt.IsZero() || !e.SeenForward || !e.SeenReverse {
		t.Fatalf("%+v", e)
	}
	if e.SrcPort != n.ab.port || e.PKey != 0xFFFF {
		t.Fatalf("%+v", e)
	}
	if l.wait(time.Second); !l.want(n.ab, Hit, 0x11).LastSeen.Before(l.now) {
		t.Fatal("the last packet was seen before now")
	}
}

func TestPKeyIsTheFlowsOwn(t *testing.T) {
	l, n := decided(t)
	p := &roce.Packet{Src: hostA, Dst: hostB, TTL: 64, SrcPort: n.ab.port, SrcMAC: [6]byte{2, 5: n.ab.mac}}
	p.BTH = roce.BTH{Opcode: rcSend, PKey: 0x8123, DestQP: n.ab.qp, PSN: highStart + 5}
	l.m.Observe(&Observation{Packet: p, IfIndex: n.ab.ifIndex, At: l.now})
	if e := l.want(n.ab, Hit, 0x11); e.PKey != 0x8123 {
		t.Fatalf("P_Key 0x%x", e.PKey)
	}
	if e := l.want(n.ba, Hit, 0x2200); e.PKey != 0xFFFF {
		t.Fatalf("the other direction's P_Key 0x%x", e.PKey)
	}
}

func TestUDCarriesItsSourceQP(t *testing.T) {
	l := newLab(t, Config{AgeAfter: 10 * time.Second})
	f := newConn(hostA, hostB, 0, 0x77, 49152, 0).ab
	send := func(src uint32) {
		l.packet(f, roce.OpcodeUDSendOnly, 1, false, roce.AppendDETH(nil, roce.DETH{QKey: 1, SrcQP: src}))
		l.wait(time.Millisecond)
	}
	send(0x31)
	if e := l.want(f, Hit, 0x31); e.Source != SourceDETH || e.State != StateLearned {
		t.Fatalf("%+v", e)
	}
	send(0x31)
	if e := l.want(f, Hit, 0x31); e.State != StateConfirmed {
		t.Fatalf("%+v", e)
	}
	send(0x32) // two of A's QPs send to one of B's: neither may be named
	l.want(f, Contradicted, 0)
	send(0x31)
	send(0x31)
	l.want(f, Contradicted, 0)
	for range 12 {
		l.wait(time.Second)
		send(0x31)
	}
	l.want(f, Hit, 0x31)
	l.wait(11 * time.Second)
	l.m.Tick(l.now)
	l.want(f, Aged, 0)
	send(0x32)
	l.want(f, Hit, 0x32)
	l.packet(f, roce.OpcodeUDSendOnly, 1, false, []byte{1, 2})
	if c := l.m.Counters(); c.Malformed != 1 {
		t.Fatalf("%d malformed, want 1", c.Malformed)
	}
}

func TestUnsupportedTransportsAreCountedAndNeverAnswered(t *testing.T) {
	for _, c := range []struct {
		name  string
		op    uint8
		count func(Counters) uint64
	}{
		{"DC and RD", 0x40 | roce.OpWriteOnly, func(c Counters) uint64 { return c.UnsupportedDC }},
		{"XRC", 0xA0 | roce.OpSendOnly, func(c Counters) uint64 { return c.UnsupportedXRC }},
		{"vendor", 0xC0, func(c Counters) uint64 { return c.UnsupportedVendor }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, Config{})
			n := formulaConn(hostA, hostB, 0x11, 0x2200)
			for i := range uint32(20) {
				l.packet(n.ab, roce.Opcode(c.op), highStart+i, true, nil)
				l.packet(n.ba, roce.Opcode(c.op&0xE0|roce.OpAck), highStart+i, false, aeth(0, i))
				l.wait(time.Millisecond)
			}
			l.want(n.ab, Unsupported, 0)
			if got := c.count(l.m.Counters()); got != 40 {
				t.Fatalf("%d counted, want 40", got)
			}
			l.exchange(n, highStart, 5) // the QP number is used for RC now
			l.paired(n, SourcePort)
			l.packet(n.ab, roce.Opcode(c.op), 1, true, nil)
			l.want(n.ab, Unsupported, 0)
			l.want(n.ba, Contradicted, 0)
		})
	}
	l := newLab(t, Config{})
	l.m.CountRoCEv1(3)
	if n := l.m.Counters().UnsupportedRoCEv1; n != 3 {
		t.Fatalf("%d of RoCEv1, want 3", n)
	}
}

func TestCNPsAreIgnored(t *testing.T) {
	l, n := decided(t)
	v := l.m.Version()
	l.packet(n.ba, roce.OpcodeCNP, 0, false, make([]byte, 16))
	l.paired(n, SourcePort)
	if l.m.Version() != v || l.m.Counters().CNP != 1 {
		t.Fatal("a CNP must only be counted")
	}
}

func TestVLANsSeparateHosts(t *testing.T) {
	l := newLab(t, Config{})
	n := formulaConn(hostA, hostB, 0x11, 0x2200)
	n.ab.vlan, n.ba.vlan = 10, 10
	l.exchange(n, highStart, 5)
	l.paired(n, SourcePort)
	other := newConn(hostA, hostB, 0x55, 0x2200, 49152, 49152) // other hosts with the same addresses
	other.ab.vlan, other.ba.vlan = 20, 20
	l.exchange(other, 0x700000, 5)
	_, v := l.m.Lookup(n.ab.key(), l.now) // which of the two is meant can't be told
	if v == Hit {
		t.Fatal("two VLANs disagree, and the look-up answers")
	}
	l.want(n.ba, Hit, 0x2200)
}

func TestVLANsMustAgree(t *testing.T) {
	for _, c := range []struct {
		src  uint32
		want Verdict
	}{{0x31, Hit}, {0x32, Contradicted}} {
		l := newLab(t, Config{})
		f := newConn(hostA, hostB, 0, 0x77, 49152, 0).ab
		for vlan, src := range []uint32{0x31, c.src} {
			f.vlan = uint16(vlan)
			l.packet(f, roce.OpcodeUDSendOnly, 1, false, roce.AppendDETH(nil, roce.DETH{SrcQP: src}))
		}
		qp := uint32(0)
		if c.want == Hit {
			qp = 0x31
		}
		l.want(f, c.want, qp)
	}
}

func TestIgnoreVLANJoinsTheSidesOfARouter(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		l := newLab(t, Config{IgnoreVLAN: ignore})
		n := formulaConn(hostA, hostB, 0x11, 0x2200)
		n.ab.vlan, n.ba.vlan = 10, 0
		l.exchange(n, highStart, 5)
		if ignore {
			l.paired(n, SourcePort)
		} else {
			l.undecided(n)
		}
	}
}

func TestBadICRCIsCountedAndThePacketUsed(t *testing.T) {
	l := newLab(t, Config{ICRCSample: 1})
	spec := &roce.PacketSpec{Src: hostA, Dst: hostB, SrcPort: 49152, BTH: roce.BTH{Opcode: rcSend, PKey: 0xFFFF, DestQP: 0x22, PSN: 5, AckReq: true}}
	ip, err := roce.AppendPacket(nil, spec)
	if err != nil {
		t.Fatal(err)
	}
	ip[20]++ // a middlebox rewrote the source port
	var p roce.Packet
	if err := roce.ParseIP(ip, &p); err != nil {
		t.Fatal(err)
	}
	l.m.Observe(&Observation{Packet: &p, At: l.now})
	if c := l.m.Counters(); c.ICRCVerified != 1 || c.BadICRC != 1 {
		t.Fatalf("%+v", c)
	}
	if _, v := l.m.Lookup(Key{Sender: hostA, Receiver: hostB, DestQP: 0x22}, l.now); v != Undecided {
		t.Fatalf("%v, want the packet used", v)
	}
}

func TestNamesOfEnumsAreTotal(t *testing.T) {
	for s := State(0); s <= StateEvicted; s++ {
		if s.String() == "unknown" {
			t.Errorf("state %d has no name", s)
		}
	}
	for s := SourceNone; s <= SourceDETH; s++ {
		if s.String() == "unknown" {
			t.Errorf("source %d has no name", s)
		}
	}
	for v := Miss; v <= Unsupported; v++ {
		if v.String() == "unknown" {
			t.Errorf("verdict %d has no name", v)
		}
	}
}

func TestIPv6PairsAreLearnedAlike(t *testing.T) {
	l := newLab(t, Config{})
	a, b := netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("2001:db8:2::1")
	p := formulaPort(0x11 * 0x2200)
	n := conn{ab: flow{from: a, to: b, qp: 0x2200, port: p, ttl: 64, ifIndex: 1}, ba: flow{from: b, to: a, qp: 0x11, port: p, ttl: 64, ifIndex: 2}}
	l.exchange(n, 0, 5)
	l.paired(n, SourcePort)
	d := newDialogue(l, conn{ab: flow{from: a, to: b, qp: 0x77, ttl: 64, ifIndex: 1}, ba: flow{from: b, to: a, qp: 0x88, ttl: 64, ifIndex: 2}}, 9)
	d.connect()
	l.paired(d.c, SourceCM)
}
