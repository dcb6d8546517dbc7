package kernel

import "fmt"

// Counters are counts of packets of one interface, or of all together.
type Counters struct {
	Packets      uint64          // RoCEv2 packets
	Octets       uint64          // of their IP packets
	Transport    [8]uint64       // of Packets, by roce.Transport
	RoCEv1       uint64          // RoCEv1 frames
	Refused      uint64          // UDP to port 4791 that is no sound RoCEv2 packet
	HandedUp     [reasons]uint64 // by Reason
	Lost         uint64          // packets that should have been, while the ring buffer was full
	LostMADs     uint64          // of Lost, management datagrams
	FlowsMade    uint64          // entries made
	FlowsEvicted uint64          // entries that went because others took their places
	FlowsRefused uint64          // packets for whose flow no entry could be made
}

// add adds each count of c, times sign, which is 1 or -1.
func (n *Counters) add(c *Counters, sign uint64) {
	n.Packets += sign * c.Packets
	n.Octets += sign * c.Octets
	n.RoCEv1 += sign * c.RoCEv1
	n.Refused += sign * c.Refused
	n.Lost += sign * c.Lost
	n.LostMADs += sign * c.LostMADs
	n.FlowsMade += sign * c.FlowsMade
	n.FlowsEvicted += sign * c.FlowsEvicted
	n.FlowsRefused += sign * c.FlowsRefused
	for i := range n.Transport {
		n.Transport[i] += sign * c.Transport[i]
	}
	for i := range n.HandedUp {
		n.HandedUp[i] += sign * c.HandedUp[i]
	}
}

const minusOne = ^uint64(0)

// Add adds other counts.
func (n *Counters) Add(c *Counters) { n.add(c, 1) }

// Told is how many packets were handed up, whatever the reason.
func (n *Counters) Told() (sum uint64) {
	for _, x := range n.HandedUp {
		sum += x
	}
	return sum
}

// Counters returns the counts since Open, of all interfaces together. Each is exact; while packets pass, they are not of
// one moment.
func (t *Tap) Counters() (Counters, error) {
	var sum Counters
	for slot := range uint32(slots) {
		c, err := t.countersOf(slot)
		if err != nil {
			return Counters{}, err
		}
		sum.add(&c, 1)
	}
	if t.before != nil {
		sum.add(&t.before.counts, minusOne)
	}
	return sum, nil
}

// countersOf sums the counts of all processors in one slot.
func (t *Tap) countersOf(slot uint32) (Counters, error) {
	var all []learnCounters
	if err := t.maps.Counts.Lookup(slot, &all); err != nil {
		return Counters{}, fmt.Errorf("kernel tap: counters: %w", err)
	}
	var sum Counters
	for i := range all {
		c := &all[i]
		sum.add(&Counters{
			Octets: c.Octets, Transport: c.Transport, RoCEv1: c.RoceV1, Refused: c.Refused, HandedUp: c.Told,
			Lost: c.Lost, LostMADs: c.LostMads, FlowsMade: c.FlowsMade, FlowsEvicted: c.FlowsEvicted, FlowsRefused: c.FlowsRefused,
		}, 1)
	}
	for _, n := range sum.Transport {
		sum.Packets += n
	}
	return sum, nil
}

// Counters returns the counts of this interface since Attach, and how often it went down since then; after Close, the last
// ones.
func (a *Attachment) Counters() (c Counters, downs uint64, err error) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	c = a.last
	if _, ok := a.t.attached[a]; ok {
		if c, err = a.counted(); err != nil {
			return Counters{}, 0, err
		}
	}
	return c, a.watch.wentDown(), nil
}

// counted reads the counts since Attach; a.t.mu is held.
func (a *Attachment) counted() (Counters, error) {
	c, err := a.t.countersOf(a.slot)
	if err == nil {
		c.add(&a.base, minusOne)
	}
	return c, err
}

// Flows returns how many flows there are, for which it reads the whole table, and how many were evicted because there
// was no place for another, since the table was made.
func (t *Tap) Flows() (live, evicted uint64, err error) {
	if err := t.Each(func(Key, Flow) bool { live++; return true }); err != nil {
		return 0, 0, err
	}
	c, err := t.Counters()
	return live, c.FlowsEvicted, err
}
