package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sirupsen/logrus"
	"go.yaml.in/yaml/v3"
)

// checker collects the rules that a configuration breaks.
type checker struct {
	root     *yaml.Node
	problems []Problem
	warnings []Problem
}

// want records a problem at key unless ok.
func (c *checker) want(ok bool, key, rule string, args ...any) {
	if ok {
		return
	}
	c.problems = append(c.problems, Problem{Line: lineOf(c.root, key), Key: key, Rule: fmt.Sprintf(rule, shortened(args)...)})
}

// advise records a warning at key unless ok: what is allowed, and does nothing.
func (c *checker) advise(ok bool, key, rule string, args ...any) {
	if !ok {
		c.warnings = append(c.warnings, Problem{Line: lineOf(c.root, key), Key: key, Rule: fmt.Sprintf(rule, shortened(args)...)})
	}
}

// oneOf records a problem unless v is in the list.
func (c *checker) oneOf(key, v string, list ...string) {
	c.want(slices.Contains(list, v), key, "%q is none of "+strings.Join(list, ", "), v)
}

// within records a problem unless min <= v <= max.
func (c *checker) within(key string, v, min, max int) {
	c.want(v >= min && v <= max, key, "%d is not between %d and %d", v, min, max)
}

// span records a problem unless min <= v <= max.
func (c *checker) span(key string, v Duration, min, max time.Duration) {
	c.want(v.Duration >= min && v.Duration <= max, key, "%s is not between %s and %s", v, min, max)
}

// check returns every problem of a decoded configuration, and what is no problem and does nothing.
func check(cfg *Config, root *yaml.Node) (problems, warnings []Problem) {
	c := &checker{root: root}
	c.general(cfg)
	c.static(cfg.Static)
	contexts := c.contexts(cfg)
	if cfg.BGP != nil {
		c.bgp(cfg.BGP)
	}
	if cfg.ISIS != nil {
		c.isis(cfg.ISIS)
	}
	for _, o := range cfg.OSPFs() {
		c.ospf(o)
	}
	c.veths(cfg)
	if cfg.OSPFAPI != nil {
		c.ospfAPI(cfg)
	}
	if cfg.CongestionNode != nil {
		c.congestionNode(cfg)
		c.nodeContexts(cfg.CongestionNode, contexts)
	}
	if cfg.Proxy != nil {
		c.proxy(cfg.Proxy, cfg.BGP)
		if cfg.Proxy.NRP != nil {
			c.nrp(cfg.Proxy.NRP, contexts)
		}
	}
	c.links(cfg)
	if cfg.Boundary != nil {
		c.boundary(cfg)
	}
	return c.problems, c.warnings
}

func (c *checker) general(cfg *Config) {
	c.want(!cfg.Enabled || cfg.CongestionNode != nil || cfg.Proxy != nil, "enabled", "there is nothing to enable without a congestion_node or a proxy section")
	_, err := logrus.ParseLevel(cfg.Log.Level)
	c.want(err == nil, "log.level", "%q is none of panic, fatal, error, warning, info, debug, trace", cfg.Log.Level)
	c.want(!strings.ContainsFunc(cfg.Node, unicode.IsControl), "node", "must not hold control characters")
	c.oneOf("log.format", cfg.Log.Format, "text", "json")
	c.apiListen(&cfg.API)
	c.telemetry(&cfg.Telemetry)
	c.within("evidence.records", cfg.Evidence.Records, 1, 1<<24)
	sources := []string{"static", "bgp", "isis", "ospf"}
	sorted := slices.Sorted(slices.Values(cfg.Resolve.Preference))
	c.want(slices.Equal(sorted, slices.Sorted(slices.Values(sources))), "resolve.preference",
		"must name each of %s once", strings.Join(sources, ", "))
	c.oneOf("resolve.share", cfg.Resolve.Share, "lowest", "hash")
	c.within("resolve.history", cfg.Resolve.History, 1, 1<<22)
}

func (c *checker) apiListen(a *API) {
	if path, ok := strings.CutPrefix(a.Listen, "unix://"); ok {
		c.want(strings.HasPrefix(path, "/"), "api.listen", "%q: the path must be absolute, as in unix:///run/pncd/pncd.sock", a.Listen)
		// sockaddr_un holds 108 octets with the terminating zero.
		c.want(len(path) < 108, "api.listen", "a socket's path has at most 107 octets, this has %d", len(path))
		c.want(a.TLS == TLS{}, "api.tls", "only for a TCP address; a unix socket is guarded by its mode and api.group")
		return
	}
	_, port, err := net.SplitHostPort(a.Listen)
	c.want(err == nil, "api.listen", "%q is neither unix:///path nor host:port", a.Listen)
	c.want(err != nil || isPort(port), "api.listen", "%q is not a port", port)
	c.want(a.Group == "", "api.group", "only for a unix socket")
	c.want(a.TLS.Cert != "" && a.TLS.Key != "", "api.listen", "a TCP address needs api.tls.cert and api.tls.key")
}

func (c *checker) telemetry(t *Telemetry) {
	if t.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(t.Listen)
	c.want(err == nil, "telemetry.listen", "%q is not host:port", t.Listen)
	c.want(err != nil || isPort(port), "telemetry.listen", "%q is not a port", port)
	if err != nil || t.AllowRemote || host == "localhost" {
		return
	}
	addr, err := netip.ParseAddr(host)
	c.want(err == nil && addr.IsLoopback(), "telemetry.listen",
		"%q is not a loopback address; there is no authentication, so others need telemetry.allow_remote: true", host)
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func (c *checker) static(list []Static) {
	type key struct {
		context string
		prefix  netip.Prefix
		proxy   netip.Addr
	}
	seen := map[key]int{}
	for i, s := range list {
		at := index("static", i)
		c.want(s.Prefix.IsValid(), at+".prefix", "required")
		c.want(s.Proxy.IsValid(), at+".proxy", "required")
		c.beyondHost(at+".proxy", s.Proxy)
		c.senders(at+".prefix", s.Prefix)
		k := key{s.Context, s.Prefix.Prefix, s.Proxy.Addr}
		first, twice := seen[k]
		c.want(!twice, at, "the same as static[%d]", first)
		seen[k] = i
	}
}

// rocePort is RoCEv2's own port: a tap would take notifications for it.
const rocePort = 4791

func (c *checker) notificationPort(key string, port uint16) {
	c.want(port != 0, key, "0 is not a port")
	c.want(port != rocePort, key, "%d is RoCEv2's own port", port)
}

// senders records a problem if no sender can have an address of the prefix.
func (c *checker) senders(key string, p Prefix) {
	a := p.Addr()
	c.want(!p.IsValid() || p.Bits() == 0 || !a.IsMulticast() && !a.IsLoopback() && !a.IsLinkLocalUnicast(), key, "%s is not a prefix of unicast addresses", p)
}

// unicast records a problem if an address is given that no other node can reach by routing.
func (c *checker) unicast(key string, a Addr) {
	c.want(!a.IsValid() || isUnicast(a.Addr), key, "%s is not a unicast address", a)
	c.want(!a.Is6() || !a.IsLinkLocalUnicast(), key, "%s is link-local; give an address that means something beyond one link", a)
}

// beyondHost records a problem if an address is given that the rest of the network can't send to.
func (c *checker) beyondHost(key string, a Addr) {
	c.unicast(key, a)
	c.want(!a.IsLoopback(), key, "%s is a loopback address: on every node it is that node itself", a)
	c.want(!a.Is4() || !a.IsLinkLocalUnicast(), key, "%s is link-local; give an address that means something beyond one link", a)
}

// isUnicast says whether an address may be a node's: not unspecified, multicast or broadcast.
func isUnicast(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func (c *checker) interfaces(key string, names []string) {
	seen := map[string]bool{}
	for i, n := range names {
		c.interfaceName(index(key, i), n)
		c.want(!seen[n], index(key, i), "%q is given twice", n)
		seen[n] = true
	}
}

func (c *checker) interfaceName(key, n string) {
	// IFNAMSIZ is 16 with the terminating zero.
	c.want(n != "" && len(n) < 16 && !strings.ContainsAny(n, "/ \t\n"), key, "%q is not an interface's name", n)
}

func (c *checker) family(key string, a Addr, four bool, name string) {
	c.want(!a.IsValid() || a.Is4() == four, key, "%s is not an %s address", a, name)
	c.unicast(key, a)
}

// format2Port checks the port of format 2 beside that of format 1, where format 2 is used.
func (c *checker) format2Port(section string, port, first uint16) {
	key := section + ".port_format2"
	c.notificationPort(key, port)
	c.want(port != first, key, "%d is %s.port: each format has a port of its own", port, section)
}

func (c *checker) congestionNode(cfg *Config) {
	const p = "congestion_node"
	n := cfg.CongestionNode
	c.want(len(cfg.DetectorLinks()) > 0 || len(n.Detect.Qdiscs) > 0 || n.Detect.API != nil, p+".interfaces",
		"required, or contexts, or detect.virtual_queues, detect.qdiscs or detect.api: the links whose outgoing CE-marked packets count")
	c.interfaces(p+".interfaces", n.Interfaces)
	c.detect(cfg)
	c.want(n.SourceIPv4.IsValid() || n.SourceIPv6.IsValid(), p, "source_ipv4 or source_ipv6 is required")
	c.family(p+".source_ipv4", n.SourceIPv4, true, "IPv4")
	c.family(p+".source_ipv6", n.SourceIPv6, false, "IPv6")
	c.notificationPort(p+".port", n.Port)
	if len(n.Contexts) > 0 {
		c.format2Port(p, n.PortFormat2, n.Port)
	}
	c.within(p+".dscp", int(n.DSCP), 0, 63)
	c.within(p+".ttl", int(n.TTL), 1, 255)
	c.span(p+".pace.window", n.Pace.Window, time.Microsecond, time.Second)
	c.within(p+".pace.per_flow", n.Pace.PerFlow, 1, 1_000_000)
	c.within(p+".pace.total", n.Pace.Total, 1, 100_000_000)
	c.within(p+".pace.burst", n.Pace.Burst, 1, 10_000_000)
	c.within(p+".pace.sample", n.Pace.Sample, 1, 1_000_000)
	c.within(p+".pace.flows", n.Pace.Flows, 16, 1<<24)
}
