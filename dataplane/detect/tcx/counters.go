package tcx

import (
	"fmt"

	"pncd/dataplane/detect"
)

// SourceCounters are counts of the data packets that one source has found.
type SourceCounters struct {
	Events   uint64 // packets of which an event was made
	Gated    uint64 // packets within Config.Gate of their flow's last event
	Lost     uint64 // packets whose event was lost: the ring buffer was full, or was not read to its end when the detector was closed
	GateFull uint64 // packets for whose flow no entry could be made
}

// Packets is how many packets a source has found.
func (c SourceCounters) Packets() uint64 { return c.Events + c.Gated + c.Lost + c.GateFull }

// Counters are counts since Open.
type Counters struct {
	Ignored    uint64 // packets that came marked and don't count: ACKs, CNPs, transports that can't be notified
	Refused    uint64 // packets that came marked, to RoCEv2's port, and are no sound RoCEv2
	MarkFailed uint64 // packets that the virtual queue could not mark
	Forgotten  uint64 // flows that made room for others in the gate, at least: those entered beyond Config.Flows
	CE, Queue  SourceCounters
}

// Counters sums the counts of all processors. Each of them is exact; while packets pass, they are not of one moment. After
// Close they stay as they were, and with an error they are those that were read last: they never step back.
func (d *Detector) Counters() (Counters, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.last, nil
	}
	err := d.read()
	return d.last, err
}

// read takes the counts into d.last.
func (d *Detector) read() error {
	var all []detectCounters
	if err := d.maps.Counts.Lookup(uint32(0), &all); err != nil {
		return fmt.Errorf("detector: %s: counters: %w", d.name, err)
	}
	var sum Counters
	var entered uint64
	for i := range all {
		c := &all[i]
		sum.Ignored += c.Ignored
		sum.Refused += c.Refused
		sum.MarkFailed += c.MarkFailed
		entered += c.Entered
		for s, to := range []*SourceCounters{&sum.CE, &sum.Queue} {
			to.Events += c.Events[s]
			to.Gated += c.Gated[s]
			to.Lost += c.Lost[s]
			to.GateFull += c.GateFull[s]
		}
	}
	if entered > d.flows {
		sum.Forgotten = entered - d.flows
	}
	d.last = sum
	return nil
}

// unread counts events by source that nobody has taken.
type unread map[string]uint64

// lose takes events that nobody has taken for lost ones.
func (c *Counters) lose(left unread) {
	for name, to := range map[string]*SourceCounters{detect.SourceCE: &c.CE, detect.SourceVirtualQueue: &c.Queue} {
		to.Events -= left[name]
		to.Lost += left[name]
	}
}
