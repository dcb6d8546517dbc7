package guard

// asTrans is AS_TRANS (RFC 6793 section 9).
const asTrans = 23456

// asState is where the attributes are that RFC 6793 is about.
type asState struct {
	path, aggregator, as4Path, as4Aggregator span
	moved                                    bool // AS4_PATH goes to the end
}

// checkTwoOctet holds RFC 6793 sections 4.2.3 and 6 for a neighbour with AS numbers of two octets, and
// keeps three things from GoBGP: AS4_AGGREGATOR without AGGREGATOR, for which it resets the session;
// AS4_PATH before AS_PATH, for which it puts the merged path in another attribute's place; and a path that
// could be read with four octets too, which it then does.
func (s *Session) checkTwoOctet(u *update) {
	as := &u.as
	if agg := as.aggregator; agg.end == 0 {
		s.ignore(u, attrAS4Aggregator, &as.as4Aggregator)
	} else if u16(u.attrs[agg.end-6:]) != asTrans {
		s.ignore(u, attrAS4Aggregator, &as.as4Aggregator)
		s.ignore(u, attrAS4Path, &as.as4Path)
	}
	if as.path.end != 0 && as.as4Path.end != 0 && as.as4Path.at < as.path.at {
		as.moved = true
		u.edit(as.as4Path.at, drop)
	}
	if as.path.end != 0 {
		if a, _ := nextAttribute(u.attrs[as.path.at:]); len(a.value()) > 0 && checkLengths(a.value(), 4) {
			if grown := 2 * len(a.value()); len(u.msg)+grown > MaxLen {
				s.bad(u, Undecodable, attrASPath, a.whole)
			} else {
				u.edit(as.path.at, widen)
			}
		}
	}
	sortEdits(u)
}

// ignore leaves an attribute out that is there to no purpose.
func (s *Session) ignore(u *update, typ uint8, where *span) {
	if where.end != 0 {
		s.find(NotForUs, Discarded, typ, Family{})
		u.edit(where.at, drop)
		*where = span{}
	}
}

// checkLengths reports whether GoBGP reads a path as one with AS numbers of n octets.
func checkLengths(v []byte, n int) bool {
	for len(v) > 0 {
		if len(v) < 2 || v[0] == 0 || v[0] > segmentLast || v[1] == 0 || len(v)-2 < n*int(v[1]) {
			return false
		}
		v = v[2+n*int(v[1]):]
	}
	return true
}

// appendWide writes AS_PATH with AS numbers of four octets.
func appendWide(dst []byte, a attribute) []byte {
	var value []byte
	for v := a.value(); len(v) > 0; {
		count := int(v[1])
		value = append(value, v[:2]...)
		for v = v[2:]; count > 0; count-- {
			value = append(value, 0, 0, v[0], v[1])
			v = v[2:]
		}
	}
	return appendAttribute(dst, a.flags&^spare(a.flags), a.typ, value)
}
