package packet

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Areas reads all TLVs 1, in order.
func (l TLVs) Areas() ([]Area, error) {
	var out []Area
	for _, value := range l.All(TLVAreas) {
		for at := 0; at < len(value); {
			n := int(value[at])
			if n < 1 || n > MaxAreaLen {
				return out, fault(at, "area address", "has length %d, must be 1 to %d (ISO 10589 clause 7.1.2)", n, MaxAreaLen)
			}
			if len(value) < at+1+n {
				return out, fault(at, "area address", "has length %d, %d octets are left", n, len(value)-at-1)
			}
			out = append(out, Area(value[at+1:at+1+n]))
			at += 1 + n
		}
	}
	return out, nil
}

// AreasTLV makes TLV 1 of areas that fit one.
func AreasTLV(areas ...Area) TLV {
	var value []byte
	for _, a := range areas {
		value = append(append(value, uint8(len(a))), a...)
	}
	return TLV{Type: TLVAreas, Value: value}
}

// LANNeighbors reads all TLVs 6: the MAC addresses that the sender hears hellos from.
func (l TLVs) LANNeighbors() ([][6]byte, error) {
	var out [][6]byte
	for _, value := range l.All(TLVISNeighborsLAN) {
		if len(value)%6 != 0 {
			return out, fault(0, "IS neighbours", "%d octets are not a multiple of 6 (ISO 10589 clause 9.5)", len(value))
		}
		for b := range slices.Chunk(value, 6) {
			out = append(out, [6]byte(b))
		}
	}
	return out, nil
}

// Protocols gives the network layer protocols that are supported (RFC 1195); false without TLV 129.
func (l TLVs) Protocols() ([]byte, bool) { return l.First(TLVProtocolsSupported) }

// IPv4Interfaces reads all TLVs 132.
func (l TLVs) IPv4Interfaces() ([]netip.Addr, error) {
	return l.addresses(TLVIPv4Interfaces, 4, "IPv4 interface addresses")
}

// IPv6Interfaces reads all TLVs 232.
func (l TLVs) IPv6Interfaces() ([]netip.Addr, error) {
	return l.addresses(TLVIPv6Interfaces, 16, "IPv6 interface addresses")
}

func (l TLVs) addresses(typ uint8, size int, field string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, value := range l.All(typ) {
		if len(value)%size != 0 {
			return out, fault(0, field, "%d octets are not a multiple of %d", len(value), size)
		}
		for b := range slices.Chunk(value, size) {
			a, _ := netip.AddrFromSlice(b)
			out = append(out, a)
		}
	}
	return out, nil
}

// AddressesTLV makes TLV 132 or 232 of addresses of one family that fit one.
func AddressesTLV(addrs ...netip.Addr) TLV {
	t := TLV{Type: TLVIPv4Interfaces}
	for _, a := range addrs {
		if a.Is6() {
			t.Type = TLVIPv6Interfaces
		}
		t.Value = append(t.Value, a.AsSlice()...)
	}
	return t
}

// TERouterIDs gives the addresses of TLV 134 (RFC 5305 section 4.3) and 140 (RFC 6119 section 4.1); an
// invalid one where the TLV is missing or has the wrong length.
func (l TLVs) TERouterIDs() (v4, v6 netip.Addr) {
	if v, ok := l.First(TLVTERouterID); ok && len(v) == 4 {
		v4 = netip.AddrFrom4([4]byte(v))
	}
	if v, ok := l.First(TLVIPv6TERouterID); ok && len(v) == 16 {
		v6 = netip.AddrFrom16([16]byte(v))
	}
	return v4, v6
}

// Hostname gives the dynamic host name (RFC 5301) with what is not printable ASCII replaced; empty when
// there is none.
func (l TLVs) Hostname() string {
	v, _ := l.First(TLVDynamicHostname)
	out := make([]byte, len(v))
	for i, c := range v {
		if out[i] = c; c < 0x21 || c > 0x7E {
			out[i] = '?'
		}
	}
	return string(out)
}

// Topology is one entry of TLV 229 (RFC 5120 section 7.2).
type Topology struct {
	ID       MTID
	Overload bool
	Attached bool
}

// Topologies reads all TLVs 229. None means the standard topology alone.
func (l TLVs) Topologies() ([]Topology, error) {
	var out []Topology
	for _, value := range l.All(TLVMultiTopology) {
		if len(value)%2 != 0 {
			return out, fault(0, "multi-topology", "%d octets are not a multiple of 2 (RFC 5120 section 7.2)", len(value))
		}
		for b := range slices.Chunk(value, 2) {
			v := binary.BigEndian.Uint16(b)
			out = append(out, Topology{ID: MTID(v & mtidMask), Overload: v&0x8000 != 0, Attached: v&0x4000 != 0})
		}
	}
	return out, nil
}

// TopologiesTLV makes TLV 229 of topologies that fit one.
func TopologiesTLV(all ...Topology) TLV {
	t := TLV{Type: TLVMultiTopology}
	for _, mt := range all {
		v := uint16(mt.ID & mtidMask)
		if mt.Overload {
			v |= 0x8000
		}
		if mt.Attached {
			v |= 0x4000
		}
		t.Value = binary.BigEndian.AppendUint16(t.Value, v)
	}
	return t
}

// AdjacencyState is the state of a three-way handshake as TLV 240 codes it.
type AdjacencyState uint8

// The states (RFC 5303 section 3.1).
const (
	AdjacencyUp AdjacencyState = iota
	AdjacencyInitializing
	AdjacencyDown
)

// ThreeWay is TLV 240 (RFC 5303 section 3.1). Its later parts may be missing.
type ThreeWay struct {
	State           AdjacencyState
	HasCircuit      bool
	Circuit         uint32 // the sender's extended local circuit ID
	HasNeighbor     bool
	Neighbor        SystemID
	NeighborCircuit uint32
}

// ThreeWay reads TLV 240; nil without one. A TLV of a length that RFC 5303 doesn't know is an error.
func (l TLVs) ThreeWay() (*ThreeWay, error) {
	v, ok := l.First(TLVThreeWay)
	if !ok {
		return nil, nil
	}
	switch len(v) {
	case 1, 5, 11, 15:
	default:
		return nil, fault(0, "three-way adjacency", "%d octets, must be 1, 5, 11 or 15 (RFC 5303 section 3.1)", len(v))
	}
	if v[0] > uint8(AdjacencyDown) {
		return nil, fault(0, "three-way adjacency state", "is %d, at most 2 (RFC 5303 section 3.1)", v[0])
	}
	t := &ThreeWay{State: AdjacencyState(v[0])}
	if len(v) >= 5 {
		t.HasCircuit, t.Circuit = true, binary.BigEndian.Uint32(v[1:])
	}
	if len(v) >= 11 {
		t.HasNeighbor, t.Neighbor = true, SystemID(v[5:11])
	}
	if len(v) == 15 {
		t.NeighborCircuit = binary.BigEndian.Uint32(v[11:])
	}
	return t, nil
}

// TLV writes it: 5 octets, or 15 with a neighbour.
func (t ThreeWay) TLV() TLV {
	v := binary.BigEndian.AppendUint32([]byte{uint8(t.State)}, t.Circuit)
	if t.HasNeighbor {
		v = binary.BigEndian.AppendUint32(append(v, t.Neighbor[:]...), t.NeighborCircuit)
	}
	return TLV{Type: TLVThreeWay, Value: v}
}

// Restart is TLV 211 (RFC 8706 section 3.2).
type Restart struct {
	Request, Acknowledge, Suppress bool   // RR, RA, SA
	PlannedRequest, PlannedAck     bool   // PR, PA
	RemainingTime                  uint16 // seconds
	HasTime                        bool
	Neighbor                       SystemID // whom RA is for
	HasNeighbor                    bool
}

// Restart reads TLV 211; nil without one, or with one that is empty.
func (l TLVs) Restart() *Restart {
	v, _ := l.First(TLVRestart)
	if len(v) == 0 {
		return nil
	}
	f := v[0]
	r := &Restart{Request: f&1 != 0, Acknowledge: f&2 != 0, Suppress: f&4 != 0, PlannedRequest: f&8 != 0, PlannedAck: f&16 != 0}
	if len(v) >= 3 {
		r.HasTime, r.RemainingTime = true, binary.BigEndian.Uint16(v[1:])
	}
	if len(v) >= 9 {
		r.HasNeighbor, r.Neighbor = true, SystemID(v[3:9])
	}
	return r
}

// TLV writes it, with its optional parts in order.
func (r Restart) TLV() TLV {
	v := []byte{bit(r.Request, 1) | bit(r.Acknowledge, 2) | bit(r.Suppress, 4) | bit(r.PlannedRequest, 8) | bit(r.PlannedAck, 16)}
	if r.HasTime {
		v = binary.BigEndian.AppendUint16(v, r.RemainingTime)
		if r.HasNeighbor {
			v = append(v, r.Neighbor[:]...)
		}
	}
	return TLV{Type: TLVRestart, Value: v}
}

// PurgeOriginator is TLV 13 (RFC 6232 section 3): who made a purge, and from whom it came.
type PurgeOriginator struct {
	Originator  SystemID
	Received    SystemID
	HasReceived bool
}

// PurgeOriginator reads TLV 13; false without one, or with one of a wrong length.
func (l TLVs) PurgeOriginator() (p PurgeOriginator, ok bool) {
	v, _ := l.First(TLVPurgeOriginator)
	switch {
	case len(v) == 7 && v[0] == 1:
	case len(v) == 13 && v[0] == 2:
		p.HasReceived, p.Received = true, SystemID(v[7:13])
	default:
		return p, false
	}
	p.Originator = SystemID(v[1:7])
	return p, true
}

// TLV writes it.
func (p PurgeOriginator) TLV() TLV {
	v := append([]byte{1}, p.Originator[:]...)
	if p.HasReceived {
		v[0] = 2
		v = append(v, p.Received[:]...)
	}
	return TLV{Type: TLVPurgeOriginator, Value: v}
}

// PaddingTLVs makes TLVs 8 that fill n octets; one octet can't be filled, and is left.
func PaddingTLVs(n int) (out TLVs) {
	for n >= 2 {
		v := min(n-2, maxValue)
		if n-2-v == 1 {
			v-- // leave room for one more TLV
		}
		out = append(out, TLV{Type: TLVPadding, Value: make([]byte, v)})
		n -= 2 + v
	}
	return out
}
