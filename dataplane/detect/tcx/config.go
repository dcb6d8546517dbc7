package tcx

import (
	"errors"
	"fmt"
	"time"
)

// Defaults.
const (
	DefaultGate  = time.Millisecond
	DefaultFlows = 1 << 16

	minFlows = 1 << 10
	maxFlows = 1 << 22
	maxGate  = time.Minute

	// ringSize holds some 9,000 events: 9 ms of 1,000 flows that are reported each millisecond.
	ringSize = 1 << 20
)

// Config describes the detector of one link. Zero values mean the defaults.
type Config struct {
	Interface string
	CE        bool          // report packets that come marked
	Queue     *Queue        // nil: no virtual queue
	Gate      time.Duration // a flow is reported once in this time, at most a minute; negative: each packet
	Flows     int           // flows whose last report is remembered, 1,024 to 4,194,304; the least recently seen goes first
	Seed      uint64        // of the virtual queue's random numbers; 0: a random one
}

// Bounds of a virtual queue.
const (
	MinRate = 1_000_000         // bits a second
	MaxRate = 1_600_000_000_000 // bits a second
	MaxKmax = 1 << 30           // octets, and at most a second of the rate
)

// Queue is a virtual queue.
type Queue struct {
	Rate       uint64  // at which it drains, bits a second, MinRate to MaxRate
	Kmin, Kmax uint32  // octets; Kmin < Kmax <= MaxKmax, and a second of the rate
	Pmax       float64 // probability of a mark at Kmax, above 0 and at most 1
}

// Errors of Open and Run, matched with errors.Is.
var (
	ErrNoInterface = errors.New("no such interface")
	ErrDetached    = errors.New("the program is no longer on the interface: that is gone, or somebody took the program off")
	ErrClosed      = errors.New("detector is closed")
)

// withDefaults fills in defaults and holds the values to their ranges.
func (c Config) withDefaults() (Config, error) {
	if c.Gate == 0 {
		c.Gate = DefaultGate
	}
	if c.Flows == 0 {
		c.Flows = DefaultFlows
	}
	switch {
	case !c.CE && c.Queue == nil:
		return c, errors.New("neither CE marks nor a virtual queue are to be watched")
	case c.Gate > maxGate:
		return c, fmt.Errorf("gate %v: more than %v", c.Gate, maxGate)
	case c.Flows < minFlows || c.Flows > maxFlows:
		return c, fmt.Errorf("%d flows: not within %d to %d", c.Flows, minFlows, maxFlows)
	}
	if c.Queue != nil {
		return c, c.Queue.check()
	}
	return c, nil
}

func (q *Queue) check() error {
	switch {
	case q.Rate < MinRate || q.Rate > MaxRate:
		return fmt.Errorf("virtual queue: rate of %d b/s: not within %d to %d", q.Rate, MinRate, MaxRate)
	case q.Kmin >= q.Kmax:
		return fmt.Errorf("virtual queue: Kmin of %d octets: not less than Kmax, %d", q.Kmin, q.Kmax)
	case q.Kmax > MaxKmax || uint64(q.Kmax) > q.Rate/8:
		return fmt.Errorf("virtual queue: Kmax of %d octets: more than %d, or than a second of the rate", q.Kmax, MaxKmax)
	case !(q.Pmax > 0 && q.Pmax <= 1):
		return fmt.Errorf("virtual queue: Pmax of %v: not above 0 and at most 1", q.Pmax)
	}
	return nil
}

// depthShift is DEPTH_SHIFT of detect.c: the queue's depth is kept in 2^-20 octets.
const depthShift = 20

// drain is what leaves the queue in a nanosecond, in 2^-20 octets, rounded: within 0.4 % of the rate.
func (q *Queue) drain() uint64 { return (q.Rate<<depthShift + 4e9) / 8e9 }
