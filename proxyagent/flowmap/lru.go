package flowmap

import "time"

// lruList orders a shard's streams by when they were last listed, oldest first. A stream is listed again at
// most every lruStep: moving it at each packet would cost more than the order is worth.
type lruList struct{ oldest, newest *stream }

const lruStep = int64(100 * time.Millisecond)

func (l *lruList) push(s *stream, at int64) {
	s.older, s.newer, s.listedAt = l.newest, nil, at
	if l.newest != nil {
		l.newest.newer = s
	} else {
		l.oldest = s
	}
	l.newest = s
}

func (l *lruList) remove(s *stream) {
	if s.older != nil {
		s.older.newer = s.newer
	} else {
		l.oldest = s.newer
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		l.newest = s.older
	}
	s.older, s.newer = nil, nil
}

// touch records that a packet of the stream was seen.
func (sh *shard) touch(s *stream, at int64) {
	if at <= s.lastAt {
		return
	}
	s.lastAt = at
	if at-s.lastSeen.Load() >= int64(time.Millisecond) {
		s.lastSeen.Store(at)
	}
	if at-s.listedAt >= lruStep {
		sh.relist(s, at)
	}
}

func (sh *shard) relist(s *stream, at int64) {
	sh.lru.remove(s)
	sh.lru.push(s, at)
	sh.noteStale()
}

// noteStale shows other shards how old this one's oldest stream or settled pair is.
func (sh *shard) noteStale() {
	var at int64
	if s := sh.lru.oldest; s != nil {
		at = s.listedAt
	}
	if e, ok := sh.oldestSettled(); ok {
		if t := sh.m.settled.seenAt(sh.m.settled.at(e)); at == 0 || t < at {
			at = t
		}
	}
	if sh.stale.Load() != at {
		sh.stale.Store(at)
	}
}

// pairSeen is when the stream or its linked other direction was last seen.
func (s *stream) pairSeen() int64 {
	if s.link != nil {
		return max(s.lastAt, s.link.partner(s).lastAt)
	}
	return s.lastAt
}

// evictOne removes the shard's least recently seen stream, to lruStep, and with it the other direction of its
// pair. When that direction was seen since the stream was listed, the stream is only listed anew: then another
// shard may hold the least recently seen one, and the caller chooses again.
func (sh *shard) evictOne(at int64) {
	s := sh.lru.oldest
	if sh.evictSettled(s, at) || s == nil {
		return
	}
	if seen := s.pairSeen(); seen-s.listedAt >= lruStep { // its own packets list it anew by then
		sh.relist(s, seen)
		return
	}
	if l := s.link; l != nil {
		other := l.partner(s)
		sh.unlink(l, StateEvicted, at, "the map is full")
		sh.remove(other, StateEvicted, at)
	}
	sh.remove(s, StateEvicted, at)
}

// age ends what saw no traffic for ageAfter, and removes what ended that long ago.
func (sh *shard) age(now, ageAfter int64) {
	for s := sh.lru.oldest; s != nil && now-s.listedAt > ageAfter; s = sh.lru.oldest {
		seen := s.pairSeen()
		if now-seen > ageAfter {
			sh.touch(s, sh.m.pairTapSeen(s))
			seen = s.pairSeen()
		}
		if now-seen <= ageAfter {
			sh.relist(s, seen)
			continue
		}
		switch a := s.answer.Load(); {
		case s.link != nil:
			sh.ageLink(s.link, now)
		case a.known():
			sh.c.Aged++
			sh.publish(s, StateAged, SourceNone, nil, now, "no traffic")
			s.closedAt = now
			sh.relist(s, now)
		default:
			sh.remove(s, 0, now)
		}
	}
	sh.noteStale()
}

// ageLink ends a link that saw no traffic.
func (sh *shard) ageLink(l *link, now int64) {
	sh.unlink(l, StateAged, now, "no traffic")
	for _, x := range l.streams {
		sh.relist(x, now) // forgotten when that is ageAfter ago
	}
}
