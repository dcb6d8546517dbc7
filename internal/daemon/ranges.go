package daemon

import (
	"fmt"
	"net"
	"net/netip"

	"pncd/bgp"
	"pncd/internal/config"
	"pncd/internal/telemetry"
)

// rangeSettings reads the password that is in a file.
func rangeSettings(r *config.ListenRange) (bgp.RangeConfig, error) {
	each := r.Each()
	each.Address.Addr = r.Prefix.Addr() // by which an error names it
	n, err := neighborSettings(&each)
	n.Address, n.Port = netip.Addr{}, 0
	return bgp.RangeConfig{Prefix: r.Prefix.Prefix, Limit: r.Limit, Neighbor: n}, err
}

// withOwn adds the addresses of this host's interfaces, which no range of neighbours may hold.
func withOwn(s bgp.Config) (bgp.Config, error) {
	if len(s.Ranges) == 0 {
		return s, nil
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return s, fmt.Errorf("addresses of the interfaces, which bgp.listen_ranges must not hold: %w", err)
	}
	for _, a := range list {
		if p, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(p.IP); ok {
				s.Own = append(s.Own, ip.Unmap())
			}
		}
	}
	return s, nil
}

func (d *Daemon) exportedRanges() (out []telemetry.ListenRange) {
	if d.speaker == nil {
		return nil
	}
	for _, r := range d.speaker.Ranges() {
		out = append(out, telemetry.ListenRange{Prefix: r.Prefix.String(), Limit: r.Limit, Neighbors: r.Neighbors, Refused: r.Refused})
	}
	return out
}
