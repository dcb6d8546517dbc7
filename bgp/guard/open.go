package guard

import (
	"fmt"
)

// Capability codes (IANA). Those without a rule here go to GoBGP as they are.
const (
	capMultiprotocol    = 1   // RFC 4760 section 8
	capRouteRefresh     = 2   // RFC 2918
	capExtendedNextHop  = 5   // RFC 8950 section 4
	capExtendedMessage  = 6   // RFC 8654
	capGracefulRestart  = 64  // RFC 4724
	capFourOctetAS      = 65  // RFC 6793
	capAddPath          = 69  // RFC 7911
	capEnhancedRefresh  = 70  // RFC 7313
	capLongLivedRestart = 71  // RFC 9494
	capHostname         = 73  // draft-walton-bgp-hostname-capability
	capSoftwareVersion  = 75  // draft-ietf-idr-software-version
	capRefreshCisco     = 128 // what came before RFC 2918
)

const (
	paramCapabilities = 2   // RFC 5492 section 4
	paramExtended     = 255 // RFC 9072 section 2
	openFixed         = 10  // octets of an OPEN before its optional parameters, without header
)

// open is what an OPEN says, as far as it matters here.
type open struct {
	multiprotocol   bool // any capability of that kind
	families        [numFamilies]bool
	addPath         [numFamilies]uint8 // 1 receive, 2 send, 3 both (RFC 7911 section 4)
	extendedNextHop [numFamilies]bool  // IPv6 next hops for the family
	fourOctetAS     bool
	extendedMessage bool
	enhancedRefresh bool

	capabilities [][]byte // each whole: code, length, value
	mend         bool     // the OPEN has to be written anew for GoBGP
	findings     []Finding
}

// readOpen checks an OPEN's body: RFC 4271 section 6.2, with RFC 5492, 6286, 6793, 7607 and 9072. Whether
// the AS is the configured one and the identifier isn't ours is for GoBGP to say.
func readOpen(b []byte) (*open, *Fault) {
	bad := func(subcode uint8, data []byte, format string, args ...any) (*open, *Fault) {
		return nil, &Fault{Code: codeOpen, Subcode: subcode, Data: data, Reason: "OPEN: " + fmt.Sprintf(format, args...)}
	}
	switch hold := u16(b[3:]); {
	case b[0] != 4:
		return bad(openVersion, []byte{0, 4}, "version %d", b[0])
	case u16(b[1:]) == 0:
		return bad(openAS, nil, "AS 0")
	case hold == 1 || hold == 2:
		return bad(openHoldTime, nil, "hold time of %d s", hold)
	case b[5]|b[6]|b[7]|b[8] == 0:
		return bad(openIdentifier, nil, "BGP Identifier 0.0.0.0")
	}
	o := &open{}
	n, rest, lenOctets := int(b[9]), b[openFixed:], 1
	if n != 0 && len(rest) > 0 && rest[0] == paramExtended { // RFC 9072 section 2
		if len(rest) < 3 {
			return bad(openUnspecific, nil, "extended optional parameters are cut short")
		}
		n, rest, lenOctets, o.mend = u16(rest[1:]), rest[3:], 2, true
	}
	if n != len(rest) {
		return bad(openUnspecific, nil, "optional parameters of %d octets, %d follow", n, len(rest))
	}
	for len(rest) > 0 {
		if len(rest) < 1+lenOctets {
			return bad(openUnspecific, nil, "optional parameter is cut short")
		}
		typ, n := rest[0], int(rest[1])
		if lenOctets == 2 {
			n = u16(rest[1:])
		}
		rest = rest[1+lenOctets:]
		if n > len(rest) {
			return bad(openUnspecific, nil, "optional parameter of %d octets, %d follow", n, len(rest))
		}
		if typ != paramCapabilities {
			return bad(openParameter, nil, "optional parameter %d", typ)
		}
		if f := o.readCapabilities(rest[:n]); f != nil {
			return nil, f
		}
		rest = rest[n:]
	}
	return o, nil
}

func (o *open) readCapabilities(b []byte) *Fault {
	for len(b) > 0 {
		if len(b) < 2 || len(b)-2 < int(b[1]) {
			return &Fault{Code: codeOpen, Subcode: openUnspecific, Reason: "OPEN: capability is cut short"}
		}
		n := 2 + int(b[1])
		if f := o.readCapability(b[:n:n]); f != nil {
			return f
		}
		b = b[n:]
	}
	return nil
}

// readCapability takes a capability in. One that is recognised and malformed ends the session (RFC 4271
// section 6.2); one that only tells a name is left out instead.
func (o *open) readCapability(c []byte) *Fault {
	code, v := c[0], c[2:]
	ok := true
	switch code {
	case capMultiprotocol:
		if ok = len(v) == 4; ok {
			o.multiprotocol = true
			if f := familyOf(v[0], v[1], v[3]); f != unknownFamily {
				o.families[f] = true
			}
		}
	case capRouteRefresh, capRefreshCisco:
		ok = len(v) == 0
	case capExtendedMessage:
		ok = len(v) == 0
		o.extendedMessage = true
	case capEnhancedRefresh:
		ok = len(v) == 0
		o.enhancedRefresh = true
	case capExtendedNextHop:
		ok = len(v)%6 == 0 && len(v) > 0
		for ; ok && len(v) > 0; v = v[6:] {
			// SAFI has two octets here.
			if f := familyOf(v[0], v[1], v[3]); f != unknownFamily && v[2] == 0 && v[4] == 0 && v[5] == 2 {
				o.extendedNextHop[f] = true
			}
		}
	case capGracefulRestart:
		ok = len(v) >= 2 && len(v)%4 == 2
	case capLongLivedRestart:
		ok = len(v)%7 == 0
	case capFourOctetAS:
		if ok = len(v) == 4; ok {
			o.fourOctetAS = true
			if v[0]|v[1]|v[2]|v[3] == 0 {
				return &Fault{Code: codeOpen, Subcode: openAS, Reason: "OPEN: AS 0 in the four-octet AS number capability"}
			}
		}
	case capAddPath:
		if ok = len(v)%4 == 0 && len(v) > 0; ok {
			c = o.readAddPath(c)
		}
	case capHostname, capSoftwareVersion:
		if !wellFormedName(code, v) {
			o.mend = true
			o.findings = append(o.findings, Finding{Kind: WrongLength, Action: Discarded})
			return nil
		}
	}
	if !ok {
		return &Fault{Code: codeOpen, Subcode: openUnspecific,
			Reason: fmt.Sprintf("OPEN: capability %d with a value of %d octets", code, c[1])}
	}
	o.capabilities = append(o.capabilities, c)
	return nil
}

// readAddPath ignores what isn't 1, 2 or 3 (RFC 7911 section 4); GoBGP would look at its bits.
func (o *open) readAddPath(c []byte) []byte {
	for i := 2; i < len(c); i += 4 {
		mode := c[i+3]
		if mode == 0 || mode > 3 {
			if mode != 0 {
				c = clone(c)
				c[i+3] = 0
				o.mend = true
				o.findings = append(o.findings, Finding{Kind: WrongValue, Action: Discarded})
			}
			mode = 0
		}
		if f := familyOf(c[i], c[i+1], c[i+2]); f != unknownFamily {
			o.addPath[f] = mode // of several, GoBGP takes the last
		}
	}
	return c
}

// wellFormedName checks capabilities that only tell a name: a host and a domain, or a version.
func wellFormedName(code uint8, v []byte) bool {
	if len(v) == 0 {
		return false
	}
	first := 1 + int(v[0])
	if code == capSoftwareVersion {
		return v[0] > 0 && v[0] <= 64 && first == len(v)
	}
	return first < len(v) && first+1+int(v[first]) == len(v)
}

func (s *Session) fromOpen(msg []byte) Verdict {
	o, f := readOpen(msg[HeaderLen:])
	if f != nil {
		return Verdict{Fault: f}
	}
	pass := msg
	if o.mend {
		if pass, f = o.rewrite(msg); f != nil {
			return Verdict{Fault: f}
		}
	}
	s.findings = append(s.findings, o.findings...)
	s.theirs, s.state = o, waitKeepalive
	return Verdict{Pass: pass, Findings: s.findings}
}
