package guard

import (
	"cmp"
	"slices"
)

// attribute is one path attribute.
type attribute struct {
	flags, typ uint8
	head       int    // octets before the value
	whole      []byte // flags, type, length, value
}

func (a *attribute) value() []byte { return a.whole[a.head:] }

// nextAttribute reads the first attribute of b; false: it overruns (RFC 7606 section 4).
func nextAttribute(b []byte) (a attribute, ok bool) {
	if len(b) < 3 {
		return attribute{}, false
	}
	a = attribute{flags: b[0], typ: b[1], head: 3}
	n := int(b[2])
	if a.flags&flagExtended != 0 {
		if len(b) < 4 {
			return a, false
		}
		n, a.head = u16(b[2:]), 4
	}
	if a.head+n > len(b) {
		return a, false
	}
	a.whole = b[:a.head+n]
	return a, true
}

func (u *update) has(typ uint8) bool { return u.seen[typ>>6]&(1<<(typ&63)) != 0 }

// readAttributes checks each attribute by itself.
func (s *Session) readAttributes(u *update) *Fault {
	for at := 0; at < len(u.attrs); {
		a, ok := nextAttribute(u.attrs[at:])
		if !ok {
			rest := u.attrs[at:]
			if len(rest) > 1 && (rest[1] == attrReach || rest[1] == attrUnreach) {
				return badAttribute(Overrun, rest[1], rest) // its NLRI can't be had (section 3j)
			}
			u.more = true
			s.bad(u, Overrun, a.typ, rest)
			u.attrs = u.attrs[:at]
			return nil
		}
		if f := s.readAttribute(u, at, a); f != nil {
			return f
		}
		at += len(a.whole)
	}
	return nil
}

func (s *Session) readAttribute(u *update, at int, a attribute) *Fault {
	u.more = u.more || a.typ != attrUnreach
	if u.has(a.typ) {
		if a.typ == attrReach || a.typ == attrUnreach {
			return &Fault{Code: codeUpdate, Subcode: updateList, Reason: "MP_REACH_NLRI or MP_UNREACH_NLRI appears twice"}
		}
		s.find(Duplicate, Discarded, a.typ, Family{})
		u.edit(at, drop)
		return nil
	}
	u.seen[a.typ>>6] |= 1 << (a.typ & 63)
	if a.typ == attrReach || a.typ == attrUnreach {
		return s.readMP(u, at, a)
	}
	r := ruleOf(a.typ)
	switch {
	case r == nil && a.flags&flagOptional == 0:
		return &Fault{Code: codeUpdate, Subcode: updateWellKnown, Data: clone(a.whole), Reason: "unrecognized well-known attribute"}
	case r == nil:
		u.unsure, u.onlyDiscard = true, false
		s.checkSpareFlags(u, at, a)
		return nil
	case r.fromIBGP && s.cfg.EBGP, s.agreed.fourOctetAS && (a.typ == attrAS4Path || a.typ == attrAS4Aggregator):
		// RFC 7606 sections 7.5, 7.9 and 7.10; RFC 6793 section 6.
		s.find(NotForUs, Discarded, a.typ, Family{})
		u.edit(at, drop)
		return nil
	}
	k := Kind(0)
	if !flagsRight(a, r) {
		k = WrongFlags
	} else if r.check != nil {
		k = r.check(s, a.value())
	}
	switch {
	case k != 0 && r.action == Discarded:
		s.find(k, Discarded, a.typ, Family{})
		u.edit(at, drop)
		return nil
	case k != 0:
		s.bad(u, k, a.typ, a.whole)
		return nil
	}
	if r.unsure {
		u.unsure = true
		u.onlyDiscard = u.onlyDiscard && r.action == Discarded
	}
	s.note(u, at, a)
	s.checkSpareFlags(u, at, a)
	return nil
}

// flagsRight looks at the Optional and Transitive bits only (RFC 7606 section 3c). NHC's Transitive bit is
// package bgp/nhc's to judge, which counts it with the route.
func flagsRight(a attribute, r *rule) bool {
	mask := uint8(flagOptional | flagTransitive)
	if a.typ == attrNHC {
		mask = flagOptional
	}
	return a.flags&mask == r.flags&mask
}

// checkSpareFlags clears bits that don't make an attribute malformed, but for which GoBGP would reset the
// session: the lower four are to be ignored (RFC 4271 section 4.3), and Partial says nothing on attributes
// that aren't optional transitive (RFC 7606 section 3c leaves it out).
func (s *Session) checkSpareFlags(u *update, at int, a attribute) {
	clear := spare(a.flags)
	if clear == 0 {
		return
	}
	if clear&flagPartial != 0 {
		s.find(WrongFlags, Mended, a.typ, Family{})
	}
	u.edit(at, flags)
}

// spare are the flag bits that are to be cleared.
func spare(f uint8) uint8 {
	clear := f & 0x0f
	if f&optTransitive != optTransitive {
		clear |= f & flagPartial
	}
	return clear
}

// note remembers where attributes are that are looked at again when the whole message was read.
func (s *Session) note(u *update, at int, a attribute) {
	where := span{at, at + len(a.whole)}
	switch a.typ {
	case attrNextHop:
		u.nextHop = where
	case attrASPath:
		u.as.path = where
	case attrAggregator:
		u.as.aggregator = where
	case attrAS4Path:
		u.as.as4Path = where
	case attrAS4Aggregator:
		u.as.as4Aggregator = where
	case attrExtCommunities:
		if anyUnreadable(a.value()) {
			s.find(Undecodable, Discarded, a.typ, Family{})
			u.edit(at, ecomm)
		}
	}
}

// readMP reads MP_REACH_NLRI or MP_UNREACH_NLRI. An incorrect one ends the session: RFC 7606 sections 5.3
// and 7.11 allow only that, or to disable the family.
func (s *Session) readMP(u *update, at int, a attribute) *Fault {
	m, hop, ok := &u.unreach, hopGood, a.flags&optTransitive == optional
	if a.typ == attrReach {
		m = &u.reach
		if ok {
			hop, ok = s.readReach(a.value(), m)
		}
	} else if ok {
		ok = s.readUnreach(a.value(), m)
	}
	switch {
	case !ok:
		return badAttribute(WrongValue, a.typ, a.whole)
	case !m.offered:
		s.find(FamilyNotOffered, Discarded, a.typ, m.familyNumbers())
		u.edit(at, drop)
		return nil
	case hop == hopValue:
		s.bad(u, WrongNextHop, a.typ, a.whole)
	}
	if m.state == nlriMend {
		if anyMulticast(m, s.agreed.addPath[m.family]) && a.typ == attrReach {
			s.find(WrongPrefix, Discarded, a.typ, m.family.family())
		}
		u.edit(at, nlri)
		return nil
	}
	s.checkSpareFlags(u, at, a)
	return nil
}

func anyMulticast(m *mp, addPath bool) bool {
	for b := m.nlri; len(b) > 0; {
		n, at := nextNLRI(b, m.family, addPath), 0
		if addPath {
			at = 4
		}
		if multicast(b[at:n], m.family) {
			return true
		}
		b = b[n:]
	}
	return false
}

// eachAttribute walks over attributes that were read.
func (s *Session) eachAttribute(u *update, do func(at int, a attribute)) {
	for at := 0; at < len(u.attrs); {
		a, ok := nextAttribute(u.attrs[at:])
		if !ok {
			return
		}
		do(at, a)
		at += len(a.whole)
	}
}

// sortEdits puts edits in the order of the attributes, the stronger first.
func sortEdits(u *update) {
	slices.SortStableFunc(u.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.op, b.op))
	})
}
