package detect

import (
	"net/netip"
	"time"

	"pncd/dataplane/roce"
)

// Sources of congestion events. Those that know a queue and no flow make no Event: the flows come from a Sampler.
const (
	SourceCE           = "ce"            // CE marks, by packet ring or eBPF
	SourceVirtualQueue = "virtual-queue" // marked by the depth of a virtual queue
	SourceQdisc        = "qdisc"         // the statistics of a link's queueing disciplines
	SourceAPI          = "api"           // the report of a switch agent
)

// Event is one observation of a congested flow.
type Event struct {
	Sender, Receiver netip.Addr // of the data: for a READ response the sender is the responder
	SrcPort          uint16     // UDP source port of the data packet
	DstPort          uint16     // 4791
	Proto            uint8      // 17
	DestQP           uint32     // Destination QP of the data packet, 24 bits
	CECount          uint64     // CE-marked packets that this event stands for; always 1 from a packet ring
	QueueDepth       uint64     // octets before the packet in the queue; 0 when not known
	Source           string     // which detector
	Interface        string     // the congested link
	VLAN             uint16     // outer VLAN identifier, 0 without
	At               time.Time  // when the kernel captured the packet
}

// ecnCE is Congestion Experienced in the low two bits of the TOS or traffic class (RFC 3168 section 5).
const ecnCE = 3

// Counts reports whether a packet is evidence of a congested flow: marked CE, and a request of RC or UC or a
// READ response. ACKs and CNPs never count: their sender is not who sends the data.
func Counts(p *roce.Packet) bool { return p.TOS&ecnCE == ecnCE && isData(p.BTH.Opcode) }

func isData(o roce.Opcode) bool {
	switch o.Transport() {
	case roce.TransportRC:
		return o.IsRequest() || o.IsReadResponse()
	case roce.TransportUC:
		return o.IsRequest()
	}
	return false
}
