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
}

// VirtualQueue is a queue that drains at a rate of its own, and by whose depth packets are marked CE.
type VirtualQueue struct {
	Interface string `yaml:"interface"`
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
	Interface string
	CE        bool // it is watched for CE marks, else for its virtual queue only
}

// DetectorLinks lists the links with a detector, once each: those watched for CE marks first. One that has only a virtual queue carries the
// default context.
func (n *CongestionNode) DetectorLinks() (out []DetectorLink) {
	for _, name := range n.Interfaces {
		out = append(out, DetectorLink{Interface: name, CE: true})
	}
	for i := range n.Contexts {
		for _, name := range n.Contexts[i].Interfaces {
			out = append(out, DetectorLink{Context: n.Contexts[i].Name, Interface: name, CE: true})
		}
	}
	for i := range n.Detect.VirtualQueues {
		if name := n.Detect.VirtualQueues[i].Interface; !slices.ContainsFunc(out, func(l DetectorLink) bool { return l.Interface == name }) {
			out = append(out, DetectorLink{Interface: name})
		}
	}
	return out
}

// VirtualQueue returns the virtual queue of an interface; nil without one.
func (d *Detect) VirtualQueue(iface string) *VirtualQueue {
	for i := range d.VirtualQueues {
		if d.VirtualQueues[i].Interface == iface {
			return &d.VirtualQueues[i]
		}
	}
	return nil
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
}

func (c *checker) detect(n *CongestionNode) {
	const p = "congestion_node.detect"
	d := &n.Detect
	c.oneOf(p+".mode", d.Mode, DetectAuto, DetectRing, DetectTCX)
	c.span(p+".gate", d.Gate, 0, time.Minute)
	c.within(p+".flows", d.Flows, 1<<10, 1<<22)
	seen := map[string]bool{}
	watched := func(name string) bool {
		return slices.ContainsFunc(n.DetectorLinks(), func(l DetectorLink) bool { return l.CE && l.Interface == name })
	}
	for i := range d.VirtualQueues {
		q, at := &d.VirtualQueues[i], index(p+".virtual_queues", i)
		c.interfaceName(at+".interface", q.Interface)
		c.want(!seen[q.Interface], at+".interface", "%q is given twice", q.Interface)
		seen[q.Interface] = true
		c.want(d.Mode != DetectRing || !watched(q.Interface), at+".interface",
			"%q is watched with mode ring, which would take the queue's own marks for others'; use tcx or auto, or leave it out of interfaces", q.Interface)
		c.within(at+".rate_mbit", q.RateMbit, 1, 1_600_000)
		c.within(at+".kmax", q.Kmax, 1, min(1<<30, max(1, q.RateMbit)*125_000))
		c.within(at+".kmin", q.Kmin, 0, 1<<30)
		c.want(q.Kmin < q.Kmax, at+".kmin", "%d is not less than kmax, %d", q.Kmin, q.Kmax)
		c.within(at+".pmax", q.Pmax, 1, 100)
	}
}

// String is a queue as it is told to people.
func (q *VirtualQueue) String() string {
	return fmt.Sprintf("%d Mb/s, Kmin %d, Kmax %d octets, Pmax %d %%", q.RateMbit, q.Kmin, q.Kmax, q.Pmax)
}
