package flowmap

import (
	"sync/atomic"

	"pncd/dataplane/roce"
)

// stream is all that is known of one key in one VLAN: the packets from one address to one QP at another.
// It carries the requests of its sender and the sender's responses to requests the other way. All but
// what a look-up reads is guarded by the shard's lock.
type stream struct {
	// What a look-up reads, together in one cache line. pair, qp, side and vlan never change.
	answer   atomic.Pointer[answer]
	lastSeen atomic.Int64 // lastAt, to a millisecond
	meta     atomic.Uint64
	pair     *addrPair
	qp       uint32 // Destination QP
	vlan     uint16
	side     uint8 // the receiver's side in the pair

	transport roce.Transport
	gone      bool // removed from the map
	hasPort   bool
	open      bool  // counted in pair.open
	asking    bool  // counted in pair.asking
	voted     bool  // lastVote is set
	msnSeen   bool  // msn is set
	epoch     uint8 // steps when all that was learned is dropped, so that the index forgets it too
	outside   uint8 // ACKs in a row out of the window (rule 8)
	jumps     uint8 // PSN jumps not yet followed by PSNs in sequence (rule 8)
	inOrder   uint8 // packets in sequence since the last jump
	port      uint16
	mtu       uint16 // payload of FIRST and MIDDLE packets, by which READs are counted; 0 before one
	id        identity
	tap       selected
	pos       int32 // place in pair.streams[side]; -1 when it is not counted there
	flowLabel uint32
	packets   uint32
	lastVote  uint32 // PSN of the last response that could vote
	acks      uint32 // responses that could vote (rule 2)
	msn       uint32 // the highest one (rule 8)
	firstMSN  uint32 // the first one (rule 6)
	udQP      uint32 // UD: the source QP of the DETH
	lastAt    int64  // time of the last packet that counted, unix nanoseconds
	listedAt  int64
	notedAt   int64 // when the prefixes of its addresses were told last
	msnAt     int64
	udMixed   int64 // UD: when another source QP was last seen
	closedAt  int64
	link      *link
	older     *stream
	newer     *stream
	cands     []*candidate
	req, resp half
	acked     ackHistory
}

// meta's layout, for readers without the lock: P_Key, UDP source port, whether data was seen, and of a tap that
// selects the VLAN that it saw, and that it is one.
const (
	metaPortShift = 16
	metaSeen      = 1 << 32
	metaVLANShift = 33
	metaTap       = 1 << 45

	vlanMask = 0xFFF
)

// dataMeta is the meta of a stream whose data was seen. selects says whether the tap selects.
func dataMeta(p *roce.Packet, selects bool) uint64 {
	v := uint64(p.BTH.PKey) | uint64(p.SrcPort)<<metaPortShift | metaSeen
	if selects {
		v |= tapMeta(p)
	}
	return v
}

// pkeyMeta is the meta with the P_Key that CM agreed on, until data shows one.
func pkeyMeta(pkey uint16) uint64 { return uint64(pkey) }

// half is one PSN space of a stream: that of its requests, or that of its responses.
type half struct {
	at          int64  // when the last packet in sequence was seen
	first, high uint32 // first PSN seen, highest PSN seen
	seen        bool
}

// step is what a packet's PSN means for its half.
type step uint8

const (
	stepOld  step = iota // a PSN seen before, or skipped before
	stepNew              // the highest so far: it was not sent before
	stepJump             // more than jumpPSN away
	stepBack             // back after idling: a new life of the QP
)

// track takes a packet that occupies the PSNs from first to last. A jump or a step back changes nothing.
func (h *half) track(first, last uint32, at int64) step {
	if !h.seen {
		*h = half{seen: true, first: first, high: last, at: at}
		return stepNew
	}
	d := psnDiff(first, h.high)
	if d > jumpPSN || d < -jumpPSN {
		return stepJump
	}
	if d < -idleBack && at-h.at >= idleReset {
		return stepBack
	}
	h.at = max(h.at, at)
	if psnDiff(last, h.high) <= 0 {
		return stepOld
	}
	h.high = last
	if d <= 0 { // a READ request that was issued again, now for more
		return stepOld
	}
	return stepNew
}

// ackHistory remembers how far a stream had acknowledged, and when, for rule 4: a few spans of time,
// each with the highest PSN acknowledged by its end.
type ackHistory struct {
	spans [4]ackSpan
	first uint32 // what it reaches back to: the first one seen, or ackReach PSNs
	n     uint8  // spans used
	head  uint8  // the newest one
}

type ackSpan struct {
	end    int64
	psn    uint32
	length uint32 // nanoseconds before end that it started
}

const (
	ackSpanLen = 100_000
	ackReach   = 1 << 22 // PSNs that the history reaches back at most
)

func (h *ackHistory) add(psn uint32, at int64) {
	if h.n == 0 {
		h.first = psn
		h.spans[0], h.n, h.head = ackSpan{end: at, psn: psn}, 1, 0
		return
	}
	cur := &h.spans[h.head]
	if psnDiff(psn, cur.psn) <= 0 {
		return
	}
	if psnDiff(psn, h.first) > ackReach { // half of the space away, it would count as later than psn
		h.first = (psn - ackReach) & psnMask
	}
	if start := cur.end - int64(cur.length); at-start < ackSpanLen {
		cur.psn, cur.end = psn, max(cur.end, at)
		cur.length = uint32(cur.end - start)
		return
	}
	h.head = (h.head + 1) % uint8(len(h.spans))
	h.spans[h.head] = ackSpan{end: at, psn: psn}
	h.n = min(h.n+1, uint8(len(h.spans)))
}

// before says whether psn, not older than the history reaches, was acknowledged by the time at.
func (h *ackHistory) before(psn uint32, at int64) bool {
	return psnDiff(psn, h.first) >= 0 && h.passed(psn, at)
}

// passed says whether psn, or one after it, had been acknowledged by the time at.
func (h *ackHistory) passed(psn uint32, at int64) bool {
	for i := range h.n {
		s := &h.spans[(h.head+uint8(len(h.spans))-i)%uint8(len(h.spans))]
		if s.end <= at {
			return psnDiff(psn, s.psn) <= 0
		}
	}
	return false
}

// exact says whether the stream is paired by evidence that needs no further votes.
func (s *stream) exact() bool { return s.link != nil && s.link.source != SourcePSN }

// partner is the other direction of a linked stream.
func (l *link) partner(s *stream) *stream { return l.streams[1-s.side] }

// readPackets is how many PSNs a READ of n octets takes: one for each response packet, at least one
// (IBTA volume 1, section 9.7.5.2.7). With an unknown path MTU the largest is assumed.
func readPackets(n uint32, mtu uint16) uint32 {
	if mtu == 0 {
		mtu = 4096
	}
	return min(max((n+uint32(mtu)-1)/uint32(mtu), 1), 1<<22)
}
