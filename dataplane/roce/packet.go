package roce

import "net/netip"

// UDPPort is the UDP destination port of RoCEv2 (IANA service name rocev2).
const UDPPort = 4791

// Opcode is the BTH opcode: the top three bits are the transport, the low five the operation
// (IBTA volume 1, section 9.2.1).
type Opcode uint8

// Packet is one RoCEv2 packet as a tap sees it, decoded without allocation. Slices point into the
// bytes that were parsed and are valid as long as those are.
type Packet struct {
	Src, Dst  netip.Addr // outer IP addresses, never 4-in-6 mapped
	TOS       uint8      // IPv4 TOS or IPv6 traffic class; the low two bits are ECN
	TTL       uint8      // IPv4 TTL or IPv6 hop limit
	FlowLabel uint32     // IPv6 flow label (20 bits); 0 for IPv4
	SrcPort   uint16     // UDP source port
	SrcMAC    [6]byte    // Ethernet source; zero when parsed from the IP header on
	VLAN      uint16     // VLAN identifier (12 bits) of the outer tag; 0 without

	BTH  BTH
	Body []byte // what follows the BTH, without the ICRC
	// IP holds the packet from the IP header to the ICRC inclusive, for VerifyICRC.
	IP []byte
	// Truncated: the capture holds fewer bytes than the IP length says; Body ends where the capture does.
	Truncated bool
}

// BTH is the Base Transport Header, 12 octets (IBTA volume 1, section 9.2).
type BTH struct {
	Opcode  Opcode
	SE      bool   // solicited event
	MigReq  bool   // migration request
	Pad     uint8  // pad count, 0 to 3
	Version uint8  // transport header version, 0
	PKey    uint16 // partition key
	FECN    bool
	BECN    bool
	DestQP  uint32 // Destination QP, 24 bits
	AckReq  bool
	PSN     uint32 // packet sequence number, 24 bits

	Reserved6 uint8 // low six bits of octet 4, kept
	Reserved7 uint8 // low seven bits of octet 8, kept
}
