package config

import (
	"slices"
	"time"
)

// Qdisc is a link whose queueing disciplines' statistics are looked at.
type Qdisc struct {
	Interface string   `yaml:"interface"`
	Context   string   `yaml:"context"` // as of a VirtualQueue
	Interval  Duration `yaml:"interval"`
	Backlog   int      `yaml:"backlog"` // octets; 0: marks alone are congestion
}

// DetectAPI takes the reports of switch agents.
type DetectAPI struct {
	Interfaces []string `yaml:"interfaces"` // whose flows pncd names when a report does not, in its own network namespace
	Rate       int      `yaml:"rate"`       // reports a second
	Burst      int      `yaml:"burst"`
}

// TopFlows says which flows are named where a queue is known to be congested and no flow.
type TopFlows struct {
	Count  int      `yaml:"count"`
	Share  int      `yaml:"share"` // percent
	Window Duration `yaml:"window"`
	Sample int      `yaml:"sample"` // one packet in so many
}

// QdiscLink is a link whose queueing disciplines are looked at.
type QdiscLink struct {
	DetectorLink
	Qdisc Qdisc
}

// QdiscLinks lists those links.
func (c *Config) QdiscLinks() (out []QdiscLink) {
	for _, q := range c.CongestionNode.Detect.Qdiscs {
		out = append(out, QdiscLink{c.linkOf(q.Context, q.Interface), q})
	}
	return out
}

// ReportedLinks lists the links whose flows a report need not name.
func (c *Config) ReportedLinks() (out []DetectorLink) {
	if a := c.CongestionNode.Detect.API; a != nil {
		for _, name := range a.Interfaces {
			out = append(out, c.linkOf("", name))
		}
	}
	return out
}

// SampledLinks lists the links whose top flows are to be known, once each.
func (c *Config) SampledLinks() (out []DetectorLink) {
	add := func(l DetectorLink) {
		if !slices.ContainsFunc(out, func(o DetectorLink) bool { return o.Namespace == l.Namespace && o.Interface == l.Interface }) {
			out = append(out, l)
		}
	}
	for _, q := range c.QdiscLinks() {
		add(q.DetectorLink)
	}
	for _, l := range c.ReportedLinks() {
		add(l)
	}
	return out
}

func (d *Detect) fillQueueSources(given func(string) bool) {
	const p = "congestion_node.detect."
	for i := range d.Qdiscs {
		setDefault(given, index(p+"qdiscs", i)+".interval", &d.Qdiscs[i].Interval, Duration{DefaultQdiscInterval})
	}
	if d.API != nil {
		setDefault(given, p+"api.rate", &d.API.Rate, DefaultReportRate)
		setDefault(given, p+"api.burst", &d.API.Burst, DefaultPaceBurst)
	}
	setDefault(given, p+"top_flows.count", &d.TopFlows.Count, DefaultTopCount)
	setDefault(given, p+"top_flows.share", &d.TopFlows.Share, DefaultTopShare)
	setDefault(given, p+"top_flows.window", &d.TopFlows.Window, Duration{DefaultTopWindow})
	setDefault(given, p+"top_flows.sample", &d.TopFlows.Sample, DefaultTopSample)
}

// queueSources checks the sources that know a queue, and how its flows are named.
func (c *checker) queueSources(cfg *Config) {
	const p = "congestion_node.detect"
	d := &cfg.CongestionNode.Detect
	seen := map[link]bool{}
	for i := range d.Qdiscs {
		q, at := &d.Qdiscs[i], index(p+".qdiscs", i)
		c.watchedLink(cfg, at, q.Context, q.Interface, seen)
		c.span(at+".interval", q.Interval, time.Millisecond, time.Minute)
		c.within(at+".backlog", q.Backlog, 0, 1<<31-1)
	}
	if d.API != nil {
		c.interfaces(p+".api.interfaces", d.API.Interfaces)
		c.within(p+".api.rate", d.API.Rate, 1, 1_000_000)
		c.within(p+".api.burst", d.API.Burst, 1, 1_000_000)
	}
	c.advise(find(c.root, p+".top_flows") == nil || len(cfg.SampledLinks()) > 0, p+".top_flows",
		"neither qdiscs nor api.interfaces name a link: no flow has to be named")
	c.within(p+".top_flows.count", d.TopFlows.Count, 1, 64)
	c.within(p+".top_flows.share", d.TopFlows.Share, 1, 100)
	c.span(p+".top_flows.window", d.TopFlows.Window, 10*time.Millisecond, time.Minute)
	c.within(p+".top_flows.sample", d.TopFlows.Sample, 1, 1<<16)
}
