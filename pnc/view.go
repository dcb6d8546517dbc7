package pnc

import (
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// trie is the longest-match table of one context. Published ones never change.
type trie = bart.Table[slot]

// view is the state of one context in one snapshot.
type view struct {
	configured bool
	routes     *trie

	// hidden is nil unless a static route with Override exists. It then holds those routes and the
	// static ones below them: what it matches is the answer, because learned routes that are
	// longer are hidden.
	hidden *trie
}

func newView(configured bool) *view { return &view{configured: configured, routes: new(trie)} }

func (v *view) clone() *view { c := *v; return &c }

// lookup gives the slot that wins for the sender.
func (v *view) lookup(sender netip.Addr) (slot, bool) {
	if v.hidden != nil {
		if s, ok := v.hidden.Lookup(sender); ok {
			return s, true
		}
	}
	return v.routes.Lookup(sender)
}

// Measured with 1 M prefixes: a persistent delete costs as much as cloning this many prefixes.
const clonesPerDelete = 200

// update replaces v.routes by one with the slots of set and without the prefixes of del. Only the
// nodes on the way are copied, each once for the whole batch, unless so much is deleted that one
// copy of everything is cheaper.
func (v *view) update(set *trie, del map[netip.Prefix]struct{}) {
	if len(del)*clonesPerDelete > v.routes.Size() {
		v.routes = v.routes.Clone()
		for p := range del {
			v.routes.Delete(p)
		}
	} else {
		for p := range del {
			v.routes = v.routes.DeletePersist(p)
		}
	}
	if set.Size() > 0 {
		v.routes = v.routes.UnionPersist(set)
	}
}

// reorder ranks the routes of every prefix again.
func (v *view) reorder(rk *ranking) {
	set := new(trie)
	for p, s := range v.routes.All() {
		routes := slices.Clone(s.several())
		if len(routes) == 0 {
			continue
		}
		slices.SortFunc(routes, rk.compare)
		set.Insert(p, newSlot(routes, rk))
	}
	v.update(set, nil)
}

// hide makes v.hidden from the prefixes that have static routes.
func (v *view) hide(statics map[netip.Prefix]int, rk *ranking, allowDefault bool) {
	v.hidden = nil
	overrides := new(bart.Lite)
	for p := range statics {
		// A default route that may not be used hides nothing.
		if p.Bits() == 0 && !allowDefault {
			continue
		}
		s, _ := v.routes.Get(p)
		if slices.ContainsFunc(s.list(nil), func(e *Entry) bool { return e.override }) {
			overrides.Insert(p)
		}
	}
	if overrides.Size() == 0 {
		return
	}
	hidden := new(trie)
	for p := range statics {
		shortest := netip.Prefix{}
		for o := range overrides.Supernets(p) { // from long to short
			shortest = o
		}
		if !shortest.IsValid() {
			continue
		}
		s, _ := v.routes.Get(p)
		if shortest != p { // learned routes here are longer than an override: only the static ones count
			routes := slices.DeleteFunc(s.list(nil), func(e *Entry) bool { return e.source != SourceStatic })
			s = newSlot(routes, rk)
		}
		hidden.Insert(p, s)
	}
	v.hidden = hidden
}
