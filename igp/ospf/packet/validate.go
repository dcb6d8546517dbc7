package packet

import "encoding/binary"

// CheckBody holds an LSA's body to the format of its type. FRR drops a whole update with an LSA that breaks it, and so
// all others that go out with that one; BIRD drops the LSA. Types that are not known here, and opaque LSAs, pass.
func (l LSA) CheckBody(v Version) (err error) {
	b := l.Body()
	if v == V3 {
		return shifted(checkV3(l.Type, b), HeaderLen)
	}
	switch l.Type {
	case V2Router:
		_, err = ParseV2Router(b)
	case V2Network:
		_, err = ParseV2Network(b)
	case V2Summary, V2ASBR:
		_, _, err = ParseV2Summary(b)
	case V2External, V2NSSA:
		// Mask, and 12 octets for each type of service (RFC 2328 section A.4.5).
		if len(b) < 16 || (len(b)-4)%12 != 0 {
			err = fault(0, "AS-external LSA", "%d octets, must be 4 and 12 for each of at least one metric (RFC 2328 section A.4.5)", len(b))
		}
	}
	return shifted(err, HeaderLen)
}

func checkV3(t LSType, b []byte) (err error) {
	switch t {
	case V3Router:
		_, err = ParseV3Router(b)
	case V3Network:
		_, err = ParseV3Network(b)
	case V3InterAreaPrefix:
		_, _, err = ParseV3InterAreaPrefix(b)
	case V3InterAreaRouter:
		_, _, err = ParseV3InterAreaRouter(b)
	case V3IntraAreaPrefix:
		_, err = ParseV3IntraArea(b)
	case V3External, V3NSSA:
		err = checkV3External(b)
	case V3Link:
		_, err = ParseV3Link(b)
	}
	return err
}

// Flags of an AS-external LSA of OSPFv3, which say what follows the prefix (RFC 5340 section A.4.7).
const (
	v3ExternalT = 0x01 // a route tag
	v3ExternalF = 0x02 // a forwarding address
)

func checkV3External(b []byte) error {
	const fixed = 8
	if len(b) < fixed {
		return fault(0, "AS-external LSA", "%d octets, must be at least 8 (RFC 5340 section A.4.7)", len(b))
	}
	_, n, err := parsePrefix(b[fixed:], int(b[4]))
	if err != nil {
		return shifted(err, fixed)
	}
	want := fixed + n
	if b[0]&v3ExternalF != 0 {
		want += 16
	}
	if b[0]&v3ExternalT != 0 {
		want += 4
	}
	if binary.BigEndian.Uint16(b[6:]) != 0 { // a referenced LSA
		want += 4
	}
	if len(b) != want {
		return fault(0, "AS-external LSA", "%d octets, its flags and prefix say %d (RFC 5340 section A.4.7)", len(b), want)
	}
	return nil
}
