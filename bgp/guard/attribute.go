package guard

// Attribute flags (RFC 4271 section 4.3).
const (
	flagOptional   = 0x80
	flagTransitive = 0x40
	flagPartial    = 0x20
	flagExtended   = 0x10

	wellKnown     = flagTransitive
	optional      = flagOptional
	optTransitive = flagOptional | flagTransitive
)

// Attribute types (IANA, BGP Path Attributes).
const (
	attrOrigin           = 1
	attrASPath           = 2
	attrNextHop          = 3
	attrMED              = 4
	attrLocalPref        = 5
	attrAtomicAggregate  = 6
	attrAggregator       = 7
	attrCommunities      = 8
	attrOriginatorID     = 9
	attrClusterList      = 10
	attrReach            = 14
	attrUnreach          = 15
	attrExtCommunities   = 16
	attrAS4Path          = 17
	attrAS4Aggregator    = 18
	attrPMSITunnel       = 22
	attrTunnelEncap      = 23
	attrIPv6Communities  = 25
	attrAIGP             = 26
	attrLinkState        = 29
	attrLargeCommunities = 32
	attrOnlyToCustomer   = 35
	attrNHC              = 39
	attrPrefixSID        = 40
)

// Segment types of AS_PATH: two of RFC 4271 section 4.3 and, from 3 on, two of confederations (RFC 5065
// section 3).
const (
	segmentConfederations = 3
	segmentLast           = 4
)

// rule is what an attribute's specification says about it.
type rule struct {
	flags  uint8  // Optional and Transitive
	action Action // what becomes of a malformed one; zero: there is no rule
	// unsure: only the flags and the length are checked here.
	unsure bool
	// fromIBGP: to be discarded when it comes from an EBGP neighbour.
	fromIBGP bool
	// check looks at the value; zero when it is right.
	check func(s *Session, v []byte) Kind
}

// rules by attribute type. Malformed is RFC 7606 section 7 unless said otherwise.
var rules = [...]rule{
	attrOrigin:           {flags: wellKnown, action: Withdrawn, check: checkOrigin},
	attrASPath:           {flags: wellKnown, action: Withdrawn, check: (*Session).checkASPath},
	attrNextHop:          {flags: wellKnown, action: Withdrawn, check: checkFour},
	attrMED:              {flags: optional, action: Withdrawn, check: checkFour},
	attrLocalPref:        {flags: wellKnown, action: Withdrawn, fromIBGP: true, check: checkFour},
	attrAtomicAggregate:  {flags: wellKnown, action: Discarded, check: checkEmpty},
	attrAggregator:       {flags: optTransitive, action: Discarded, check: (*Session).checkAggregator},
	attrCommunities:      {flags: optTransitive, action: Withdrawn, check: checkFours},
	attrOriginatorID:     {flags: optional, action: Withdrawn, fromIBGP: true, check: checkFour},
	attrClusterList:      {flags: optional, action: Withdrawn, fromIBGP: true, check: checkFours},
	attrExtCommunities:   {flags: optTransitive, action: Withdrawn, check: checkEights},
	attrAS4Path:          {flags: optTransitive, action: Discarded, check: checkAS4Path},       // RFC 6793 section 6
	attrAS4Aggregator:    {flags: optTransitive, action: Discarded, check: checkAS4Aggregator}, // RFC 6793 section 6
	attrPMSITunnel:       {flags: optTransitive, action: Withdrawn, unsure: true},              // RFC 6514 section 5
	attrTunnelEncap:      {flags: optTransitive, action: Withdrawn, unsure: true},              // RFC 9012 section 13
	attrIPv6Communities:  {flags: optTransitive, action: Withdrawn, unsure: true, check: checkTwenties},
	attrAIGP:             {flags: optional, action: Discarded, check: checkAIGP},         // RFC 7311 section 3.1
	attrLinkState:        {flags: optional, action: Discarded, unsure: true},             // RFC 9552 section 8.2.2
	attrLargeCommunities: {flags: optTransitive, action: Withdrawn, check: checkTwelves}, // RFC 8092 section 6
	attrOnlyToCustomer:   {flags: optTransitive, action: Withdrawn, check: checkFour},    // RFC 9234 section 5
	attrNHC:              {flags: optTransitive, action: Discarded},                      // draft-ietf-idr-nhc
	attrPrefixSID:        {flags: optTransitive, action: Discarded, unsure: true},        // RFC 8669 section 6
}

func ruleOf(typ uint8) *rule {
	if int(typ) < len(rules) && rules[typ].action != 0 {
		return &rules[typ]
	}
	return nil
}

func checkOrigin(_ *Session, v []byte) Kind {
	if len(v) != 1 {
		return WrongLength
	}
	if v[0] > 2 {
		return WrongValue
	}
	return 0
}

func checkEmpty(_ *Session, v []byte) Kind { return wrongIf(len(v) != 0) }
func checkFour(_ *Session, v []byte) Kind  { return wrongIf(len(v) != 4) }

func checkFours(_ *Session, v []byte) Kind    { return checkMultiple(v, 4) }
func checkEights(_ *Session, v []byte) Kind   { return checkMultiple(v, 8) }
func checkTwelves(_ *Session, v []byte) Kind  { return checkMultiple(v, 12) }
func checkTwenties(_ *Session, v []byte) Kind { return checkMultiple(v, 20) }

func checkMultiple(v []byte, n int) Kind { return wrongIf(len(v) == 0 || len(v)%n != 0) }

func wrongIf(wrong bool) Kind {
	if wrong {
		return WrongLength
	}
	return 0
}

// checkASPath holds RFC 7606 section 7.2 and RFC 7607; segments of confederations come only from within
// (RFC 5065 section 5).
func (s *Session) checkASPath(v []byte) Kind {
	return checkSegments(v, s.asLen(), s.cfg.EBGP)
}

// asLen is the length of an AS number in octets (RFC 6793 section 4.1).
func (s *Session) asLen() int {
	if s.agreed.fourOctetAS {
		return 4
	}
	return 2
}

// checkSegments checks the segments of a path with AS numbers of n octets.
func checkSegments(v []byte, n int, external bool) Kind {
	for len(v) > 0 {
		if len(v) < 2 || v[1] == 0 || len(v)-2 < n*int(v[1]) {
			return WrongLength
		}
		typ, count := v[0], int(v[1])
		if typ == 0 || typ > segmentLast || external && typ >= segmentConfederations {
			return WrongValue
		}
		for v = v[2:]; count > 0; count-- {
			if zero(v[:n]) {
				return WrongValue
			}
			v = v[n:]
		}
	}
	return 0
}

func checkAS4Path(_ *Session, v []byte) Kind {
	if len(v) == 0 {
		return WrongLength
	}
	return checkSegments(v, 4, false)
}

// checkAggregator holds RFC 7606 section 7.7 and RFC 7607.
func (s *Session) checkAggregator(v []byte) Kind {
	n := s.asLen()
	if len(v) != n+4 {
		return WrongLength
	}
	if zero(v[:n]) {
		return WrongValue
	}
	return 0
}

func checkAS4Aggregator(_ *Session, v []byte) Kind {
	if len(v) != 8 {
		return WrongLength
	}
	if zero(v[:4]) {
		return WrongValue
	}
	return 0
}

// checkAIGP checks the TLVs: type, and a length of two octets that counts the whole TLV; the AIGP TLV
// itself has 11. GoBGP can't read one without a value.
func checkAIGP(_ *Session, v []byte) Kind {
	if len(v) == 0 {
		return WrongLength
	}
	for len(v) > 0 {
		if len(v) < 4 {
			return WrongLength
		}
		n := u16(v[1:])
		if n < 4 || n > len(v) || v[0] == 1 && n != 11 {
			return WrongLength
		}
		v = v[n:]
	}
	return 0
}

// unreadable reports whether GoBGP can't decode an extended community, which RFC 7606 section 7.14 never
// makes malformed: unknown subtypes of EVPN's and MUP's types, and FlowSpec's redirect to IPv6 among those
// of eight octets.
func unreadable(c []byte) bool {
	switch c[0] {
	case 0x06:
		return c[1] > 4
	case 0x0c:
		return c[1] > 0
	case 0x80, 0x81, 0x82:
		return c[1] == 0x0b
	}
	return false
}

func anyUnreadable(v []byte) bool {
	for ; len(v) > 0; v = v[8:] {
		if unreadable(v) {
			return true
		}
	}
	return false
}
