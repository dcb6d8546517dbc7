package packet

import "fmt"

// Version is OSPF's: V2 runs over IPv4, V3 over IPv6.
type Version uint8

// The versions.
const (
	V2 Version = 2
	V3 Version = 3
)

// String gives the protocol's name.
func (v Version) String() string { return fmt.Sprintf("OSPFv%d", uint8(v)) }

// ID is a router ID, an area ID or a link state ID, written as a dotted quad.
type ID uint32

// String gives the ID as in 10.255.0.1.
func (i ID) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", byte(i>>24), byte(i>>16), byte(i>>8), byte(i))
}

// Backbone is the area 0.0.0.0.
const Backbone ID = 0

// LSType is the type of an LSA: one octet in OSPFv2, two in OSPFv3, where it carries the U bit and the
// flooding scope.
type LSType uint16

// LSA types of OSPFv2 (RFC 2328 section A.4.1, RFC 3101, RFC 5250).
const (
	V2Router     LSType = 1
	V2Network    LSType = 2
	V2Summary    LSType = 3
	V2ASBR       LSType = 4
	V2External   LSType = 5
	V2NSSA       LSType = 7
	V2OpaqueLink LSType = 9
	V2OpaqueArea LSType = 10
	V2OpaqueAS   LSType = 11
)

// LSA types of OSPFv3 (RFC 5340 section A.4.2.1, RFC 5187, RFC 8362 section 4).
const (
	V3Router           LSType = 0x2001
	V3Network          LSType = 0x2002
	V3InterAreaPrefix  LSType = 0x2003
	V3InterAreaRouter  LSType = 0x2004
	V3External         LSType = 0x4005
	V3NSSA             LSType = 0x2007
	V3Link             LSType = 0x0008
	V3IntraAreaPrefix  LSType = 0x2009
	V3Grace            LSType = 0x000B
	V3IntraAreaTE      LSType = 0xA00A // RFC 5329
	V3ERouter          LSType = 0xA021
	V3ENetwork         LSType = 0xA022
	V3EInterAreaPrefix LSType = 0xA023
	V3EExternal        LSType = 0xC025
	V3ENSSA            LSType = 0xA027
	V3ELink            LSType = 0x8028
	V3EIntraAreaPrefix LSType = 0xA029
)

// v3UBit asks routers that don't know the type to flood it all the same (RFC 5340 section A.4.2.1).
const v3UBit = 0x8000

// Scope is how far an LSA is flooded.
type Scope uint8

// The scopes. Reserved LSAs are dropped (RFC 5340 section 4.5.1).
const (
	ScopeLink Scope = iota
	ScopeArea
	ScopeAS
	ScopeReserved
)

// String gives the scope's name.
func (s Scope) String() string {
	return [...]string{"link", "area", "as", "reserved"}[min(s, ScopeReserved)]
}

// Scope gives the flooding scope of the type. Types of OSPFv2 that nobody defined have none.
func (t LSType) Scope(v Version) Scope {
	if v == V3 {
		scope := Scope(t >> 13 & 3)
		if t&v3UBit == 0 && scope != ScopeReserved && !t.v3Known() {
			return ScopeLink // RFC 5340 section A.4.2.1: as if it had link-local scope
		}
		return scope
	}
	switch t {
	case V2OpaqueLink:
		return ScopeLink
	case V2Router, V2Network, V2Summary, V2ASBR, V2NSSA, V2OpaqueArea:
		return ScopeArea
	case V2External, V2OpaqueAS:
		return ScopeAS
	}
	return ScopeReserved
}

// v3Known are the types with the U bit clear that this package knows by name.
func (t LSType) v3Known() bool {
	switch t {
	case V3Router, V3Network, V3InterAreaPrefix, V3InterAreaRouter, V3External, V3NSSA, V3Link, V3IntraAreaPrefix, V3Grace:
		return true
	}
	return false
}

// Opaque reports whether an OSPFv2 LSA is one of the opaque types.
func (t LSType) Opaque() bool { return t >= V2OpaqueLink && t <= V2OpaqueAS }

// NSSA reports whether an LSA belongs to NSSAs alone: type 7 (RFC 3101 section 2.2, RFC 5340 section A.4.8).
func (t LSType) NSSA(v Version) bool {
	if v == V2 {
		return t == V2NSSA
	}
	return t == V3NSSA || t == V3ENSSA
}

// Topology reports whether LSAs of the type say how the network is made, and where its prefixes are: types 1 to 5
// and 7 (RFC 3623 section 3.1), in OSPFv3 the function codes that stand for them, with 9, and their extended
// forms (RFC 8362 section 4). A helper must see no change of them.
func (t LSType) Topology(v Version) bool {
	const v3FunctionBits, v3Extended = 0x1FFF, 0x20
	n := t
	if v == V3 {
		n = t & v3FunctionBits &^ v3Extended
	}
	return n >= 1 && n <= 5 || n == 7 || v == V3 && n == 9
}

// Types of opaque LSAs, the first octet of the link state ID (RFC 5250 section 3).
const (
	OpaqueTE             uint8 = 1 // RFC 3630
	OpaqueGrace          uint8 = 3 // RFC 3623
	OpaqueRouterInfo     uint8 = 4 // RFC 7770
	OpaqueExtendedPrefix uint8 = 7 // RFC 7684
	OpaqueExtendedLink   uint8 = 8 // RFC 7684
)

// OpaqueID makes the link state ID of an opaque LSA: a type and a number of 24 bits.
func OpaqueID(typ uint8, number uint32) ID { return ID(typ)<<24 | ID(number&0xFFFFFF) }

// OpaqueType gives the type part of an opaque LSA's link state ID.
func (i ID) OpaqueType() uint8 { return uint8(i >> 24) }

// ASExtendedPrefix reports whether a key names an Extended Prefix LSA of the domain's scope, which RFC 7684 allows and
// which ends every ospfd of FRR 8.4 that does traffic engineering.
func (k Key) ASExtendedPrefix(v Version) bool {
	return v == V2 && k.Type == V2OpaqueAS && k.ID.OpaqueType() == OpaqueExtendedPrefix
}
