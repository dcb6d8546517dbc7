package message

// EventPort is the UDP source port that carries event number n.
func EventPort(n uint64) uint16 { return uint16(EventPortBase + n%EventPortCount) }

// EventIndex is the event number modulo 16,384 that a UDP source port carries; false when the port is
// outside of the range and so carries none.
func EventIndex(port uint16) (uint16, bool) {
	if port < EventPortBase {
		return 0, false
	}
	return port - EventPortBase, true
}
