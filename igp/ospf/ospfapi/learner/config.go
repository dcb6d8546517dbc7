// Package learner is what a read-only client of ospfd's OSPF API does, without its sockets: it says what to ask next,
// and keeps a mirror of the daemon's database by area. It is pure, with the time passed in.
//
// The conversation is: register for changes; probe until the daemon is known to have an OSPF instance, for it
// crashes when it is asked for the database without one; ask for the database; ask for the router ID. The answer
// to the last question comes behind the whole database on the same connection, so it marks its end: what was not
// told again by then is gone.
package learner

import (
	"fmt"
	"net/netip"
	"time"

	"pncd/igp/backoff"
	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/packet"
)

// Defaults of the times.
const (
	DefaultReplyTimeout = 10 * time.Second
	DefaultKeepalive    = 10 * time.Second
	DefaultSettle       = 500 * time.Millisecond
	DefaultHold         = 10 * time.Second
)

// Times between probes while there is no instance: each wait is twice as long as the one before.
const (
	firstProbe = 500 * time.Millisecond
	lastProbe  = 30 * time.Second
)

// maxAddresses bounds how many interfaces a round of probes asks for.
const maxAddresses = 256

// Config is one learner. Zero values are the defaults.
type Config struct {
	RouterID  packet.ID    // of the host router; 0: as the daemon says
	Addresses []netip.Addr // of OSPF interfaces of the router, to probe besides those that the link knows

	ReplyTimeout time.Duration // how long the daemon may be silent when it owes something
	Keepalive    time.Duration // between questions whether it is still there
	Settle       time.Duration // how long a deletion waits: the daemon tells one before each new instance, too
	Hold         time.Duration // how long what was learned is believed without the daemon
	MaxLSAs      int           // of an area

	Carrier marks.Carrier  // where the P flag is
	SPF     backoff.Config // of the runs of SPF
}

// WithDefaults gives the configuration with the defaults in place of what is zero.
func (c Config) WithDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.ReplyTimeout, DefaultReplyTimeout)
	def(&c.Keepalive, DefaultKeepalive)
	def(&c.Settle, DefaultSettle)
	def(&c.Hold, DefaultHold)
	if c.MaxLSAs == 0 {
		c.MaxLSAs = lsdb.DefaultMaxLSAs
	}
	c.SPF = c.SPF.OrDefault()
	return c
}

// Check says what is wrong with a configuration, naming the field.
func (c Config) Check() error {
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"reply timeout", c.ReplyTimeout}, {"keepalive", c.Keepalive}, {"settle", c.Settle}, {"hold", c.Hold}} {
		if f.d < 0 {
			return fmt.Errorf("ospf api: %s: %s, must not be below zero", f.name, f.d)
		}
	}
	if c.MaxLSAs < 0 {
		return fmt.Errorf("ospf api: most LSAs: %d, must not be below zero", c.MaxLSAs)
	}
	if err := c.SPF.Check(); err != nil {
		return fmt.Errorf("ospf api: SPF: %w", err)
	}
	for _, a := range c.Addresses {
		if !a.Is4() {
			return fmt.Errorf("ospf api: addresses: %s is no IPv4 address", a)
		}
	}
	return nil
}
