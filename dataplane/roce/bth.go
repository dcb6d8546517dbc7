package roce

import "encoding/binary"

// Lengths in octets.
const (
	BTHLen  = 12
	DETHLen = 8
	AETHLen = 4
	RETHLen = 16
	ICRCLen = 4

	max24 = 1<<24 - 1
)

var (
	errBTHShort  = &FieldError{"BTH", 0, "header", "shorter than 12 octets", ErrTruncated}
	errDETHShort = &FieldError{"DETH", 0, "header", "shorter than 8 octets", ErrTruncated}
	errAETHShort = &FieldError{"AETH", 0, "header", "shorter than 4 octets", ErrTruncated}
	errRETHShort = &FieldError{"RETH", 0, "header", "shorter than 16 octets", ErrTruncated}
)

// ParseBTH decodes a Base Transport Header from the start of b. Reserved bits are kept.
func ParseBTH(b []byte) (BTH, error) {
	var h BTH
	if len(b) < BTHLen {
		return h, errBTHShort
	}
	h.decode(b)
	return h, nil
}

// decode fills h from b, which holds at least 12 octets.
func (h *BTH) decode(b []byte) {
	_ = b[11]
	h.Opcode = Opcode(b[0])
	h.SE = b[1]&0x80 != 0
	h.MigReq = b[1]&0x40 != 0
	h.Pad = b[1] >> 4 & 3
	h.Version = b[1] & 0x0F
	h.PKey = binary.BigEndian.Uint16(b[2:])
	h.FECN = b[4]&0x80 != 0
	h.BECN = b[4]&0x40 != 0
	h.Reserved6 = b[4] & 0x3F
	h.DestQP = uint24(b[5:])
	h.AckReq = b[8]&0x80 != 0
	h.Reserved7 = b[8] & 0x7F
	h.PSN = uint24(b[9:])
}

// AppendBTH appends the 12 octets of h. Fields wider than their place on the wire are cut to it.
func AppendBTH(dst []byte, h BTH) []byte {
	return append(dst,
		byte(h.Opcode),
		bit(h.SE, 0x80)|bit(h.MigReq, 0x40)|h.Pad&3<<4|h.Version&0x0F,
		byte(h.PKey>>8), byte(h.PKey),
		bit(h.FECN, 0x80)|bit(h.BECN, 0x40)|h.Reserved6&0x3F,
		byte(h.DestQP>>16), byte(h.DestQP>>8), byte(h.DestQP),
		bit(h.AckReq, 0x80)|h.Reserved7&0x7F,
		byte(h.PSN>>16), byte(h.PSN>>8), byte(h.PSN))
}

// DETH is the Datagram Extended Transport Header of UD packets (IBTA volume 1, section 9.3.3).
type DETH struct {
	QKey     uint32
	Reserved uint8
	SrcQP    uint32 // 24 bits
}

// ParseDETH decodes the DETH at the start of body (Packet.Body).
func ParseDETH(body []byte) (DETH, error) {
	if len(body) < DETHLen {
		return DETH{}, errDETHShort
	}
	return DETH{QKey: binary.BigEndian.Uint32(body), Reserved: body[4], SrcQP: uint24(body[5:])}, nil
}

// AppendDETH appends the 8 octets of h.
func AppendDETH(dst []byte, h DETH) []byte {
	dst = binary.BigEndian.AppendUint32(dst, h.QKey)
	return append(dst, h.Reserved, byte(h.SrcQP>>16), byte(h.SrcQP>>8), byte(h.SrcQP))
}

// AETH is the ACK Extended Transport Header (IBTA volume 1, section 9.3.5).
type AETH struct {
	Syndrome uint8  // top three bits: 000 ACK, 001 RNR NAK, 011 NAK
	MSN      uint32 // message sequence number, 24 bits
}

// ParseAETH decodes the AETH at the start of body (Packet.Body).
func ParseAETH(body []byte) (AETH, error) {
	if len(body) < AETHLen {
		return AETH{}, errAETHShort
	}
	return AETH{Syndrome: body[0], MSN: uint24(body[1:])}, nil
}

// AppendAETH appends the 4 octets of h.
func AppendAETH(dst []byte, h AETH) []byte {
	return append(dst, h.Syndrome, byte(h.MSN>>16), byte(h.MSN>>8), byte(h.MSN))
}

// IsAck reports a positive acknowledgement.
func (h AETH) IsAck() bool { return h.Syndrome>>5 == 0 }

// IsRNR reports a receiver-not-ready NAK.
func (h AETH) IsRNR() bool { return h.Syndrome>>5 == 1 }

// IsNAK reports a NAK other than RNR.
func (h AETH) IsNAK() bool { return h.Syndrome>>5 == 3 }

// RETH is the RDMA Extended Transport Header of WRITE first/only and READ requests (IBTA volume 1,
// section 9.3.4).
type RETH struct {
	VA     uint64 // virtual address
	RKey   uint32
	DMALen uint32 // octets of the whole operation
}

// ParseRETH decodes the RETH at the start of body (Packet.Body).
func ParseRETH(body []byte) (RETH, error) {
	if len(body) < RETHLen {
		return RETH{}, errRETHShort
	}
	return RETH{
		VA:     binary.BigEndian.Uint64(body),
		RKey:   binary.BigEndian.Uint32(body[8:]),
		DMALen: binary.BigEndian.Uint32(body[12:]),
	}, nil
}

// AppendRETH appends the 16 octets of h.
func AppendRETH(dst []byte, h RETH) []byte {
	dst = binary.BigEndian.AppendUint64(dst, h.VA)
	dst = binary.BigEndian.AppendUint32(dst, h.RKey)
	return binary.BigEndian.AppendUint32(dst, h.DMALen)
}

func uint24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func putUint24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }

func bit(v bool, mask byte) byte {
	if v {
		return mask
	}
	return 0
}
