package boundary

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/google/nftables"
)

// withPorts puts the set of notification ports before all others.
func (t Table) withPorts(ports []uint16) Table {
	s := Set{Set: nftables.Set{Name: portsSet, KeyType: nftables.TypeInetService}}
	ports = slices.Clone(ports)
	slices.Sort(ports)
	for _, p := range slices.Compact(ports) {
		s.Elements = append(s.Elements, nftables.SetElement{Key: binary.BigEndian.AppendUint16(nil, p)})
	}
	t.Sets = append([]Set{s}, t.Sets...)
	return t
}

// addressSets makes a set of each family.
func addressSets(name4, name6 string, addrs []netip.Addr) (four, six Set) {
	four = Set{Set: nftables.Set{Name: name4, KeyType: nftables.TypeIPAddr}}
	six = Set{Set: nftables.Set{Name: name6, KeyType: nftables.TypeIP6Addr}}
	addrs = slices.Clone(addrs)
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, a := range slices.Compact(addrs) {
		s := &six
		if a = a.Unmap(); a.Is4() {
			s = &four
		}
		s.Elements = append(s.Elements, nftables.SetElement{Key: a.AsSlice()})
	}
	return four, six
}

// prefixSets makes a set of intervals of each family. The kernel refuses intervals that overlap, so a prefix
// inside another one is left out.
func prefixSets(name4, name6 string, prefixes []netip.Prefix) (four, six Set) {
	four = Set{Set: nftables.Set{Name: name4, KeyType: nftables.TypeIPAddr, Interval: true}}
	six = Set{Set: nftables.Set{Name: name6, KeyType: nftables.TypeIP6Addr, Interval: true}}
	for _, p := range outermost(prefixes) {
		s := &six
		if p.Addr().Is4() {
			s = &four
		}
		s.Elements = append(s.Elements, nftables.SetElement{Key: p.Addr().AsSlice()})
		if end, ok := after(p); ok {
			s.Elements = append(s.Elements, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
		}
	}
	return four, six
}

// outermost sorts prefixes and leaves out those that another one covers.
func outermost(prefixes []netip.Prefix) (out []netip.Prefix) {
	list := make([]netip.Prefix, 0, len(prefixes))
	for _, p := range prefixes {
		list = append(list, p.Masked())
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	for _, p := range list {
		if n := len(out); n > 0 && out[n-1].Contains(p.Addr()) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// after returns the first address after a prefix; there is none after the last one.
func after(p netip.Prefix) (netip.Addr, bool) {
	b := p.Addr().AsSlice()
	for i := range b {
		switch bits := p.Bits() - 8*i; {
		case bits <= 0:
			b[i] = 0xFF
		case bits < 8:
			b[i] |= 0xFF >> bits
		}
	}
	last, _ := netip.AddrFromSlice(b)
	next := last.Next()
	return next, next.IsValid()
}
