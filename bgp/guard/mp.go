package guard

// mp is an MP_REACH_NLRI or MP_UNREACH_NLRI attribute of an UPDATE (RFC 4760 sections 3 and 4).
type mp struct {
	present bool
	family  fam
	offered bool
	state   nlriState
	head    []byte // value before the NLRI
	nlri    []byte
}

// familyNumbers are those of the attribute, of any family.
func (m *mp) familyNumbers() Family {
	return Family{AFI: uint16(u16(m.head)), SAFI: m.head[2]}
}

// readReach reads an MP_REACH_NLRI; false: it is incorrect (RFC 7606 sections 5.3 and 7.11), and the NLRI
// can't be located. The inside of families that aren't offered isn't looked at.
func (s *Session) readReach(v []byte, m *mp) (hop hopState, ok bool) {
	if len(v) < 5 || len(v) < 5+int(v[3]) {
		return hopGood, false
	}
	n := 5 + int(v[3])
	m.head, m.nlri = v[:n], v[n:]
	s.readFamily(m)
	if !m.offered {
		return hopGood, true
	}
	hop = s.checkHop(v[4:n-1], m.family)
	m.state = checkNLRI(m.nlri, m.family, s.agreed.addPath[m.family], true)
	return hop, hop != hopLength && m.state != nlriBroken
}

// readUnreach reads an MP_UNREACH_NLRI; false: it is incorrect.
func (s *Session) readUnreach(v []byte, m *mp) bool {
	if len(v) < 3 {
		return false
	}
	m.head, m.nlri = v[:3], v[3:]
	s.readFamily(m)
	if m.offered {
		m.state = checkNLRI(m.nlri, m.family, s.agreed.addPath[m.family], false)
	}
	return m.state != nlriBroken
}

func (s *Session) readFamily(m *mp) {
	m.present = true
	m.family = familyOf(m.head[0], m.head[1], m.head[2])
	m.offered = m.family != unknownFamily && s.agreed.families[m.family]
}

// hopState is what is wrong with a next hop.
type hopState uint8

const (
	hopGood   hopState = iota
	hopLength          // no length that the family's next hops have
	hopValue           // no host's address
)

// checkHop checks the next hop of an MP_REACH_NLRI. With IPv6 it is one address or two, of which the
// second is link-local (RFC 2545 section 3); some send only that one, and zero in place of the first.
// IPv4 prefixes can have an IPv6 next hop when we offered that (RFC 8950). In a VPN, a route distinguisher
// precedes each address (RFC 4364 section 4.3.2, RFC 4659 section 3.2.1).
func (s *Session) checkHop(hop []byte, f fam) hopState {
	rd := 0
	if f.vpn() {
		rd = rdLen
	}
	if len(hop) == rd+4 && f.ip4() {
		return valueState(hostIPv4(hop[rd:]))
	}
	if f.ip4() && !s.agreed.extendedNextHop[f] {
		return hopLength
	}
	switch len(hop) {
	case rd + 16:
		return valueState(hostIPv6(hop[rd:]))
	case 2 * (rd + 16):
		first, second := hop[rd:rd+16], hop[2*rd+16:]
		return valueState(hostIPv6(second) && (zero(first) || hostIPv6(first)))
	}
	return hopLength
}

func valueState(good bool) hopState {
	if good {
		return hopGood
	}
	return hopValue
}

// hostIPv4 reports whether an address can be a host's: not 0.0.0.0/8, 127.0.0.0/8, multicast, or beyond
// (RFC 4271 section 6.3, RFC 1122 section 3.2.1.3).
func hostIPv4(a []byte) bool { return a[0] != 0 && a[0] != 127 && a[0] < 224 }

// hostIPv6 is the same for IPv6: not unspecified, loopback or multicast (RFC 4291 section 2.5), and an
// IPv4-mapped address by its IPv4 part.
func hostIPv6(a []byte) bool {
	if zero(a[:10]) {
		if a[10] == 0xff && a[11] == 0xff {
			return hostIPv4(a[12:])
		}
		if zero(a[10:15]) && a[15] <= 1 {
			return false
		}
	}
	return a[0] != 0xff
}

func zero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}
