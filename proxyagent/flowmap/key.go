package flowmap

import (
	"fmt"
	"net/netip"
)

// Key names one direction of a queue pair's traffic, by what its data packets show.
type Key struct {
	Context  uint32     // VPN context; 0 is the default one
	Sender   netip.Addr // outer source address of the data
	Receiver netip.Addr // outer destination address of the data
	DestQP   uint32     // Destination QP of the data, 24 bits
}

// String writes the key as "sender>receiver qp 0x1234", with the context when it is not the default.
func (k Key) String() string {
	s := fmt.Sprintf("%v>%v qp 0x%x", k.Sender, k.Receiver, k.DestQP)
	if k.Context != 0 {
		s += fmt.Sprintf(" context %d", k.Context)
	}
	return s
}

// flowKey is Key without pointers: it hashes and compares as plain memory, and costs the collector nothing.
type flowKey struct {
	sender, receiver [16]byte
	context, destQP  uint32
}

func (k *Key) flat() flowKey {
	return flowKey{sender: k.Sender.As16(), receiver: k.Receiver.As16(), context: k.Context, destQP: k.DestQP & qpMask}
}

// streamKey is a flowKey with the VLAN.
type streamKey struct {
	flow flowKey
	vlan uint16
}

// streamKey is the key of the packets to a QP on a side.
func (k *pairKey) streamKey(to uint8, qp uint32) streamKey {
	return streamKey{flowKey{sender: *k.side(1 - to), receiver: *k.side(to), context: k.context, destQP: qp & qpMask}, k.vlan}
}

// streamKeyOf is the key of a flow's stream.
func (m *Map) streamKeyOf(k Key, vlan uint16) streamKey {
	key, from := m.pairOf(k.Sender, k.Receiver, k.Context, vlan)
	return key.streamKey(1-from, k.DestQP)
}

const (
	qpMask  = 0xFFFFFF // queue pair numbers have 24 bits
	psnMask = 0xFFFFFF // packet sequence numbers have 24 bits
)
