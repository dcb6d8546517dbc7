package guard

// fam is a family whose NLRI can be read here.
type fam uint8

const (
	ipv4Unicast fam = iota
	ipv6Unicast
	ipv4VPN // RFC 4364
	ipv6VPN // RFC 4659
	numFamilies
	unknownFamily
)

// IANA's numbers.
const (
	afiIPv4     = 1
	afiIPv6     = 2
	safiUnicast = 1
	safiVPN     = 128
)

func familyOf(afiHigh, afiLow, safi byte) fam {
	switch {
	case afiHigh != 0:
	case afiLow == afiIPv4 && safi == safiUnicast:
		return ipv4Unicast
	case afiLow == afiIPv6 && safi == safiUnicast:
		return ipv6Unicast
	case afiLow == afiIPv4 && safi == safiVPN:
		return ipv4VPN
	case afiLow == afiIPv6 && safi == safiVPN:
		return ipv6VPN
	}
	return unknownFamily
}

func (f fam) family() Family {
	return [...]Family{{afiIPv4, safiUnicast}, {afiIPv6, safiUnicast}, {afiIPv4, safiVPN}, {afiIPv6, safiVPN}}[f]
}

func (f fam) vpn() bool { return f == ipv4VPN || f == ipv6VPN }
func (f fam) ip4() bool { return f == ipv4Unicast || f == ipv4VPN }

// Lengths in octets of what precedes the prefix in a VPN: one label, as multiple labels are never
// negotiated (RFC 8277 section 2.2), and the route distinguisher.
const (
	labelLen = 3
	rdLen    = 8
)

// bitRange is the range of NLRI length fields of each family, in bits.
var bitRange = [numFamilies]struct{ from, to int }{
	{0, 32}, {0, 128},
	{8 * (labelLen + rdLen), 8*(labelLen+rdLen) + 32},
	{8 * (labelLen + rdLen), 8*(labelLen+rdLen) + 128},
}

// nlriState is what checkNLRI finds.
type nlriState uint8

const (
	nlriClean  nlriState = iota
	nlriMend             // well formed, but GoBGP shouldn't get it like this
	nlriBroken           // syntactically incorrect (RFC 7606 section 5.3)
)

// checkNLRI checks a field of NLRI, each with a path identifier when addPath (RFC 7911 section 3).
// Prefixes that no route can have are looked for when reach.
func checkNLRI(b []byte, f fam, addPath, reach bool) nlriState {
	at := 0
	if addPath {
		at = 4
	}
	limit, vpn, ip4 := bitRange[f], f.vpn(), f.ip4()
	state := nlriClean
	for len(b) > at {
		bits := int(b[at])
		n := at + 1 + (bits+7)>>3
		if bits < limit.from || bits > limit.to || n > len(b) {
			return nlriBroken
		}
		switch {
		case vpn:
			if p := b[at:n]; !bottom(p[1:]) || reach && multicast(p, f) {
				state = nlriMend
			}
		case !reach || bits < 4:
		case ip4 && b[at+1]&0xf0 == 0xe0, !ip4 && b[at+1] == 0xff && bits >= 8:
			state = nlriMend
		}
		b = b[n:]
	}
	if len(b) > 0 {
		return nlriBroken
	}
	return state
}

// nextNLRI is the length of the first NLRI in octets, zero when it isn't whole or its length isn't one of
// the family.
func nextNLRI(b []byte, f fam, addPath bool) int {
	at := 0
	if addPath {
		at = 4
	}
	if len(b) <= at {
		return 0
	}
	bits := int(b[at])
	if bits < bitRange[f].from || bits > bitRange[f].to {
		return 0
	}
	n := at + 1 + (bits+7)/8
	if n > len(b) {
		return 0
	}
	return n
}

// bottom reports whether GoBGP stops to read labels after the first: at the bottom of the stack, or at a
// label that says withdrawn (RFC 8277 section 2.4) or zero. By RFC 8277 section 2.2 the bit is to be
// ignored, so a label without it is given to GoBGP with it.
func bottom(label []byte) bool {
	return label[2]&1 != 0 || label[0]&0x7f == 0 && label[1] == 0 && label[2] == 0
}

// multicast reports whether the prefix lies in the multicast range: a route of a unicast family can't.
// p begins at the length field.
func multicast(p []byte, f fam) bool {
	bits, at := int(p[0]), 1
	if f.vpn() {
		bits, at = bits-8*(labelLen+rdLen), 1+labelLen+rdLen
	}
	if f.ip4() {
		return bits >= 4 && p[at]&0xf0 == 0xe0
	}
	return bits >= 8 && p[at] == 0xff
}

// appendNLRI writes a field that checkNLRI took for well formed: as GoBGP should get it, or, to withdraw
// it, with labels that say so. dropped says that prefixes were left out.
func appendNLRI(dst, b []byte, f fam, addPath, withdraw bool) (out []byte, dropped bool) {
	for len(b) > 0 {
		n := nextNLRI(b, f, addPath)
		at := 0
		if addPath {
			at = 4
		}
		if !withdraw && multicast(b[at:n], f) {
			dropped = true
			b = b[n:]
			continue
		}
		start := len(dst) + at + 1
		dst = append(dst, b[:n]...)
		if label := dst[start:]; f.vpn() && withdraw {
			label[0], label[1], label[2] = 0x80, 0, 0
		} else if f.vpn() && !bottom(label) {
			label[2] |= 1
		}
		b = b[n:]
	}
	return dst, dropped
}
