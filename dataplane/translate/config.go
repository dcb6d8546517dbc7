package translate

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"os"
	"time"
)

// Defaults of Config.
const (
	DefaultMaxAnswers = 65536
	DefaultRingSize   = 4 << 20 // some 24,000 events
)

const (
	maxAnswers  = 1 << 24
	maxPrefixes = 65536 // of each set
)

// Config describes a Translator. Zero values mean the defaults.
type Config struct {
	// MaxAnswers bounds the answers, 1 to 16,777,216; beside each there is room for the pacing of two Source QPs. Some 180
	// octets for each are allocated at once.
	MaxAnswers int
	RingSize   int // octets of the ring buffer of events: a power of two, at least a page
}

// Policy is what the program holds notifications to, and how it answers them.
type Policy struct {
	OwnIPv4, OwnIPv6 netip.Addr // our addresses as a proxy; one may be invalid
	Port             uint16     // UDP destination port
	PortFormat2      uint16     // that of format 2; 0: there is none
	AcceptFrom       []netip.Prefix
	MinTTL           uint8
	Served           []netip.Prefix

	Window         time.Duration // at most one CNP for a Source QP in it
	PerSecond      int           // at most so many for a Source QP in a second
	TotalPerSecond int           // at most so many in a second
	TotalBurst     int           // at once

	// RecordOneIn: one of so many decisions becomes an event. With 1 each does: what can't become one is left to user
	// space.
	RecordOneIn int
}

// Errors beside those of package kernel, matched with errors.Is.
var (
	ErrVLAN   = errors.New("VLANs whose tags the adapter takes off")
	ErrFull   = errors.New("no room for another answer")
	ErrClosed = errors.New("translator is closed")
)

func (c Config) withDefaults() (Config, error) {
	if c.MaxAnswers == 0 {
		c.MaxAnswers = DefaultMaxAnswers
	}
	if c.RingSize == 0 {
		c.RingSize = DefaultRingSize
	}
	switch {
	case c.MaxAnswers < 1 || c.MaxAnswers > maxAnswers:
		return c, fmt.Errorf("kernel translator: %d answers: not within 1 to %d", c.MaxAnswers, maxAnswers)
	case bits.OnesCount(uint(c.RingSize)) != 1 || c.RingSize < os.Getpagesize() || c.RingSize > 1<<30:
		return c, fmt.Errorf("kernel translator: ring of %d octets: not a power of two from %d to 1 GiB", c.RingSize, os.Getpagesize())
	}
	return c, nil
}

// Validate says which field is out of range.
func (p *Policy) Validate() error {
	bad := func(field, rule string, args ...any) error {
		return fmt.Errorf("kernel translator: %s: %s", field, fmt.Sprintf(rule, args...))
	}
	switch {
	case !p.OwnIPv4.IsValid() && !p.OwnIPv6.IsValid():
		return bad("OwnIPv4", "or OwnIPv6 is required")
	case p.OwnIPv4.IsValid() && !p.OwnIPv4.Is4():
		return bad("OwnIPv4", "%v is not an IPv4 address", p.OwnIPv4)
	case p.OwnIPv6.IsValid() && (!p.OwnIPv6.Is6() || p.OwnIPv6.Is4In6()):
		return bad("OwnIPv6", "%v is not an IPv6 address", p.OwnIPv6)
	case p.Port == 0:
		return bad("Port", "required")
	case p.PortFormat2 == p.Port:
		return bad("PortFormat2", "%d is that of format 1", p.PortFormat2)
	case p.Window < 0:
		return bad("Window", "%v is negative", p.Window)
	case p.PerSecond < 1, p.TotalPerSecond < 1, p.TotalBurst < 1:
		return bad("PerSecond, TotalPerSecond, TotalBurst", "%d, %d, %d: each must be at least 1", p.PerSecond, p.TotalPerSecond, p.TotalBurst)
	case p.RecordOneIn < 1:
		return bad("RecordOneIn", "%d is less than 1", p.RecordOneIn)
	}
	for _, set := range []struct {
		name     string
		prefixes []netip.Prefix
	}{{"AcceptFrom", p.AcceptFrom}, {"Served", p.Served}} {
		if len(set.prefixes) > maxPrefixes {
			return bad(set.name, "%d prefixes, more than %d", len(set.prefixes), maxPrefixes)
		}
		for _, x := range set.prefixes {
			if !x.IsValid() || x.Addr().Is4In6() {
				return bad(set.name, "%v is not an IPv4 or IPv6 prefix", x)
			}
		}
	}
	return nil
}
