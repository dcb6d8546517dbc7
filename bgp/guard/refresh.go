package guard

import "slices"

// fromRefresh checks a ROUTE-REFRESH (RFC 2918 section 3, RFC 7313 section 5).
func (s *Session) fromRefresh(msg []byte) Verdict {
	subtype := msg[21]
	if s.agreed.enhancedRefresh && subtype != 0 {
		switch {
		case subtype > 2:
			s.find(UnknownSubtype, Discarded, 0, Family{})
		case len(msg) != HeaderLen+4:
			return Verdict{Fault: &Fault{Code: codeRouteRefresh, Subcode: refreshLength, Data: clone(msg),
				Reason: "ROUTE-REFRESH with a demarcation isn't 23 octets long"}}
		}
		return Verdict{Findings: s.findings} // GoBGP would take the demarcations for requests
	}
	f := familyOf(msg[19], msg[20], msg[22])
	if f == unknownFamily || !s.agreed.families[f] {
		s.find(FamilyNotOffered, Discarded, 0, Family{AFI: uint16(u16(msg[19:])), SAFI: msg[22]})
		return Verdict{Findings: s.findings}
	}
	if len(msg) != HeaderLen+4 {
		// Outbound route filters (RFC 5291) are never offered: the request is carried out without.
		s.find(WrongLength, Discarded, 0, f.family())
		msg = slices.Clone(msg[:HeaderLen+4])
		msg[16], msg[17] = 0, HeaderLen+4
	}
	return Verdict{Pass: msg, Findings: s.findings}
}
