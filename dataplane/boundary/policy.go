package boundary

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Family says which of the kernel's hooks watch the border interfaces.
type Family string

// Families.
const (
	FamilyAuto   Family = "auto"   // netdev where the kernel has both its hooks, else inet
	FamilyNetdev Family = "netdev" // ingress and egress of each interface, before and after everything else
	FamilyInet   Family = "inet"   // prerouting and postrouting, by interface name
)

// Policy says what is let through.
type Policy struct {
	Ports            []uint16       // UDP destination ports of notifications, formats 1 and 2
	Borders          []string       // interfaces towards the outside of the domain
	AcceptFrom       []netip.Prefix // congestion nodes; none: nothing is accepted
	AcceptInterfaces []string       // where notifications arrive; none: everywhere but at the borders
	Own              []netip.Addr   // where notifications go; none: nothing is accepted
	TTLMin           uint8          // least TTL or hop limit of notifications to this node; 0: any
	RefuseCNPs       bool           // CNPs don't leave by the border
	Family           Family         // of the hooks at the borders; empty: FamilyAuto
	Total            Limit          // of all notifications to this node
	PerSource        Limit          // of those of one source address
	Sources          uint32         // source addresses whose rate is known at once; beyond it only Total holds
	SourceAge        time.Duration  // after which a silent source is forgotten, in whole seconds
}

// Limit is a token bucket. The zero value is no limit.
type Limit struct {
	Rate  uint64 // packets a second
	Burst uint32 // packets
}

// Bounds of a Limit. Under its least burst nft prints the default in its own way; above the greatest rate the
// kernel's nanoseconds are too coarse.
const (
	MaxRate  = 10_000_000
	MinBurst = 10
	MaxBurst = 10_000_000
	// MaxSources bounds the memory of the sets of sources: some 200 octets each.
	MaxSources = 1 << 20
	// maxInterface is IFNAMSIZ without the final zero.
	maxInterface = 15
)

// Validate says what of a policy can't be programmed.
func (p *Policy) Validate() error {
	if len(p.Ports) == 0 || slices.Contains(p.Ports, 0) {
		return fmt.Errorf("boundary: ports: at least one is needed, and none is 0")
	}
	for _, name := range slices.Concat(p.Borders, p.AcceptInterfaces) {
		if name == "" || len(name) > maxInterface {
			return fmt.Errorf("boundary: interface %q: a name has 1 to %d octets", name, maxInterface)
		}
	}
	for _, name := range p.AcceptInterfaces {
		if slices.Contains(p.Borders, name) {
			return fmt.Errorf("boundary: interface %s can't both be a border and a place where notifications are accepted", name)
		}
	}
	for _, prefix := range p.AcceptFrom {
		if !prefix.IsValid() {
			return fmt.Errorf("boundary: accept_from: an invalid prefix")
		}
	}
	for _, a := range p.Own {
		if !a.IsValid() || a.Zone() != "" {
			return fmt.Errorf("boundary: own address %s: an address without zone is needed", a)
		}
	}
	switch p.Family {
	case "", FamilyAuto, FamilyNetdev, FamilyInet:
	default:
		return fmt.Errorf("boundary: family: %q is not auto, netdev or inet", p.Family)
	}
	for name, l := range map[string]Limit{"total": p.Total, "per source": p.PerSource} {
		if l != (Limit{}) && (l.Rate < 1 || l.Rate > MaxRate || l.Burst < MinBurst || l.Burst > MaxBurst) {
			return fmt.Errorf("boundary: limit %s: a rate of 1 to %d and a burst of %d to %d packets are needed", name, MaxRate, MinBurst, MaxBurst)
		}
	}
	if p.PerSource != (Limit{}) && (p.Sources < 1 || p.Sources > MaxSources || p.SourceAge < time.Second || p.SourceAge%time.Second != 0) {
		return fmt.Errorf("boundary: limit per source: 1 to %d sources, forgotten after whole seconds, are needed", MaxSources)
	}
	return nil
}
