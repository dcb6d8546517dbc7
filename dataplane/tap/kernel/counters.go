package kernel

import "fmt"

// Counters are counts since Open, of all interfaces together.
type Counters struct {
	Packets      uint64          // RoCEv2 packets
	Octets       uint64          // of their IP packets
	Transport    [8]uint64       // of Packets, by roce.Transport
	RoCEv1       uint64          // RoCEv1 frames
	Refused      uint64          // UDP to port 4791 that is no sound RoCEv2 packet
	HandedUp     [reasons]uint64 // by Reason
	Lost         uint64          // packets that should have been, while the ring buffer was full
	FlowsMade    uint64          // entries made
	FlowsRefused uint64          // packets for whose flow no entry could be made
}

// Counters sums the counts of all processors. Each of them is exact; while packets pass, they are not of one moment.
func (t *Tap) Counters() (Counters, error) {
	var all []learnCounters
	if err := t.maps.Counts.Lookup(uint32(0), &all); err != nil {
		return Counters{}, fmt.Errorf("kernel tap: counters: %w", err)
	}
	var sum Counters
	for i := range all {
		c := &all[i]
		sum.Packets += c.Packets
		sum.Octets += c.Octets
		sum.RoCEv1 += c.RoceV1
		sum.Refused += c.Refused
		sum.Lost += c.Lost
		sum.FlowsMade += c.FlowsMade
		sum.FlowsRefused += c.FlowsRefused
		for j := range sum.Transport {
			sum.Transport[j] += c.Transport[j]
		}
		for j := range sum.HandedUp {
			sum.HandedUp[j] += c.Told[j]
		}
	}
	return sum, nil
}

// Flows returns how many flows there are, and how many were evicted because the map was full. The kernel does not
// tell that: it is what was made, less what was removed and what is there. It reads the whole map, and
// is exact while no flow comes or goes.
func (t *Tap) Flows() (live, evicted uint64, err error) {
	if err := t.Each(func(Key, Flow) bool { live++; return true }); err != nil {
		return 0, 0, err
	}
	c, err := t.Counters()
	if err != nil {
		return 0, 0, err
	}
	if gone := t.removed.Load() + live; c.FlowsMade > gone {
		evicted = c.FlowsMade - gone
	}
	return live, evicted, nil
}
