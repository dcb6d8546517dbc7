package roce

import (
	"encoding/binary"
	"fmt"
)

// Connection management datagrams (IBTA volume 1, sections 12.6 and 13.4.2): UD SEND_ONLY packets to QP 1
// whose payload is a 256-octet MAD: a 24-octet header and 232 octets of message.
const (
	MADLen       = 256
	madHeaderLen = 24
	cmBodyLen    = MADLen - madHeaderLen

	// QP1 is the general services interface, the Destination QP of every CM datagram.
	QP1 = 1
	// GSIQKey is the well-known Q_Key of QP 1.
	GSIQKey = 0x80010000

	madBaseVersion = 1
	madClassCM     = 0x07
	madClassVer    = 2
	madMethodSend  = 0x03
)

// CMKind is the attribute id of a CM message.
type CMKind uint16

// CM messages (IBTA volume 1, table 97).
const (
	CMREQ     CMKind = 0x0010
	CMMRA     CMKind = 0x0011
	CMREJ     CMKind = 0x0012
	CMREP     CMKind = 0x0013
	CMRTU     CMKind = 0x0014
	CMDREQ    CMKind = 0x0015
	CMDREP    CMKind = 0x0016
	CMSIDRREQ CMKind = 0x0017
	CMSIDRREP CMKind = 0x0018
	CMLAP     CMKind = 0x0019
	CMAPR     CMKind = 0x001A
)

var cmNames = [...]string{"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"}

func (k CMKind) String() string {
	if k.known() {
		return cmNames[k-CMREQ]
	}
	return fmt.Sprintf("CM 0x%04x", uint16(k))
}

func (k CMKind) known() bool { return k >= CMREQ && k <= CMAPR }

// privateDataAt is where the private data starts in the message body, in the order of the kinds from REQ on:
// all that stands before it must be there for a message to be decoded.
var privateDataAt = [...]int{140, 10, 84, 36, 8, 12, 8, 16, 96, 64, 84}

// Transport values of CM.Transport (REQ only).
const (
	CMTransportRC       = 0
	CMTransportUC       = 1
	CMTransportRD       = 2
	CMTransportExtended = 3 // XRC
)

// MAD is a management datagram: the header (IBTA volume 1, section 13.4.2) and, for connection
// management, the message.
type MAD struct {
	DETH          DETH
	BaseVersion   uint8
	Class         uint8
	ClassVersion  uint8
	Method        uint8
	Status        uint16
	ClassSpecific uint16
	TransactionID uint64
	AttrID        uint16
	AttrModifier  uint32
	CM            CM
}

// CM is a connection management message. Which fields mean something depends on Kind; the others are
// zero. A starting PSN is that of the first packet sent to the QP that the same message names.
type CM struct {
	Kind          CMKind
	TransactionID uint64
	LocalCommID   uint32 // SIDR: the request id
	RemoteCommID  uint32 // all but REQ and SIDR
	LocalQPN      uint32 // REQ, REP, SIDR_REP: the message's sender's QP
	RemoteQPN     uint32 // DREQ, LAP: the QP of the message's receiver
	StartingPSN   uint32 // REQ, REP
	Transport     uint8  // REQ: CMTransport...
	ServiceID     uint64 // REQ, SIDR
	PKey          uint16 // REQ, SIDR_REQ
	PathMTU       uint8  // REQ: IBTA code, 1 = 256 to 5 = 4096 octets
	LocalGID      [16]byte
	RemoteGID     [16]byte
	RejReason     uint16 // REJ
	RejMessage    uint8  // REJ, MRA: which message is answered: 0 REQ, 1 REP, 2 other
	SIDRStatus    uint8  // SIDR_REP
	PrivateData   []byte // to the end of the message; points into the parsed bytes

	// Body is the whole message as parsed, from the octet after the MAD header. Append starts from it, so
	// that what this package does not decode is written back byte for byte. It may be nil.
	Body []byte
}

var (
	errMADShort   = &FieldError{"MAD", 0, "header", "shorter than 24 octets", ErrTruncated}
	errMADVersion = &FieldError{"MAD", 0, "base version", "not 1", ErrNotCM}
	errMADClass   = &FieldError{"MAD", 1, "management class", "not 0x07", ErrNotCM}
	errMADClassV  = &FieldError{"MAD", 2, "class version", "not 2", ErrNotCM}
	errMADMethod  = &FieldError{"MAD", 3, "method", "not Send (0x03)", ErrNotCM}
	errMADAttr    = &FieldError{"MAD", 16, "attribute id", "no known CM message", ErrNotCM}
	errCMShort    = &FieldError{"CM", 0, "message", "ends before its private data", ErrTruncated}
)

// IsMAD reports a packet that ParseMAD takes: UD SEND_ONLY to QP 1.
func (p *Packet) IsMAD() bool {
	return p.BTH.Opcode == OpcodeUDSendOnly && p.BTH.DestQP == QP1
}

// ParseMAD decodes a CM datagram from Packet.Body: the DETH, the MAD header and the message. A capture may
// end inside the private data. Errors wrap ErrTruncated, or ErrNotCM with the header decoded as far as it
// goes.
func ParseMAD(body []byte) (MAD, error) {
	var m MAD
	var err error
	if m.DETH, err = ParseDETH(body); err != nil {
		return m, err
	}
	b := body[DETHLen:]
	if len(b) < madHeaderLen {
		return m, errMADShort
	}
	m.BaseVersion, m.Class, m.ClassVersion, m.Method = b[0], b[1], b[2], b[3]
	m.Status = binary.BigEndian.Uint16(b[4:])
	m.ClassSpecific = binary.BigEndian.Uint16(b[6:])
	m.TransactionID = binary.BigEndian.Uint64(b[8:])
	m.AttrID = binary.BigEndian.Uint16(b[16:])
	m.AttrModifier = binary.BigEndian.Uint32(b[20:])
	switch {
	case m.BaseVersion != madBaseVersion:
		return m, errMADVersion
	case m.Class != madClassCM:
		return m, errMADClass
	case m.ClassVersion != madClassVer:
		return m, errMADClassV
	case m.Method != madMethodSend:
		return m, errMADMethod
	case !CMKind(m.AttrID).known():
		return m, errMADAttr
	}
	b = b[madHeaderLen:min(len(b), MADLen)]
	m.CM.Kind, m.CM.TransactionID = CMKind(m.AttrID), m.TransactionID
	if len(b) < privateDataAt[m.CM.Kind-CMREQ] {
		return m, errCMShort
	}
	m.CM.decode(b)
	return m, nil
}

// decode fills c, whose Kind is set, from the message body; b reaches at least to the private data.
func (c *CM) decode(b []byte) {
	be := binary.BigEndian
	c.Body = b
	c.PrivateData = b[privateDataAt[c.Kind-CMREQ]:]
	c.LocalCommID = be.Uint32(b)
	switch c.Kind {
	case CMREQ, CMSIDRREQ, CMSIDRREP:
	default:
		c.RemoteCommID = be.Uint32(b[4:])
	}
	switch c.Kind {
	case CMREQ:
		c.ServiceID = be.Uint64(b[8:])
		c.LocalQPN = uint24(b[32:])
		c.Transport = b[43] >> 1 & 3
		c.StartingPSN = uint24(b[44:])
		c.PKey = be.Uint16(b[48:])
		c.PathMTU = b[50] >> 4
		c.LocalGID = [16]byte(b[56:72])
		c.RemoteGID = [16]byte(b[72:88])
	case CMREP:
		c.LocalQPN = uint24(b[12:])
		c.StartingPSN = uint24(b[20:])
	case CMDREQ:
		c.RemoteQPN = uint24(b[8:])
	case CMLAP:
		c.RemoteQPN = uint24(b[12:])
	case CMREJ:
		c.RejMessage = b[8] >> 6
		c.RejReason = be.Uint16(b[10:])
	case CMMRA:
		c.RejMessage = b[8] >> 6
	case CMSIDRREQ:
		c.PKey = be.Uint16(b[4:])
		c.ServiceID = be.Uint64(b[8:])
	case CMSIDRREP:
		c.SIDRStatus = b[4]
		c.LocalQPN = uint24(b[8:])
		c.ServiceID = be.Uint64(b[12:])
	}
}
