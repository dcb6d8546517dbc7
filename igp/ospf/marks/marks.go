// Package marks reads what one OSPF router says of prefixes beyond their reachability: which of them carry the P
// flag, and which address the proxy for their senders has (RFC 7684, 8362, 9084, 9792).
//
// It is pure and of one router at a time. Whether the router is reachable, so that it may be believed (RFC 5250
// section 5), is a question for igp/ospf/spf.
package marks

import (
	"errors"
	"fmt"
	"net/netip"

	"pncd/igp/ospf/packet"
)

// Config is how LSAs are read.
type Config struct {
	Version packet.Version
	Carrier Carrier
}

// Entry is what a router says of one prefix.
type Entry struct {
	P bool // marked with the P flag
	// Leaked: the prefix came to the router from another area or from outside, so that it is not who marked it
	// first. Of OSPFv2 the A flag or a route type that is not intra-area say so, of OSPFv3 the type of the LSA.
	Leaked bool
	// Proxy, with P, is the address of the proxy; invalid when it is not said. The router's own sub-TLV for the
	// prefix comes first (RFC 9084 section 2.2), if its address is one that a packet can be sent to.
	//
	// Without it, the proxy is the router itself, unless Leaked, and its address is that of its traffic
	// engineering LSA (RFC 3630 section 2.4.1, RFC 5329 section 3); else in OSPFv2 its router ID, if it announces
	// that as a host prefix. A router ID of OSPFv3 is no address: in its place is the only host prefix that the
	// router says to be its own, by the LA or N bit; with several none is taken, since which of them it is
	// reached by is a guess.
	//
	// Of a leaked prefix the proxy is the router that the source router ID names (RFC 9084 section 2.1). Of that
	// one only the ID is known: in OSPFv2 it is taken, if the router that is read announces it as a host prefix.
	Proxy netip.Addr
}

// Said is what a router says.
type Said struct {
	// Prefixes are all that it announces with an extended TLV, marked or not.
	Prefixes map[netip.Prefix]Entry
	// Unreadable counts the LSAs that were left out.
	Unreadable int
}

// Read takes what a router says from its LSAs, which are in the order of their keys. LSAs of other routers or at
// MaxAge don't count: the age in their headers has to be that of now. An LSA that can't be read is left out as a
// whole; the error names each. Router LSAs that can't be read are told by igp/ospf/spf, and not here again.
//
// Of several TLVs for the same prefix one counts: of the LSA type that comes first in the order below, then of
// the lowest link state ID (RFC 7684 section 2), then the first.
//
//   - OSPFv2: Extended Prefix Opaque LSAs of area scope (type 10), of link scope (9), of AS scope (11). P counts in
//     those of area scope alone, whatever the route type.
//   - OSPFv3: E-Intra-Area-Prefix, E-Inter-Area-Prefix, E-Type-7 and E-AS-External LSAs. Prefix Extended Flags may be
//     in the TLVs of all (RFC 9792 section 2); P counts in those of area scope, which are all but the last, so that
//     as in OSPFv2 a border router or who helps it can say of a prefix both P and where it is from.
func Read(c Config, router packet.ID, lsas []packet.LSA) (Said, error) {
	r := reader{Config: c, router: router, found: map[netip.Prefix]found{}, hosts: map[netip.Addr]bool{}, own: map[netip.Addr]bool{}}
	var errs []error
	for _, l := range lsas {
		if l.Adv != router || l.AgeSeconds() == packet.MaxAge {
			continue
		}
		var err error
		if c.Version == packet.V3 {
			err = r.addV3(l)
		} else {
			err = r.addV2(l)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("LSA %s: %w", l.Key, err))
		}
	}
	s := Said{Prefixes: make(map[netip.Prefix]Entry, len(r.found)), Unreadable: len(errs)}
	for p, f := range r.found {
		e := Entry{P: f.p, Leaked: f.leaked}
		if f.p {
			e.Proxy = r.proxy(f)
		}
		s.Prefixes[p] = e
	}
	return s, errors.Join(errs...)
}

// found is what a prefix's TLV says.
type found struct {
	rank      int // of the LSA's type, the lowest first
	id        packet.ID
	p, leaked bool
	source    packet.Source
}

// reader collects what a router says.
type reader struct {
	Config
	router packet.ID
	found  map[netip.Prefix]found
	te     netip.Addr          // router address for traffic engineering
	hosts  map[netip.Addr]bool // OSPFv2: announced as host prefixes
	own    map[netip.Addr]bool // OSPFv3: host prefixes said to be addresses of the router
}

// add takes what the TLV of a prefix says, unless another one comes before it.
func (r *reader) add(p netip.Prefix, f found) {
	old, ok := r.found[p]
	if ok && (old.rank < f.rank || old.rank == f.rank && old.id <= f.id) {
		return
	}
	r.found[p] = f
}

// readTE takes the router address of a traffic engineering LSA. A router has one (RFC 3630 section 2.4.1); of
// several the first counts.
func (r *reader) readTE(l packet.LSA) error {
	a, err := packet.ParseTERouterAddress(r.Version, l.Body())
	if err == nil && !r.te.IsValid() && usable(a) {
		r.te = a
	}
	return err
}

// proxy is the address of the proxy that a marked prefix names: see Entry.
func (r *reader) proxy(f found) netip.Addr {
	if a := f.source.Address; usable(a) {
		return a.Unmap()
	}
	var own netip.Addr
	switch {
	case f.leaked:
		if a := f.source.Router.Address(); r.hosts[a] && usable(a) {
			own = a
		}
	case r.te.IsValid():
		own = r.te
	case r.Version == packet.V2:
		if a := r.router.Address(); r.hosts[a] && usable(a) {
			own = a
		}
	case len(r.own) == 1:
		for a := range r.own {
			own = a
		}
	}
	return own
}

// usable reports whether a packet for the proxy can be sent to an address.
func usable(a netip.Addr) bool { return a.IsValid() && a.IsGlobalUnicast() }
