package bench

import (
	"errors"
	"fmt"
	"net/netip"

	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/spf"
)

// OSPFParse measures how long a link state update of at most 1,492 octets takes to be read, with every prefix in its
// Extended Prefix LSAs. Baseline: the LSAs' checksums alone, which a receiver has to compute anyway.
func OSPFParse() ([]Result, error) {
	var list []packet.LSA
	proxy := netip.MustParseAddr("198.51.100.1")
	for i := range 100 {
		x := packet.V2ExtendedPrefix{RouteType: packet.RouteIntraArea, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(i), 0}), 24), Subs: []packet.TLV{
			{Type: packet.V2SubPrefixFlags, Value: packet.WithFlagBit(2)}, {Type: packet.V2SubSourceRouterAddr, Value: proxy.AsSlice()}}}
		k := packet.Key{Type: packet.V2OpaqueArea, ID: packet.OpaqueID(packet.OpaqueExtendedPrefix, uint32(i)), Adv: 1}
		l, err := packet.NewLSA(packet.V2, packet.Header{Key: k, Sequence: packet.InitialSequence}, x.Append(nil))
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	u := packet.Updates(list, 1492-packet.V2.HeaderLen())[0]
	raw := (&packet.Packet{Version: packet.V2, Router: 1, Body: u}).Append(nil)
	parse := func() error {
		p, err := packet.Parse(packet.V2, raw)
		if err != nil {
			return err
		}
		for _, l := range p.Body.(*packet.Update).LSAs {
			if _, err := packet.ParseV2ExtendedPrefixes(l.Body()); err != nil {
				return err
			}
		}
		return nil
	}
	sums := func() error {
		for _, l := range u.LSAs {
			if !l.ChecksumOK() {
				return errors.New("ospf-parse: a checksum doesn't verify")
			}
		}
		return nil
	}
	value, base, allocs, err := alternate(20_000, parse, sums)
	return []Result{{Name: "ospf-parse", Value: value, Unit: "ns", Baseline: base, Allocs: allocs,
		Note: fmt.Sprintf("an update of %d octets with %d Extended Prefix LSAs and all their prefixes; baseline: their checksums", len(raw), len(u.LSAs))}}, err
}

// OSPFSPF measures SPF over an area of 1,000 routers and 4,000 links, from the router LSA that changed on. Baseline:
// the definition over the same links.
func OSPFSPF() ([]Result, error) {
	edges := benchGraph()
	area := spf.New(packet.V2, benchRouter(0))
	lsa := func(i int, more uint16) (packet.LSA, error) {
		var r packet.V2RouterLSA
		for to, metric := range edges[i] {
			r.Links = append(r.Links, packet.V2Link{ID: benchRouter(to), Data: 1, Kind: packet.LinkPointToPoint, Metric: uint16(metric) + more})
		}
		me := benchRouter(i)
		return packet.NewLSA(packet.V2, packet.Header{Key: packet.Key{Type: packet.V2Router, ID: me, Adv: me}, Sequence: packet.InitialSequence}, r.Append(nil))
	}
	for i := range edges {
		l, err := lsa(i, 0)
		if err != nil {
			return nil, err
		}
		if _, err := area.Set(benchRouter(i), []packet.LSA{l}); err != nil {
			return nil, err
		}
	}
	for i, want := range relax(edges) {
		if area.Run(); area.Cost(benchRouter(i)) != want {
			return nil, fmt.Errorf("ospf-spf-1000: router %d costs %d, must be %d", i, area.Cost(benchRouter(i)), want)
		}
	}
	last := len(edges) - 1
	var changes [2][]packet.LSA // something has to change for a run
	for i := range changes {
		l, err := lsa(last, uint16(i))
		if err != nil {
			return nil, err
		}
		changes[i] = []packet.LSA{l}
	}
	turn := 0
	run := func() error {
		turn = 1 - turn
		if changed, err := area.Set(benchRouter(last), changes[turn]); err != nil || !changed {
			return fmt.Errorf("ospf-spf-1000: nothing changed: %w", err)
		}
		area.Run()
		return nil
	}
	value, base, allocs, err := alternate(50, run, func() error { relax(edges); return nil })
	return []Result{{Name: "ospf-spf-1000", Value: value / 1000, Unit: "us", Baseline: base / 1000, Allocs: allocs,
		Note: "a changed router LSA, 1,000 routers, 4,000 links; baseline: the definition"}}, err
}
