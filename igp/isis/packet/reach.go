package packet

// ISReach is one entry of extended IS reachability: TLV 22 (RFC 5305 section 3), or 222 behind the topology
// (RFC 5120 section 7.1).
type ISReach struct {
	Neighbor NodeID
	Metric   uint32 // 24 bits
	SubTLVs  TLVs
}

// MaxLinkMetric keeps a link out of SPF (RFC 5305 section 3).
const MaxLinkMetric = 0xFFFFFF

const isReachLen = 11

// ParseISReach reads the value of TLV 22, or what follows the topology in 222.
func ParseISReach(value []byte) ([]ISReach, error) {
	var out []ISReach
	for at := 0; at < len(value); {
		b := value[at:]
		if len(b) < isReachLen {
			return out, fault(at, "IS reachability", "%d octets are left, at least %d are needed (RFC 5305 section 3)", len(b), isReachLen)
		}
		r := ISReach{Neighbor: NodeID(b), Metric: uint32(b[7])<<16 | uint32(b[8])<<8 | uint32(b[9])}
		n := isReachLen + int(b[10])
		if len(b) < n {
			return out, fault(at+10, "sub-TLV length", "is %d, %d octets are left", b[10], len(b)-isReachLen)
		}
		var err error
		if r.SubTLVs, err = ParseTLVs(b[isReachLen:n]); err != nil {
			return out, shifted(err, at+isReachLen)
		}
		out = append(out, r)
		at += n
	}
	return out, nil
}

// Append writes the entry.
func (r ISReach) Append(dst []byte) ([]byte, error) {
	length := r.SubTLVs.Len()
	switch {
	case r.Metric > MaxLinkMetric:
		return nil, fault(len(dst), "metric", "%d does not fit 24 bits", r.Metric)
	case length > maxValue:
		return nil, fault(len(dst), "sub-TLV length", "%d octets, at most %d fit", length, maxValue)
	}
	dst = append(dst, r.Neighbor[:]...)
	dst = append(dst, uint8(r.Metric>>16), uint8(r.Metric>>8), uint8(r.Metric), uint8(length))
	return r.SubTLVs.Append(dst)
}

// Len is the length of the entry on the wire, octets.
func (r ISReach) Len() int { return isReachLen + r.SubTLVs.Len() }
