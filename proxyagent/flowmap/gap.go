package flowmap

import (
	"time"

	"pncd/dataplane/roce"
)

// Doubt holds every answer back until traffic agrees with it again. Call it when the taps see again after
// they have missed traffic: a QP that was reused meanwhile must not get the old answer.
//
// A pair of RC streams answers again with the next response in sequence; without one for as long as
// idleReset its next request ends it. UC has no responses: its pairs are learned anew. UD packets carry
// their source QP and need no doubt. A tap that selects is told to watch them, of the settled ones some now and the others
// with the Ticks that follow.
func (m *Map) Doubt(now time.Time) {
	at := now.UnixNano()
	m.settled.doubtFrom(at)
	for i := range m.shards {
		sh := &m.shards[i]
		sh.mu.Lock()
		sh.doubtSettled(at)
		for _, s := range sh.streams {
			sh.doubtGap(s, at, gapDetail)
		}
		sh.mu.Unlock()
	}
	m.settled.ask()
}

func (sh *shard) doubtGap(s *stream, at int64, why string) {
	l := s.link
	switch {
	case l == nil:
	case s.transport != roce.TransportRC:
		sh.restart(s, at, why)
	case l.doubtAt == 0 || !l.suspended:
		l.doubtAt = at
		sh.suspend(l, true, at, why)
	}
}
