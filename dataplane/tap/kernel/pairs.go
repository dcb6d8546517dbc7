package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
)

// Pair is what user space has learned of a flow, kept for the next process. The program does not read it. It is true of
// a flow that is Followed: keep it before the flow is set so, and drop it after the flow is set otherwise.
type Pair struct {
	SourceQP  uint32
	Votes     uint32
	LearnedAt time.Time
	PKey      uint16
	Source    uint8 // how it was learned, as user space numbers it
}

// rawPair is the layout in the kernel's map; pairVersion steps when it, or the meaning of a field, changes.
type rawPair struct {
	LearnedAt int64 // Unix nanoseconds
	SourceQP  uint32
	Votes     uint32
	PKey      uint16
	Source    uint8
	Unused    [5]uint8
}

const pairVersion = 1

// rawKey is the key there.
type rawKey struct {
	Src, Dst [16]byte // IPv4 as IPv4-mapped
	DestQP   uint32
	SrcPort  uint16
	VLAN     uint16
}

func (k *Key) raw() rawKey {
	return rawKey{Src: k.Src.As16(), Dst: k.Dst.As16(), DestQP: k.DestQP, SrcPort: k.SrcPort, VLAN: k.VLAN}
}

func (k *rawKey) key() Key {
	return Key{
		Src: netip.AddrFrom16(k.Src).Unmap(), Dst: netip.AddrFrom16(k.Dst).Unmap(),
		DestQP: k.DestQP, SrcPort: k.SrcPort, VLAN: k.VLAN,
	}
}

// pairBatch is how many entries one system call reads: more than any bucket of the kernel's map holds.
const pairBatch = 4096

// pairsSpec describes the map. Its entries take memory only while they are there.
func pairsSpec(flows int) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "pairs", Type: ebpf.Hash, KeySize: 40, ValueSize: 24, MaxEntries: uint32(flows), Flags: noPrealloc}
}

const noPrealloc = 1 // BPF_F_NO_PREALLOC

// KeepPair keeps what is known of a flow, over the end of this process. Without Config.Pins it does nothing.
func (t *Tap) KeepPair(k Key, p Pair) error {
	if t.pairs == nil {
		return nil
	}
	key, raw := k.raw(), rawPair{LearnedAt: p.LearnedAt.UnixNano(), SourceQP: p.SourceQP, Votes: p.Votes, PKey: p.PKey, Source: p.Source}
	if err := t.pairs.Update(&key, &raw, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("kernel tap: keep a pair: %w", errors.Join(err, t.DropPair(k)))
	}
	return nil
}

// DropPair forgets what was kept of a flow.
func (t *Tap) DropPair(k Key) error {
	if t.pairs == nil {
		return nil
	}
	key := k.raw()
	if err := t.pairs.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("kernel tap: drop a pair: %w", err)
	}
	return nil
}

// Pairs hands all that is kept to fn.
func (t *Tap) Pairs(fn func(Key, Pair)) error {
	if t.pairs == nil {
		return nil
	}
	keys, raws := make([]rawKey, pairBatch), make([]rawPair, pairBatch)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := t.pairs.BatchLookup(&cursor, keys, raws, nil)
		for i := range n {
			r := &raws[i]
			fn(keys[i].key(), Pair{SourceQP: r.SourceQP, Votes: r.Votes, LearnedAt: time.Unix(0, r.LearnedAt), PKey: r.PKey, Source: r.Source})
		}
		switch {
		case errors.Is(err, ebpf.ErrKeyNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("kernel tap: read the kept pairs: %w", err)
		}
	}
}
