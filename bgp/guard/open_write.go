package guard

import (
	"encoding/binary"
	"slices"
)

// maxCapabilities is how many octets of capabilities there can be in an OPEN without RFC 9072, when they are
// in one parameter.
const maxCapabilities = 253

// rewrite writes an OPEN for GoBGP, which doesn't know extended optional parameters (RFC 9072): all
// capabilities in one parameter. What GoBGP makes nothing of is left out when there is no room.
func (o *open) rewrite(msg []byte) ([]byte, *Fault) {
	caps := o.capabilities
	for _, less := range []func(c []byte) bool{
		func(c []byte) bool { return !knownToGoBGP(c[0]) },
		func(c []byte) bool { return c[0] == capSoftwareVersion || c[0] == capHostname },
		func(c []byte) bool {
			return c[0] == capMultiprotocol && familyOf(c[2], c[3], c[5]) == unknownFamily
		},
	} {
		if size(caps) <= maxCapabilities {
			break
		}
		caps = slices.DeleteFunc(slices.Clone(caps), less)
	}
	n := size(caps)
	if n > maxCapabilities {
		return nil, &Fault{Code: codeOpen, Subcode: openUnspecific, Reason: "OPEN: more capabilities than GoBGP takes"}
	}
	out := slices.Clone(msg[:HeaderLen+openFixed])
	if n > 0 {
		out = append(out, paramCapabilities, uint8(n))
		for _, c := range caps {
			out = append(out, c...)
		}
	}
	out[HeaderLen+openFixed-1] = uint8(len(out) - HeaderLen - openFixed)
	binary.BigEndian.PutUint16(out[16:], uint16(len(out)))
	return out, nil
}

func size(caps [][]byte) (n int) {
	for _, c := range caps {
		n += len(c)
	}
	return n
}

func knownToGoBGP(code uint8) bool {
	switch code {
	case capMultiprotocol, capRouteRefresh, capExtendedNextHop, capGracefulRestart, capFourOctetAS, capAddPath,
		capEnhancedRefresh, capLongLivedRestart, capHostname, capSoftwareVersion, capRefreshCisco:
		return true
	}
	return false
}

// agreed is what two OPENs have in common.
type agreed struct {
	families        [numFamilies]bool
	addPath         [numFamilies]bool // the neighbour sends path identifiers
	extendedNextHop [numFamilies]bool // we take IPv6 next hops
	fourOctetAS     bool
	enhancedRefresh bool
}

// agree computes it as GoBGP does. An OPEN without the multiprotocol capability offers IPv4 unicast
// (RFC 4760 section 8).
func agree(cfg Config, ours, theirs *open) agreed {
	a := agreed{
		fourOctetAS:     ours.fourOctetAS && theirs.fourOctetAS,
		enhancedRefresh: ours.enhancedRefresh && theirs.enhancedRefresh,
		// That we offered it is enough: who sends such next hops must look at our capability.
		extendedNextHop: ours.extendedNextHop,
	}
	for f := range numFamilies {
		both := slices.Contains(cfg.Families, f.family()) &&
			(theirs.families[f] || f == ipv4Unicast && !theirs.multiprotocol)
		a.families[f] = both
		a.addPath[f] = both && ours.addPath[f]&1 != 0 && theirs.addPath[f]&2 != 0
	}
	return a
}
