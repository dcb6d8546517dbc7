package guard

// Kind says what is wrong with a message that didn't end the session. The names are those of counters
// and records, so they stay.
type Kind uint8

// The kinds of findings.
const (
	WrongFlags       Kind = iota + 1 // attribute flags aren't those of the type (RFC 7606 section 3c)
	WrongLength                      // length isn't one of the type (RFC 7606 section 7)
	WrongValue                       // value isn't one of the type (RFC 7606 section 7)
	Overrun                          // attributes run over the end of their field (RFC 7606 section 4)
	Missing                          // a mandatory attribute isn't there (RFC 7606 section 3d)
	Duplicate                        // attribute is there again; the first counts (RFC 7606 section 3g)
	WrongNextHop                     // next hop is no host's address (RFC 4271 section 6.3)
	NotForUs                         // attribute that this kind of neighbour must not send
	FamilyNotOffered                 // routes or a request of a family that wasn't negotiated
	WrongPrefix                      // multicast prefix among unicast routes (RFC 4271 section 6.3)
	Undecodable                      // well formed, but GoBGP can't read it
	UnknownSubtype                   // ROUTE-REFRESH of an unknown subtype (RFC 7313 section 5)
	numKinds
)

var kindNames = [numKinds]string{
	WrongFlags: "wrong-flags", WrongLength: "wrong-length", WrongValue: "wrong-value", Overrun: "overrun",
	Missing: "missing", Duplicate: "duplicate", WrongNextHop: "wrong-next-hop", NotForUs: "not-for-us",
	FamilyNotOffered: "family-not-offered", WrongPrefix: "wrong-prefix", Undecodable: "undecodable",
	UnknownSubtype: "unknown-subtype",
}

// String gives the kind's name in counters.
func (k Kind) String() string {
	if k > 0 && k < numKinds {
		return kindNames[k]
	}
	return "unknown"
}

// Kinds gives all kinds, for who counts them.
func Kinds() []Kind {
	all := make([]Kind, 0, numKinds-1)
	for k := Kind(1); k < numKinds; k++ {
		all = append(all, k)
	}
	return all
}

// Action says what was done about it.
type Action uint8

// The actions, the stronger ones later.
const (
	Mended    Action = iota + 1 // put right, and used
	Discarded                   // left out: the attribute, capability, prefix or message; the rest is used
	Withdrawn                   // all routes of the message are treated as withdrawn
	numActions
)

var actionNames = [numActions]string{Mended: "mended", Discarded: "discarded", Withdrawn: "withdrawn"}

// String gives the action's name in counters.
func (a Action) String() string {
	if a > 0 && a < numActions {
		return actionNames[a]
	}
	return "unknown"
}

// Finding is one thing that is wrong with a message.
type Finding struct {
	Kind      Kind
	Action    Action
	Attribute uint8  // attribute type; zero when it isn't about one
	Family    Family // zero when it isn't about one
}
