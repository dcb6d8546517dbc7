package translator

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"pncd/dataplane/roce"
	"pncd/proxyagent/internal/fields"
	"pncd/proxyagent/internal/pace"
)

// Defaults of Config.
const (
	DefaultPaceWindow     = pace.DefaultWindow
	DefaultPerQPSecond    = pace.DefaultPerSecond
	DefaultTotalPerSecond = 100_000
	DefaultTotalBurst     = 1_000
	DefaultMaxQPs         = pace.DefaultMaxKeys
	DefaultMaxNodes       = 1024
)

// Config configures a Translator. Where it says so, zero means the default.
type Config struct {
	// AcceptFrom holds the source addresses of the congestion nodes of the domain. When it is empty
	// nothing is accepted.
	AcceptFrom []netip.Prefix
	// Interfaces are those that notifications may come in by; empty means all.
	Interfaces []string
	// MinTTL is the least TTL or hop limit that a notification may arrive with; zero means any.
	MinTTL uint8
	// ServedPrefixes are the senders that this proxy serves. Empty means none.
	ServedPrefixes []netip.Prefix

	PaceWindow     time.Duration // at most one CNP for a Source QP in it; zero means DefaultPaceWindow
	PerQPPerSecond int           // at most so many for a Source QP in a second; zero means DefaultPerQPSecond
	TotalPerSecond int           // of the proxy; zero means DefaultTotalPerSecond
	TotalBurst     int           // of the proxy at once; zero means DefaultTotalBurst
	// MaxQPs and MaxNodes bound the Source QPs that pacing remembers and the congestion nodes whose
	// event numbers are followed, and with it the memory (about 250 octets each); the least recently seen makes room.
	// Zero means DefaultMaxQPs and DefaultMaxNodes. They can't be changed later.
	MaxQPs, MaxNodes int

	CNPTOS  uint8  // TOS or traffic class of the CNP; zero means roce.DefaultCNPTOS
	CNPTTL  uint8  // TTL or hop limit of the CNP; zero means roce.DefaultCNPTTL
	CNPPKey uint16 // P_Key where none was learned for the flow; zero means roce.DefaultPKey

	// Sampled says that of the notifications that are decided in front of this Translator, only a sample is
	// recorded (Record): their event numbers are not followed then, for what is missing here was decided there.
	Sampled bool

	// Contexts are the VPNs that this proxy has, for notifications of format 2. ServedPrefixes above are those of
	// the default context.
	Contexts []Context
}

// Context is one VPN: a Source-QP map's context, the senders in it, and how CNPs get there.
type Context struct {
	Name           string // not empty
	ID             uint32 // in the Source-QP map; not zero
	ServedPrefixes []netip.Prefix
	Local          LocalAddresses // this node's addresses in the VPN
	Sender         Sender         // by which CNPs leave in the VPN
}

func (c Config) withDefaults() Config {
	fields.Default(&c.PaceWindow, DefaultPaceWindow)
	fields.Default(&c.PerQPPerSecond, DefaultPerQPSecond)
	fields.Default(&c.TotalPerSecond, DefaultTotalPerSecond)
	fields.Default(&c.TotalBurst, DefaultTotalBurst)
	fields.Default(&c.MaxQPs, DefaultMaxQPs)
	fields.Default(&c.MaxNodes, DefaultMaxNodes)
	fields.Default(&c.CNPTOS, roce.DefaultCNPTOS)
	fields.Default(&c.CNPTTL, roce.DefaultCNPTTL)
	fields.Default(&c.CNPPKey, roce.DefaultPKey)
	return c
}

// Validate says which field is out of range.
func (c Config) Validate() error {
	if err := errors.Join(checkPrefixes("AcceptFrom", c.AcceptFrom), checkPrefixes("ServedPrefixes", c.ServedPrefixes)); err != nil {
		return fmt.Errorf("translator: %w", err)
	}
	for i, x := range c.Contexts {
		if err := x.validate(c.Contexts[:i]); err != nil {
			return fmt.Errorf("translator: Contexts[%d] %q: %w", i, x.Name, err)
		}
	}
	for i, name := range c.Interfaces {
		if name == "" {
			return fmt.Errorf("translator: Interfaces[%d]: must not be empty", i)
		}
	}
	return fields.NotNegative("translator",
		fields.Field{Name: "PaceWindow", Value: int64(c.PaceWindow)},
		fields.Field{Name: "PerQPPerSecond", Value: int64(c.PerQPPerSecond)},
		fields.Field{Name: "TotalPerSecond", Value: int64(c.TotalPerSecond)},
		fields.Field{Name: "TotalBurst", Value: int64(c.TotalBurst)},
		fields.Field{Name: "MaxQPs", Value: int64(c.MaxQPs)},
		fields.Field{Name: "MaxNodes", Value: int64(c.MaxNodes)},
	)
}

func checkPrefixes(field string, list []netip.Prefix) error {
	for i, p := range list {
		if !p.IsValid() || p.Addr().Is4In6() {
			return fmt.Errorf("%s[%d] %s: must be an IPv4 or IPv6 prefix", field, i, p)
		}
	}
	return nil
}

// validate holds a context to the rules and to those before it.
func (x *Context) validate(before []Context) error {
	switch {
	case x.Name == "":
		return errors.New("the name must not be empty, which is the default context")
	case x.ID == 0:
		return errors.New("the ID must not be zero, which is the default context")
	case x.Local == nil || x.Sender == nil:
		return errors.New("both Local and Sender must be given")
	}
	for i := range before {
		if before[i].Name == x.Name || before[i].ID == x.ID {
			return fmt.Errorf("the same Name or ID as Contexts[%d]", i)
		}
	}
	return checkPrefixes("ServedPrefixes", x.ServedPrefixes)
}
