package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"pncd/dataplane/detect"
	"pncd/dataplane/detect/qdisc"
	"pncd/dataplane/host"
	"pncd/internal/config"
	"pncd/proxyagent/notifier"
)

// qdiscUnit hands the congestion of one link's queueing disciplines to the notifier.
type qdiscUnit struct {
	*qdisc.Poller
	tell   func(qdisc.Congestion)
	closed func()
}

// qdiscCounts are the counts of every link that was ever looked at.
type qdiscCounts struct {
	mu   sync.Mutex
	byID map[string]*qdisc.Counters // by link, with its context
}

func (c *qdiscCounts) of(link string) *qdisc.Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]*qdisc.Counters{}
	}
	if c.byID[link] == nil {
		c.byID[link] = new(qdisc.Counters)
	}
	return c.byID[link]
}

func (c *qdiscCounts) links() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.byID))
}

// qdiscSpecs are the pollers of all links that have one.
func (d *Daemon) qdiscSpecs(c *config.Config, n *notifier.Notifier) (out []unitSpec) {
	for _, l := range c.QdiscLinks() {
		link, namespace, q := inContext(l.Context, l.Interface), l.Namespace, l.Qdisc
		up := linkHealthIn(namespace, q.Interface)
		out = append(out, unitSpec{
			name: "qdisc:" + link, key: fmt.Sprintf("qdisc:%s@%s:%+v", link, namespace, q), from: "congestion_node.detect.qdiscs",
			open: func() (r runner, err error) {
				err = host.Inside(namespace, func() error {
					r, err = d.openQdisc(l.Context, link, q, n)
					return err
				})
				return r, err
			},
			health: func() error {
				if err := up(); err != nil {
					return err
				}
				if p := d.pollers.get(link); p != nil {
					return p.Check()
				}
				return nil
			},
			detail: func() string {
				p := d.pollers.get(link)
				if p == nil {
					return ""
				}
				k := d.qdiscs.of(link)
				return fmt.Sprintf("%s each %s: congested in %d of %d looks", p.Kinds(), q.Interval, k.Congested.Load(), k.Polls.Load())
			},
		})
	}
	return out
}

func (d *Daemon) openQdisc(context, link string, q config.Qdisc, n *notifier.Notifier) (runner, error) {
	p, err := qdisc.Open(qdisc.Config{Interface: q.Interface, Interval: q.Interval.Duration, Backlog: uint32(q.Backlog), Counters: d.qdiscs.of(link)})
	if err != nil {
		return nil, err
	}
	event := queueEvent{context: context, link: link, source: detect.SourceQdisc + " " + link}
	return &qdiscUnit{p, func(c qdisc.Congestion) {
		event.depth = uint64(c.Depth)
		d.tellQueue(n, &event, d.now())
	}, d.pollers.opened(link, p)}, nil
}

// Run implements runner.
func (u *qdiscUnit) Run(ctx context.Context) error { return u.Poller.Run(ctx, u.tell) }

// Close implements runner.
func (u *qdiscUnit) Close() error {
	u.closed()
	return u.Poller.Close()
}

// qdiscCounters are the counts of all pollers.
func (d *Daemon) qdiscCounters() (out []count) {
	for _, link := range d.qdiscs.links() {
		k, label := d.qdiscs.of(link), [2]string{"interface", link}
		out = append(out,
			count{"qdisc", "polls", "Looks at the statistics of a link's queueing disciplines.", k.Polls.Load(), label},
			count{"qdisc", "congested", "Looks that found the queue congested: marks since the look before, or a backlog from the threshold on.", k.Congested.Load(), label},
			count{"qdisc", "failed", "Looks that the kernel did not answer, or not in one piece; the next one makes up for it.", k.Failed.Load(), label},
			count{"qdisc", "marks", "Packets that a link's queueing disciplines marked CE while they were looked at.", k.Marks.Load(), label})
	}
	return out
}
