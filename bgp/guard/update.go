package guard

import "fmt"

// update is an UPDATE as it was read. Its memory is used again for the next one.
type update struct {
	msg       []byte
	withdrawn []byte // field of withdrawn routes
	attrs     []byte // path attributes, up to where they overrun
	nlri      []byte

	seen           [4]uint64 // attribute types
	reach, unreach mp
	more           bool // there are attributes other than MP_UNREACH_NLRI
	unsure         bool
	onlyDiscard    bool // those that are unsure are of types that are to be discarded when malformed
	edits          []edit
	withdraw       bool   // treat as withdraw
	cause          *Fault // why, when the session would have to end instead (RFC 7606 section 5.2)
	nextHop        span
	as             asState
}

// span is where an attribute is in the attributes; zero when there is none.
type span struct{ at, end int }

// edit says what becomes of the attribute that begins at an offset of the attributes.
type edit struct {
	at int
	op op
}

// op is what becomes of an attribute.
type op uint8

const (
	drop  op = iota + 1
	nlri     // NLRI as GoBGP should get them
	ecomm    // without extended communities that GoBGP can't read
	widen    // AS_PATH with AS numbers of four octets
	flags    // flag bits are cleared that have to be ignored; the others do that too
)

func (u *update) reset(msg []byte) {
	*u = update{msg: msg, edits: u.edits[:0], onlyDiscard: true}
}

func (u *update) edit(at int, o op) { u.edits = append(u.edits, edit{at, o}) }

// fromUpdate holds RFC 7606 sections 3 to 5, with RFC 4271 section 6.3 for what that leaves alone.
func (s *Session) fromUpdate(msg []byte) Verdict {
	u := &s.update
	u.reset(msg)
	if f := s.readUpdate(u); f != nil {
		return Verdict{Fault: f}
	}
	switch {
	case u.withdraw && u.cause != nil:
		return Verdict{Fault: u.cause}
	case u.withdraw:
		return Verdict{Pass: s.withdraw(u), Findings: s.findings}
	case len(u.edits) == 0 && len(s.findings) == 0 && !s.both(u):
		return Verdict{Pass: msg, Unsure: u.unsure}
	}
	pass := s.rewrite(u)
	return Verdict{Pass: pass, Findings: s.findings, Unsure: u.unsure && pass != nil}
}

// Withdraw gives what to pass in place of an UPDATE that FromPeer passed and GoBGP's decoder refused:
// without the attributes that are to be discarded when malformed, if it can only be those, else all
// routes withdrawn (RFC 7606 section 2).
func (s *Session) Withdraw(msg []byte) Verdict {
	s.findings, s.out = s.findings[:0], nil // msg may be in s.out
	u := &s.update
	u.reset(msg)
	if !s.isAgreed || len(msg) < minLens[typeUpdate] || msg[18] != typeUpdate || s.readUpdate(u) != nil {
		return Verdict{}
	}
	s.findings = s.findings[:0]
	if u.unsure && u.onlyDiscard {
		s.eachAttribute(u, func(at int, a attribute) {
			if r := ruleOf(a.typ); r != nil && r.unsure {
				u.edit(at, drop)
				s.find(Undecodable, Discarded, a.typ, Family{})
			}
		})
		sortEdits(u)
		return Verdict{Pass: s.rewrite(u), Findings: s.findings}
	}
	s.find(Undecodable, Withdrawn, 0, Family{})
	return Verdict{Pass: s.withdraw(u), Findings: s.findings}
}

// readUpdate reads the fields and decides what becomes of them.
func (s *Session) readUpdate(u *update) *Fault {
	b := u.msg[HeaderLen:]
	n := u16(b)
	if n+4 > len(b) {
		return &Fault{Code: codeUpdate, Subcode: updateList, Reason: "withdrawn routes run over the end of the message"}
	}
	u.withdrawn = b[2 : 2+n]
	b = b[2+n:]
	if n = u16(b); n+2 > len(b) {
		return &Fault{Code: codeUpdate, Subcode: updateList, Reason: "path attributes run over the end of the message"}
	}
	u.attrs, u.nlri = b[2:2+n], b[2+n:]

	offered := s.agreed.families[ipv4Unicast]
	if offered {
		addPath := s.agreed.addPath[ipv4Unicast]
		if checkNLRI(u.withdrawn, ipv4Unicast, addPath, false) == nlriBroken {
			return badNetwork("withdrawn routes")
		}
		switch checkNLRI(u.nlri, ipv4Unicast, addPath, true) {
		case nlriBroken:
			return badNetwork("NLRI")
		case nlriMend:
			s.find(WrongPrefix, Discarded, 0, ipv4Unicast.family())
		}
	} else if len(u.withdrawn) > 0 || len(u.nlri) > 0 || len(u.attrs) == 0 {
		s.find(FamilyNotOffered, Discarded, 0, ipv4Unicast.family())
	}
	if f := s.readAttributes(u); f != nil {
		return f
	}
	s.checkWhole(u)
	return nil
}

// badNetwork is RFC 7606 section 3j with RFC 4271 section 6.3.
func badNetwork(field string) *Fault {
	return &Fault{Code: codeUpdate, Subcode: updateNetwork, Reason: field + ": prefix with a wrong length"}
}

// reachable reports whether the message encodes routes, of whichever family (RFC 7606 section 5.2).
func (u *update) reachable() bool {
	return len(u.nlri) > 0 || u.reach.present && len(u.reach.nlri) > 0
}

// wanted reports whether it encodes routes of families that were negotiated.
func (s *Session) wanted(u *update) (ip4, mp bool) {
	return len(u.nlri) > 0 && s.agreed.families[ipv4Unicast], u.reach.offered && len(u.reach.nlri) > 0
}

// both reports whether routes of one family are withdrawn and announced. A prefix that is in both counts as
// announced (RFC 4271 section 4.3); GoBGP would withdraw it.
func (s *Session) both(u *update) bool {
	ip4, mp := s.wanted(u)
	un := u.unreach.offered && len(u.unreach.nlri) > 0
	if len(u.withdrawn) > 0 && (ip4 || mp && u.reach.family == ipv4Unicast) {
		return true
	}
	return un && (mp && u.reach.family == u.unreach.family || ip4 && u.unreach.family == ipv4Unicast)
}

// checkWhole checks what needs the whole message.
func (s *Session) checkWhole(u *update) {
	ip4, mp := s.wanted(u)
	if ip4 || mp {
		s.need(u, attrOrigin)
		s.need(u, attrASPath)
	}
	if ip4 {
		s.need(u, attrNextHop)
	}
	s.checkNextHop(u, ip4)
	if !s.agreed.fourOctetAS {
		s.checkTwoOctet(u)
	}
	if u.reachable() || !u.more {
		// What RFC 7606 section 5.2 fears isn't the case: withdrawing the routes is enough.
		u.cause = nil
	}
}

// need holds RFC 7606 section 3d.
func (s *Session) need(u *update, typ uint8) {
	if !u.has(typ) {
		s.bad(u, Missing, typ, nil)
	}
}

// checkNextHop checks NEXT_HOP when it is the next hop of something; else it is to be ignored (RFC 4760
// section 3), which GoBGP doesn't.
func (s *Session) checkNextHop(u *update, ip4 bool) {
	if u.nextHop.end == 0 {
		return
	}
	a := u.attrs[u.nextHop.at:u.nextHop.end]
	if v := a[len(a)-4:]; hostIPv4(v) {
		return
	}
	if ip4 {
		s.bad(u, WrongNextHop, attrNextHop, a)
		return
	}
	s.find(WrongNextHop, Discarded, attrNextHop, Family{})
	u.edit(u.nextHop.at, drop)
	sortEdits(u)
}

// bad notes an error for which all routes are withdrawn. The first one is what the session would end with.
func (s *Session) bad(u *update, k Kind, typ uint8, attr []byte) {
	s.find(k, Withdrawn, typ, Family{})
	if u.cause == nil {
		u.cause = badAttribute(k, typ, attr)
	}
	u.withdraw = true
}

// badAttribute is the NOTIFICATION of RFC 4271 section 6.3 for an attribute error.
func badAttribute(k Kind, typ uint8, attr []byte) *Fault {
	f := &Fault{Code: codeUpdate, Data: clone(attr), Reason: fmt.Sprintf("attribute %d: %s", typ, k)}
	switch {
	case typ == attrReach, typ == attrUnreach:
		f.Subcode = updateOptional // RFC 4760 section 7
	case k == WrongFlags:
		f.Subcode = updateFlags
	case typ == attrASPath:
		f.Subcode, f.Data = updateASPath, nil
	case k == WrongLength, k == Overrun:
		f.Subcode = updateLength
	case typ == attrOrigin:
		f.Subcode = updateOrigin
	case k == WrongNextHop:
		f.Subcode = updateNextHop
	default:
		f.Subcode = updateOptional
	}
	return f
}
