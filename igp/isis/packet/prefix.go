package packet

import (
	"encoding/binary"
	"net/netip"
)

// Prefix is one entry of extended IP reachability: TLV 135 (RFC 5305 section 4), 236 (RFC 5308 section 2),
// 235 and 237 (RFC 5120 section 7.3).
type Prefix struct {
	Prefix   netip.Prefix // masked: bits of the host that were set are dropped
	Metric   uint32
	Down     bool  // up/down: leaked from level 2 to level 1 (RFC 5302)
	External bool  // IPv6 alone; IPv4 has it in the Prefix Attribute Flags
	Reserved uint8 // IPv6 alone: the low five bits of the flags, kept
	SubTLVs  TLVs
	// EmptySubTLVs says that the entry announces sub-TLVs and has none, which is written back so.
	EmptySubTLVs bool
}

// Bits of the control octets.
const (
	v4Down, v4SubTLVs, v4Length             = 0x80, 0x40, 0x3F
	v6Down, v6External, v6SubTLVs, v6Unused = 0x80, 0x40, 0x20, 0x1F
)

// MTID is a topology (RFC 5120): the low twelve bits of two octets. 0 is the standard topology, 2 that of
// IPv6 routing.
type MTID uint16

// The topologies that are used here.
const (
	MTStandard MTID = 0
	MTIPv6     MTID = 2
	mtidMask        = 0x0FFF
)

// ParsePrefixes reads the value of TLV 135 or 236, or what follows the topology in 235 or 237, for which
// ParseMT is there.
func ParsePrefixes(value []byte, ipv6 bool) ([]Prefix, error) {
	var out []Prefix
	if len(value) > 0 {
		out = make([]Prefix, 0, len(value)/8+1) // most entries take at least eight octets
	}
	for at := 0; at < len(value); {
		p, n, err := parsePrefix(value[at:], ipv6)
		if err != nil {
			return out, shifted(err, at)
		}
		out = append(out, p)
		at += n
	}
	return out, nil
}

func parsePrefix(b []byte, ipv6 bool) (p Prefix, n int, err error) {
	fixed, most := 5, 32
	if ipv6 {
		fixed, most = 6, 128
	}
	if len(b) < fixed {
		return p, 0, fault(0, "prefix entry", "%d octets are left, at least %d are needed", len(b), fixed)
	}
	p.Metric = binary.BigEndian.Uint32(b)
	control, bits, sub := b[4], 0, false
	if ipv6 {
		bits = int(b[5])
		p.Down, p.External, sub = control&v6Down != 0, control&v6External != 0, control&v6SubTLVs != 0
		p.Reserved = control & v6Unused
	} else {
		bits = int(control & v4Length)
		p.Down, sub = control&v4Down != 0, control&v4SubTLVs != 0
	}
	if bits > most {
		return p, 0, fault(fixed-1, "prefix length", "is %d, at most %d", bits, most)
	}
	n = fixed + (bits+7)/8
	if len(b) < n {
		return p, 0, fault(fixed, "prefix", "/%d has %d octets, %d are left", bits, n-fixed, len(b)-fixed)
	}
	var addr [16]byte
	copy(addr[:], b[fixed:n])
	if ipv6 {
		p.Prefix = netip.PrefixFrom(netip.AddrFrom16(addr), bits).Masked()
	} else {
		p.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte(addr[:4])), bits).Masked()
	}
	if !sub {
		return p, n, nil
	}
	if len(b) == n {
		return p, 0, fault(n, "sub-TLV length", "is missing")
	}
	length := int(b[n])
	n++
	if len(b) < n+length {
		return p, 0, fault(n-1, "sub-TLV length", "is %d, %d octets are left", length, len(b)-n)
	}
	p.SubTLVs, err = ParseTLVs(b[n : n+length])
	p.EmptySubTLVs = length == 0
	return p, n + length, shifted(err, n)
}

// Append writes the entry. The family is the prefix's.
func (p Prefix) Append(dst []byte) ([]byte, error) {
	if !p.Prefix.IsValid() {
		return nil, fault(len(dst), "prefix", "is invalid")
	}
	length := p.SubTLVs.Len()
	if length > maxValue {
		return nil, fault(len(dst), "sub-TLV length", "%s has %d octets of sub-TLVs, at most %d fit", p.Prefix, length, maxValue)
	}
	sub := length > 0 || p.EmptySubTLVs
	bits := p.Prefix.Bits()
	dst = binary.BigEndian.AppendUint32(dst, p.Metric)
	if p.Prefix.Addr().Is4() {
		dst = append(dst, uint8(bits)|bit(p.Down, v4Down)|bit(sub, v4SubTLVs))
	} else {
		dst = append(dst, bit(p.Down, v6Down)|bit(p.External, v6External)|bit(sub, v6SubTLVs)|p.Reserved&v6Unused, uint8(bits))
	}
	dst = append(dst, p.Prefix.Masked().Addr().AsSlice()[:(bits+7)/8]...)
	if !sub {
		return dst, nil
	}
	return p.SubTLVs.Append(append(dst, uint8(length)))
}

// Len is the length of the entry on the wire, octets.
func (p Prefix) Len() int {
	n := 5 + (p.Prefix.Bits()+7)/8
	if p.Prefix.Addr().Is6() {
		n++
	}
	if sub := p.SubTLVs.Len(); sub > 0 || p.EmptySubTLVs {
		n += 1 + sub
	}
	return n
}

func bit(on bool, mask uint8) uint8 {
	if on {
		return mask
	}
	return 0
}

// ParseMT splits the value of a TLV that begins with a topology: 222, 235 and 237. reserved is the four bits
// above it.
func ParseMT(value []byte) (id MTID, reserved uint8, rest []byte, err error) {
	if len(value) < 2 {
		return 0, 0, nil, fault(0, "topology", "%d octets, two are needed (RFC 5120 section 7)", len(value))
	}
	v := binary.BigEndian.Uint16(value)
	return MTID(v & mtidMask), uint8(v >> 12), value[2:], nil
}

// AppendMT writes a topology.
func AppendMT(dst []byte, id MTID) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(id&mtidMask))
}

// Attributes gives the Prefix Attribute Flags (RFC 7794 section 2.1); nil when the entry has none.
func (p Prefix) Attributes() PrefixFlags {
	v, _ := p.SubTLVs.First(SubTLVPrefixAttributes)
	return v
}

// SourceRouterIDs gives the router IDs that the entry names (RFC 7794 section 2.2); an invalid address for
// one that is missing or has the wrong length.
func (p Prefix) SourceRouterIDs() (v4, v6 netip.Addr) {
	if v, ok := p.SubTLVs.First(SubTLVIPv4SourceRouterID); ok && len(v) == 4 {
		v4 = netip.AddrFrom4([4]byte(v))
	}
	if v, ok := p.SubTLVs.First(SubTLVIPv6SourceRouterID); ok && len(v) == 16 {
		v6 = netip.AddrFrom16([16]byte(v))
	}
	return v4, v6
}

// PrefixFlags is a bit string of any length; bit 0 is the most significant bit of the first octet, and what
// is missing is zero.
type PrefixFlags []byte

// Has reports whether a bit is set.
func (f PrefixFlags) Has(n uint8) bool {
	return int(n/8) < len(f) && f[n/8]&(0x80>>(n%8)) != 0
}

// With gives a copy with a bit set, as long as it needs to be.
func (f PrefixFlags) With(n uint8) PrefixFlags {
	out := make(PrefixFlags, max(len(f), int(n/8)+1))
	copy(out, f)
	out[n/8] |= 0x80 >> (n % 8)
	return out
}
