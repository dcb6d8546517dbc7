package config

import (
	"slices"
	"time"
)

// Boundary configures the border filter.
type Boundary struct {
	BorderInterfaces []string       `yaml:"border_interfaces"`
	Family           string         `yaml:"family"` // auto, netdev, inet
	Ports            []uint16       `yaml:"ports"`
	AcceptFrom       []Prefix       `yaml:"accept_from"` // by default proxy.accept_from
	TTLMin           uint8          `yaml:"ttl_min"`     // by default proxy.ttl_min
	RefuseCNPs       bool           `yaml:"refuse_cnps"`
	Limits           BoundaryLimits `yaml:"limits"`
}

// BoundaryLimits bounds the notifications that reach the socket.
type BoundaryLimits struct {
	TotalPPS       int      `yaml:"total_pps"` // 0: no limit
	TotalBurst     int      `yaml:"total_burst"`
	PerSourcePPS   int      `yaml:"per_source_pps"` // 0: no limit
	PerSourceBurst int      `yaml:"per_source_burst"`
	Sources        int      `yaml:"sources"`
	SourceAge      Duration `yaml:"source_age"`
}

// DefaultFormat2Port is the UDP port of format 2 (RFC 4727; unassigned, our default).
const DefaultFormat2Port = 1022

func (c *Config) fillBoundary(given func(string) bool) {
	b := c.Boundary
	if b == nil {
		return
	}
	setDefault(given, "boundary.family", &b.Family, "auto")
	setDefault(given, "boundary.refuse_cnps", &b.RefuseCNPs, true)
	if !given("boundary.ports") {
		b.Ports = c.notificationPorts()
	}
	if p := c.Proxy; p != nil {
		setDefault(given, "boundary.accept_from", &b.AcceptFrom, p.AcceptFrom)
		setDefault(given, "boundary.ttl_min", &b.TTLMin, p.TTLMin)
	}
	l := &b.Limits
	setDefault(given, "boundary.limits.total_pps", &l.TotalPPS, 400000)
	setDefault(given, "boundary.limits.total_burst", &l.TotalBurst, 40000)
	setDefault(given, "boundary.limits.per_source_pps", &l.PerSourcePPS, 200000)
	setDefault(given, "boundary.limits.per_source_burst", &l.PerSourceBurst, 20000)
	setDefault(given, "boundary.limits.sources", &l.Sources, 4096)
	setDefault(given, "boundary.limits.source_age", &l.SourceAge, Duration{time.Minute})
}

// notificationPorts are those of both formats, as the other sections have them.
func (c *Config) notificationPorts() []uint16 {
	var out []uint16
	if n := c.CongestionNode; n != nil {
		out = append(out, n.Port, n.PortFormat2)
	}
	if p := c.Proxy; p != nil {
		out = append(out, p.Port, p.PortFormat2)
	}
	if len(out) == 0 {
		out = []uint16{DefaultPort, DefaultFormat2Port}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *checker) boundary(cfg *Config) {
	b := cfg.Boundary
	c.interfaces("boundary.border_interfaces", b.BorderInterfaces)
	c.want(len(b.BorderInterfaces) > 0 || cfg.Proxy != nil, "boundary.border_interfaces", "required without a proxy section: there is nothing else to filter")
	c.oneOf("boundary.family", b.Family, "auto", "netdev", "inet")
	c.want(len(b.Ports) > 0, "boundary.ports", "at least one is required")
	for i, p := range b.Ports {
		at := index("boundary.ports", i)
		c.notificationPort(at, p)
		c.want(!slices.Contains(b.Ports[:i], p), at, "%d is given twice", p)
	}
	if n := cfg.CongestionNode; n != nil {
		c.want(slices.Contains(b.Ports, n.Port), "boundary.ports", "%d of congestion_node.port is missing", n.Port)
		c.want(len(n.Contexts) == 0 || slices.Contains(b.Ports, n.PortFormat2), "boundary.ports", "%d of congestion_node.port_format2 is missing", n.PortFormat2)
	}
	if p := cfg.Proxy; p != nil {
		c.want(slices.Contains(b.Ports, p.Port), "boundary.ports", "%d of proxy.port is missing", p.Port)
		c.want(p.NRP == nil || slices.Contains(b.Ports, p.PortFormat2), "boundary.ports", "%d of proxy.port_format2 is missing", p.PortFormat2)
		c.want(len(b.AcceptFrom) > 0, "boundary.accept_from", "at least one prefix is required: the congestion nodes of the domain")
		for i, name := range b.BorderInterfaces {
			c.want(p.Translate != TranslateKernel || !slices.Contains(p.TranslateInterfaces, name), index("boundary.border_interfaces", i), "%s is one of proxy.translate_interfaces: what is translated in the kernel never meets the border filter", name)
			c.want(!slices.Contains(p.AcceptInterfaces, name), index("boundary.border_interfaces", i), "%s is one of proxy.accept_interfaces: notifications are accepted there or stopped there, not both", name)
		}
	}
	if p := cfg.Proxy; p != nil && p.Translate == TranslateKernel {
		c.want(slices.Equal(b.AcceptFrom, p.AcceptFrom), "boundary.accept_from", "is not proxy.accept_from: what is translated in the kernel never meets the border filter")
		c.want(b.TTLMin <= p.TTLMin, "boundary.ttl_min", "%d is above proxy.ttl_min: what is translated in the kernel never meets the border filter", b.TTLMin)
	}
	c.want(cfg.Proxy != nil || len(b.AcceptFrom) == 0 && b.TTLMin == 0, "boundary.accept_from", "only with a proxy section, as ttl_min: without one no notification is accepted")
	const at = "boundary.limits."
	l := &b.Limits
	c.within(at+"total_pps", l.TotalPPS, 0, 10_000_000)
	c.within(at+"total_burst", l.TotalBurst, 10, 10_000_000)
	c.within(at+"per_source_pps", l.PerSourcePPS, 0, 10_000_000)
	c.within(at+"per_source_burst", l.PerSourceBurst, 10, 10_000_000)
	c.within(at+"sources", l.Sources, 1, 1<<20)
	c.span(at+"source_age", l.SourceAge, time.Second, 24*time.Hour)
	c.want(l.SourceAge.Duration%time.Second == 0, at+"source_age", "%s is not in whole seconds", l.SourceAge)
}
