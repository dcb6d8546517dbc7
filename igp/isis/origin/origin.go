// Package origin packs what an IS-IS system says of itself into the fragments of its LSP (ISO/IEC 10589:2002
// clause 7.3.7): what stays, stays in its fragment, so that a change floods only the fragments that hold it.
// It is pure.
package origin

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"

	"pncd/igp/isis/packet"
)

// Item is one entry of a TLV that holds many.
type Item struct {
	Key  string // what it is about: the same key is the same item, maybe with another body
	Type uint8  // of the TLV
	Lead string // what each such TLV begins with: the topology of 222, 235 and 237
	Body []byte
}

// ErrFull says that 256 fragments don't hold everything; the items that are left out are reported.
var ErrFull = errors.New("isis: what is to be announced doesn't fit 256 LSP fragments")

// ErrHead says that the TLVs of the first fragment alone don't fit.
var ErrHead = errors.New("isis: the TLVs of the first LSP fragment don't fit the LSP's size")

// Packer remembers which item is in which fragment. It is not safe for concurrent use.
type Packer struct {
	room      int // octets of TLVs that a fragment holds
	fragments []*fragment
	where     map[string]int
}

type fragment struct {
	items map[string]Item
	size  int // of the packed TLVs, less the head
	sent  packet.TLVs
	live  bool
}

// lspHeader is the length of an LSP without its TLVs, octets.
const lspHeader = 27

// New makes a packer for LSPs of a size, octets, less what authentication adds.
func New(lspSize int) *Packer { return &Packer{room: lspSize - lspHeader, where: map[string]int{}} }

// SetSize changes the size; what doesn't fit its fragment any more moves with the next Update.
func (p *Packer) SetSize(lspSize int) { p.room = lspSize - lspHeader }

// Fragment is one fragment that changed. No TLVs and not the first one: it is purged.
type Fragment struct {
	Number uint8
	TLVs   packet.TLVs
	Purge  bool
}

// Update says what the system announces from now on: head in the first fragment, and the items. It gives the
// fragments that changed. With ErrFull they hold what fits, and left says what doesn't.
func (p *Packer) Update(head packet.TLVs, items []Item) (changed []Fragment, left []Item, err error) {
	if head.Len() > p.room {
		return nil, items, ErrHead
	}
	wanted := make(map[string]Item, len(items))
	for _, it := range items {
		wanted[it.Key] = it
	}
	p.drop(wanted, head.Len())
	var fresh []Item
	for key, it := range wanted {
		if _, ok := p.where[key]; !ok {
			fresh = append(fresh, it)
		}
	}
	slices.SortFunc(fresh, compare)
	for _, it := range fresh {
		if !p.place(it, head.Len()) {
			left = append(left, it)
		}
	}
	if len(left) > 0 {
		err = ErrFull
	}
	return p.changes(head), left, err
}

// drop takes out what isn't wanted any more, and what doesn't fit its fragment any more.
func (p *Packer) drop(wanted map[string]Item, head int) {
	for n, f := range p.fragments {
		for key := range f.items {
			it, ok := wanted[key]
			if !ok {
				delete(f.items, key)
				delete(p.where, key)
				continue
			}
			f.items[key] = it
		}
		f.size = packed(f.items).Len()
		for f.size > p.roomOf(n, head) {
			last := slices.MaxFunc(slices.Collect(maps.Values(f.items)), compare)
			delete(f.items, last.Key)
			delete(p.where, last.Key)
			f.size = packed(f.items).Len()
		}
	}
}

func (p *Packer) roomOf(n, head int) int {
	if n == 0 {
		return p.room - head
	}
	return p.room
}

// place puts an item into the first fragment with room for it.
func (p *Packer) place(it Item, head int) bool {
	need := len(it.Body) + len(it.Lead) + 2
	if len(it.Body)+len(it.Lead) > maxValue {
		return false
	}
	for n := 0; n < maxFragments; n++ {
		if n == len(p.fragments) {
			p.fragments = append(p.fragments, &fragment{items: map[string]Item{}})
		}
		f, room := p.fragments[n], p.roomOf(n, head)
		if f.size+len(it.Body) > room {
			continue
		}
		f.items[it.Key] = it
		// Most of the time there is room for a TLV of its own; else look how it packs.
		if f.size+need <= room-maxValue {
			f.size += need
		} else {
			f.size = packed(f.items).Len()
		}
		if f.size > room {
			delete(f.items, it.Key)
			f.size = packed(f.items).Len()
			continue
		}
		p.where[it.Key] = n
		return true
	}
	return false
}

const (
	maxFragments = 256
	maxValue     = 255
)

// changes packs the fragments and gives those that are not as they were sent.
func (p *Packer) changes(head packet.TLVs) (out []Fragment) {
	for n, f := range p.fragments {
		tlvs := packed(f.items)
		if n == 0 {
			tlvs = append(slices.Clone(head), tlvs...)
		}
		live := n == 0 || len(tlvs) > 0
		if live == f.live && same(tlvs, f.sent) {
			continue
		}
		f.sent, f.live = tlvs, live
		out = append(out, Fragment{Number: uint8(n), TLVs: tlvs, Purge: !live})
	}
	if len(p.fragments) == 0 { // nothing but the head
		p.fragments = append(p.fragments, &fragment{items: map[string]Item{}})
		return p.changes(head)
	}
	return out
}

// packed makes TLVs of the items, in an order that doesn't depend on how they came.
func packed(items map[string]Item) (out packet.TLVs) {
	sorted := slices.SortedFunc(maps.Values(items), compare)
	for i, it := range sorted {
		begun := i > 0 && sorted[i-1].Type == it.Type && sorted[i-1].Lead == it.Lead
		if !begun || len(out[len(out)-1].Value)+len(it.Body) > maxValue {
			out = append(out, packet.TLV{Type: it.Type, Value: []byte(it.Lead)})
		}
		t := &out[len(out)-1]
		t.Value = append(t.Value, it.Body...)
	}
	return out
}

func compare(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Lead, b.Lead), cmp.Compare(a.Key, b.Key))
}

func same(a, b packet.TLVs) bool {
	return slices.EqualFunc(a, b, func(x, y packet.TLV) bool { return x.Type == y.Type && bytes.Equal(x.Value, y.Value) })
}
