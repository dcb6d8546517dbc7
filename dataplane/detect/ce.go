package detect

import (
	"context"
	"sync/atomic"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
)

// RetireTimeout is how long a CE-marked packet waits in the ring at most: the shortest the kernel offers,
// since the sender goes on at full rate meanwhile.
const RetireTimeout = time.Millisecond

// snapLen holds every header up to the BTH, with two VLAN tags and IPv4 options.
const snapLen = 128

// Config describes a CE source.
type Config struct {
	Interface string // the link whose departing packets are watched
	Blocks    int    // blocks of 256 KiB in the ring; 0 means 64
}

// Stats are counts since OpenCE.
type Stats struct {
	Events    uint64 // CE-marked data packets handed on
	Ignored   uint64 // CE-marked ACKs, CNPs, and packets of transports that can't be notified
	Malformed uint64 // CE-marked packets to port 4791 that are no sound RoCEv2
	Drops     uint64 // CE-marked packets lost because the ring was full
	Freezes   uint64 // how often the ring was full
	Downs     uint64 // how often the link went down
}

// CE is the source of congestion events that watches CE marks on one egress link.
type CE struct {
	ring      *tap.Ring
	events    atomic.Uint64
	ignored   atomic.Uint64
	malformed atomic.Uint64
}

// OpenCE opens the ring; Run hands the events over. Errors as of tap.Open.
func OpenCE(c Config) (*CE, error) {
	ring, err := tap.Open(tap.Config{
		Interface: c.Interface, Direction: tap.Outgoing, CEOnly: true,
		Blocks: c.Blocks, RetireTimeout: RetireTimeout, SnapLen: snapLen,
	})
	if err != nil {
		return nil, err
	}
	return &CE{ring: ring}, nil
}

// Interface returns the link's name.
func (c *CE) Interface() string { return c.ring.Interface() }

// Run calls fn for each event until ctx ends (nil) or the interface is gone (tap.ErrInterfaceGone). Other
// errors as of tap.Ring's Run.
func (c *CE) Run(ctx context.Context, fn func(Event)) error {
	var p roce.Packet
	return c.ring.Run(ctx, func(f *tap.Frame) {
		if ev, ok := c.observe(&p, f); ok {
			fn(ev)
		}
	})
}

// observe counts one frame and makes its event.
func (c *CE) observe(p *roce.Packet, f *tap.Frame) (Event, bool) {
	if err := roce.ParseEthernet(f.Data, p); err != nil {
		c.malformed.Add(1)
		return Event{}, false
	}
	if !Counts(p) {
		c.ignored.Add(1)
		return Event{}, false
	}
	c.events.Add(1)
	ev := Event{
		Sender: p.Src, Receiver: p.Dst, SrcPort: p.SrcPort, DstPort: roce.UDPPort, Proto: 17, DestQP: p.BTH.DestQP,
		CECount: 1, Source: SourceCE, Interface: c.ring.Interface(), VLAN: p.VLAN, At: f.At,
	}
	if f.HasVLAN {
		ev.VLAN = f.VLAN()
	}
	return ev, true
}

// Stats returns the counts since OpenCE.
func (c *CE) Stats() Stats {
	r := c.ring.Stats()
	return Stats{
		Events: c.events.Load(), Ignored: c.ignored.Load(), Malformed: c.malformed.Load(),
		Drops: r.Drops, Freezes: r.Freezes, Downs: r.Downs,
	}
}

// Close ends Run, waits for it, and releases the ring. A second Close does nothing.
func (c *CE) Close() error { return c.ring.Close() }
