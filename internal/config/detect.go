package config

import (
	"fmt"
	"slices"
	"time"
)

// Ways to watch for CE marks.
const (
	DetectAuto = "auto" // tcx where it sees all marks, else ring
	DetectRing = "ring"
	DetectTCX  = "tcx"
)

// Detect configures how congestion is seen.
type Detect struct {
	Mode          string         `yaml:"mode"`
	Gate          Duration       `yaml:"gate"`  // tcx and virtual queues: a flow is reported once in this time
	Flows         int            `yaml:"flows"` // whose last report is remembered, of each interface
	VirtualQueues []VirtualQueue `yaml:"virtual_queues"`
	Qdiscs        []Qdisc        `yaml:"qdiscs"`
	API           *DetectAPI     `yaml:"api"` // nil: reports are not taken
	TopFlows      TopFlows       `yaml:"top_flows"`
}

// VirtualQueue is a queue that drains at a rate of its own, and by whose depth packets are marked CE.
type VirtualQueue struct {
	Interface string `yaml:"interface"`
	Context   string `yaml:"context"` // that the link carries, in its network namespace when it has one; empty: the default one
	RateMbit  int    `yaml:"rate_mbit"`
	Kmin      int    `yaml:"kmin"` // octets
	Kmax      int    `yaml:"kmax"` // octets
	Pmax      int    `yaml:"pmax"` // percent
}

// Octets that a queue of 1 Mb/s holds for the default thresholds.
const (
	kminPerMbit = 50 * 125 / 1000.0  // 50 us
	kmaxPerMbit = 125 * 125 / 1000.0 // 125 us
)

// DetectorLink is a link with a detector.
type DetectorLink struct {
	Context   string // that it carries; empty: the default one
	Namespace string // the network namespace that it is in; empty: pncd's own
	Interface string
	CE        bool          // it is watched for CE marks, else for its virtual queue only
	Queue     *VirtualQueue // nil: none
}

// DetectorLinks lists the links with a detector, once each: those watched for CE marks first. A link of a context that
// has no network namespace needs no `context` beside its virtual queue.
func (c *Config) DetectorLinks() (out []DetectorLink) {
	n := c.CongestionNode
	add := func(context string, names []string) {
		for _, name := range names {
			out = append(out, DetectorLink{Context: context, Namespace: c.Namespace(context), Interface: name, CE: true})
		}
	}
	add("", n.Interfaces)
	for i := range n.Contexts {
		add(n.Contexts[i].Name, n.Contexts[i].Interfaces)
	}
	for i := range n.Detect.VirtualQueues {
		q := &n.Detect.VirtualQueues[i]
		namespace := c.Namespace(q.Context)
		at := slices.IndexFunc(out, func(l DetectorLink) bool { return l.Interface == q.Interface && l.Namespace == namespace })
		if at < 0 {
			at = len(out)
			out = append(out, DetectorLink{Context: q.Context, Namespace: namespace, Interface: q.Interface})
		}
		out[at].Queue = q
	}
	return out
}

// linkOf gives the link of a context, in its network namespace when it has one: that with a detector, where it is one.
func (c *Config) linkOf(context, iface string) DetectorLink {
	namespace := c.Namespace(context)
	for _, l := range c.DetectorLinks() {
		if l.Namespace == namespace && l.Interface == iface {
			return l
		}
	}
	return DetectorLink{Context: context, Namespace: namespace, Interface: iface}
}

func (d *Detect) fillDefaults(given func(string) bool) {
	const p = "congestion_node.detect."
	setDefault(given, p+"mode", &d.Mode, DetectAuto)
	setDefault(given, p+"gate", &d.Gate, Duration{DefaultGate})
	setDefault(given, p+"flows", &d.Flows, DefaultPaceState)
	for i := range d.VirtualQueues {
		q, at := &d.VirtualQueues[i], index(p+"virtual_queues", i)
		setDefault(given, at+".kmin", &q.Kmin, int(float64(q.RateMbit)*kminPerMbit))
		setDefault(given, at+".kmax", &q.Kmax, int(float64(q.RateMbit)*kmaxPerMbit))
		setDefault(given, at+".pmax", &q.Pmax, DefaultPmax)
	}
	d.fillQueueSources(given)
}

func (c *checker) detect(cfg *Config) {
	const p = "congestion_node.detect"
	n := cfg.CongestionNode
	d := &n.Detect
	c.oneOf(p+".mode", d.Mode, DetectAuto, DetectRing, DetectTCX)
	c.span(p+".gate", d.Gate, 0, time.Minute)
	c.within(p+".flows", d.Flows, 1<<10, 1<<22)
	seen := map[link]bool{}
	for i := range d.VirtualQueues {
		q, at := &d.VirtualQueues[i], index(p+".virtual_queues", i)
		l := c.watchedLink(cfg, at, q.Context, q.Interface, seen)
		c.want(d.Mode != DetectRing || !l.CE, at+".interface",
			"%q is watched with mode ring, which would take the queue's own marks for others'; use tcx or auto, or leave it out of interfaces", q.Interface)
		c.thresholds(at, q)
		c.within(at+".pmax", q.Pmax, 1, 100)
	}
	c.queueSources(cfg)
}

// thresholds checks a queue's rate, and what depends on it only when that is right.
func (c *checker) thresholds(at string, q *VirtualQueue) {
	const most = 1_600_000 // Mb/s
	if find(c.root, at+".rate_mbit") == nil {
		c.want(false, at+".rate_mbit", "required")
		return
	}
	c.within(at+".rate_mbit", q.RateMbit, 1, most)
	if q.RateMbit < 1 || q.RateMbit > most {
		return
	}
	c.within(at+".kmax", q.Kmax, 1, min(1<<30, q.RateMbit*125_000))
	c.within(at+".kmin", q.Kmin, 0, 1<<30)
	c.want(q.Kmin < q.Kmax, at+".kmin", "%d is not less than kmax, %d", q.Kmin, q.Kmax)
}

// watchedLink checks the interface and the context of a link with a queue, which is not among those seen, and gives it.
func (c *checker) watchedLink(cfg *Config, at, context, iface string, seen map[link]bool) DetectorLink {
	c.interfaceName(at+".interface", iface)
	place := link{cfg.Namespace(context), iface}
	c.want(!seen[place], at+".interface", "%q is given twice", iface)
	seen[place] = true
	c.want(context == "" || slices.ContainsFunc(cfg.CongestionNode.Contexts, func(x NodeContext) bool { return x.Name == context }), at+".context",
		"%q is none of congestion_node.contexts", context)
	l := cfg.linkOf(context, iface)
	c.want(context == "" || l.Context == context, at+".context", "%s is a link of context %q", iface, l.Context)
	return l
}

// String is a queue as it is told to people.
func (q *VirtualQueue) String() string {
	return fmt.Sprintf("%d Mb/s, Kmin %d, Kmax %d octets, Pmax %d %%", q.RateMbit, q.Kmin, q.Kmax, q.Pmax)
}
