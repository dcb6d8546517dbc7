package auth

import (
	"fmt"
	"time"

	"pncd/igp/ospf/packet"
)

// Sequence gives the sequence numbers of what is sent with a digest. They follow the clock, so that a restart
// does not go back, and don't go back with it either while the Sequence lives. Each
// interface of each version has one. The zero Sequence is ready.
type Sequence struct {
	// Last is the number given last. Who can't trust the clock across restarts keeps it, and sets it.
	Last uint64
}

// v2 gives seconds since 1970: 32 bits, enough until 2106. Packets of one second have the same number,
// which RFC 2328 section D.3 allows: a count would run ahead of the clock and fall back with a restart.
func (s *Sequence) v2(now time.Time) uint32 {
	s.Last = min(max(s.Last, uint64(max(now.Unix(), 0))), 0xFFFFFFFF)
	return uint32(s.Last)
}

// v3 gives, in the upper 32 bits, the second of the first number, and in the lower ones a count that keeps up
// with a clock of sixteenths of a second. Each number is greater than the one before, also after a restart (RFC 7166
// section 4.1). ospf6d of FRR, unlike the RFC, compares the lower half by itself, too: it takes no hello for the dead
// interval when that goes back. It doesn't after a restart if there were at most sixteen packets a second before, on
// average; once in 8.5 years the lower half is at its end. Hence one Sequence an interface.
func (s *Sequence) v3(now time.Time) uint64 {
	since := uint64(max(now.UnixMilli(), 0))
	if s.Last == 0 {
		s.Last = min(since/1000, 0xFFFFFFFF) << 32
	}
	s.Last = max(s.Last+1, s.Last&^0xFFFFFFFF|since*16/1000&0xFFFFFFFF)
	return s.Last
}

// Replay is what a neighbour's sequence numbers have come to. The zero Replay takes any number: RFC 2328
// section 10 and RFC 7166 section 4.6 begin anew when the neighbour goes down.
type Replay struct {
	lastV2 uint32
	lastV3 [packet.TypeAck + 1]uint64
	seen   [packet.TypeAck + 1]bool // OSPFv3
}

// v2 takes a number that does not go back.
func (r *Replay) v2(n uint32) error {
	if n < r.lastV2 {
		return fmt.Errorf("%w: %d after %d", ErrReplay, n, r.lastV2)
	}
	r.lastV2 = n
	return nil
}

// v3 takes a number that is greater than that of the last packet of the type: types may overtake each other
// where they have queues of their own.
func (r *Replay) v3(t packet.Type, n uint64) error {
	if r.seen[t] && n <= r.lastV3[t] {
		return fmt.Errorf("%w: %s %d after %d", ErrReplay, t, n, r.lastV3[t])
	}
	r.lastV3[t], r.seen[t] = n, true
	return nil
}
