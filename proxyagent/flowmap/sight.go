package flowmap

import (
	"math/bits"
	"time"

	"pncd/dataplane/roce"
)

// Sight is how much of a flow a tap that selects shows to the map. The numbers are those of package
// dataplane/tap/kernel.
type Sight uint8

// The sights. With Followed and Quiet the tap still knows how far the flow has come.
const (
	Watched  Sight = 0 // every packet that can vote, as all flows are shown at first
	Followed Sight = 1 // a packet whose step does not fit (the flow is Watched from it on), and one now and then
	Quiet    Sight = 2 // one packet now and then
)

var sightNames = [...]string{"watched", "followed", "quiet"}

// String returns the sight's name in lower case.
func (s Sight) String() string {
	if int(s) < len(sightNames) {
		return sightNames[s]
	}
	return "unknown"
}

// FlowID names a flow as a tap that selects knows it: the packets of one key with one UDP source port, in one VLAN.
type FlowID struct {
	Key
	VLAN    uint16 // identifier of the outer tag; 0 without
	SrcPort uint16
}

// Progress is how far a tap that selects has followed a flow. The zero value is that of a flow it had not seen.
type Progress struct {
	Sight    Sight     // what it shows of the flow from here on
	LastSeen time.Time // zero: never
	Skipped  uint32    // packets since the last one that it showed
	ReqHigh  uint32    // highest PSN of the requests (of a READ the first one)
	RespHigh uint32    // highest PSN of the responses
	MSN      uint32    // highest MSN of the responses
	ReadLen  uint32    // octets of the READ that ReqHigh is of; 0: it is of no READ
	// Transport is that of the flow's last packet. Only Adopt uses it.
	Transport roce.Transport
	HasReq    bool // ReqHigh is set
	HasResp   bool // RespHigh is set
	HasMSN    bool // MSN is set
	Foreign   bool // the packet came by another interface, source MAC or TTL than the flow, which it did not move
}

// Tap is what the map asks a tap that selects.
type Tap interface {
	// Progress tells how far a flow has come; Skipped and Foreign are not used. It is false when the tap does
	// not know the flow. The map asks now and then and holds a lock meanwhile: Progress must take microseconds
	// and must not call the map.
	Progress(FlowID) (Progress, bool)
}

// SetTap says whom to ask about flows that are shown in part; nil: no one, and then what only the tap knows is not
// judged. It is for taps whose observations have Before set.
func (m *Map) SetTap(t Tap) { m.tap.Store(&t) }

// tellDelay is how long packets that a tap showed before it was told something may still come.
const tellDelay = int64(20 * time.Millisecond)

// selected is what the map knows of the tap's side of a stream. Without a tap that selects it is zero. The VLAN and
// the port of the tap's flow are in the stream's meta.
type selected struct {
	due     bool  // it is in the shard's list of what the tap must be told
	stale   bool  // the tap may have skipped packets that the map has not been told of
	misled  bool  // a foreign packet has moved what the tap knows
	resumed bool  // the stream was settled: how far it is comes with its next packet
	again   bool  // the stream has another identity: the tap takes it while it watches
	sight   Sight // what the tap shows, as far as known
	toldAt  int64 // when the tap was told last
	// What the tap knew before the stream's first packet: until it moves it is of an earlier life of the QP.
	reqWas, respWas uint32
}

// want is what the map wants to be shown of the stream.
func (s *stream) want() Sight {
	switch l := s.link; {
	case !supported(s.transport):
		return Quiet
	case s.tap.again, s.jumps != 0:
		return Watched
	case s.transport == roce.TransportUD:
		if s.answer.Load().state == StateConfirmed {
			return Followed
		}
		return Watched
	case l == nil, l.suspended, !l.confirmed, l.doubtAt != 0, l.revoked.Load(), l.partner(s).jumps != 0:
		return Watched
	case l.source == SourcePSN && !l.firm():
		return Watched
	}
	return Followed
}

// firm says whether a pair by PSN alone needs no more votes: as many as rule 6 asks of counters from zero, and no
// rival near rule 8's half of them.
func (l *link) firm() bool {
	c := l.cand
	return c != nil && c.hx >= completeHX && firmShare*c.bestRival() <= c.hx
}

// review notes that the tap must be told when the map wants something else of the stream than it is shown; else, that its
// pair may be settled.
func (sh *shard) review(s *stream) {
	switch {
	case s.tap.due, s.gone, !s.selected():
	case s.want() == s.tap.sight:
		sh.settling(s.link)
	default:
		s.tap.due = true
		sh.due = append(sh.due, s)
		sh.m.due.Or(1 << sh.id)
	}
}

// Telling is what a tap must be told: what to show of a flow.
type Telling struct {
	Flow  FlowID
	Sight Sight
}

// Due appends to list, up to its capacity, what a tap that selects must be told since the last call, and returns it.
// What did not fit comes with the next call: call it after Observe and Tick, from one goroutine, until it
// returns nothing. A flow that the tap does not know any more needs no telling. now is the tap's, which may be well ahead
// of the packets that it has shown.
func (m *Map) Due(list []Telling, now time.Time) []Telling {
	for marks := m.due.Load(); marks != 0 && len(list) < cap(list); marks &= marks - 1 {
		list = m.shards[bits.TrailingZeros64(marks)].tellings(list, now.UnixNano())
	}
	return m.settled.tellings(list)
}

func (sh *shard) tellings(list []Telling, now int64) []Telling {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	n := 0
	for _, s := range sh.due {
		if len(list) == cap(list) {
			break
		}
		n++
		s.tap.due = false
		if w := s.want(); w != s.tap.sight && !s.gone {
			sh.setSight(s, w)
			s.tap.stale = s.tap.stale || w != Watched
			s.tap.toldAt = now
			list = append(list, Telling{s.flowID(), w})
		}
		sh.review(s)
	}
	rest := copy(sh.due, sh.due[n:])
	clear(sh.due[rest:])
	if sh.due = sh.due[:rest]; rest == 0 {
		sh.m.due.And(^uint64(1 << sh.id))
		if cap(sh.due) > dueKept {
			sh.due = nil
		}
	}
	return list
}

// dueKept is how long a shard's empty list may be and stay allocated.
const dueKept = 256

func (s *stream) selected() bool { return s.meta.Load()&metaTap != 0 }

// flowID names the stream's latest flow; it needs no lock.
func (s *stream) flowID() FlowID {
	meta := s.meta.Load()
	return FlowID{s.key(), uint16(meta>>metaVLANShift) & vlanMask, uint16(meta >> metaPortShift)}
}

func (sh *shard) setSight(s *stream, w Sight) {
	s.tap.sight = w
	s.pair.countAsking(s)
}

// ask asks the tap about a flow. Like what follows, it needs no lock.
func (m *Map) ask(f FlowID) (Progress, bool) {
	t := m.tap.Load()
	if t == nil || *t == nil {
		return Progress{}, false
	}
	return (*t).Progress(f)
}

// flowSeen is when the tap saw a flow last, in unix nanoseconds; 0 when it does not know.
func (m *Map) flowSeen(f FlowID) int64 {
	if p, ok := m.ask(f); ok && !p.LastSeen.IsZero() {
		return p.LastSeen.UnixNano()
	}
	return 0
}

// tapSeen is flowSeen of a stream.
func (m *Map) tapSeen(s *stream) int64 {
	if !s.selected() {
		return 0
	}
	return m.flowSeen(s.flowID())
}

// live says whether a packet of the link was seen within rule 10's second, by the tap if not by the map.
func (m *Map) live(l *link, now int64) bool {
	return now-l.lastSeen() <= liveFor || now-m.tapSeen(l.streams[0]) <= liveFor || now-m.tapSeen(l.streams[1]) <= liveFor
}

// pairTapSeen is tapSeen of the stream or of its linked other direction.
func (m *Map) pairTapSeen(s *stream) int64 {
	seen := m.tapSeen(s)
	if s.link != nil {
		seen = max(seen, m.tapSeen(s.link.partner(s)))
	}
	return seen
}
