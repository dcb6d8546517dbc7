package translator

import (
	"net/netip"
	"time"
)

// Datagram is one UDP datagram as it was read, with what the kernel tells about it.
type Datagram struct {
	Payload []byte         // the UDP payload, as much of it as was kept
	Length  int            // the payload's real length in octets
	From    netip.AddrPort // outer source, never 4-in-6 mapped
	To      netip.Addr     // outer destination
	TTL     int            // TTL or hop limit; UnknownTTL when the kernel did not tell
	IfIndex int            // interface that it came in by
	IfName  string         // its name; empty when it is gone
	BadSum  bool           // the UDP checksum is not zero and wrong
	At      time.Time      // when the kernel received it
	ReadAt  time.Time      // when it was read from the socket
}

// UnknownTTL fails any minimum.
const UnknownTTL = -1
