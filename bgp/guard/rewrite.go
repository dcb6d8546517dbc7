package guard

import (
	"encoding/binary"
	"slices"
)

// rewrite writes an UPDATE as GoBGP should get it; nil when nothing is left of it.
func (s *Session) rewrite(u *update) []byte {
	offered := s.agreed.families[ipv4Unicast]
	addPath := s.agreed.addPath[ipv4Unicast]
	out := appendHeader(s.out[:0], typeUpdate)
	out = append(out, 0, 0)
	if offered {
		out = append(out, u.withdrawn...)
		binary.BigEndian.PutUint16(out[HeaderLen:], uint16(len(u.withdrawn)))
	}
	lenAt := len(out)
	out = append(out, 0, 0)
	attrs := len(out)
	out = s.appendEdited(out, u)
	if u.as.moved {
		out = append(out, u.attrs[u.as.as4Path.at:u.as.as4Path.end]...)
	}
	binary.BigEndian.PutUint16(out[lenAt:], uint16(len(out)-attrs))
	if offered {
		out, _ = appendNLRI(out, u.nlri, ipv4Unicast, addPath, false)
	}
	binary.BigEndian.PutUint16(out[16:], uint16(len(out)))
	s.out = out[:0]
	if !s.worth(u, out) {
		return nil
	}
	return out
}

// appendEdited writes the attributes with what becomes of each. Attributes of routes that are all left
// out are left out with them.
func (s *Session) appendEdited(out []byte, u *update) []byte {
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
		if bare && a.typ != attrUnreach {
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
	ip4 := s.agreed.families[ipv4Unicast]
	un := mpNLRI{u.unreach, u.unreach.present && u.unreach.offered && len(u.unreach.nlri) > 0}
	re := mpNLRI{u.reach, u.reach.present && u.reach.offered && len(u.reach.nlri) > 0}
	switch {
	case un.any && re.any && un.family == re.family:
		out = s.appendWithdraw(out, u, ip4, un, re)
	case un.any && re.any:
		out = s.appendWithdraw(out, u, ip4, un)
		out = s.appendWithdraw(out, u, false, re)
	case un.any:
		out = s.appendWithdraw(out, u, ip4, un)
	case re.any:
		out = s.appendWithdraw(out, u, ip4, re)
	case ip4 && len(u.withdrawn)+len(u.nlri) > 0:
		out = s.appendWithdraw(out, u, ip4)
	default:
		return nil
	}
	s.out = out[:0]
	return out
}

// mpNLRI is an MP attribute with NLRI that GoBGP gets.
type mpNLRI struct {
	mp
	any bool
}

// appendWithdraw writes one UPDATE that withdraws the IPv4 fields, when ip4, and the NLRI of MP attributes
// of one family.
func (s *Session) appendWithdraw(out []byte, u *update, ip4 bool, parts ...mpNLRI) []byte {
	start := len(out)
	out = appendHeader(out, typeUpdate)
	out = append(out, 0, 0)
	if ip4 {
		out = append(out, u.withdrawn...)
		out = append(out, u.nlri...)
		binary.BigEndian.PutUint16(out[start+HeaderLen:], uint16(len(u.withdrawn)+len(u.nlri)))
	}
	lenAt := len(out)
	out = append(out, 0, 0)
	if len(parts) > 0 {
		f := parts[0].family
		value := slices.Clone(parts[0].head[:3])
		for _, p := range parts {
			value, _ = appendNLRI(value, p.nlri, f, s.agreed.addPath[f], true)
		}
		out = appendAttribute(out, optional, attrUnreach, value)
	}
	binary.BigEndian.PutUint16(out[lenAt:], uint16(len(out)-lenAt-2))
	binary.BigEndian.PutUint16(out[start+16:], uint16(len(out)-start))
	return out
}
