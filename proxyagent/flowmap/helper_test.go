package flowmap

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

// lab feeds a map packet by packet, with a clock of its own.
type lab struct {
	t   *testing.T
	m   *Map
	now time.Time

	acked    map[Key]uint32 // the first PSN that ack has acknowledged
	selector *selector      // what the map is shown by; nil: all
}

var (
	hostA = netip.MustParseAddr("10.0.0.1")
	hostB = netip.MustParseAddr("10.0.0.2")
	hostC = netip.MustParseAddr("10.0.0.3")
)

func newLab(t *testing.T, cfg Config) *lab {
	t.Helper()
	return &lab{t: t, m: New(cfg), now: time.Unix(1_700_000_000, 0)}
}

func (l *lab) wait(d time.Duration) { l.now = l.now.Add(d) }

// flow is how the packets from one host to one QP at another look.
type flow struct {
	from, to netip.Addr
	qp       uint32 // Destination QP
	port     uint16
	label    uint32
	ttl      uint8
	mac      byte
	vlan     uint16
	context  uint32
	ifIndex  int
}

// conn is a connection between A's qa and B's qb with the given UDP source ports.
type conn struct{ ab, ba flow }

func newConn(a, b netip.Addr, qa, qb uint32, portA, portB uint16) conn {
	return conn{
		ab: flow{from: a, to: b, qp: qb, port: portA, ttl: 64, mac: a.As4()[3], ifIndex: 1},
		ba: flow{from: b, to: a, qp: qa, port: portB, ttl: 64, mac: b.As4()[3], ifIndex: 2},
	}
}

func (l *lab) packet(f flow, op roce.Opcode, psn uint32, ackReq bool, body []byte) {
	p := &roce.Packet{Src: f.from, Dst: f.to, TTL: f.ttl, SrcPort: f.port, SrcMAC: [6]byte{2, 5: f.mac}, VLAN: f.vlan, FlowLabel: f.label}
	p.BTH = roce.BTH{Opcode: op, PKey: 0xFFFF, DestQP: f.qp, PSN: psn & psnMask, AckReq: ackReq}
	p.Body = body
	o := &Observation{Packet: p, IfIndex: f.ifIndex, Context: f.context, At: l.now}
	if l.selector != nil {
		l.selector.observe(o, nil)
		return
	}
	l.m.Observe(o)
}

// request sends a one-packet SEND.
func (l *lab) request(f flow, psn uint32) { l.packet(f, rcSend, psn, true, nil) }

func (l *lab) read(f flow, psn, length uint32) {
	var b [16]byte
	binary.BigEndian.PutUint32(b[12:], length)
	l.packet(f, rcRead, psn, true, b[:])
}

func aeth(syndrome uint8, msn uint32) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(syndrome)<<24|msn&psnMask)
}

// ack sends an ACK of one message more for each PSN.
func (l *lab) ack(f flow, psn uint32) {
	first, ok := l.acked[f.key()]
	if !ok {
		if l.acked == nil {
			l.acked = make(map[Key]uint32)
		}
		first, l.acked[f.key()] = psn, psn
	}
	l.packet(f, rcAck, psn, false, aeth(0, psn-first+1))
}

// exchange plays n request and ACK pairs from a PSN on, one each millisecond.
func (l *lab) exchange(c conn, psn uint32, n int) {
	for i := range uint32(n) {
		l.request(c.ab, psn+i)
		l.wait(20 * time.Microsecond)
		l.ack(c.ba, psn+i)
		l.wait(980 * time.Microsecond)
	}
}

func (f flow) key() Key {
	return Key{Context: f.context, Sender: f.from, Receiver: f.to, DestQP: f.qp}
}

// want holds a flow to a verdict and, for a Hit, to a Source QP.
func (l *lab) want(f flow, v Verdict, qp uint32) Entry {
	l.t.Helper()
	e, got := l.m.Lookup(f.key(), l.now)
	if got != v || e.SourceQP != qp {
		l.t.Fatalf("%v: %v, Source QP 0x%x (%v, %q); want %v, 0x%x", f.key(), got, e.SourceQP, e.State, e.Detail, v, qp)
	}
	return e
}

// paired holds both directions of a connection to each other's QPs.
func (l *lab) paired(c conn, source Source) {
	l.t.Helper()
	e := l.want(c.ab, Hit, c.ba.qp)
	l.want(c.ba, Hit, c.ab.qp)
	if e.Source != source {
		l.t.Fatalf("%v: learned by %v, want %v", c.ab.key(), e.Source, source)
	}
}

func (l *lab) undecided(c conn) {
	l.t.Helper()
	l.want(c.ab, Undecided, 0)
	l.want(c.ba, Undecided, 0)
}

// formulaConn is a connection whose port is the kernel's.
func formulaConn(a, b netip.Addr, qa, qb uint32) conn {
	p := formulaPort(uint64(qa) * uint64(qb))
	return newConn(a, b, qa, qb, p, p)
}

const highStart = 0x500000 // a first PSN that can't be a counter from 0

// candidates returns the scores of a stream.
func (l *lab) stream(f flow) *stream {
	l.t.Helper()
	src, dst := f.from.As16(), f.to.As16()
	k := streamKey{flow: flowKey{sender: src, receiver: dst, context: f.context, destQP: f.qp}, vlan: f.vlan}
	for i := range l.m.shards {
		if s := l.m.shards[i].streams[k]; s != nil {
			return s
		}
	}
	l.t.Fatalf("no stream %v", f.key())
	return nil
}

func (l *lab) hits(x, y flow) (hits, hx uint32) {
	l.t.Helper()
	if c := findCandidate(l.stream(x), l.stream(y)); c != nil {
		return c.hits, c.hx
	}
	return 0, 0
}

// unsettleAll makes links of all settled pairs of the shard.
func (sh *shard) unsettleAll() {
	for e, ok := sh.oldestSettled(); ok; e, ok = sh.oldestSettled() {
		sh.unsettle(e)
	}
}
