package kernel

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"pncd/dataplane/roce"
)

// State says what the kernel hands up of a flow.
type State uint8

// The states; the numbers are those of learn.c.
const (
	Watched  State = 0 // every packet that can vote
	Followed State = 1 // decided: what may end the answer, and one packet in Config.Interval
	Quiet    State = 2 // can't be decided: one packet in Config.Interval
)

var stateNames = [...]string{"watched", "followed", "quiet"}

// String returns the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Flow is a copy of an entry of the kernel's map.
type Flow struct {
	Progress
	Transport roce.Transport // of the last packet
	Packets   uint32         // modulo 2^32; those with another identity don't count
}

// SetState says what is to be handed up of a flow from here on. The kernel makes a Followed flow Watched by itself,
// with the packet that it hands up then: set the state again when that packet changes nothing. It returns an error that
// wraps ErrNoFlow where the flow is not there, or no more.
func (t *Tap) SetState(k Key, s State) error {
	if int(s) >= len(stateNames) {
		return fmt.Errorf("kernel tap: state %d: not one of %v", s, stateNames)
	}
	key := k.words()
	return t.table(key).setState(key, s)
}

// Forget removes a flow: its next packet is its first.
func (t *Tap) Forget(k Key) error {
	key := k.words()
	return t.table(key).remove(key)
}

// Lookup returns a flow's entry. Errors wrap ErrNoFlow.
func (t *Tap) Lookup(k Key) (Flow, error) {
	var e entry
	key := k.words()
	if _, err := t.table(key).find(key, &e); err != nil {
		return Flow{}, err
	}
	var clock WallClock
	clock.Compare(time.Now())
	return e.F.flow(&clock), nil
}

// table is the one that has keys of as many words.
func (t *Tap) table(key []uint64) *table {
	if len(key) == t.flows4.words {
		return t.flows4
	}
	return t.flows6
}

func (f *learnFlow) flow(clock *WallClock) Flow {
	p := &f.P
	return Flow{Packets: f.Packets, Transport: roce.Transport(p.Transport), Progress: Progress{
		State: State(p.State), LastSeen: clock.ticks(p.LastSeen), Skipped: p.Skipped, ReqHigh: p.ReqHigh, RespHigh: p.RespHigh, MSN: p.Msn,
		ReadLen: p.ReadLen, HasReq: p.Seen&seenReq != 0, HasResp: p.Seen&seenResp != 0, HasMSN: p.Seen&seenMSN != 0,
	}}
}

// Each hands every entry to fn until that returns false. Entries that come or go meanwhile may be missed. It costs no
// system call.
func (t *Tap) Each(fn func(Key, Flow) bool) error {
	var clock WallClock
	clock.Compare(time.Now())
	for _, table := range []*table{t.flows4, t.flows6} {
		goOn, err := table.each(func(e *entry) bool { return fn(table.key(e), e.F.flow(&clock)) })
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

// Memory returns how many octets of kernel memory the flow tables take, and with Config.Pins what is kept of their flows, as the
// kernel counts them.
func (t *Tap) Memory() (sum uint64, err error) {
	for _, m := range []*ebpf.Map{t.maps.Flows4, t.maps.Flows6, t.pairs} {
		if m == nil {
			continue
		}
		info, err := m.Info()
		if err != nil {
			return 0, fmt.Errorf("kernel tap: %s: %w", m, err)
		}
		n, ok := info.Memlock()
		if !ok {
			return 0, fmt.Errorf("kernel tap: %s: the kernel does not tell its memory: %w", m, ErrNotSupported)
		}
		sum += n
	}
	return sum, nil
}
