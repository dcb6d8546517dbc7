package flowmap

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"pncd/dataplane/roce"
)

// The simulator: two hosts, a path between them and a tap on it, with the truth known. Each connection has a
// requester and a responder at both ends, as adapters have them: several messages outstanding, AckReq on
// the last packet, coalesced ACKs, READs and atomics, NAK and timeout with go-back-N, MSN. The tap sees
// each packet where it passes, loses some, and may deliver late.

type startMode int

const (
	startRandom startMode = iota
	startZero
	startLate // from zero, but the tap sees the connections only from a PSN above the counters' reach on
)

type portMode int

const (
	portConstant portMode = iota // every connection has the same port
	portUnequal                  // the two directions of a connection have ports of their own
	portFormula                  // the kernel's formula
	portUnique                   // random, equal in both directions, without collision
)

func (p portMode) String() string {
	return [...]string{"constant", "unequal", "formula", "unique"}[p]
}

type simConfig struct {
	n        int
	messages int // per connection and requesting side
	start    startMode
	ports    portMode
	lockstep bool // all connections send a message of the same size in each round
	burst    bool // in lockstep, within a few microseconds of each other
	mixed    bool // sizes differ by message, 1 to 16 packets
	reads    float64
	atomics  float64
	bothWays bool
	tapLoss  float64
	pathLoss float64
	reorder  time.Duration // the tap delivers up to so much later
	hidden   bool          // of half of the connections one direction is hidden
	halfPath bool          // each direction of each connection is hidden in half of the cases, as by ECMP
	reuse    int           // times that QPs are connected anew with other peers
	near     bool          // these peers are the same, and PSNs start within 1,024 behind where they were
	tapAt    float64       // where on the path the tap is, 0 to 1 from side 0
	oneWay   time.Duration // delay of the path
	timeout  time.Duration // retransmission timeout
	window   int           // messages outstanding
	gap      time.Duration // mean time between the messages of one connection
	selects  time.Duration // the interval of a tap in the kernel that selects; 0: the tap shows all
	settles  bool          // what is followed is settled at once
	program  *program      // selects, in place of its model
	config   Config
}

const (
	simMTU       = 1024
	simSerial    = 300 // nanoseconds per packet on a host's link
	simWindow    = 4   // messages outstanding
	simTimeout   = 500 * time.Microsecond
	simAckDelay  = 1500                 // an ACK waits so long for others to coalesce
	simRingDelay = 2 * time.Millisecond // how long a packet waits in the ring buffer of a tap that selects
	simInterval  = 5 * time.Second      // of a tap that selects
	simReorder   = 100_000              // used by the reordering cases
	simEpoch     = 1_700_000_000e9      // the simulation's time zero, unix nanoseconds
)

var simAddr = [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.7")}

type simMessage struct {
	psn, psns uint32 // first PSN and how many
	op        roce.Opcode
}

type simEnd struct {
	next     uint32 // requester: next PSN
	pending  []simMessage
	left     int  // messages still to post
	posting  bool // a post event is under way
	deadline int64
	ticking  bool

	expected uint32 // responder
	msn      uint32
	nakSent  bool
	ackAt    int64 // a coalesced ACK is due
	ackPSN   uint32
}

type simConn struct {
	qp     [2]uint32 // by side
	port   [2]uint16
	end    [2]simEnd
	hide   [2]bool // the direction that leaves this side is hidden from the tap
	closed bool
	wrong  bool
	label  uint32
}

type simPacket struct {
	conn   *simConn
	from   uint8
	op     roce.Opcode
	ackReq bool
	psn    uint32
	word   uint32 // AETH, or the DMA length of a READ
	length uint16
}

type simKind uint8

const (
	evPost simKind = iota
	evTap
	evArrive
	evAck
	evTimeout
	evRound
	evReuse
)

type simEvent struct {
	at   int64
	kind simKind
	pkt  simPacket
}

type sim struct {
	cfg             simConfig
	rng             *rand.Rand
	m               *Map
	events          []simEvent
	now             int64
	free            [2]int64 // when a host's link is free
	passed, arrived [2]int64 // when the last packet of a host passed the tap, and arrived
	conns           []*simConn
	live            []*simConn
	rounds          int
	size            uint32 // of this round's message
	seen            int
	nextQP          [2]uint32
	body            [32]byte
	pkt             roce.Packet
	selector        *selector
}

func newSim(cfg simConfig, seed uint64) *sim {
	if cfg.oneWay == 0 {
		cfg.oneWay = 12 * time.Microsecond
	}
	if cfg.tapAt == 0 {
		cfg.tapAt = 0.3
	}
	if cfg.window == 0 {
		cfg.window = simWindow
	}
	if cfg.timeout == 0 {
		cfg.timeout = max(simTimeout, 5*cfg.oneWay)
	}
	if cfg.gap == 0 {
		cfg.gap = time.Duration(max(cfg.n, 20)) * 5 * time.Microsecond
	}
	s := &sim{cfg: cfg, rng: rand.New(rand.NewPCG(seed, 0x5EED)), m: New(cfg.config)}
	s.nextQP = [2]uint32{0x100 + s.rng.Uint32N(1<<20), 0x100 + s.rng.Uint32N(1<<20)}
	if cfg.selects > 0 {
		s.selector = newSelector(s.m, cfg.selects, simRingDelay)
		if cfg.settles {
			s.m.settleAfter, s.selector.ticks = 0, true
		}
		s.selector.program = cfg.program
	}
	for range cfg.n {
		s.connect([2]uint32{s.newQP(0), s.newQP(1)}, 0)
	}
	if cfg.hidden {
		for _, i := range s.rng.Perm(cfg.n)[:cfg.n/2] {
			s.conns[i].hide[s.rng.IntN(2)] = true
		}
	}
	if cfg.halfPath {
		for _, c := range s.conns {
			c.hide = [2]bool{s.rng.IntN(2) == 0, s.rng.IntN(2) == 0}
		}
	}
	if cfg.lockstep {
		s.push(simEvent{at: 0, kind: evRound})
	}
	if cfg.reuse > 0 {
		s.push(simEvent{at: s.lifeTime() / int64(cfg.reuse+1), kind: evReuse})
	}
	return s
}

func (s *sim) lifeTime() int64 { return int64(s.cfg.messages) * int64(s.cfg.gap) }

// newQP numbers QPs as adapters do: mostly one after the other.
func (s *sim) newQP(side int) uint32 {
	s.nextQP[side] += 1 + s.rng.Uint32N(3)
	return s.nextQP[side] & qpMask
}

func (s *sim) connect(qp [2]uint32, at int64) {
	c := &simConn{qp: qp}
	switch s.cfg.ports {
	case portConstant:
		c.port = [2]uint16{49152, 49152}
	case portUnequal:
		c.port = [2]uint16{0xC000 + uint16(s.rng.UintN(0x4000)), 0xC000 + uint16(s.rng.UintN(0x4000))}
	case portFormula:
		p := formulaPort(uint64(qp[0]) * uint64(qp[1]))
		c.port = [2]uint16{p, p}
	case portUnique:
		p := 0xC000 + uint16(len(s.conns)*7%0x4000)
		c.port = [2]uint16{p, p}
	}
	for i := range c.end {
		switch {
		case s.cfg.start == startRandom:
			c.end[i].next = s.rng.Uint32() & psnMask
		case s.cfg.start == startLate && at == 0: // not a QP that is reused: that is seen from its start on
			c.end[i].next, c.end[i].msn = 0x30000, 0x18000
		}
		c.end[i].left = s.cfg.messages / (s.cfg.reuse + 1)
	}
	for i := range c.end {
		c.end[i].expected = c.end[1-i].next
	}
	s.conns = append(s.conns, c)
	s.live = append(s.live, c)
	if s.cfg.lockstep {
		return
	}
	for i := range c.end {
		if i == 0 || s.cfg.bothWays {
			s.postLater(c, uint8(i), at)
		}
	}
}

func (s *sim) postLater(c *simConn, side uint8, at int64) {
	e := &c.end[side]
	if e.posting || e.left == 0 || c.closed {
		return
	}
	e.posting = true
	wait := int64(s.rng.ExpFloat64() * float64(s.cfg.gap))
	s.push(simEvent{at: at + wait, kind: evPost, pkt: simPacket{conn: c, from: side}})
}

// run plays the simulation to its end. check, if any, is called after each packet the tap saw.
func (s *sim) run(check func(c *simConn, from uint8, now time.Time)) {
	for len(s.events) > 0 {
		e := s.pop()
		s.now = e.at
		c := e.pkt.conn
		switch e.kind {
		case evPost:
			c.end[e.pkt.from].posting = false
			if !c.closed {
				s.post(c, e.pkt.from, 0)
			}
		case evTap:
			s.tap(&e.pkt, check)
		case evArrive:
			if !c.closed {
				s.arrive(&e.pkt)
			}
		case evAck:
			if !c.closed {
				s.ack(c, e.pkt.from)
			}
		case evTimeout:
			s.timeout(c, e.pkt.from)
		case evRound:
			s.round()
		case evReuse:
			s.reuse()
		}
	}
	if s.selector != nil {
		s.selector.deliver(math.MaxInt64)
	}
}

func (s *sim) round() {
	if s.rounds++; s.rounds > s.cfg.messages {
		return
	}
	s.size = 1 + s.rng.Uint32N(3)
	spread := int64(s.cfg.gap)
	if s.cfg.burst {
		spread = 5000
	}
	for _, c := range s.conns {
		for i := range c.end {
			if i == 0 || s.cfg.bothWays {
				s.push(simEvent{at: s.now + s.rng.Int64N(spread), kind: evPost, pkt: simPacket{conn: c, from: uint8(i)}})
			}
		}
	}
	s.push(simEvent{at: s.now + int64(s.cfg.gap), kind: evRound})
}

// again connects two QPs with each other anew, with PSNs a little behind those of before.
func (s *sim) again(old *simConn) {
	s.connect(old.qp, s.now+s.rng.Int64N(2_000_000))
	c := s.conns[len(s.conns)-1]
	for i := range c.end {
		c.end[i].next = (old.end[i].next - idleBack - s.rng.Uint32N(outsideAhead-idleBack)) & psnMask
		c.end[1-i].expected = c.end[i].next
	}
}

// reuse connects the QPs of half of the connections anew, each with the peer of another one.
func (s *sim) reuse() {
	half := len(s.live) / 2 &^ 1
	s.rng.Shuffle(len(s.live), func(i, j int) { s.live[i], s.live[j] = s.live[j], s.live[i] })
	old := s.live[:half]
	s.live = append([]*simConn(nil), s.live[half:]...)
	for i, c := range old {
		c.closed = true
		if s.cfg.near {
			s.again(c)
			continue
		}
		peer := old[(i+1)%len(old)]
		s.connect([2]uint32{c.qp[0], peer.qp[1]}, s.now+s.rng.Int64N(2_000_000))
	}
	if s.now+s.lifeTime()/int64(s.cfg.reuse+1) < s.lifeTime() {
		s.push(simEvent{at: s.now + s.lifeTime()/int64(s.cfg.reuse+1), kind: evReuse})
	}
}
