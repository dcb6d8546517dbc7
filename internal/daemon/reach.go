package daemon

import (
	"context"
	"net/netip"

	"pncd/dataplane/host"
	"pncd/pnc"
)

// followProxies keeps the set of tracked addresses in line with the proxies in the table.
func (d *Daemon) followProxies(ctx context.Context) error {
	for {
		d.tracker.Watch(d.table.Proxies()...)
		select {
		case <-ctx.Done():
			return nil
		case <-d.table.ProxiesChanged():
		}
	}
}

// reachChanged tells the table what the kernel says about proxies.
func (d *Daemon) reachChanged(changed map[netip.Addr]host.Status) {
	reach := make(map[netip.Addr]pnc.Reach, len(changed))
	for a, r := range changed {
		reach[a] = pnc.Reach{Reachable: r.Reachable, Self: r.Self, ViaDefault: r.ViaDefault}
	}
	d.table.SetReachability(d.now(), reach)
}
