package evidence

import (
	"net/netip"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
)

// Record is one decision, flat: handing it over copies it and allocates nothing. Fields that don't
// belong to the outcome's part are left zero.
type Record struct {
	Sequence uint64    // set by the Recorder: counts this node's records since boot, from 1
	At       time.Time // when the event was seen or the notification received
	Outcome  Outcome
	Flow     Flow
	Err      string // the system's or the decoder's error, where there was one

	Congestion  Congestion  // at a congestion node
	Translation Translation // at a proxy
}

// Flow is the flow that an event or a notification names. It was not read when Sender is invalid.
type Flow struct {
	Context          string // VPN; empty for the default one
	Sender, Receiver netip.Addr
	SrcPort, DstPort uint16 // UDP
	Proto            uint8  // IP protocol
	DestQP           uint32 // 24 bits; in a notification of format 2 that of the entry found, else zero
	NRP              uint32 // NRP Selector ID, looked at with HasNRP only
	HasNRP           bool   // the notification has format 2
}

// Congestion is a congestion node's part of a Record.
type Congestion struct {
	Source     string               // the detector and the interface, as in "ce eth2"; a queue of it where that is known
	CECount    uint64               // CE-marked packets of the flow since its last notification, this one included
	QueueDepth uint64               // in the queue before the packet, or when it was looked at; zero when not known
	DepthUnit  pncv1.QueueDepthUnit // of QueueDepth
	Proxy      netip.Addr           // the proxy resolved; invalid when none was
	Route      *pnc.Entry           // the route used, or that gave the reason; nil when none matched
	Event      EventNumber
}

// EventNumber joins a notification at both ends; zero when no notification left.
type EventNumber struct {
	Port  uint16 // UDP source port, 49152 to 65535
	Count uint64 // notifications to that proxy since boot, from 1; zero at the proxy
}

// Translation is a proxy's part of a Record.
type Translation struct {
	Node        netip.Addr // the congestion node; invalid when not known
	EventPort   uint16     // the notification's UDP source port
	Gap         uint32     // notifications missing before this one from the same node
	NRPVersion  uint64     // of the NRP map, when the entry that was used last changed; zero without one
	Entry       MapEntry
	SourceQP    uint32        // Destination QP of the CNP, 24 bits; zero when none was sent
	Receipt     uint64        // this proxy's CNPs, counted from 1; zero when none was sent
	ReceiptPort uint16        // the CNP's UDP source port
	Latency     time.Duration // from reading the notification to handing the CNP to the kernel
}

// MapEntry is the entry of the Source-QP map that was used. There was none when State is unspecified.
type MapEntry struct {
	State            pncv1.FlowState
	Source           pncv1.FlowSource
	SourceQP         uint32 // 24 bits; zero when not known
	PKey             uint16
	Version          uint64 // of the map, when this entry last changed
	Votes            uint32
	Forward, Reverse bool // data, and responses to it, were seen
	LearnedAt        time.Time
	ChangedAt        time.Time
	LastSeen         time.Time
	UDPSourcePort    uint16
	Detail           string
}
