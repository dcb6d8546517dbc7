package daemon

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/packet"
)

// ospfLSA is an LSA without what it holds.
func ospfLSA(v packet.Version, l packet.LSA, age uint16) *pncv1.OspfLsa {
	return &pncv1.OspfLsa{
		Version: uint32(v), Scope: l.Type.Scope(v).String(), Type: uint32(l.Type), TypeName: api.LsaTypeName(uint32(v), uint32(l.Type), l.ID.OpaqueType()),
		Id: l.ID.String(), Router: l.Adv.String(), Sequence: uint32(l.Sequence), Checksum: uint32(l.Checksum), Age: uint32(age), Length: uint32(l.Length),
	}
}

// appendLSA adds an LSA that a filter chooses, with what it holds where that is asked for.
func appendLSA(out []*pncv1.OspfLsa, f api.LsaFilter, c marks.Config, l packet.LSA, x *pncv1.OspfLsa) []*pncv1.OspfLsa {
	if !f.Match(x) {
		return out
	}
	if f.Detail {
		ospfDetail(c, l, x)
	}
	return append(out, x)
}

// ospfDetail adds what an LSA holds: prefixes with extended attributes, and a line for a reader about the rest.
func ospfDetail(c marks.Config, l packet.LSA, out *pncv1.OspfLsa) {
	var err error
	if c.Version == packet.V2 {
		err = ospfv2Detail(c, l, out)
	} else {
		err = ospfv3Detail(c, l, out)
	}
	if err != nil {
		out.Lines = append(out.Lines, err.Error())
	}
}

// linkKinds are the kinds of links of a router LSA.
var linkKinds = map[uint8]string{packet.LinkPointToPoint: "router", packet.LinkTransit: "network", packet.LinkStub: "stub network", packet.LinkVirtual: "virtual router"}

func ospfv2Detail(c marks.Config, l packet.LSA, out *pncv1.OspfLsa) error {
	line := func(format string, args ...any) { out.Lines = append(out.Lines, fmt.Sprintf(format, args...)) }
	switch b := l.Body(); {
	case l.Type == packet.V2Router:
		r, err := packet.ParseV2Router(b)
		if flags := routerFlags(r.Flags); flags != "" {
			line("flags: %s", flags)
		}
		for _, x := range r.Links {
			to := x.ID.String()
			if bits, ok := packet.MaskBits(uint32(x.Data)); ok && x.Kind == packet.LinkStub {
				to = netip.PrefixFrom(x.ID.Address(), bits).String()
			}
			line("link to %s %s, metric %d", linkKinds[x.Kind], to, x.Metric)
		}
		return err
	case l.Type == packet.V2Network:
		n, err := packet.ParseV2Network(b)
		line("mask: %s", packet.ID(n.Mask))
		line("%s", lineOf("routers", texts(n.Routers), nil))
		return err
	case l.Type == packet.V2Summary || l.Type == packet.V2ASBR:
		mask, metric, err := packet.ParseV2Summary(b)
		if bits, ok := packet.MaskBits(mask); ok && l.Type == packet.V2Summary {
			line("network: %s", netip.PrefixFrom(l.ID.Address(), bits))
		}
		line("metric: %d", metric)
		return err
	case (l.Type == packet.V2External || l.Type == packet.V2NSSA) && len(b) >= 4:
		if bits, ok := packet.MaskBits(binary.BigEndian.Uint32(b)); ok {
			line("network: %s", netip.PrefixFrom(l.ID.Address(), bits))
		}
		return nil
	case l.Type.Opaque() && l.ID.OpaqueType() == packet.OpaqueExtendedPrefix:
		list, err := packet.ParseV2ExtendedPrefixes(b)
		said, _ := marks.Read(c, l.Adv, []packet.LSA{l})
		for _, p := range list {
			x := ospfPrefix(c.Version, p.Prefix, said, p.Subs, packet.V2SubPrefixFlags, packet.V2SubSourceRouterID, packet.V2SubSourceRouterAddr)
			x.Options, x.RouteType = uint32(p.Flags), routeType(p.RouteType)
			out.Prefixes = append(out.Prefixes, x)
		}
		return err
	case l.Type.Opaque() && l.ID.OpaqueType() == packet.OpaqueTE:
		return teDetail(c.Version, b, line)
	default:
		line("%x", b)
		return nil
	}
}

func ospfv3Detail(c marks.Config, l packet.LSA, out *pncv1.OspfLsa) error {
	line := func(format string, args ...any) { out.Lines = append(out.Lines, fmt.Sprintf(format, args...)) }
	add := func(list []packet.V3ExtendedPrefix) {
		said, _ := marks.Read(c, l.Adv, []packet.LSA{l})
		for _, p := range list {
			x := ospfPrefix(c.Version, p.Prefix, said, p.Subs, packet.V3SubPrefixFlags, packet.V3SubSourceRouterID, packet.V3SubSourceRouterAddr)
			x.Options, x.Metric = uint32(p.Options), p.Metric
			out.Prefixes = append(out.Prefixes, x)
		}
	}
	switch b := l.Body(); l.Type {
	case packet.V3Router:
		r, err := packet.ParseV3Router(b)
		if flags := routerFlags(r.Flags); flags != "" {
			line("flags: %s", flags)
		}
		if r.Options&packet.V3OptR == 0 {
			line("no transit: the R bit is clear")
		}
		for _, x := range r.Links {
			line("link to %s %s, metric %d", linkKinds[x.Kind], x.Neighbor, x.Metric)
		}
		return err
	case packet.V3Network:
		n, err := packet.ParseV3Network(b)
		line("%s", lineOf("routers", texts(n.Routers), nil))
		return err
	case packet.V3InterAreaPrefix:
		metric, p, err := packet.ParseV3InterAreaPrefix(b)
		line("network: %s, metric %d", p.Prefix, metric)
		return err
	case packet.V3InterAreaRouter:
		metric, router, err := packet.ParseV3InterAreaRouter(b)
		line("router: %s, metric %d", router, metric)
		return err
	case packet.V3IntraAreaPrefix:
		list, err := packet.ParseV3IntraArea(b)
		for _, p := range list.Prefixes {
			line("network: %s, metric %d, options %#02x", p.Prefix, p.Metric, p.Options)
		}
		return err
	case packet.V3Link:
		l, err := packet.ParseV3Link(b)
		if err != nil {
			return err
		}
		line("address: %s, priority %d", l.Address, l.Priority)
		for _, p := range l.Prefixes {
			line("network: %s, options %#02x", p.Prefix, p.Options)
		}
		return nil
	case packet.V3EIntraAreaPrefix:
		list, err := packet.ParseV3EIntraArea(b)
		add(list.Prefixes)
		return err
	case packet.V3EInterAreaPrefix, packet.V3EExternal, packet.V3ENSSA:
		list, err := packet.ParseV3ExtendedPrefixes(b)
		add(list)
		return err
	case packet.V3IntraAreaTE:
		return teDetail(c.Version, b, line)
	default:
		line("%x", b)
		return nil
	}
}

// teDetail shows the router address of a traffic engineering LSA, or that it is about something else.
func teDetail(v packet.Version, b []byte, line func(string, ...any)) error {
	a, err := packet.ParseTERouterAddress(v, b)
	if a.IsValid() {
		line("router address: %s", a)
	} else {
		line("%x", b)
	}
	return err
}

// routerFlags are those of a router LSA that are set.
func routerFlags(f uint8) string {
	var names []string
	for _, x := range []struct {
		mask uint8
		name string
	}{{packet.RouterB, "area border router"}, {packet.RouterE, "AS boundary router"}, {packet.RouterV, "virtual link"}, {packet.RouterNt, "NSSA translator"}} {
		if f&x.mask != 0 {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, ", ")
}

// routeType is that of an Extended Prefix TLV as routers name it (RFC 7684 section 2.1).
func routeType(t uint8) string {
	name, known := map[uint8]string{
		packet.RouteUnspecified: "unspecified", packet.RouteIntraArea: "intra-area", packet.RouteInterArea: "inter-area", packet.RouteExternal: "external", packet.RouteNSSA: "nssa-external",
	}[t]
	if !known {
		return fmt.Sprint(t)
	}
	return name
}

// ospfPrefix gives a prefix with extended attributes; the types are those of the version's sub-TLVs.
func ospfPrefix(v packet.Version, p netip.Prefix, said marks.Said, subs []packet.TLV, flags, router, address uint16) *pncv1.OspfPrefix {
	out := &pncv1.OspfPrefix{Prefix: p.String(), P: said.Prefixes[p].P}
	if source, err := packet.ParseSource(v, subs); err == nil {
		if source.Router != 0 {
			out.SourceRouterId = source.Router.String()
		}
		if source.Address.IsValid() {
			out.SourceAddress = source.Address.String()
		}
	}
	for _, s := range subs {
		switch s.Type {
		case flags:
			out.Flags = fmt.Sprintf("%x", s.Value)
		case router, address:
		default:
			out.OtherSubTlvs = append(out.OtherSubTlvs, uint32(s.Type))
		}
	}
	return out
}
