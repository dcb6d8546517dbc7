package daemon

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/gaissmai/bart"

	"pncd/dataplane/emit"
)

// sendMeter counts what was sent in a context to each of some prefixes. The zero one counts nothing.
type sendMeter struct{ counts atomic.Pointer[sendCounts] }

// sendCounts are the counts. It never changes: other prefixes make another.
type sendCounts struct {
	table    *bart.Table[*sendCount]
	prefixes map[netip.Prefix]*sendCount
}

type sendCount struct{ sent, failed atomic.Uint64 }

// count sets the prefixes for which is counted; an address counts for the longest that holds it. Those
// that stay keep their counts.
func (s *sendMeter) count(prefixes []netip.Prefix) {
	old := s.counts.Load()
	if old.is(prefixes) {
		return
	}
	next := &sendCounts{table: new(bart.Table[*sendCount]), prefixes: make(map[netip.Prefix]*sendCount, len(prefixes))}
	for _, p := range prefixes {
		c := old.of(p)
		if c == nil {
			c = new(sendCount)
		}
		next.table.Insert(p, c)
		next.prefixes[p] = c
	}
	s.counts.Store(next)
}

func (s *sendCounts) of(p netip.Prefix) *sendCount {
	if s == nil {
		return nil
	}
	return s.prefixes[p]
}

// is reports whether these are the prefixes for which is counted.
func (s *sendCounts) is(prefixes []netip.Prefix) bool {
	return s != nil && len(s.prefixes) == len(prefixes) &&
		!slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return s.prefixes[p] == nil })
}

// counted reads the counts of a prefix.
func (s *sendMeter) counted(p netip.Prefix) (sent, failed uint64) {
	if c := s.counts.Load().of(p); c != nil {
		return c.sent.Load(), c.failed.Load()
	}
	return 0, 0
}

// note counts what Send answered: the first so many packets went, and err is about the one after them.
func (m *sendMeter) note(pkts [][]byte, sent int, err error) {
	s := m.counts.Load()
	if s == nil {
		return
	}
	for _, pkt := range pkts[:sent] {
		if c, ok := s.table.Lookup(destination(pkt)); ok {
			c.sent.Add(1)
		}
	}
	var bad *emit.PacketError
	if errors.As(err, &bad) {
		if c, ok := s.table.Lookup(bad.Dst); ok {
			c.failed.Add(1)
		}
	}
}

// destination reads the address that an IP packet goes to; package emit has checked it.
func destination(pkt []byte) netip.Addr {
	if pkt[0]>>4 == 4 {
		return netip.AddrFrom4([4]byte(pkt[16:20]))
	}
	return netip.AddrFrom16([16]byte(pkt[24:40]))
}
