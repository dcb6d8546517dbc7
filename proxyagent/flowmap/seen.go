package flowmap

import (
	"bytes"
	"net/netip"
)

// Seen tells the map when a tap that selects saw a flow last, so that an entry whose packets are not shown does not age.
// Call it for the tap's flows several times in Config.AgeAfter. A tap that shows less of a flow than the map believes is told
// again. Nothing else is learned from it: an entry that is not there, or whose packets come from another UDP source port,
// stays as it is.
func (m *Map) Seen(f FlowID, p Progress) {
	key, from := m.pairOf(f.Sender, f.Receiver, f.Context, f.VLAN)
	sh := m.shardOf(&key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	k, seen := key.streamKey(1-from, f.DestQP), p.LastSeen.UnixNano()
	s := sh.streams[k]
	if s == nil {
		if e, ok := m.settled.find(&k); ok && m.settled.at(e).flowID(e.side()) == f {
			sh.touchSettled(e, seen)
		}
		return
	}
	if !s.selected() || s.flowID() != f {
		return
	}
	if p.Sight != Watched && s.tap.sight == Watched {
		sh.setSight(s, p.Sight)
		s.tap.stale = true
		sh.review(s)
	}
	sh.touch(s, seen)
	if s.lastAt-s.notedAt >= noteStep {
		sh.note(s, s.lastAt)
	}
}

// pairOf returns the key of two addresses' pair, and which of them is the sender.
func (m *Map) pairOf(sender, receiver netip.Addr, context uint32, vlan uint16) (key pairKey, from uint8) {
	src, dst := sender.As16(), receiver.As16()
	key = pairKey{low: src, high: dst, context: context}
	if !m.ignoreVLAN.Load() {
		key.vlan = vlan
	}
	if bytes.Compare(src[:], dst[:]) > 0 {
		key.low, key.high, from = dst, src, 1
	}
	return key, from
}
