package detect

import (
	"context"
	"sync/atomic"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
)

// samplerBlocks are the blocks of a sampler's ring, 4 MiB: it is shown few packets.
const samplerBlocks = 16

// SamplerConfig describes a Sampler.
type SamplerConfig struct {
	Interface string // the link whose departing packets are sampled
	Sample    int    // of its RoCEv2 packets, one in so many at random; 1: each
	Top       TopConfig
}

// SamplerStats are counts since OpenSampler.
type SamplerStats struct {
	Seen      uint64 // data packets of the sample
	Ignored   uint64 // packets of the sample that carry no data, or of transports that can't be notified
	Malformed uint64 // packets of the sample that are no sound RoCEv2
	Drops     uint64 // packets of the sample lost because the ring was full
	Freezes   uint64 // how often the ring was full
	Downs     uint64 // how often the link went down
}

// Sampler knows the top flows of a link, for sources that name a queue and no flow. It has a packet ring of its own,
// behind the queueing discipline, for which the kernel draws the sample.
type Sampler struct {
	ring *tap.Ring
	top  *TopFlows

	seen, ignored, malformed atomic.Uint64
}

// OpenSampler opens the ring; Run reads it. Errors as of tap.Open.
func OpenSampler(c SamplerConfig) (*Sampler, error) {
	ring, err := tap.Open(tap.Config{
		Interface: c.Interface, Direction: tap.Outgoing, Sample: c.Sample, Blocks: samplerBlocks, SnapLen: snapLen,
	})
	if err != nil {
		return nil, err
	}
	return &Sampler{ring: ring, top: NewTopFlows(c.Top)}, nil
}

// Run takes packets until ctx ends (nil) or the interface is gone (tap.ErrInterfaceGone). Other errors as of tap.Ring's
// Run.
func (s *Sampler) Run(ctx context.Context) error {
	var p roce.Packet
	var f TopFlow
	return s.ring.Run(ctx, func(frame *tap.Frame) {
		switch err := roce.ParseEthernet(frame.Data, &p); {
		case err != nil:
			s.malformed.Add(1)
		case !isData(p.BTH.Opcode):
			s.ignored.Add(1)
		default:
			s.seen.Add(1)
			f = TopFlow{Sender: p.Src, Receiver: p.Dst, SrcPort: p.SrcPort, DestQP: p.BTH.DestQP}
			s.top.Observe(&f, frame.Wire, frame.At)
		}
	})
}

// Top lists the top flows of the link, as TopFlows has them.
func (s *Sampler) Top(now time.Time) []TopFlow { return s.top.Top(now) }

// Stats returns the counts since OpenSampler.
func (s *Sampler) Stats() SamplerStats {
	r := s.ring.Stats()
	return SamplerStats{
		Seen: s.seen.Load(), Ignored: s.ignored.Load(), Malformed: s.malformed.Load(), Drops: r.Drops, Freezes: r.Freezes, Downs: r.Downs,
	}
}

// Close ends Run, waits for it, and releases the ring. A second Close does nothing.
func (s *Sampler) Close() error { return s.ring.Close() }
