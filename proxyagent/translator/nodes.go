package translator

import (
	"net/netip"
	"time"

	"pncd/proxyagent/internal/lru"
	"pncd/proxyagent/message"
)

// restartStep: a step of more than this, which is a step backwards in a counter of 14 bits, is a
// restart of the node.
const restartStep = message.EventPortCount / 2

// Node is what is known of one congestion node from its event numbers. A node counts for each address
// of a proxy and each format apart.
type Node struct {
	Addr     netip.Addr // of the congestion node
	Proxy    netip.Addr // our address that it sends to
	Format   message.Format
	Received uint64 // datagrams
	Lost     uint64 // event numbers that were left out and did not come later
	Late     uint64 // event numbers that came after a later one
	Repeated uint64 // datagrams with the number of the one before
	Restarts uint64
	LastSeen time.Time
}

// nodeState follows one node's event numbers.
type nodeState struct {
	Node
	numbered bool
	last     uint16 // event number modulo 16,384
	// missing: bit i is set when number last-1-i was counted as lost and may still come.
	missing uint64
}

// nodes follows a bounded number of congestion nodes; one that made room for others starts anew.
type nodes struct {
	table *lru.Table[nodeKey, nodeState]
}

// nodeKey has the format too: a node numbers the notifications to each port of a proxy apart, for they are read
// apart and so not in one order.
type nodeKey struct {
	node, proxy netip.Addr
	format      message.Format
}

func newNodes(limit int) *nodes { return &nodes{table: lru.New[nodeKey, nodeState](limit)} }

// observe takes a datagram from a node to our address and the port of a format, and returns how many event numbers
// were left out before it.
func (n *nodes) observe(format message.Format, from netip.AddrPort, to netip.Addr, now time.Time) uint32 {
	key := nodeKey{from.Addr(), to, format}
	s := n.table.Get(key)
	if s == nil {
		s = n.table.Put(key)
		s.Addr, s.Proxy, s.Format = from.Addr(), to, format
	}
	s.Received++
	s.LastSeen = now
	number, ok := message.EventIndex(from.Port())
	if !ok {
		return 0 // no event number: just a port
	}
	return s.step(number)
}

func (s *nodeState) step(number uint16) uint32 {
	if !s.numbered {
		s.numbered, s.last, s.missing = true, number, 0
		return 0
	}
	switch ahead := (number - s.last) % message.EventPortCount; {
	case ahead == 0:
		s.Repeated++
		return 0
	case ahead <= restartStep:
		s.last = number
		lost := uint32(ahead - 1)
		s.missing = s.missing<<ahead | lowBits(lost)
		s.Lost += uint64(lost)
		return lost
	default:
		return s.stepBack(number, message.EventPortCount-ahead)
	}
}

// stepBack: a number that was counted as lost was only late; any other step back is a restart, not
// loss.
func (s *nodeState) stepBack(number, back uint16) uint32 {
	if bit := uint64(1) << (back - 1); back <= 64 && s.missing&bit != 0 {
		s.missing &^= bit
		s.Late++
		s.Lost--
		return 0
	}
	s.Restarts++
	s.last, s.missing = number, 0
	return 0
}

// lowBits has the n lowest bits set.
func lowBits(n uint32) uint64 {
	if n >= 64 {
		return ^uint64(0)
	}
	return 1<<n - 1
}

// list gives the nodes, most recently heard first.
func (n *nodes) list() []Node {
	all := make([]Node, 0, n.table.Len())
	n.table.All(func(_ nodeKey, s *nodeState) bool {
		all = append(all, s.Node)
		return true
	})
	return all
}
