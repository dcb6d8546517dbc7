package flowmap

import (
	"testing"
	"time"
)

func TestAfterAGapAnAnswerWaitsForAResponseInSequence(t *testing.T) {
	l, n := decided(t)
	l.m.Doubt(l.now)
	l.undecided(n)
	l.wait(20 * time.Microsecond)
	l.request(n.ab, highStart+5)
	l.undecided(n)
	l.wait(20 * time.Microsecond)
	l.ack(n.ba, highStart+5)
	l.paired(n, SourcePort)
}

func TestAfterAGapAReusedQPDoesNotGetTheOldAnswer(t *testing.T) {
	l, n := decided(t)
	l.m.Doubt(l.now)
	for psn := uint32(0x700000); psn < 0x700010; psn++ { // the QP of A is another one now
		l.wait(20 * time.Microsecond)
		l.request(n.ab, psn)
		l.undecided(n)
	}
}

func TestAfterAGapAPairThatStaysSilentIsLearnedAnew(t *testing.T) {
	l, n := decided(t)
	l.m.Doubt(l.now)
	l.wait(101 * time.Millisecond)
	l.request(n.ab, highStart+5)
	l.undecided(n)
	l.wait(20 * time.Microsecond)
	l.ack(n.ba, highStart+5) // too late: nothing says that this is the same pair
	l.undecided(n)
	l.exchange(n, highStart+6, 5)
	l.paired(n, SourcePort)
}
