package flowmap

import "time"

// The rules of the votes. A response from B to A carries the PSN of the request from A to B that it
// answers (IBTA volume 1, section 9.7.5.1), so the response stream, named by A's QP, votes for each
// request stream, named by B's QP, that sent that PSN a short time ago. Per address pair, X is a request
// stream and Y a response stream the other way; both directions feed one score for (X, Y).
//
//	 1  what is indexed: ackable requests                      index.go
//	 2  what votes, and how                                    vote.go
//	 3  how often a stranger matches by chance                 vote.go
//	 4  evidence against a pair                                against.go
//	 5  deciding with UDP source ports                         decide_port.go
//	 6  deciding by PSN alone                                  decide_psn.go
//	 7  UC, which has no responses                             uc.go
//	 8  withdrawing                                            withdraw.go
//	 9  candidate slots; the flow label breaks a tie           candidate.go, decide_port.go
//	10  one peer at a time for a QP                            claims.go
//	11  against forged responses                               identity.go, decide.go
//
// The numbers were found by simulation against known truth; simpler rules give wrong pairs.
//
// The same simulation, in the tests, asked for a few things on top. All but the last two can only hold an
// answer back:
//
//   - The formula is not believed for a port that many or most streams have: it holds by chance for one pair
//     of QPs in 8,192, and an adapter's default port is shared by all (decide_port.go, telling).
//   - A first PSN above the counters from zero must be the connection's own, and not only the tap's: by the
//     MSN, the tap saw the connection from its beginning on (decide_psn.go, answersHigh).
//   - Four votes with a complete tap must be more than any two strangers here would get by chance: of 24 QPs
//     from zero with 80 % loss, one pair in 10,000 was wrong (decide_psn.go, beyondChance).
//   - A PSN step too small for a jump suspends a pair until a response follows: one reused QP in 256 starts
//     that near (withdraw.go, doubt).
//   - An MSN that comes back within the tap's own reordering is late, not a restart (withdraw.go).
//   - A ring that can't hold all requests under way samples PSNs, the same of all streams (index.go, fit).
//   - Among more than nine requests with one PSN, those with the response's port get their vote too; in
//     collectives hundreds share a PSN (index.go, find). They never count as exclusive.
//   - A pair by the formula is let off rule 11's millisecond when at least four votes and half of the
//     responses agree: short transfers end before it (decide_port.go, burstHits).
const (
	maxPerPSN    = 9 // rule 1: entries considered for one PSN
	exclusiveMax = 8 // rule 2: up to so many matches, a match is 'exclusive enough'

	lagBoundStart  = int64(200 * time.Millisecond) // rule 2: until lags are known
	lagsNeeded     = 32                            // rule 2: lags of decided pairs that make a median
	lagFactor      = 8                             // rule 2: bound = factor x median + slack
	lagSlack       = int64(200 * time.Microsecond)
	tapReordering  = int64(250 * time.Microsecond) // rule 4: more than the tap's own reordering
	againstNeeded  = 2                             // rule 4
	againstShare   = 8                             // rule 4: and more than hits / 8
	ackShare       = 32                            // rules 5 and 6: hits >= Y's ACKs / 32
	fewPairs       = 128                           // rule 5: nX x nY up to here need no complete tap
	lowPSN         = 65_536                        // rule 6: a first PSN below may be a counter from 0
	startFactor    = 4                             // rule 6: how much larger messages may have been before the tap saw any
	siblingReach   = 1024                          // rule 6: no sibling within min(1024, 2^18 / n)
	siblingTotal   = 1 << 18
	isolatedHX     = 3 // rule 6
	completeHX     = 16
	completeLowHX  = 4
	completeTrials = 64
	chanceLeft     = 1e-6
	ucPackets      = 4 // rule 7: with the formula
	ucPacketsBlind = 64
	ucPortsBlind   = 4

	jumpPSN       = 1 << 15                       // rule 8
	idleReset     = int64(100 * time.Millisecond) // rule 8: idle that long, then
	idleBack      = 64                            // more than so many PSNs back
	msnBack       = 4                             // rule 8: MSN back by more than this
	msnLow        = 64                            // to under this
	outsideNeeded = 4                             // rule 8: ACKs outside of
	outsideBack   = 1 << 17                       // [highest - 2^17,
	outsideAhead  = 1024                          // highest + 1024]
	rivalHX       = 3                             // rule 8: a rival so strong, and more than half
	firmShare     = 8                             // a rival's share that leaves rule 8's half far off

	maxCandidates = 16 // rule 9
	samePortSlots = 4  // more for candidates with equal ports, which rule 5 must not lose among others

	liveFor  = int64(time.Second)      // rule 10: a pair seen within this is live
	voteSpan = int64(time.Millisecond) // rule 11
	ttlSlack = 1                       // rule 11
)
