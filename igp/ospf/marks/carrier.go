package marks

import "pncd/igp/ospf/packet"

// Carrier says where the P flag is.
type Carrier struct {
	// TLVFlags is a mask of the flags octet of OSPFv2's Extended Prefix TLV, all of whose bits have to be set; 0: the
	// flag is a bit of the Prefix Extended Flags (RFC 9792), as always in OSPFv3.
	TLVFlags uint8
	// Bit of the Prefix Extended Flags, 0 being the most significant of the first octet.
	Bit uint8
}

// v2 reports whether a prefix of OSPFv2 has the P flag.
func (c Carrier) v2(p packet.V2ExtendedPrefix) bool {
	if c.TLVFlags != 0 {
		return p.Flags&c.TLVFlags == c.TLVFlags
	}
	return c.extended(p.Subs, packet.V2SubPrefixFlags)
}

// extended reports whether the bit is set in the Prefix Extended Flags.
func (c Carrier) extended(subs []packet.TLV, typ uint16) bool {
	flags, _ := packet.Find(subs, typ)
	return packet.FlagBit(flags, c.Bit)
}
