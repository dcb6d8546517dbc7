package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// asTrans is AS_TRANS, which stands for a four-octet AS towards two-octet speakers (RFC 6793 section 9).
const asTrans = 23456

// maxMD5Key is the longest TCP MD5 key that Linux takes (TCP_MD5SIG_MAXKEYLEN).
const maxMD5Key = 80

func (c *checker) bgp(b *BGP) {
	c.as("bgp.as", b.AS)
	c.want(b.RouterID.Is4() && isUnicast(b.RouterID.Addr), "bgp.router_id", "required: an IPv4 unicast address")
	c.want(b.Port == -1 || b.Port >= 1 && b.Port <= 65535, "bgp.port", "%d is neither a port nor -1", b.Port)
	c.want(b.PNCCode > 3, "bgp.pnc_code", "%d is reserved or assigned to another characteristic", b.PNCCode)
	c.communities("bgp.communities", b.Communities)
	c.originators("bgp.accept_from", b.AcceptFrom)
	c.ownRestart(&b.GracefulRestart)
	c.want(b.GobgpSocket == "" || strings.HasPrefix(b.GobgpSocket, "/") && !strings.Contains(b.GobgpSocket, ","),
		"bgp.gobgp_socket", "%q: the path must be absolute and without a comma", b.GobgpSocket)
	c.bmpStations(b)
	c.ranges(b)
	seen, links := map[netip.Addr]int{}, map[netip.Addr]int{}
	for i := range b.Neighbors {
		n, at := &b.Neighbors[i], index("bgp.neighbors", i)
		c.neighbor(at, n, b)
		first, twice := seen[n.Address.Addr]
		c.want(!twice || !n.Address.IsValid(), at+".address", "%s is neighbors[%d] already", n.Address, first)
		seen[n.Address.Addr] = i
		if !n.Address.IsLinkLocalUnicast() {
			continue
		}
		// The kernel has keys and the filter of the listener by address, whatever the interface.
		bare := n.Address.WithZone("")
		if first, again := links[bare]; again {
			o := &b.Neighbors[first]
			c.want(o.Password == n.Password && o.PasswordFile == n.PasswordFile, at+".password", "must be that of neighbors[%d], which has the same address on another interface", first)
			c.want(o.TTLMin == n.TTLMin, at+".ttl_min", "must be that of neighbors[%d], which has the same address on another interface", first)
		}
		links[bare] = i
	}
}

func (c *checker) ownRestart(r *OwnRestart) {
	const at = "bgp.graceful_restart"
	// RFC 4724 section 3: 12 bits of seconds.
	c.span(at+".restart_time", r.RestartTime, time.Second, (1<<12-1)*time.Second)
	c.want(r.RestartTime.Duration%time.Second == 0, at+".restart_time", "%s is not a whole number of seconds", r.RestartTime)
	c.span(at+".deferral_time", r.DeferralTime, time.Second, time.Hour)
	c.oneOf(at+".on_stop", r.OnStop, OnStopWithdraw, OnStopKeep)
	c.want(r.OnStop != OnStopKeep || r.Enabled, at+".on_stop", "keep needs enabled: neighbours would drop what is announced with the session")
	c.want(strings.HasPrefix(r.StateFile, "/"), at+".state_file", "%q: the path must be absolute", r.StateFile)
}

func (c *checker) as(key string, as uint32) {
	c.want(as != 0 && as != asTrans && as != 65535 && as != 4294967295, key, "required: an AS number other than 0, 23456, 65535 and 4294967295")
}

func (c *checker) neighbor(at string, n *Neighbor, b *BGP) {
	c.want(n.Address.IsValid(), at+".address", "required")
	c.neighborAddress(at, n)
	c.as(at+".as", n.AS)
	c.as(at+".local_as", n.LocalAS)
	for _, l := range b.Listen {
		c.want(!n.Address.IsValid() || l.Addr != n.Address.WithZone(""), at+".address", "%s is our own address (bgp.listen)", n.Address)
	}
	c.want(!n.LocalAddress.IsValid() || n.LocalAddress.Is4() == n.Address.Is4(), at+".local_address", "must be of the same family as the neighbour's address")
	c.want(n.Port > 0, at+".port", "0 is not a port")
	c.want(!n.Passive || b.Port != -1, at+".passive", "a passive session needs a port to listen on (bgp.port is -1)")
	c.want(n.Password == "" || n.PasswordFile == "", at+".password_file", "give either password or password_file")
	c.want(len(n.Password) <= maxMD5Key, at+".password", "a TCP MD5 key has at most %d octets", maxMD5Key)
	c.want(n.AS != n.LocalAS || !n.AcceptEBGP, at+".accept_ebgp", "only for an EBGP neighbour: what an IBGP one sends is taken anyway")
	c.want(n.AS != n.LocalAS || n.MultihopTTL == 0, at+".multihop_ttl", "only for an EBGP neighbour")
	c.want(n.TTLMin == 0 || n.MultihopTTL == 0, at+".ttl_min", "give either ttl_min or multihop_ttl")
	// RFC 4271 section 4.2 also has 0, no keepalives: the engine can't do without them.
	held := n.HoldTime.Duration >= 3*time.Second && n.HoldTime.Duration <= 65535*time.Second
	c.want(held, at+".hold_time", "%s is not between 3s and 65535s", n.HoldTime)
	// Within a second each timer is rounded away by the engine, which counts whole seconds.
	c.want(n.Keepalive.Duration >= time.Second || !held, at+".keepalive", "%s is less than 1s", n.Keepalive)
	c.want(n.Keepalive.Duration < n.HoldTime.Duration || !held, at+".keepalive", "must be less than hold_time")
	c.span(at+".connect_retry", n.ConnectRetry, time.Second, 65535*time.Second)
	// RFC 9494 section 3.1: 24 bits of seconds, and only with the capability that it extends.
	c.span(at+".long_lived_restart", n.LongLivedRestart, 0, (1<<24-1)*time.Second)
	c.want(n.LongLivedRestart.Duration == 0 || n.GracefulRestart, at+".long_lived_restart", "needs graceful_restart")
	for i, f := range n.Families {
		c.oneOf(index(at+".families", i), f, "ipv4-unicast", "ipv6-unicast", "vpnv4-unicast", "vpnv6-unicast")
	}
	c.policy(at, n)
}

// neighborAddress checks which address a neighbour has, and what goes with a link-local one.
func (c *checker) neighborAddress(at string, n *Neighbor) {
	key, a, local := at+".address", n.Address, n.LocalAddress
	link := a.Is6() && a.IsLinkLocalUnicast()
	c.want(!a.IsValid() || isUnicast(a.WithZone("")), key, "%s is not a unicast address", a)
	c.want(!link || a.Zone() != "", key, "%s is link-local; name its interface, as in %s%%eth1", a, a)
	c.want(link || a.Zone() == "", key, "%s: only a link-local address has an interface", a)
	if link && a.Zone() != "" {
		c.interfaceName(key, a.Zone())
	}
	c.want(!link || n.MultihopTTL == 0, at+".multihop_ttl", "%s is on the link", a)
	c.want(link || !local.Is6() || !local.IsLinkLocalUnicast(), at+".local_address", "%s is link-local and the neighbour's address is not", local)
	c.want(!link || local.Addr != a.WithZone(""), at+".local_address", "%s is the neighbour's address", local)
}

// maxShutdown is how many octets a shutdown communication has at most (RFC 9003 section 2).
const maxShutdown = 255

func (c *checker) policy(at string, n *Neighbor) {
	c.prefixList(at+".import_prefixes", n.ImportPrefixes)
	c.prefixList(at+".export_prefixes", n.ExportPrefixes)
	c.communities(at+".require_communities", n.RequireCommunities)
	c.originators(at+".accept_from", n.AcceptFrom)
	c.want(!n.Border || n.AS != n.LocalAS, at+".border", "only for an EBGP neighbour")
	c.want(!n.Border || !n.AcceptEBGP, at+".border", "give either border or accept_ebgp")
	c.want(!n.Border || n.SendNHC == nil || !*n.SendNHC, at+".border", "no NHC leaves the domain: give either border or send_nhc")
	c.want(len(n.Shutdown) <= maxShutdown, at+".shutdown", "a shutdown communication has at most %d octets", maxShutdown)
}

// originators checks prefixes of BGP Identifiers, which are written as IPv4 addresses (RFC 6286).
func (c *checker) originators(key string, list []Prefix) {
	for i, p := range list {
		c.want(p.IsValid() && p.Addr().Is4(), index(key, i), "%s is not an IPv4 prefix: a BGP Identifier is written as an IPv4 address", p)
	}
}

func (c *checker) prefixList(key string, list []PrefixRule) {
	for i, r := range list {
		at := index(key, i)
		c.want(r.Prefix.IsValid(), at+".prefix", "required")
		if !r.Prefix.IsValid() {
			continue
		}
		bits, longest := r.Prefix.Bits(), r.Prefix.Addr().BitLen()
		c.want(r.GE == 0 || r.GE >= bits && r.GE <= longest, at+".ge", "%d is not between %d and %d", r.GE, bits, longest)
		c.want(r.LE == 0 || r.LE >= max(bits, r.GE) && r.LE <= longest, at+".le", "%d is not between %d and %d", r.LE, max(bits, r.GE), longest)
	}
}

var (
	communityRE = regexp.MustCompile(`^(\d{1,10}):(\d{1,10})(?::(\d{1,10}))?$`)
	wellKnown   = []string{"no-export", "no-advertise"}
)

func (c *checker) communities(key string, list []string) {
	for i, s := range list {
		c.want(slices.Contains(wellKnown, s) || isCommunity(s), index(key, i), "%q is not a community such as 65000:1, 65000:1:2, %s", s, strings.Join(wellKnown, " or "))
	}
}

// isCommunity says whether s is one of RFC 1997, of two parts with 16 bits, or of RFC 8092, of three with 32.
func isCommunity(s string) bool {
	m := communityRE.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	bits, parts := 32, m[1:]
	if m[3] == "" {
		bits, parts = 16, m[1:3]
	}
	return !slices.ContainsFunc(parts, func(p string) bool {
		_, err := strconv.ParseUint(p, 10, bits)
		return err != nil
	})
}
