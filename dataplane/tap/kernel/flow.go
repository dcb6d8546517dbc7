package kernel

import (
	"errors"
	"fmt"
	"net/netip"
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

// Key names a flow of the kernel's map.
type Key struct {
	Src, Dst netip.Addr // outer addresses
	DestQP   uint32     // 24 bits
	SrcPort  uint16     // UDP
	VLAN     uint16     // identifier of the outer tag; 0 without
}

// KeyOf returns the key of a packet's flow. p.VLAN must be set from the frame's metadata where the tag is there.
func KeyOf(p *roce.Packet) Key {
	return Key{Src: p.Src, Dst: p.Dst, DestQP: p.BTH.DestQP, SrcPort: p.SrcPort, VLAN: p.VLAN}
}

func (k *Key) raw() learnFlowKey {
	return learnFlowKey{Src: k.Src.As16(), Dst: k.Dst.As16(), DestQp: k.DestQP, SrcPort: k.SrcPort, Vlan: k.VLAN}
}

func (k *learnFlowKey) key() Key {
	return Key{
		Src: netip.AddrFrom16(k.Src).Unmap(), Dst: netip.AddrFrom16(k.Dst).Unmap(),
		DestQP: k.DestQp, SrcPort: k.SrcPort, VLAN: k.Vlan,
	}
}

// Flow is a copy of an entry of the kernel's map.
type Flow struct {
	Progress
	Packets uint32 // modulo 2^32; those with another identity don't count
}

// SetState says what is to be handed up of a flow from here on. The kernel makes a Followed flow Watched by itself,
// with the packet that it hands up then: set the state again when that packet changes nothing. A packet that passes
// at the same moment may be missing from the entry's counts. It returns an error that wraps ErrNoFlow where the flow is
// not there, or no more.
func (t *Tap) SetState(k Key, s State) error {
	if int(s) >= len(stateNames) {
		return fmt.Errorf("kernel tap: state %d: not one of %v", s, stateNames)
	}
	key := k.raw()
	var f learnFlow
	err := t.maps.Flows.Lookup(&key, &f)
	if err == nil {
		if f.State == uint8(s) {
			return nil
		}
		f.State = uint8(s)
		err = t.maps.Flows.Update(&key, &f, ebpf.UpdateExist)
	}
	return flowError(err)
}

// Forget removes a flow: its next packet is its first.
func (t *Tap) Forget(k Key) error {
	key := k.raw()
	err := t.maps.Flows.Delete(&key)
	if err == nil {
		t.removed.Add(1)
	}
	return flowError(err)
}

func flowError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ebpf.ErrKeyNotExist):
		return fmt.Errorf("kernel tap: %w", ErrNoFlow)
	}
	return fmt.Errorf("kernel tap: flow map: %w", err)
}

// Lookup returns a flow's entry. Errors wrap ErrNoFlow.
func (t *Tap) Lookup(k Key) (Flow, error) {
	key := k.raw()
	var f learnFlow
	if err := t.maps.Flows.Lookup(&key, &f); err != nil {
		return Flow{}, flowError(err)
	}
	var clock wallClock
	clock.compare(time.Now())
	return f.flow(&clock), nil
}

func (f *learnFlow) flow(clock *wallClock) Flow {
	return Flow{Packets: f.Packets, Progress: Progress{
		State: State(f.State), LastSeen: clock.wall(f.LastSeen), Skipped: f.Skipped, ReqHigh: f.ReqHigh, RespHigh: f.RespHigh, MSN: f.Msn,
		ReadLen: f.ReadLen, HasReq: f.Seen&seenReq != 0, HasResp: f.Seen&seenResp != 0, HasMSN: f.Seen&seenMSN != 0,
	}}
}

// flowBatch is how many entries one system call reads: more than any bucket of the kernel's map holds.
const flowBatch = 4096

// Each hands every entry to fn until that returns false. Entries that come or go meanwhile may be missed.
func (t *Tap) Each(fn func(Key, Flow) bool) error {
	var clock wallClock
	clock.compare(time.Now())
	keys, flows := make([]learnFlowKey, flowBatch), make([]learnFlow, flowBatch)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := t.maps.Flows.BatchLookup(&cursor, keys, flows, nil)
		for i := range n {
			if !fn(keys[i].key(), flows[i].flow(&clock)) {
				return nil
			}
		}
		switch {
		case errors.Is(err, ebpf.ErrKeyNotExist):
			return nil
		case err != nil:
			return flowError(err)
		}
	}
}

// Memory returns how many octets of kernel memory the flow map takes, as the kernel counts them.
func (t *Tap) Memory() (uint64, error) {
	info, err := t.maps.Flows.Info()
	if err != nil {
		return 0, flowError(err)
	}
	n, ok := info.Memlock()
	if !ok {
		return 0, fmt.Errorf("kernel tap: flow map: the kernel does not tell its memory: %w", ErrNotSupported)
	}
	return n, nil
}
