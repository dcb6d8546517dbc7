package lsdb

import (
	"slices"

	"pncd/igp/ospf/packet"
)

// index is a set of keys that is put in order when it is read: a database takes 100,000 LSAs before somebody
// asks for their order.
type index struct {
	keys  []packet.Key
	dirty bool
	live  int // how many are in the database
	gone  int // removals since keys had none of theirs
}

func (x *index) add(k packet.Key) {
	// What comes in order, as descriptions and updates mostly have it, leaves it in order.
	x.dirty = x.dirty || len(x.keys) > 0 && x.keys[len(x.keys)-1].Compare(k) >= 0
	x.keys = append(x.keys, k)
	x.live++
}

// remove is told after the key left the database.
func (x *index) remove(there map[packet.Key]*Entry) {
	x.live--
	if x.gone++; x.gone > len(x.keys)/2 {
		x.clean(there)
	}
}

func (x *index) clean(there map[packet.Key]*Entry) {
	x.keys = slices.DeleteFunc(x.keys, func(k packet.Key) bool { return there[k] == nil })
	x.gone = 0
}

// sorted gives the keys in order, each once.
func (x *index) sorted(there map[packet.Key]*Entry) []packet.Key {
	if x.gone > 0 {
		x.clean(there)
	}
	if x.dirty {
		slices.SortFunc(x.keys, packet.Key.Compare)
		x.keys, x.dirty = slices.Compact(x.keys), false // one that was removed and came back is twice in it
	}
	return x.keys
}
