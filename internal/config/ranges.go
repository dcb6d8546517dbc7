package config

import (
	"net/netip"
	"time"
)

// DefaultRangeLimit is how many neighbours a range takes.
const DefaultRangeLimit = 100

// ListenRange configures sessions with neighbours that come by themselves. Keys that Neighbor has too mean the same.
type ListenRange struct {
	Prefix Prefix `yaml:"prefix"`
	Limit  int    `yaml:"limit"`

	AS                 uint32       `yaml:"as"`
	Description        string       `yaml:"description"`
	LocalAS            uint32       `yaml:"local_as"`
	Password           string       `yaml:"password"`
	PasswordFile       string       `yaml:"password_file"`
	TTLMin             uint8        `yaml:"ttl_min"`
	MultihopTTL        uint8        `yaml:"multihop_ttl"`
	HoldTime           Duration     `yaml:"hold_time"`
	Keepalive          Duration     `yaml:"keepalive"`
	Families           []string     `yaml:"families"`
	AddPath            bool         `yaml:"add_path"`
	AcceptEBGP         bool         `yaml:"accept_ebgp"`
	SendNHC            *bool        `yaml:"send_nhc"`
	GracefulRestart    bool         `yaml:"graceful_restart"`
	LongLivedRestart   Duration     `yaml:"long_lived_restart"`
	AllowOwnAS         uint8        `yaml:"allow_own_as"`
	Border             bool         `yaml:"border"`
	ImportPrefixes     []PrefixRule `yaml:"import_prefixes"`
	ExportPrefixes     []PrefixRule `yaml:"export_prefixes"`
	RequireCommunities []string     `yaml:"require_communities"`
	AcceptProxies      []Prefix     `yaml:"accept_proxies"`
	AcceptFrom         []Prefix     `yaml:"accept_from"`
	MaxPrefixes        uint32       `yaml:"max_prefixes"`
}

// Each is the configuration of one of its neighbours, but for the address.
func (r *ListenRange) Each() Neighbor {
	return Neighbor{
		AS: r.AS, Description: r.Description, LocalAS: r.LocalAS, Password: r.Password, PasswordFile: r.PasswordFile,
		TTLMin: r.TTLMin, MultihopTTL: r.MultihopTTL, HoldTime: r.HoldTime, Keepalive: r.Keepalive, Families: r.Families,
		AddPath: r.AddPath, AcceptEBGP: r.AcceptEBGP, SendNHC: r.SendNHC, GracefulRestart: r.GracefulRestart, LongLivedRestart: r.LongLivedRestart,
		AllowOwnAS: r.AllowOwnAS, Border: r.Border, ImportPrefixes: r.ImportPrefixes, ExportPrefixes: r.ExportPrefixes, RequireCommunities: r.RequireCommunities,
		AcceptProxies: r.AcceptProxies, AcceptFrom: r.AcceptFrom, MaxPrefixes: r.MaxPrefixes,
		Port: DefaultBGPPort, ConnectRetry: Duration{DefaultRetry}, Passive: true,
	}
}

func (r *ListenRange) fillDefaults(given func(string) bool, at string, as uint32) {
	setDefault(given, at+".limit", &r.Limit, DefaultRangeLimit)
	setDefault(given, at+".local_as", &r.LocalAS, as)
	setDefault(given, at+".hold_time", &r.HoldTime, Duration{DefaultHoldTime})
	setDefault(given, at+".keepalive", &r.Keepalive, Duration{(r.HoldTime.Duration / 3).Truncate(time.Second)})
	setDefault(given, at+".graceful_restart", &r.GracefulRestart, true)
	if len(r.Families) == 0 && r.Prefix.Addr().Is6() {
		r.Families = []string{"ipv6-unicast"}
	} else if len(r.Families) == 0 {
		r.Families = []string{"ipv4-unicast"}
	}
	if r.SendNHC == nil {
		ibgp := r.AS == as
		r.SendNHC = &ibgp
	}
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
