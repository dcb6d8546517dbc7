package flowmap

import (
	"net/netip"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

// cm sends a CM datagram the way that f's packets go.
func (l *lab) cm(f flow, cm roce.CM) {
	l.t.Helper()
	mad := roce.MAD{BaseVersion: 1, Class: 7, ClassVersion: 2, Method: 3, TransactionID: cm.TransactionID, AttrID: uint16(cm.Kind),
		DETH: roce.DETH{QKey: roce.GSIQKey, SrcQP: roce.QP1}, CM: cm}
	body, err := mad.Append(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	f.qp = roce.QP1
	l.packet(f, roce.OpcodeUDSendOnly, 0, false, body)
}

// dialogue is a CM exchange in which A connects its QP to B's.
type dialogue struct {
	c            conn
	idA, idB     uint32
	psnA, psnB   uint32 // first PSN sent to A's QP, and to B's
	pkey         uint16
	transport    uint8
	l            *lab
	transactions uint64
}

func newDialogue(l *lab, c conn, id uint32) *dialogue {
	return &dialogue{c: c, idA: id, idB: id + 0x1000, psnA: 0x17c2d, psnB: 0xdc37af, pkey: 0x8001, l: l, transactions: uint64(id)}
}

func (d *dialogue) req() {
	d.l.cm(d.c.ab, roce.CM{Kind: roce.CMREQ, TransactionID: d.transactions, LocalCommID: d.idA, LocalQPN: d.c.ba.qp, StartingPSN: d.psnA,
		Transport: d.transport, PKey: d.pkey, PathMTU: 3, LocalGID: d.c.ab.from.As16(), RemoteGID: d.c.ab.to.As16()})
}

func (d *dialogue) rep() {
	d.l.cm(d.c.ba, roce.CM{Kind: roce.CMREP, TransactionID: d.transactions, LocalCommID: d.idB, RemoteCommID: d.idA, LocalQPN: d.c.ab.qp, StartingPSN: d.psnB})
}

func (d *dialogue) a(k roce.CMKind) {
	m := roce.CM{Kind: k, TransactionID: d.transactions, LocalCommID: d.idA, RemoteCommID: d.idB}
	if k == roce.CMDREQ {
		m.RemoteQPN = d.c.ab.qp
	}
	d.l.cm(d.c.ab, m)
}

func (d *dialogue) b(k roce.CMKind) {
	m := roce.CM{Kind: k, TransactionID: d.transactions, LocalCommID: d.idB, RemoteCommID: d.idA}
	if k == roce.CMDREQ {
		m.RemoteQPN = d.c.ba.qp
	}
	d.l.cm(d.c.ba, m)
}

func (d *dialogue) connect() *dialogue {
	d.req()
	d.rep()
	d.a(roce.CMRTU)
	return d
}

func testDialogue(t *testing.T) (*lab, *dialogue) {
	l := newLab(t, Config{})
	return l, newDialogue(l, newConn(hostA, hostB, 0xdc, 0x8d, 49152, 49152), 100)
}

func TestCMUsableFromREPConfirmedByRTU(t *testing.T) {
	l, d := testDialogue(t)
	d.req()
	l.want(d.c.ab, Miss, 0)
	d.rep()
	l.paired(d.c, SourceCM)
	e := l.want(d.c.ab, Hit, 0xdc)
	if e.State != StateLearned || e.PKey != 0x8001 || e.SeenForward {
		t.Fatalf("after REP: %+v", e)
	}
	d.a(roce.CMRTU)
	if e = l.want(d.c.ba, Hit, 0x8d); e.State != StateConfirmed {
		t.Fatalf("after RTU: %v", e.State)
	}
}

func TestCMConfirmedByDataFromTheAgreedPSN(t *testing.T) {
	l, d := testDialogue(t)
	d.req()
	d.rep()
	l.request(d.c.ab, d.psnB)
	if e := l.want(d.c.ab, Hit, 0xdc); e.State != StateConfirmed || !e.SeenForward || e.PKey != 0xFFFF {
		t.Fatalf("after data: %+v", e)
	}
	l, d = testDialogue(t)
	d.req()
	d.rep()
	l.request(d.c.ab, d.psnB+0x123456) // not the agreed PSN: of an older life of the QP
	l.undecided(d.c)
}

func TestCMRetransmissionsAndMRAAreNormal(t *testing.T) {
	l, d := testDialogue(t)
	d.req()
	d.req()
	d.b(roce.CMMRA)
	d.rep()
	v := l.m.Version()
	d.req()
	d.rep()
	if l.m.Version() != v {
		t.Fatal("a retransmission changed the map")
	}
	d.a(roce.CMRTU)
	d.a(roce.CMRTU)
	d.rep()
	l.exchange(d.c, d.psnB, 3)
	d.rep()
	l.paired(d.c, SourceCM)
	if c := l.m.Counters(); c.CMREQ != 3 || c.CMREP != 4 || c.CMRTU != 2 || c.CMMRA != 1 || c.Contradicted != 0 {
		t.Fatalf("%+v", c)
	}
}

func TestCMClosedBy(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*dialogue)
	}{
		{"DREQ by the requester", func(d *dialogue) { d.a(roce.CMDREQ) }},
		{"DREQ by the responder", func(d *dialogue) { d.b(roce.CMDREQ) }},
		{"DREQ by both", func(d *dialogue) { d.a(roce.CMDREQ); d.b(roce.CMDREQ); d.a(roce.CMDREP); d.b(roce.CMDREP) }},
		{"DREP alone, the DREQ was lost", func(d *dialogue) { d.b(roce.CMDREP) }},
		{"REJ by the requester", func(d *dialogue) { d.a(roce.CMREJ) }},
		{"REJ by the responder", func(d *dialogue) { d.b(roce.CMREJ) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, d := testDialogue(t)
			d.connect()
			l.exchange(d.c, d.psnB, 3)
			c.end(d)
			l.want(d.c.ab, Closed, 0)
			l.want(d.c.ba, Closed, 0)
			l.request(d.c.ab, d.psnB+3) // was under way
			l.want(d.c.ab, Closed, 0)
			if n := l.m.Counters().Closed; n != 2 {
				t.Fatalf("%d closed, want both directions", n)
			}
		})
	}
}

func TestCMREJBeforeREPLeavesNothing(t *testing.T) {
	l, d := testDialogue(t)
	d.req()
	l.cm(d.c.ba, roce.CM{Kind: roce.CMREJ, LocalCommID: 0, RemoteCommID: d.idA})
	d.rep()
	l.want(d.c.ab, Miss, 0)
	if _, total := l.m.Len(); total != 0 {
		t.Fatalf("%d entries after a rejected REQ", total)
	}
	for i := range l.m.shards {
		if len(l.m.shards[i].pairs) != 0 {
			t.Fatal("an address pair is left behind")
		}
	}
}

func TestCMREPWithoutREQTeachesNothing(t *testing.T) {
	l, d := testDialogue(t)
	d.rep()
	d.a(roce.CMRTU)
	l.want(d.c.ab, Miss, 0)
}

func TestCMDREQByQPWhenREQWasNotSeen(t *testing.T) {
	l := newLab(t, Config{})
	n := formulaConn(hostA, hostB, 0x11, 0x2200)
	l.exchange(n, highStart, 5)
	l.paired(n, SourcePort)
	newDialogue(l, n, 100).a(roce.CMDREQ)
	l.want(n.ab, Closed, 0)
	l.want(n.ba, Closed, 0)
}

func TestCMGIDMustBeTheAddress(t *testing.T) {
	l, d := testDialogue(t)
	l.cm(d.c.ab, roce.CM{Kind: roce.CMREQ, LocalCommID: d.idA, LocalQPN: 0xdc, LocalGID: hostC.As16(), RemoteGID: hostB.As16()})
	d.rep()
	l.want(d.c.ab, Miss, 0)
	if n := l.m.Counters().CMMismatch; n != 1 {
		t.Fatalf("CMMismatch %d, want 1", n)
	}
}

func TestCMWinsOverVotes(t *testing.T) {
	l := newLab(t, Config{})
	n := newConn(hostA, hostB, 0x11, 0x22, 49152, 49152)
	l.exchange(n, highStart, 5)
	l.paired(n, SourcePSN)
	other := newConn(hostA, hostB, 0x11, 0x33, 49152, 49152)
	newDialogue(l, other, 7).connect()
	l.paired(other, SourceCM)
	l.want(n.ab, Contradicted, 0)
}

func TestCMNewerExchangeContradictsAtOnce(t *testing.T) {
	t.Run("same peer", func(t *testing.T) {
		l, d := testDialogue(t)
		d.connect()
		l.exchange(d.c, d.psnB, 3)
		again := newDialogue(l, newConn(hostA, hostB, 0xdc, 0x99, 49152, 49152), 200)
		again.req()
		l.want(d.c.ab, Contradicted, 0)
		l.want(d.c.ba, Contradicted, 0)
		again.rep()
		l.paired(again.c, SourceCM)
		l.want(d.c.ab, Contradicted, 0)
	})
	t.Run("other peer", func(t *testing.T) {
		l, d := testDialogue(t)
		d.connect()
		again := newDialogue(l, newConn(hostA, hostC, 0xdc, 0x55, 49152, 49152), 200)
		again.req()
		l.want(d.c.ab, Contradicted, 0)
		again.rep()
		l.paired(again.c, SourceCM)
		l.m.Tick(l.now)
		e := l.want(d.c.ab, Contradicted, 0)
		if e.State != StateContradicted {
			t.Fatalf("after the sweep: %v", e.State)
		}
	})
	t.Run("same exchange, other REP", func(t *testing.T) {
		l, d := testDialogue(t)
		d.connect()
		d.c.ab.qp = 0x77
		d.rep()
		l.want(d.c.ba, Contradicted, 0)
	})
}

func TestCMFromElsewhereDoesNotEndALivePair(t *testing.T) {
	for _, to := range []netip.Addr{hostB, hostC} { // the pair's own shard, and another one
		l, d := testDialogue(t)
		d.connect()
		l.exchange(d.c, d.psnB, 3)
		again := newDialogue(l, newConn(hostA, to, d.c.ba.qp, 0x99, 49152, 49152), 300)
		forged := *again
		forged.c.ab.ifIndex, forged.c.ab.mac = 9, 9
		forged.req()
		l.paired(d.c, SourceCM)
		if n := l.m.Counters().CMMismatch; n != 1 {
			t.Fatalf("%d mismatches, want 1", n)
		}
		again.req() // A itself
		l.want(d.c.ab, Contradicted, 0)
		l.want(d.c.ba, Contradicted, 0)
	}
}

func TestCMAnswerFromElsewhereDoesNotEndALivePair(t *testing.T) {
	for _, live := range []bool{true, false} {
		l, d := testDialogue(t)
		d.connect()
		l.exchange(d.c, d.psnB, 3)
		// A stranger connects a QP that A does not use to the one at B that it does.
		forged := newDialogue(l, newConn(hostA, hostB, 0xf00, d.c.ab.qp, 49152, 49152), 300)
		forged.c.ba.ifIndex, forged.c.ba.mac = 9, 9
		if !live {
			l.wait(1100 * time.Millisecond) // B may have moved meanwhile
		}
		forged.req()
		forged.rep()
		if live {
			l.paired(d.c, SourceCM)
			if n := l.m.Counters().CMMismatch; n != 1 {
				t.Fatalf("%d mismatches, want 1", n)
			}
		} else {
			l.paired(forged.c, SourceCM)
		}
	}
}

func TestCMLateDREQOfAnOlderConnectionEndsNothing(t *testing.T) {
	l, d := testDialogue(t)
	d.connect()
	d.a(roce.CMDREQ)
	again := newDialogue(l, d.c, 300) // the same QPs
	again.connect()
	d.a(roce.CMDREQ) // retransmitted
	l.paired(again.c, SourceCM)
	again.a(roce.CMDREQ)
	l.want(again.c.ab, Closed, 0)
}

func TestCMTransports(t *testing.T) {
	l, d := testDialogue(t)
	d.transport = roce.CMTransportExtended
	d.connect()
	l.want(d.c.ab, Miss, 0)
	if n := l.m.Counters().UnsupportedXRC; n != 1 {
		t.Fatalf("XRC counted %d times, want 1", n)
	}
	l, d = testDialogue(t)
	d.transport = roce.CMTransportUC
	d.connect()
	l.packet(d.c.ab, roce.Opcode(0x20|roce.OpSendOnly), d.psnB, false, nil)
	l.paired(d.c, SourceCM)
}

func TestCMSIDRAndOthersAreCounted(t *testing.T) {
	l, d := testDialogue(t)
	l.cm(d.c.ab, roce.CM{Kind: roce.CMSIDRREQ, LocalCommID: 5})
	l.cm(d.c.ba, roce.CM{Kind: roce.CMSIDRREP, LocalCommID: 5})
	l.cm(d.c.ba, roce.CM{Kind: roce.CMLAP})
	l.cm(d.c.ba, roce.CM{Kind: roce.CMAPR})
	f := d.c.ab
	f.qp = roce.QP1
	l.packet(f, roce.OpcodeUDSendOnly, 0, false, make([]byte, 300))
	l.packet(f, roce.OpcodeUDSendOnly, 0, false, make([]byte, 10))
	c := l.m.Counters()
	if c.CMSIDRREQ != 1 || c.CMSIDRREP != 1 || c.CMLAP != 1 || c.CMAPR != 1 || c.CMOther != 1 || c.Malformed != 1 {
		t.Fatalf("%+v", c)
	}
	if _, total := l.m.Len(); total != 0 {
		t.Fatalf("%d entries, want none", total)
	}
}

func TestCMUnfinishedExchangesAreBoundedAndExpire(t *testing.T) {
	l := newLab(t, Config{MaxEntries: 1})
	for id := range uint32(500) {
		newDialogue(l, newConn(hostA, hostB, 0x1000+id, 0x2000, 49152, 49152), id).req()
	}
	pending := 0
	for i := range l.m.shards {
		pending += l.m.shards[i].pending.n
	}
	if c := l.m.Counters(); pending != l.m.maxPending() || int(c.CMEvicted) != 500-pending {
		t.Fatalf("%d pending, %d evicted; want at most %d", pending, c.CMEvicted, l.m.maxPending())
	}
	l.wait(31 * time.Second)
	l.m.Tick(l.now)
	for i := range l.m.shards {
		if sh := &l.m.shards[i]; sh.pending.n != 0 || len(sh.pairs) != 0 {
			t.Fatal("an exchange or its address pair did not expire")
		}
	}
}
