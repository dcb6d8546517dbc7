package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"unsafe"

	"github.com/cilium/ebpf"

	"pncd/dataplane/roce"
)

// Key names a flow.
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

// window is in how many places, one after the other, a flow can be, twice: WINDOW of flows.h.
const window = 32

// What is in a place, as in flows.h.
const (
	placeEmpty   = 0
	placeUsed    = 1
	placeRemoved = 2
)

// entry is an entry of either table; that of IPv4 has fewer words in its key.
type entry = learnEntry6

// table is one of the flow tables of flows.h, which the program and this side share as memory.
type table struct {
	sharedMemory
	size   int    // octets of an entry
	words  int    // of a key
	starts uint32 // places in which a window begins
	seed   learnHashSeed
}

// startsOf is how many windows begin in a table of so many places.
func startsOf(places uint32) uint32 { return places - window + 1 }

func (t *table) places() uint32 { return t.starts + window - 1 }

func newTable(m *ebpf.Map, words int, seed learnHashSeed) (*table, error) {
	t := &table{size: int(m.ValueSize()), words: words, starts: startsOf(m.MaxEntries()), seed: seed}
	if err := t.open(m, "flow table"); err != nil {
		return nil, err
	}
	return t, nil
}

// words returns the words of a key, of which IPv4 has fewer.
func (k *Key) words() []uint64 {
	rest := uint64(k.DestQP&0xFFFFFF) | uint64(k.VLAN&0xFFF)<<24 | uint64(k.SrcPort)<<36
	if k.Src.Is4() && k.Dst.Is4() {
		src, dst := k.Src.As4(), k.Dst.As4()
		return []uint64{pair(src[:], dst[:]), rest}
	}
	src, dst := k.Src.As16(), k.Dst.As16()
	return []uint64{pair(src[:], src[4:]), pair(src[8:], src[12:]), pair(dst[:], dst[4:]), pair(dst[8:], dst[12:]), rest}
}

func pair(a, b []byte) uint64 {
	return uint64(binary.NativeEndian.Uint32(a)) | uint64(binary.NativeEndian.Uint32(b))<<32
}

func unpair(to []byte, w uint64) []byte {
	return binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(to, uint32(w)), uint32(w>>32))
}

// key is the key of an entry of t.
func (t *table) key(e *entry) Key {
	rest := e.Key[t.words-1]
	k := Key{DestQP: uint32(rest) & 0xFFFFFF, VLAN: uint16(rest>>24) & 0xFFF, SrcPort: uint16(rest >> 36)}
	var room [32]byte
	a := room[:0]
	for _, w := range e.Key[:t.words-1] {
		a = unpair(a, w)
	}
	k.Src, _ = netip.AddrFromSlice(a[:len(a)/2])
	k.Dst, _ = netip.AddrFromSlice(a[len(a)/2:])
	return k
}

// windowsOf is windows_of in flows.h.
func (t *table) windowsOf(key []uint64) [2]uint32 {
	const odd = 0x9E3779B97F4A7C15
	h := t.seed.Before
	for _, w := range key {
		h = (h ^ w) * odd
		h ^= h >> 32
	}
	h = (h ^ t.seed.After) * odd
	h ^= h >> 32
	first, _ := bits.Mul32(uint32(h), t.starts)
	second, _ := bits.Mul32(uint32(h>>32), t.starts)
	return [2]uint32{first, second}
}

// read copies an entry, which the program may be writing meanwhile. It returns ErrClosed after close.
func (t *table) read(at uint32, e *entry) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.memory == nil {
		return ErrClosed
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(e)), t.size), t.memory[int(at)*t.size:])
	return nil
}

// find reads the entry of a key and tells its place. Errors wrap ErrNoFlow.
func (t *table) find(key []uint64, e *entry) (at uint32, err error) {
	for _, start := range t.windowsOf(key) {
		for i := range uint32(window) {
			if err := t.read(start+i, e); err != nil {
				return 0, fmt.Errorf("kernel tap: flow table: %w", err)
			}
			if t.holds(e, key) {
				return start + i, nil
			}
			if e.What == placeEmpty {
				return 0, fmt.Errorf("kernel tap: %w", ErrNoFlow)
			}
		}
	}
	return 0, fmt.Errorf("kernel tap: %w", ErrNoFlow)
}

func (t *table) holds(e *entry, key []uint64) bool {
	if e.What != placeUsed {
		return false
	}
	for i, w := range key {
		if e.Key[i] != w {
			return false
		}
	}
	return true
}

// write writes part of an entry, in one store.
func (t *table) write(at uint32, offset uintptr, b []byte) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.memory == nil {
		return ErrClosed
	}
	copy(t.memory[int(at)*t.size+int(offset):], b)
	return nil
}

// setState sets the state of a key's flow. Should another flow have taken the place meanwhile, that is Watched.
func (t *table) setState(key []uint64, s State) error {
	const offset = unsafe.Offsetof(entry{}.F) + unsafe.Offsetof(learnFlow{}.P) + unsafe.Offsetof(learnProgress{}.State)
	var e entry
	at, err := t.find(key, &e)
	if err != nil || e.F.P.State == uint8(s) {
		return err
	}
	err = errors.Join(t.write(at, offset, []byte{byte(s)}), t.read(at, &e))
	if err == nil && !t.holds(&e, key) {
		err = t.write(at, offset, []byte{byte(Watched)})
		return errors.Join(err, fmt.Errorf("kernel tap: %w", ErrNoFlow))
	}
	return err
}

// remove frees the place of a key's flow.
func (t *table) remove(key []uint64) error {
	var e entry
	at, err := t.find(key, &e)
	if err != nil {
		return err
	}
	return t.write(at, unsafe.Offsetof(e.What), binary.NativeEndian.AppendUint32(nil, placeRemoved))
}

// each hands a copy of each entry to fn until that returns false, which it returns.
func (t *table) each(fn func(*entry) bool) (bool, error) {
	var e entry
	for at := range t.places() {
		if err := t.read(at, &e); err != nil {
			return false, fmt.Errorf("kernel tap: flow table: %w", err)
		}
		if e.What == placeUsed && !fn(&e) {
			return false, nil
		}
	}
	return true, nil
}
