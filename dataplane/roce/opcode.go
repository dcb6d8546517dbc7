package roce

import "fmt"

// Transport is the top three bits of an opcode (IBTA volume 1, table 38).
type Transport uint8

// Transport classes. Class 2 is Reliable Datagram in the specification; adapters use it for Dynamically
// Connected transport.
const (
	TransportRC Transport = iota
	TransportUC
	TransportRD
	TransportUD
	TransportCNP
	TransportXRC
	TransportVendor1
	TransportVendor2

	TransportDC = TransportRD
)

var transportNames = [8]string{"RC", "UC", "RD/DC", "UD", "CNP", "XRC", "vendor-6", "vendor-7"}

func (t Transport) String() string { return transportNames[t&7] }

// Operations: the low five bits of an opcode (IBTA volume 1, table 38).
const (
	OpSendFirst         uint8 = 0x00
	OpSendMiddle        uint8 = 0x01
	OpSendLast          uint8 = 0x02
	OpSendLastImm       uint8 = 0x03
	OpSendOnly          uint8 = 0x04
	OpSendOnlyImm       uint8 = 0x05
	OpWriteFirst        uint8 = 0x06
	OpWriteMiddle       uint8 = 0x07
	OpWriteLast         uint8 = 0x08
	OpWriteLastImm      uint8 = 0x09
	OpWriteOnly         uint8 = 0x0A
	OpWriteOnlyImm      uint8 = 0x0B
	OpReadRequest       uint8 = 0x0C
	OpReadRespFirst     uint8 = 0x0D
	OpReadRespMiddle    uint8 = 0x0E
	OpReadRespLast      uint8 = 0x0F
	OpReadRespOnly      uint8 = 0x10
	OpAck               uint8 = 0x11
	OpAtomicAck         uint8 = 0x12
	OpCompareSwap       uint8 = 0x13
	OpFetchAdd          uint8 = 0x14
	OpResync            uint8 = 0x15
	OpSendLastInv       uint8 = 0x16
	OpSendOnlyInv       uint8 = 0x17
	OpFlush             uint8 = 0x1C // memory placement extensions, IBTA annex A19
	OpAtomicWrite       uint8 = 0x1D // memory placement extensions, IBTA annex A19
	opMask              uint8 = 0x1F
	transportShift            = 5
	OpcodeCNP                 = Opcode(0x81) // IBTA annex A17.9.3
	OpcodeUDSendOnly          = Opcode(0x64)
	OpcodeRCAck               = Opcode(0x11)
	OpcodeRCReadRequest       = Opcode(0x0C)
)

var opNames = [32]string{
	OpSendFirst: "SEND_FIRST", OpSendMiddle: "SEND_MIDDLE", OpSendLast: "SEND_LAST", OpSendLastImm: "SEND_LAST_IMM",
	OpSendOnly: "SEND_ONLY", OpSendOnlyImm: "SEND_ONLY_IMM",
	OpWriteFirst: "WRITE_FIRST", OpWriteMiddle: "WRITE_MIDDLE", OpWriteLast: "WRITE_LAST",
	OpWriteLastImm: "WRITE_LAST_IMM", OpWriteOnly: "WRITE_ONLY", OpWriteOnlyImm: "WRITE_ONLY_IMM",
	OpReadRequest: "READ_REQUEST", OpReadRespFirst: "READ_RESPONSE_FIRST", OpReadRespMiddle: "READ_RESPONSE_MIDDLE",
	OpReadRespLast: "READ_RESPONSE_LAST", OpReadRespOnly: "READ_RESPONSE_ONLY",
	OpAck: "ACK", OpAtomicAck: "ATOMIC_ACK", OpCompareSwap: "COMPARE_SWAP", OpFetchAdd: "FETCH_ADD", OpResync: "RESYNC",
	OpSendLastInv: "SEND_LAST_INV", OpSendOnlyInv: "SEND_ONLY_INV", OpFlush: "FLUSH", OpAtomicWrite: "ATOMIC_WRITE",
}

// Classes of an opcode, one bit each.
const (
	classRequest uint16 = 1 << iota
	classLastOrOnly
	classRead
	classAtomic
	classReadResp
	classReadRespFirst
	classReadRespLast
	classReadRespOnly
	classAck
	classAtomicAck
)

// classes is the class of each opcode: a lookup, because the predicates run for every packet.
var classes = func() (t [256]uint16) {
	for i := range t {
		t[i] = classify(Transport(i>>transportShift), uint8(i)&opMask)
	}
	return t
}()

// classify returns the classes of one operation on one transport; none for an operation that the
// transport does not define.
func classify(t Transport, op uint8) uint16 {
	switch t {
	case TransportRC, TransportRD, TransportXRC:
	case TransportUC:
		if op > OpWriteOnlyImm {
			return 0
		}
	case TransportUD:
		if op != OpSendOnly && op != OpSendOnlyImm {
			return 0
		}
	default:
		return 0
	}
	switch op {
	case OpSendFirst, OpSendMiddle, OpWriteFirst, OpWriteMiddle:
		return classRequest
	case OpSendLast, OpSendLastImm, OpSendOnly, OpSendOnlyImm, OpWriteLast, OpWriteLastImm, OpWriteOnly, OpWriteOnlyImm,
		OpSendLastInv, OpSendOnlyInv, OpFlush, OpAtomicWrite:
		return classRequest | classLastOrOnly
	case OpReadRequest:
		return classRequest | classRead
	case OpCompareSwap, OpFetchAdd:
		return classRequest | classAtomic
	case OpReadRespFirst:
		return classReadResp | classReadRespFirst
	case OpReadRespMiddle:
		return classReadResp
	case OpReadRespLast:
		return classReadResp | classReadRespLast
	case OpReadRespOnly:
		return classReadResp | classReadRespOnly
	case OpAck:
		return classAck
	case OpAtomicAck:
		return classAtomicAck
	case OpResync:
		if t == TransportRD {
			return classRequest
		}
	}
	return 0
}

// Transport returns the transport class.
func (o Opcode) Transport() Transport { return Transport(o >> transportShift) }

// Op returns the operation, the low five bits.
func (o Opcode) Op() uint8 { return uint8(o) & opMask }

func (o Opcode) has(c uint16) bool { return classes[o]&c != 0 }

// IsRequest reports a request: a packet from requester to responder, with or without data.
func (o Opcode) IsRequest() bool { return o.has(classRequest) }

// IsLastOrOnly reports the packet that ends a SEND or WRITE (and the one-packet FLUSH and ATOMIC WRITE),
// which a responder acknowledges.
func (o Opcode) IsLastOrOnly() bool { return o.has(classLastOrOnly) }

// IsReadRequest reports an RDMA READ request.
func (o Opcode) IsReadRequest() bool { return o.has(classRead) }

// IsAtomicRequest reports COMPARE SWAP and FETCH ADD.
func (o Opcode) IsAtomicRequest() bool { return o.has(classAtomic) }

// IsAckable reports a request that is answered even when AckReq is clear: the last or only packet of a
// message, READ and ATOMIC. A first or middle packet is ackable only when its AckReq bit is set.
func (o Opcode) IsAckable() bool { return o.has(classLastOrOnly | classRead | classAtomic) }

// IsReadResponse reports any of the four RDMA READ responses.
func (o Opcode) IsReadResponse() bool { return o.has(classReadResp) }

// IsReadResponseFirst reports the first response of a READ of several packets.
func (o Opcode) IsReadResponseFirst() bool { return o.has(classReadRespFirst) }

// IsReadResponseLast reports the last response of a READ of several packets.
func (o Opcode) IsReadResponseLast() bool { return o.has(classReadRespLast) }

// IsReadResponseOnly reports the response of a READ of one packet.
func (o Opcode) IsReadResponseOnly() bool { return o.has(classReadRespOnly) }

// IsAck reports ACKNOWLEDGE, which is also how a NAK and an RNR NAK look: the AETH tells.
func (o Opcode) IsAck() bool { return o.has(classAck) }

// IsAtomicAck reports ATOMIC ACKNOWLEDGE.
func (o Opcode) IsAtomicAck() bool { return o.has(classAtomicAck) }

// IsResponse reports a packet from responder to requester: ACK, ATOMIC ACK and READ responses.
func (o Opcode) IsResponse() bool { return o.has(classReadResp | classAck | classAtomicAck) }

// HasAETH reports that an AETH follows the BTH: ACK, ATOMIC ACK, READ response first, last and only.
func (o Opcode) HasAETH() bool {
	return o.has(classAck | classAtomicAck | classReadRespFirst | classReadRespLast | classReadRespOnly)
}

// IsCNP reports the RoCEv2 Congestion Notification Packet.
func (o Opcode) IsCNP() bool { return o == OpcodeCNP }

func (o Opcode) String() string {
	if o == OpcodeCNP {
		return "CNP"
	}
	if n := opNames[o.Op()]; n != "" && classes[o] != 0 {
		return o.Transport().String() + " " + n
	}
	return fmt.Sprintf("%s 0x%02x", o.Transport(), uint8(o))
}
