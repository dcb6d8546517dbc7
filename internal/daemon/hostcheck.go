package daemon

import (
	"fmt"
	"net/netip"
	"slices"

	"pncd/dataplane/host"
	"pncd/internal/config"
)

// need is something of this host that a configuration names and that nothing opens: without a check a
// mistake there would show as silence.
type need struct {
	key   string
	iface string     // an interface, or
	addr  netip.Addr // an address of this host's own
}

func hostNeeds(c *config.Config) (out []need) {
	if n := c.CongestionNode; n != nil {
		for key, a := range map[string]config.Addr{"source_ipv4": n.SourceIPv4, "source_ipv6": n.SourceIPv6} {
			if a.IsValid() {
				out = append(out, need{key: "congestion_node." + key, addr: a.Addr})
			}
		}
	}
	if p := c.Proxy; p != nil {
		for _, name := range p.AcceptInterfaces {
			out = append(out, need{key: "proxy.accept_interfaces", iface: name})
		}
		for _, s := range p.SenderSources {
			if s.Interface != "" {
				out = append(out, need{key: "proxy.sender_sources", iface: s.Interface})
			}
		}
	}
	return out
}

// checkHost says what of a configuration this host does not have. What the running configuration had
// before is passed over: it was checked when it came, and an interface may be gone for a moment.
func checkHost(c *config.Config, before []need) error {
	for _, n := range hostNeeds(c) {
		if slices.Contains(before, n) {
			continue
		}
		if n.iface != "" {
			if err := host.InterfaceExists(n.iface); err != nil {
				return fmt.Errorf("%s: %w", n.key, err)
			}
			continue
		}
		switch own, err := host.IsLocal(n.addr); {
		case err != nil:
			return fmt.Errorf("%s: %w", n.key, err)
		case !own:
			return fmt.Errorf("%s: this node has no address %s: add it to an interface, or configure one that it has", n.key, n.addr)
		}
	}
	return nil
}
