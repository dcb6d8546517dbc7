package config

import "net/netip"

// DefaultRangeLimit is how many neighbours a range takes.
const DefaultRangeLimit = 100

// ListenRange configures sessions with neighbours that come by themselves.
type ListenRange struct {
	Prefix Prefix `yaml:"prefix"`
	Limit  int    `yaml:"limit"`

	Session `yaml:",inline"`
}

// Each is the configuration of one of its neighbours, but for the address.
func (r *ListenRange) Each() Neighbor {
	return Neighbor{Session: r.Session, Port: DefaultBGPPort, ConnectRetry: Duration{DefaultRetry}, Passive: true}
}

// ranges checks what can be without knowing the host: addresses of its interfaces are looked at when pncd starts.
func (c *checker) ranges(b *BGP) {
	own := []netip.Addr{b.RouterID.Addr}
	for _, l := range b.Listen {
		own = append(own, l.Addr)
	}
	for i := range b.Neighbors {
		own = append(own, b.Neighbors[i].LocalAddress.Addr)
	}
	seen := map[netip.Prefix]int{}
	for i := range b.ListenRanges {
		r, at := &b.ListenRanges[i], index("bgp.listen_ranges", i)
		p := r.Prefix.Prefix
		c.want(p.IsValid(), at+".prefix", "required")
		c.want(r.Limit >= 1 && r.Limit <= 10000, at+".limit", "%d is not between 1 and 10000", r.Limit)
		if !p.IsValid() {
			continue
		}
		if p.IsSingleIP() {
			c.want(false, at+".prefix", "%s is one address: configure it in bgp.neighbors", p)
			continue
		}
		if p.Addr().IsLinkLocalUnicast() || p.Addr().IsMulticast() {
			c.want(false, at+".prefix", "%s is not of unicast addresses, or of link-local ones, which need an interface", p)
			continue
		}
		first, twice := seen[p]
		c.want(!twice, at+".prefix", "%s is listen_ranges[%d] already", p, first)
		seen[p] = i
		for _, a := range own {
			if a.IsValid() && !a.IsUnspecified() && p.Contains(a) {
				c.want(false, at+".prefix", "%s holds %s, which is our own address: a range never holds one of ourselves; divide it", p, a)
				break
			}
		}
		n := r.Each()
		n.Address.Addr = p.Addr().Next()
		c.neighbor(at, &n, b)
		for j := range b.Neighbors {
			o := &b.Neighbors[j]
			c.want(r.Password == "" && r.PasswordFile == "" || o.Password != "" || o.PasswordFile != "" || !p.Contains(o.Address.Addr),
				at+".password", "holds neighbors[%d], which must have a password, too: the kernel takes nothing without one inside of the range", j)
		}
	}
}
