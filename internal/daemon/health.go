package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"pncd/dataplane/host"
	"pncd/internal/config"
)

// The functions here find what a part that runs does not notice by itself: it waits, and nothing comes.

// linkHealth says what is wrong with an interface that a ring reads.
func linkHealth(name string) func() error {
	return func() error {
		switch i, err := net.InterfaceByName(name); {
		case err != nil:
			return errors.New("the interface was renamed or removed")
		case i.Flags&net.FlagUp == 0:
			return errors.New("the interface is down")
		case i.Flags&net.FlagRunning == 0:
			return errors.New("the interface has no carrier")
		}
		return nil
	}
}

// linkHealthIn is linkHealth for an interface in a network namespace.
func linkHealthIn(namespace, name string) func() error {
	health := linkHealth(name)
	return func() error { return host.Inside(namespace, health) }
}

// addressHealth says which of some addresses are not this node's any more: notifications to them don't
// arrive, and none should leave from them.
func (d *Daemon) addressHealth(addrs ...config.Addr) func() error {
	return func() error {
		for _, a := range addrs {
			if a.IsValid() && !d.tracker.IsLocal(a.Addr) {
				return fmt.Errorf("this node has no address %s any more", a)
			}
		}
		return nil
	}
}

func (d *Daemon) senderHealth(c *config.Config) func() error {
	if n := c.CongestionNode; n != nil {
		return d.addressHealth(n.SourceIPv4, n.SourceIPv6)
	}
	return nil
}

// serves says whether a proxy's own configuration covers a prefix: it refuses notifications about others.
func serves(p *config.Proxy, prefix netip.Prefix) bool {
	for _, s := range p.ServedPrefixes() {
		if s.Bits() <= prefix.Bits() && s.Contains(prefix.Addr()) {
			return true
		}
	}
	return false
}
