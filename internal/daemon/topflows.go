package daemon

import (
	"errors"
	"fmt"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/detect"
	"pncd/dataplane/host"
	"pncd/dataplane/roce"
	"pncd/internal/config"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/notifier"
)

// protoUDP is the IP protocol of every flow that is named.
const protoUDP = 17

// samplerUnit is what knows the top flows of one link.
type samplerUnit struct {
	*detect.Sampler
	closing []func()
}

// samplerSpecs are the samplers of all links with a source that knows a queue and no flow.
func (d *Daemon) samplerSpecs(c *config.Config) (out []unitSpec) {
	top := c.CongestionNode.Detect.TopFlows
	for _, l := range c.SampledLinks() {
		link, namespace := inContext(l.Context, l.Interface), l.Namespace
		out = append(out, unitSpec{
			name: "top-flows:" + link, key: fmt.Sprintf("top-flows:%s@%s:%+v", link, namespace, top), from: "congestion_node.detect",
			open: func() (r runner, err error) {
				err = host.Inside(namespace, func() error {
					r, err = d.openSampler(link, l.Interface, top)
					return err
				})
				return r, err
			},
			health: linkHealthIn(namespace, l.Interface),
			detail: func() string {
				return fmt.Sprintf("of one RoCEv2 packet in %d: at most %d flows, each with %d %% of the octets in %s", top.Sample, top.Count, top.Share, top.Window)
			},
		})
	}
	return out
}

func (d *Daemon) openSampler(link, iface string, top config.TopFlows) (runner, error) {
	s, err := detect.OpenSampler(detect.SamplerConfig{
		Interface: iface, Sample: top.Sample,
		Top: detect.TopConfig{Window: top.Window.Duration, Count: top.Count, Share: top.Share},
	})
	if err != nil {
		return nil, err
	}
	counts := d.rings.opened(link, roleTopFlows, func() ringStats {
		n := s.Stats()
		return ringStats{
			Packets: n.Seen + n.Ignored + n.Malformed, Shown: n.Seen + n.Ignored + n.Malformed, Drops: n.Drops, Freezes: n.Freezes, Downs: n.Downs,
		}
	})
	return &samplerUnit{s, []func(){counts, d.samplers.opened(link, s)}}, nil
}

// Close implements runner.
func (s *samplerUnit) Close() error {
	for _, f := range s.closing {
		f()
	}
	return s.Sampler.Close()
}

// queueEvent is a congested queue of a link of this node.
type queueEvent struct {
	context, link string // link with its context
	source        string // as in a record
	depth         uint64
	unit          pncv1.QueueDepthUnit
}

// told is what became of one flow.
type told struct {
	flow    detect.TopFlow // without a sender when none could be named
	outcome evidence.Outcome
}

var errNotSampled = errors.New("the link's traffic is not looked at just now")

// tellQueue hands an event of each top flow of the link to the notifier. When there is none, that is the queue's outcome.
func (d *Daemon) tellQueue(n *notifier.Notifier, q *queueEvent, now time.Time) (out []told) {
	var top []detect.TopFlow
	sampler := d.samplers.get(q.link)
	if sampler != nil {
		top = sampler.Top(now)
	}
	for i := range top {
		f := &top[i]
		ev := notifier.Event{
			Context: q.context, Sender: f.Sender, Receiver: f.Receiver, SrcPort: f.SrcPort, DstPort: roce.UDPPort, Proto: protoUDP, DestQP: f.DestQP,
			QueueDepth: q.depth, DepthUnit: q.unit, Source: q.source, At: now,
		}
		out = append(out, told{*f, n.Handle(&ev, now)})
	}
	if len(out) > 0 {
		return out
	}
	rec := evidence.Record{
		At: now, Outcome: pncv1.Outcome_OUTCOME_FLOW_UNKNOWN,
		Congestion: evidence.Congestion{Source: q.source, QueueDepth: q.depth, DepthUnit: q.unit},
	}
	if sampler == nil {
		rec.Err = errNotSampled.Error()
	}
	d.recorder.Received(evidence.PartCongestionNode, 1)
	d.recorder.Record(&rec)
	return []told{{outcome: rec.Outcome}}
}
