package notifier

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"pncd/proxyagent/internal/fields"
	"pncd/proxyagent/internal/pace"
	"pncd/proxyagent/message"
)

// Defaults of Config.
const (
	DefaultDSCP           = 48  // CS6, network control (RFC 4594 section 3.1)
	DefaultTTL            = 255 // what lets a proxy require a minimum (RFC 5082)
	DefaultPaceWindow     = pace.DefaultWindow
	DefaultPerFlowSecond  = pace.DefaultPerSecond
	DefaultTotalPerSecond = 100_000
	DefaultTotalBurst     = 1_000
	DefaultMaxFlows       = pace.DefaultMaxKeys
	DefaultMaxProxies     = 4096

	// BestEffort is Config.DSCP for DSCP 0.
	BestEffort = -1
)

// Config configures a Notifier. Where it says so, zero means the default.
type Config struct {
	// SourceIPv4 and SourceIPv6 are this node's addresses that notifications come from, by the family
	// of the proxy's address. Without one, notifications of that family end in send-error.
	SourceIPv4, SourceIPv6 netip.Addr

	Port uint16 // UDP destination port at the proxy; zero means message.PortFormat1
	// Contexts gives the NRP Selector ID of each VPN by its name. Events in one are notified in format 2, to
	// PortFormat2; zero means message.PortFormat2. Events in another VPN end in context-unknown.
	Contexts    map[string]uint32
	PortFormat2 uint16

	DSCP int   // of the outer header, 1 to 63 or BestEffort; zero means DefaultDSCP
	TTL  uint8 // TTL or hop limit of the outer header; zero means DefaultTTL

	SampleN          int           // notify one event in so many of each flow; zero and one mean all
	PaceWindow       time.Duration // at most one notification for a flow in it; zero means DefaultPaceWindow
	PerFlowPerSecond int           // at most so many for a flow in a second; zero means DefaultPerFlowSecond
	TotalPerSecond   int           // of the node; zero means DefaultTotalPerSecond
	TotalBurst       int           // of the node at once; zero means DefaultTotalBurst
	// MaxFlows bounds the flows that pacing remembers, and with it the memory (about 250 octets each);
	// the least recently seen makes room. Zero means DefaultMaxFlows. It can't be changed later.
	MaxFlows int
}

func (c Config) withDefaults() Config {
	fields.Default(&c.Port, message.PortFormat1)
	fields.Default(&c.PortFormat2, message.PortFormat2)
	fields.Default(&c.DSCP, DefaultDSCP)
	fields.Default(&c.TTL, DefaultTTL)
	fields.Default(&c.SampleN, 1)
	fields.Default(&c.PaceWindow, DefaultPaceWindow)
	fields.Default(&c.PerFlowPerSecond, DefaultPerFlowSecond)
	fields.Default(&c.TotalPerSecond, DefaultTotalPerSecond)
	fields.Default(&c.TotalBurst, DefaultTotalBurst)
	fields.Default(&c.MaxFlows, DefaultMaxFlows)
	return c
}

// Validate says which field is out of range.
func (c Config) Validate() error {
	if a := c.SourceIPv4; a.IsValid() && (!a.Is4() || a.IsUnspecified() || a.IsMulticast()) {
		return fmt.Errorf("notifier: SourceIPv4 %s: must be an IPv4 unicast address", a)
	}
	if a := c.SourceIPv6; a.IsValid() && (!a.Is6() || a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast()) {
		return fmt.Errorf("notifier: SourceIPv6 %s: must be an IPv6 unicast address without zone", a)
	}
	if _, home := c.Contexts[""]; home {
		return errors.New("notifier: Contexts: the default context has no name and is notified in format 1")
	}
	if c.DSCP < BestEffort || c.DSCP > 63 {
		return fmt.Errorf("notifier: DSCP %d: must be 0 to 63", c.DSCP)
	}
	return fields.NotNegative("notifier",
		fields.Field{Name: "SampleN", Value: int64(c.SampleN)},
		fields.Field{Name: "PaceWindow", Value: int64(c.PaceWindow)},
		fields.Field{Name: "PerFlowPerSecond", Value: int64(c.PerFlowPerSecond)},
		fields.Field{Name: "TotalPerSecond", Value: int64(c.TotalPerSecond)},
		fields.Field{Name: "TotalBurst", Value: int64(c.TotalBurst)},
		fields.Field{Name: "MaxFlows", Value: int64(c.MaxFlows)},
	)
}

// trafficClass is the outer TOS or traffic class, ECN bits zero (RFC 8085 section 3.1.7).
func (c *Config) trafficClass() uint8 {
	if c.DSCP == BestEffort {
		return 0
	}
	return uint8(c.DSCP) << 2
}
