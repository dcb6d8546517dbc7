package roce

import "encoding/binary"

var (
	errCMKind    = &FieldError{"CM", 0, "kind", "no known CM message", ErrValue}
	errCMQPN     = &FieldError{"CM", 0, "QPN", "more than 24 bits", ErrValue}
	errCMPSN     = &FieldError{"CM", 0, "starting PSN", "more than 24 bits", ErrValue}
	errCMBits    = &FieldError{"CM", 0, "transport, path MTU or answered message", "does not fit its bits", ErrValue}
	errCMPrivate = &FieldError{"CM", 0, "private data", "longer than the message has room for", ErrValue}
	errCMBody    = &FieldError{"CM", 0, "body", "longer than 232 octets", ErrValue}
)

// Append appends the 256-octet MAD of a CM message (header included, DETH not). c.Body, when set, is the
// base over which the decoded fields are written. Errors wrap ErrValue; dst is then returned unchanged.
func (c *CM) Append(dst []byte) ([]byte, error) {
	m := MAD{
		BaseVersion: madBaseVersion, Class: madClassCM, ClassVersion: madClassVer, Method: madMethodSend,
		TransactionID: c.TransactionID, AttrID: uint16(c.Kind),
	}
	return m.appendMAD(dst, c)
}

// Append appends the DETH and the 256-octet MAD: what ParseMAD takes. TransactionID and AttrID are m's
// own, not those of m.CM. Errors as of CM.Append.
func (m *MAD) Append(dst []byte) ([]byte, error) {
	out, err := m.appendMAD(AppendDETH(dst, m.DETH), &m.CM)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (m *MAD) appendMAD(dst []byte, c *CM) ([]byte, error) {
	if err := c.check(); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = append(dst, m.BaseVersion, m.Class, m.ClassVersion, m.Method)
	dst = binary.BigEndian.AppendUint16(dst, m.Status)
	dst = binary.BigEndian.AppendUint16(dst, m.ClassSpecific)
	dst = binary.BigEndian.AppendUint64(dst, m.TransactionID)
	dst = binary.BigEndian.AppendUint16(dst, m.AttrID)
	dst = append(dst, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, m.AttrModifier)
	var blank [cmBodyLen]byte
	n := copy(blank[:], c.Body)
	dst = append(append(dst, blank[:n]...), blank[n:]...)
	c.encode(dst[start+madHeaderLen:])
	return dst, nil
}

func (c *CM) check() error {
	switch {
	case !c.Kind.known():
		return errCMKind
	case c.LocalQPN > max24 || c.RemoteQPN > max24:
		return errCMQPN
	case c.StartingPSN > max24:
		return errCMPSN
	case c.Transport > 3 || c.PathMTU > 15 || c.RejMessage > 3:
		return errCMBits
	case len(c.Body) > cmBodyLen:
		return errCMBody
	case len(c.PrivateData) > cmBodyLen-privateDataAt[c.Kind-CMREQ]:
		return errCMPrivate
	}
	return nil
}

// encode writes the fields of c over b, the 232 octets of the message.
func (c *CM) encode(b []byte) {
	be := binary.BigEndian
	copy(b[privateDataAt[c.Kind-CMREQ]:], c.PrivateData)
	be.PutUint32(b, c.LocalCommID)
	switch c.Kind {
	case CMREQ, CMSIDRREQ, CMSIDRREP:
	default:
		be.PutUint32(b[4:], c.RemoteCommID)
	}
	switch c.Kind {
	case CMREQ:
		be.PutUint64(b[8:], c.ServiceID)
		putUint24(b[32:], c.LocalQPN)
		b[43] = b[43]&^0x06 | c.Transport<<1
		putUint24(b[44:], c.StartingPSN)
		be.PutUint16(b[48:], c.PKey)
		b[50] = b[50]&0x0F | c.PathMTU<<4
		copy(b[56:], c.LocalGID[:])
		copy(b[72:], c.RemoteGID[:])
	case CMREP:
		putUint24(b[12:], c.LocalQPN)
		putUint24(b[20:], c.StartingPSN)
	case CMDREQ:
		putUint24(b[8:], c.RemoteQPN)
	case CMLAP:
		putUint24(b[12:], c.RemoteQPN)
	case CMREJ:
		b[8] = b[8]&0x3F | c.RejMessage<<6
		be.PutUint16(b[10:], c.RejReason)
	case CMMRA:
		b[8] = b[8]&0x3F | c.RejMessage<<6
	case CMSIDRREQ:
		be.PutUint16(b[4:], c.PKey)
		be.PutUint64(b[8:], c.ServiceID)
	case CMSIDRREP:
		b[4] = c.SIDRStatus
		putUint24(b[8:], c.LocalQPN)
		be.PutUint64(b[12:], c.ServiceID)
	}
}
