package packet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// GraceReason says why a router restarts (RFC 3623 appendix A).
type GraceReason uint8

// The reasons.
const (
	GraceUnknown   GraceReason = 0
	GraceRestart   GraceReason = 1 // of the software
	GraceReload    GraceReason = 2 // of the software, or an upgrade
	GraceSwitching GraceReason = 3 // to a redundant control processor
)

// String gives the reason as logs write it.
func (r GraceReason) String() string {
	if r > GraceSwitching {
		return fmt.Sprintf("reason-%d", uint8(r))
	}
	return [...]string{"unknown", "software-restart", "software-reload", "control-processor-switch"}[r]
}

// TLV types of a grace LSA (RFC 3623 appendix A, RFC 5187 section 2.2).
const (
	gracePeriodTLV  uint16 = 1
	graceReasonTLV  uint16 = 2
	graceAddressTLV uint16 = 3 // OSPFv2
)

// Grace is the body of a grace LSA: a router asks its neighbours to keep it while it restarts (RFC 3623 appendix A,
// RFC 5187 section 2.2).
type Grace struct {
	Period time.Duration // whole seconds, from the LSA's origination on
	Reason GraceReason
	// Address is that of the restarting router's interface, with which its neighbours name it on networks that
	// aren't point-to-point. OSPFv2; invalid: not there.
	Address netip.Addr
	Unknown []TLV
}

// IsGrace reports whether a key names a grace LSA: type 9 with opaque type 3 in OSPFv2, type 11 in OSPFv3.
func (k Key) IsGrace(v Version) bool {
	if v == V3 {
		return k.Type == V3Grace
	}
	return k.Type == V2OpaqueLink && k.ID.OpaqueType() == OpaqueGrace
}

// ParseGrace reads the body of a grace LSA. Of TLVs that come twice the first counts.
func ParseGrace(v Version, b []byte) (Grace, error) {
	tlvs, err := ParseTLVs(b)
	if err != nil {
		return Grace{}, err
	}
	var g Grace
	seen := map[uint16]bool{}
	for _, t := range tlvs {
		want, known := graceLen(v, t.Type)
		switch {
		case !known:
			g.Unknown = append(g.Unknown, t)
			continue
		case len(t.Value) != want:
			return Grace{}, fault(0, graceNames[t.Type], "%d octets, must be %d (RFC 3623 appendix A)", len(t.Value), want)
		case seen[t.Type]:
			continue
		}
		seen[t.Type] = true
		switch t.Type {
		case gracePeriodTLV:
			g.Period = time.Duration(binary.BigEndian.Uint32(t.Value)) * time.Second
		case graceReasonTLV:
			g.Reason = GraceReason(t.Value[0])
		case graceAddressTLV:
			g.Address = netip.AddrFrom4([4]byte(t.Value))
		}
	}
	for _, typ := range []uint16{gracePeriodTLV, graceReasonTLV} {
		if !seen[typ] {
			return Grace{}, fault(len(b), graceNames[typ], "is not there, must be (RFC 3623 appendix A)")
		}
	}
	return g, nil
}

var graceNames = map[uint16]string{gracePeriodTLV: "grace period", graceReasonTLV: "graceful restart reason", graceAddressTLV: "IP interface address"}

// graceLen gives the length that a TLV's value must have, octets; false: the type is not known.
func graceLen(v Version, typ uint16) (octets int, known bool) {
	switch {
	case typ == gracePeriodTLV:
		return 4, true
	case typ == graceReasonTLV:
		return 1, true
	case typ == graceAddressTLV && v == V2:
		return 4, true
	}
	return 0, false
}

// Append writes the body. A period of no whole seconds loses what is beyond them.
func (g Grace) Append(dst []byte) []byte {
	dst = AppendTLV(dst, TLV{gracePeriodTLV, binary.BigEndian.AppendUint32(nil, uint32(g.Period/time.Second))})
	dst = AppendTLV(dst, TLV{graceReasonTLV, []byte{uint8(g.Reason)}})
	if g.Address.Is4() {
		a := g.Address.As4()
		dst = AppendTLV(dst, TLV{graceAddressTLV, a[:]})
	}
	for _, t := range g.Unknown {
		dst = AppendTLV(dst, t)
	}
	return dst
}
