package flowmap

import (
	"iter"
	"time"

	"pncd/dataplane/roce"
)

// Adopt enters pairs that a map before this one had learned, while a tap that selects went on without it. flows are
// all flows that the tap knows. A pair answers at once when the tap has followed both of its flows since: it has
// shown no step of either, which would have made the flow Watched, both were seen within Config.AgeAfter, and
// none of the two QPs has another UDP source port, and both the same transport, by now. All others are learned anew. Entries are used by twos,
// one for each direction; Key, SourceQP, Source, State, VLAN, SrcPort, PKey, Votes and LearnedAt count, and those without
// a source that makes pairs are left out. It returns how many entries were adopted.
func (m *Map) Adopt(entries []Entry, flows iter.Seq2[FlowID, Progress], now time.Time) int {
	kept := make(map[streamKey]*adoption, len(entries))
	for i := range entries {
		e := &entries[i]
		if e.Known() && (e.Source == SourceCM || e.Source == SourcePort || e.Source == SourcePSN) && e.Key.Sender.IsValid() && e.Key.Receiver.IsValid() {
			kept[m.streamKeyOf(e.Key, e.VLAN)] = &adoption{entry: e}
		}
	}
	for f, p := range flows {
		if a := kept[m.streamKeyOf(f.Key, f.VLAN)]; a != nil && !p.LastSeen.Before(a.progress.LastSeen) {
			a.flow, a.progress = f, p
		}
	}
	n := 0
	for k, a := range kept {
		e := a.entry
		other := Key{Context: e.Key.Context, Sender: e.Key.Receiver, Receiver: e.Key.Sender, DestQP: e.SourceQP}
		b := kept[m.streamKeyOf(other, e.VLAN)]
		if b == nil || b.entry.SourceQP != k.flow.destQP || a.progress.Transport != b.progress.Transport || !a.holds(now, m.ageAfter.Load()) || !b.holds(now, m.ageAfter.Load()) {
			continue
		}
		if m.adopt(a, b, now.UnixNano()) {
			n += 2
		}
		delete(kept, m.streamKeyOf(other, e.VLAN))
	}
	m.evict(now.UnixNano())
	return n
}

// adoption is an entry that was learned before, with the flow of its QP that the tap has seen last.
type adoption struct {
	entry    *Entry
	flow     FlowID
	progress Progress
}

// holds says whether the tap has followed the flow since it was learned.
func (a *adoption) holds(now time.Time, ageAfter int64) bool {
	t := a.progress.Transport
	return a.progress.Sight == Followed && a.flow.SrcPort == a.entry.SrcPort && (t == roce.TransportRC || t == roce.TransportUC) &&
		now.UnixNano()-a.progress.LastSeen.UnixNano() <= ageAfter
}

// adopt makes a pair of the two directions, unless the map knows one of them already.
func (m *Map) adopt(a, b *adoption, at int64) bool {
	key, from := m.pairOf(a.entry.Key.Sender, a.entry.Key.Receiver, a.entry.Key.Context, a.entry.VLAN)
	sh := m.shardOf(&key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	ka, kb := key.streamKey(1-from, a.entry.Key.DestQP), key.streamKey(from, b.entry.Key.DestQP)
	if sh.streamAt(&ka) != nil || sh.streamAt(&kb) != nil {
		return false
	}
	p := sh.pairs[key]
	if p == nil {
		p = sh.newPair(key, a.entry.Key.Sender, a.entry.Key.Receiver)
	}
	l := &link{source: a.entry.Source, context: key.context, votes: a.entry.Votes, learned: a.entry.LearnedAt.UnixNano()}
	l.streams[1-from] = sh.carryOn(p, 1-from, a, at)
	l.streams[from] = sh.carryOn(p, from, b, at)
	if _, ok := m.claim(l, at, false); !ok {
		sh.c.Refused++
		for _, s := range l.streams { // the tap must show what decides them
			sh.review(s)
		}
		return false
	}
	sh.adoptLink(l, at)
	return true
}

// adoptLink makes a link of what was followed all along. It is all that it will be before anything is published, and settled at once: else the
// tap would be told of each, and a million pairs would be streams until then.
func (sh *shard) adoptLink(l *link, at int64) {
	const detail = "learned before a restart, and followed by the tap since"
	for _, s := range l.streams {
		s.link = l
	}
	sh.refirm(l)
	l.confirmed, l.settling = true, true
	sh.establish(l, at, detail)
	sh.c.Confirmed += 2
	sh.publishLink(l, StateConfirmed, at, detail)
	if l.settling = false; l.settles() {
		sh.settle(l)
	}
}

// carryOn makes the stream of an entry, as far as the tap has followed it. Where its sequences started is not known.
func (sh *shard) carryOn(p *addrPair, side uint8, a *adoption, at int64) *stream {
	e, t := a.entry, &a.progress
	s := sh.streamTo(p, side, e.Key.DestQP&qpMask, t.Transport, at)
	s.packets = 1
	sh.newPort(s, e.SrcPort, at)
	p.join(s)
	sh.m.setMeta(s, dataMeta(&roce.Packet{SrcPort: e.SrcPort, VLAN: a.flow.VLAN, BTH: roce.BTH{PKey: e.PKey}}, true))
	s.tap.stale = true
	sh.setSight(s, Followed)
	s.lastAt = t.LastSeen.UnixNano()
	s.lastSeen.Store(s.lastAt)
	s.comeBack(t)
	sh.takeOver(s, t)
	return s
}
