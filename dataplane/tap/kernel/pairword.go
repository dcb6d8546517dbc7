package kernel

import (
	"fmt"
	"math/bits"
	"time"
)

// pairWord is a Pair in 64 bits, from the lowest: Source QP 24, P_Key 16, Source 2, a check of the flow's key 8, votes 4, and the
// minute in which it was learned 10. It is 0 where nothing is kept.
type pairWord uint64

// pairVersion steps when this, or the meaning of a field, or the order of the places changes.
const pairVersion = 2

const (
	pairQPBits    = 24
	pairSourceMax = 1<<2 - 1
	pairVotesMax  = 1<<4 - 1

	pairPKeyShift    = pairQPBits
	pairSourceShift  = 40
	pairCheckShift   = 42
	pairVotesShift   = 50
	pairLearnedShift = 54

	pairCheckMask = pairWord(0xFF) << pairCheckShift
)

// word is p without the check.
func (p *Pair) word(since time.Time) (pairWord, error) {
	switch {
	case p.SourceQP >= 1<<pairQPBits:
		return 0, fmt.Errorf("source QP %#x: not of 24 bits", p.SourceQP)
	case p.Source < 1 || p.Source > pairSourceMax:
		return 0, fmt.Errorf("source %d: not within 1 to %d", p.Source, pairSourceMax)
	}
	// A time that has been here comes back some ms earlier where its keeper has ticks, and must not wander.
	const slack = time.Second
	learned := minuteCode(uint64(max(p.LearnedAt.Add(slack).Sub(since), 0) / time.Minute))
	return pairWord(p.SourceQP) | pairWord(p.PKey)<<pairPKeyShift | pairWord(p.Source)<<pairSourceShift |
		pairWord(min(p.Votes, pairVotesMax))<<pairVotesShift | pairWord(learned)<<pairLearnedShift, nil
}

// pair is what word was made of.
func (w pairWord) pair(since time.Time) Pair {
	return Pair{
		SourceQP: uint32(w) & (1<<pairQPBits - 1), PKey: uint16(w >> pairPKeyShift), Source: uint8(w>>pairSourceShift) & pairSourceMax,
		Votes: uint32(w>>pairVotesShift) & pairVotesMax, LearnedAt: since.Add(time.Duration(minutesOf(uint16(w>>pairLearnedShift))) * time.Minute),
	}
}

// of is the word with the check of a key. It is one more guard against taking it for that of another flow that has the place by
// now, and says nothing by itself: one of 256 others has the same.
func (w pairWord) of(seed learnHashSeed, key []uint64) pairWord {
	h := seed.After
	for _, k := range key {
		h = (h ^ k) * 0xBF58476D1CE4E5B9
		h ^= h >> 29
	}
	return w&^pairCheckMask | pairWord(h>>56)<<pairCheckShift
}

// minuteCode is a number in ten bits: itself up to 128, and then its highest seven bits and how many are below; at most 127 << 14.
func minuteCode(n uint64) uint16 {
	const most = 127 << 14
	n = min(n, most)
	shift := max(bits.Len64(n)-7, 0)
	return uint16(shift<<6) + uint16(n>>shift)
}

// minutesOf is the least number with this code.
func minutesOf(code uint16) uint64 {
	if code < 128 {
		return uint64(code)
	}
	return uint64(code&63|64) << (code>>6 - 1)
}
