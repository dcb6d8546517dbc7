package flowmap

import "sync/atomic"

// settledIndex finds settled pairs by receiver, context and Destination QP: one RC peer at a time has them (rule 10),
// so the sender need not be hashed, and the same index answers who holds a QP. It is an open table with linear
// probing; readers need no lock, and writers hold that of the claims. A slot holds 8 bits of the hash and a reference + 1.
type settledIndex struct {
	table atomic.Pointer[[]atomic.Uint32]
	live  int // slots in use
	full  int // and those that were
}

const (
	settledRefBits = 24
	settledRefMask = 1<<settledRefBits - 1
	settledGone    = settledRefMask            // a slot that was in use
	settledMax     = 1<<(settledRefBits-1) - 1 // pairs that references can name
	settledSmall   = 16                        // slots at least
)

// settledHash is the hash of who receives.
func settledHash(receiver *[16]byte, context, qp uint32) uint64 {
	h := (le64(receiver[8:]) ^ uint64(qp)<<32 ^ uint64(context)) * 0x9E3779B97F4A7C15
	h ^= le64(receiver[:]) * 0xC2B2AE3D27D4EB4F
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	h ^= h >> 32
	h *= 0x94D049BB133111EB
	return h ^ h>>29
}

// settledHashOf is that of a direction of a settled pair.
func settledHashOf(r *settledPair, side uint8) uint64 {
	k := &r.pair.Load().key
	return settledHash(k.side(side), k.context, r.qp(side))
}

func (st *settledStore) part(h uint64) *settledIndex { return &st.index[h>>58] }

func slotOf(h uint64, n int) int { return int(uint64(uint32(h)) * uint64(n) >> 32) }
func tagOf(h uint64) uint32      { return uint32(h>>40) << settledRefBits }

// candidates calls f with each reference whose hash may be h, until f returns false.
func (st *settledStore) candidates(h uint64, f func(settledRef, *settledPair) bool) {
	t := st.part(h).table.Load()
	if t == nil {
		return
	}
	slots, tag := *t, tagOf(h)
	for i := slotOf(h, len(slots)); ; {
		v := slots[i].Load()
		if v == 0 {
			return
		}
		if v&^settledRefMask == tag && v&settledRefMask != settledGone {
			if e := settledRef(v&settledRefMask - 1); !f(e, st.at(e)) {
				return
			}
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// enter makes a direction of a pair be found.
func (st *settledStore) enter(e settledRef) {
	h := settledHashOf(st.at(e), e.side())
	x := st.part(h)
	if t := x.table.Load(); t == nil || 5*(x.full+1) > 4*len(*t) {
		st.rebuild(x)
	}
	x.put(*x.table.Load(), h, e)
	x.live++
	x.full++
}

func (x *settledIndex) put(slots []atomic.Uint32, h uint64, e settledRef) {
	i := slotOf(h, len(slots))
	for slots[i].Load() != 0 {
		if i++; i == len(slots) {
			i = 0
		}
	}
	slots[i].Store(tagOf(h) | uint32(e) + 1)
}

// rebuild makes the table two thirds full.
func (st *settledStore) rebuild(x *settledIndex) {
	slots := make([]atomic.Uint32, max(x.live+x.live/2, settledSmall))
	if t := x.table.Load(); t != nil {
		for i := range *t {
			if v := (*t)[i].Load(); v != 0 && v&settledRefMask != settledGone {
				e := settledRef(v&settledRefMask - 1)
				x.put(slots, settledHashOf(st.at(e), e.side()), e)
			}
		}
	}
	x.full = x.live
	x.table.Store(&slots)
}

// leave makes a direction not be found any more.
func (st *settledStore) leave(e settledRef) {
	h := settledHashOf(st.at(e), e.side())
	x := st.part(h)
	slots, want := *x.table.Load(), tagOf(h)|uint32(e)+1
	for i := slotOf(h, len(slots)); ; {
		if slots[i].Load() == want {
			slots[i].Store(settledGone)
			break
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
	if x.live--; x.live == 0 {
		x.full = 0
		x.table.Store(nil)
	} else if len(slots) > 4*max(x.live, settledSmall) {
		st.rebuild(x)
	}
}
