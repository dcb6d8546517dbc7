package message

import (
	"encoding/binary"
	"net/netip"

	"pncd/igp/ospf/packet"
)

// parsers read the bodies of the messages that have fields here, by type. An originate request is not among them:
// only its one harmless form exists, and only to be sent.
var parsers = map[Type]func([]byte) (Body, error){
	TypeRegisterEvent:  func(b []byte) (Body, error) { f, err := parseFilter(b); return RegisterEvent{f}, err },
	TypeSyncLSDB:       func(b []byte) (Body, error) { f, err := parseFilter(b); return SyncLSDB{f}, err },
	TypeSyncRouterID:   parseSyncRouterID,
	TypeReply:          parseReply,
	TypeLSAUpdate:      func(b []byte) (Body, error) { return parseLSAChange(b, false) },
	TypeLSADelete:      func(b []byte) (Body, error) { return parseLSAChange(b, true) },
	TypeNewInterface:   parseNewInterface,
	TypeDelInterface:   parseDelInterface,
	TypeInterfaceState: parseInterfaceState,
	TypeNeighborState:  parseNeighborState,
	TypeReachable:      parseReachable,
	TypeRouterID:       parseRouterID,
}

func id(b []byte) packet.ID       { return packet.ID(binary.BigEndian.Uint32(b)) }
func address(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b[:4])) }

func appendID(dst []byte, i packet.ID) []byte { return binary.BigEndian.AppendUint32(dst, uint32(i)) }

// appendAddr writes an IPv4 address; anything else is 0.0.0.0.
func appendAddr(dst []byte, a netip.Addr) []byte {
	if a = a.Unmap(); !a.Is4() {
		return append(dst, 0, 0, 0, 0)
	}
	return append(dst, a.AsSlice()...)
}

// exactly holds a body to its length.
func exactly(b []byte, n int, what Type) error {
	if len(b) != n {
		return fault(0, what.String(), "%d octets, must be %d", len(b), n)
	}
	return nil
}

func parseSyncRouterID(b []byte) (Body, error) {
	if err := exactly(b, 4, TypeSyncRouterID); err != nil {
		return nil, err
	}
	return SyncRouterID{[4]byte(b)}, nil
}

// Reply answers a request, with its sequence number.
type Reply struct {
	Code   Code
	filler [3]byte
}

// Type gives the message's type.
func (Reply) Type() Type { return TypeReply }
func (r Reply) append(dst []byte) []byte {
	return append(append(dst, uint8(r.Code)), r.filler[:]...)
}

func parseReply(b []byte) (Body, error) {
	if err := exactly(b, 4, TypeReply); err != nil {
		return nil, err
	}
	return Reply{Code(b[0]), [3]byte(b[1:])}, nil
}

// LSAChange tells an LSA that is there, or that is not there any more.
type LSAChange struct {
	Deleted   bool
	Interface netip.Addr // of LSAs of link scope; 0.0.0.0 for others
	Area      packet.ID  // 0.0.0.0 for LSAs of AS scope
	Self      uint8      // not 0: the daemon originated it
	// LSA has the age that it had when the daemon stored it.
	LSA    packet.LSA
	filler [3]byte
}

// Type gives the message's type.
func (c LSAChange) Type() Type {
	if c.Deleted {
		return TypeLSADelete
	}
	return TypeLSAUpdate
}

const lsaChangeLen = 12 // without the LSA

func (c LSAChange) append(dst []byte) []byte {
	dst = appendID(appendAddr(dst, c.Interface), c.Area)
	dst = append(append(dst, c.Self), c.filler[:]...)
	return append(dst, c.LSA.Raw...)
}

func parseLSAChange(b []byte, deleted bool) (Body, error) {
	c := LSAChange{Deleted: deleted}
	if len(b) < lsaChangeLen+packet.HeaderLen {
		return nil, fault(0, c.Type().String(), "%d octets, must be at least 32", len(b))
	}
	c.Interface, c.Area, c.Self, c.filler = address(b), id(b[4:]), b[8], [3]byte(b[9:12])
	var err error
	if c.LSA, err = packet.ParseLSA(packet.V2, b[lsaChangeLen:]); err != nil {
		return nil, fault(lsaChangeLen, "LSA", "%v", err)
	}
	if more := len(b) - lsaChangeLen - len(c.LSA.Raw); more > 0 {
		return nil, fault(len(b)-more, "LSA", "%d octets behind it", more)
	}
	return c, nil
}

// NewInterface tells that an interface belongs to an area now.
type NewInterface struct {
	Interface netip.Addr
	Area      packet.ID
}

// Type gives the message's type.
func (NewInterface) Type() Type { return TypeNewInterface }
func (n NewInterface) append(dst []byte) []byte {
	return appendID(appendAddr(dst, n.Interface), n.Area)
}

func parseNewInterface(b []byte) (Body, error) {
	if err := exactly(b, 8, TypeNewInterface); err != nil {
		return nil, err
	}
	return NewInterface{address(b), id(b[4:])}, nil
}

// DelInterface tells that OSPF doesn't run on an interface any more.
type DelInterface struct{ Interface netip.Addr }

// Type gives the message's type.
func (DelInterface) Type() Type                 { return TypeDelInterface }
func (d DelInterface) append(dst []byte) []byte { return appendAddr(dst, d.Interface) }

func parseDelInterface(b []byte) (Body, error) {
	if err := exactly(b, 4, TypeDelInterface); err != nil {
		return nil, err
	}
	return DelInterface{address(b)}, nil
}

// InterfaceState tells the state of an interface. Its numbers are FRR's (ospfd/ospf_ism.h): 1 is Down.
type InterfaceState struct {
	Interface netip.Addr
	Area      packet.ID
	State     uint8
	filler    [3]byte
}

// Type gives the message's type.
func (InterfaceState) Type() Type { return TypeInterfaceState }
func (s InterfaceState) append(dst []byte) []byte {
	return append(append(appendID(appendAddr(dst, s.Interface), s.Area), s.State), s.filler[:]...)
}

func parseInterfaceState(b []byte) (Body, error) {
	if err := exactly(b, 12, TypeInterfaceState); err != nil {
		return nil, err
	}
	return InterfaceState{address(b), id(b[4:]), b[8], [3]byte(b[9:])}, nil
}

// NeighborState tells the state of a neighbour. Its numbers are FRR's (ospfd/ospf_nsm.h): 9 is Full.
type NeighborState struct {
	Interface netip.Addr // the own one
	Neighbor  netip.Addr
	RouterID  packet.ID
	State     uint8
	filler    [3]byte
}

// Type gives the message's type.
func (NeighborState) Type() Type { return TypeNeighborState }
func (s NeighborState) append(dst []byte) []byte {
	dst = appendID(appendAddr(appendAddr(dst, s.Interface), s.Neighbor), s.RouterID)
	return append(append(dst, s.State), s.filler[:]...)
}

func parseNeighborState(b []byte) (Body, error) {
	if err := exactly(b, 16, TypeNeighborState); err != nil {
		return nil, err
	}
	return NeighborState{address(b), address(b[4:]), id(b[8:]), b[12], [3]byte(b[13:])}, nil
}

// Reachable tells which routers the daemon reaches, or not any more.
type Reachable struct{ Added, Removed []packet.ID }

// Type gives the message's type.
func (Reachable) Type() Type { return TypeReachable }
func (r Reachable) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(r.Added)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(r.Removed)))
	for _, list := range [][]packet.ID{r.Added, r.Removed} {
		for _, i := range list {
			dst = appendID(dst, i)
		}
	}
	return dst
}

func parseReachable(b []byte) (Body, error) {
	const fixed = 4
	if len(b) < fixed {
		return nil, fault(0, TypeReachable.String(), "%d octets, must be at least 4", len(b))
	}
	added, removed := int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:]))
	if len(b) != fixed+4*(added+removed) {
		return nil, fault(0, "numbers of routers", "%d and %d, but %d octets follow", added, removed, len(b)-fixed)
	}
	var r Reachable
	for i := range added + removed {
		one := id(b[fixed+4*i:])
		if i < added {
			r.Added = append(r.Added, one)
		} else {
			r.Removed = append(r.Removed, one)
		}
	}
	return r, nil
}

// RouterID tells the router's ID.
type RouterID struct{ ID packet.ID }

// Type gives the message's type.
func (RouterID) Type() Type                 { return TypeRouterID }
func (r RouterID) append(dst []byte) []byte { return appendID(dst, r.ID) }

func parseRouterID(b []byte) (Body, error) {
	if err := exactly(b, 4, TypeRouterID); err != nil {
		return nil, err
	}
	return RouterID{id(b)}, nil
}
