package guard

import (
	"encoding/binary"
	"slices"
)

// rewrite writes an UPDATE as GoBGP should get it: what it withdraws first and in a message of its own, when
// that matters. Nil when nothing is left of it.
func (s *Session) rewrite(u *update) []byte {
	out, withdrawn := s.out[:0], u.withdrawn
	if !s.agreed.families[ipv4Unicast] {
		withdrawn = nil
	}
	apart := s.both(u)
	if apart {
		out = s.appendWithdraw(out, withdrawn, nil, s.part(&u.unreach))
		withdrawn = nil
	}
	start := len(out)
	out = appendHeader(out, typeUpdate)
	out = binary.BigEndian.AppendUint16(out, uint16(len(withdrawn)))
	out = append(out, withdrawn...)
	lenAt := len(out)
	out = append(out, 0, 0)
	out = s.appendEdited(out, u, apart)
	if u.as.moved {
		out = append(out, u.attrs[u.as.as4Path.at:u.as.as4Path.end]...)
	}
	binary.BigEndian.PutUint16(out[lenAt:], uint16(len(out)-lenAt-2))
	if s.agreed.families[ipv4Unicast] {
		out, _ = appendNLRI(out, u.nlri, ipv4Unicast, s.agreed.addPath[ipv4Unicast], false)
	}
	binary.BigEndian.PutUint16(out[start+16:], uint16(len(out)-start))
	s.out = out[:0]
	if !s.worth(u, out[start:]) {
		out = out[:start]
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// appendEdited writes the attributes with what becomes of each, but MP_UNREACH_NLRI when that is apart.
// Attributes of routes that are all left out are left out with them.
func (s *Session) appendEdited(out []byte, u *update, apart bool) []byte {
	edits := u.edits
	ip4, mp := s.wanted(u)
	bare := u.reachable() && !ip4 && !mp // the routes were of families that aren't offered
	s.eachAttribute(u, func(at int, a attribute) {
		var o op
		if len(edits) > 0 && edits[0].at == at {
			o = edits[0].op
		}
		for len(edits) > 0 && edits[0].at == at {
			edits = edits[1:]
		}
		if bare && a.typ != attrUnreach || apart && a.typ == attrUnreach {
			o = drop
		}
		switch o {
		case drop:
		case flags:
			start := len(out)
			out = append(out, a.whole...)
			out[start] &^= spare(a.flags)
		case nlri:
			out = s.appendMP(out, u, a)
		case ecomm:
			out = appendReadable(out, a)
		case widen:
			out = appendWide(out, a)
		default:
			out = append(out, a.whole...)
		}
	})
	return out
}

// worth reports whether a rewritten message says anything. One that became empty would say End-of-RIB
// (RFC 4724 section 2), which the neighbour didn't.
func (s *Session) worth(u *update, out []byte) bool {
	b := out[HeaderLen:]
	n := u16(b)
	attrs := u16(b[2+n:])
	if n > 0 || len(b) > 4+n+attrs {
		return true
	}
	if attrs == 0 {
		return false
	}
	a, _ := nextAttribute(b[4+n:])
	alone := len(a.whole) == attrs && a.typ == attrUnreach && len(a.value()) == 3
	return !alone || !u.more && len(u.withdrawn) == 0 && len(u.nlri) == 0
}

// appendMP writes MP_REACH_NLRI or MP_UNREACH_NLRI with NLRI as GoBGP should get them.
func (s *Session) appendMP(out []byte, u *update, a attribute) []byte {
	m := &u.reach
	if a.typ == attrUnreach {
		m = &u.unreach
	}
	value := slices.Clone(m.head)
	value, _ = appendNLRI(value, m.nlri, m.family, s.agreed.addPath[m.family], a.typ == attrUnreach)
	return appendAttribute(out, a.flags&^spare(a.flags), a.typ, value)
}

// appendReadable writes EXTENDED COMMUNITIES without those that GoBGP can't read; nothing when none is left.
func appendReadable(out []byte, a attribute) []byte {
	var value []byte
	for v := a.value(); len(v) > 0; v = v[8:] {
		if !unreadable(v) {
			value = append(value, v[:8]...)
		}
	}
	if len(value) == 0 {
		return out
	}
	return appendAttribute(out, a.flags&^spare(a.flags), a.typ, value)
}

func appendAttribute(out []byte, flags, typ uint8, value []byte) []byte {
	if len(value) > 0xff {
		flags |= flagExtended
	}
	out = append(out, flags, typ)
	if flags&flagExtended != 0 {
		out = binary.BigEndian.AppendUint16(out, uint16(len(value)))
	} else {
		out = append(out, uint8(len(value)))
	}
	return append(out, value...)
}

// withdraw writes what withdraws all routes of an UPDATE, those that it announces and those that it
// withdraws: one message, or two when two families of MP attributes are in it. Nil when there are none.
func (s *Session) withdraw(u *update) []byte {
	out := s.out[:0]
	withdrawn, announced := u.withdrawn, u.nlri
	if !s.agreed.families[ipv4Unicast] {
		withdrawn, announced = nil, nil
	}
	un, re := s.part(&u.unreach), s.part(&u.reach)
	switch {
	case un == nil && re == nil && len(withdrawn)+len(announced) == 0:
		return nil
	case un != nil && re != nil && un.family != re.family:
		out = s.appendWithdraw(out, withdrawn, announced, un)
		out = s.appendWithdraw(out, nil, nil, re)
	default:
		out = s.appendWithdraw(out, withdrawn, announced, un, re)
	}
	s.out = out[:0]
	return out
}

// part is an MP attribute when it has NLRI that GoBGP gets, else nil.
func (s *Session) part(m *mp) *mp {
	if m.present && m.offered && len(m.nlri) > 0 {
		return m
	}
	return nil
}

// appendWithdraw writes one UPDATE that withdraws IPv4 NLRI of two fields, and that of MP attributes of one
// family; nil ones are passed over.
func (s *Session) appendWithdraw(out, withdrawn, announced []byte, parts ...*mp) []byte {
	start := len(out)
	out = appendHeader(out, typeUpdate)
	out = binary.BigEndian.AppendUint16(out, uint16(len(withdrawn)+len(announced)))
	out = append(out, withdrawn...)
	out = append(out, announced...)
	lenAt := len(out)
	out = append(out, 0, 0)
	var value []byte
	for _, p := range parts {
		if p == nil {
			continue
		}
		if value == nil {
			value = slices.Clone(p.head[:3])
		}
		value, _ = appendNLRI(value, p.nlri, p.family, s.agreed.addPath[p.family], true)
	}
	if value != nil {
		out = appendAttribute(out, optional, attrUnreach, value)
	}
	binary.BigEndian.PutUint16(out[lenAt:], uint16(len(out)-lenAt-2))
	binary.BigEndian.PutUint16(out[start+16:], uint16(len(out)-start))
	return out
}
