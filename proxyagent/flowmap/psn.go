package flowmap

// psnDiff is a - b in the serial arithmetic of 24-bit PSNs: -2^23 to 2^23-1 (IBTA volume 1, section 9.7.2).
func psnDiff(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

// portMatches says whether port is the UDP source port that Linux gives a connection between two QPs:
// rdma_get_udp_sport of include/rdma/ib_verbs.h (a hash of the product of the QP numbers, so equal at
// both ends), or the older form of some vendor stacks.
func portMatches(lqpn, rqpn uint32, port uint16) bool {
	product := uint64(lqpn) * uint64(rqpn)
	return port == formulaPort(product) || port == olderFormulaPort(product)
}

func formulaPort(v uint64) uint16 {
	v ^= v >> 20
	v ^= v >> 40
	f := v & 0xFFFFF
	return uint16((f&0x3FFF)^(f>>14)) | 0xC000
}

func olderFormulaPort(v uint64) uint16 { return uint16((v^v>>16)&0x3FFF) | 0xC000 }
