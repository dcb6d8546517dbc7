package config

import (
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Context is a VPN: which routes belong to it, and how announcements inside it are marked.
type Context struct {
	Name   string   `yaml:"name"`
	Import []string `yaml:"import"` // route targets
	RD     string   `yaml:"rd"`
	Export []string `yaml:"export"` // route targets
	Label  Label    `yaml:"label"`

	// Where the VPN is on this host; none of them: it is known to routing only.
	Device    string   `yaml:"device"`
	Namespace string   `yaml:"namespace"`
	Table     int      `yaml:"table"` // with Mark
	Mark      int      `yaml:"mark"`
	Taps      []string `yaml:"taps"`

	ImportPrefixes     []PrefixRule `yaml:"import_prefixes"`
	RequireCommunities []string     `yaml:"require_communities"`
	AcceptProxies      []Prefix     `yaml:"accept_proxies"`
	AcceptFrom         []Prefix     `yaml:"accept_from"`
	ExportPrefixes     []PrefixRule `yaml:"export_prefixes"`
	Communities        []string     `yaml:"communities"`
}

// HasPlace says whether the VPN is on this host.
func (x *Context) HasPlace() bool { return x.Device != "" || x.Namespace != "" || x.Mark != 0 }

// Namespace gives the network namespace of a context, empty for one without.
func (c *Config) Namespace(context string) string {
	for i := range c.Contexts {
		if c.Contexts[i].Name == context {
			return c.Contexts[i].Namespace
		}
	}
	return ""
}

// Label is an MPLS label: implicit-null, or a number from 16 to 1048575. The zero value means that none
// is given.
type Label struct {
	Value uint32
	Given bool
}

const (
	implicitNull = 3 // RFC 3032 section 2.1
	firstLabel   = 16
	lastLabel    = 1<<20 - 1
)

// UnmarshalYAML implements yaml.Unmarshaler. An empty string is no label.
func (l *Label) UnmarshalYAML(n *yaml.Node) error {
	switch n.Value {
	case "":
		*l = Label{}
		return nil
	case "implicit-null":
		*l = Label{implicitNull, true}
		return nil
	}
	v, err := strconv.ParseUint(n.Value, 10, 32)
	if err != nil || v < firstLabel || v > lastLabel {
		return lineError(n, "%q is neither implicit-null nor a label from %d to %d", n.Value, firstLabel, lastLabel)
	}
	*l = Label{uint32(v), true}
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (l Label) MarshalYAML() (any, error) {
	switch {
	case !l.Given:
		return "", nil
	case l.Value == implicitNull:
		return "implicit-null", nil
	}
	return int(l.Value), nil
}

// maxContextName is what the API takes (octets).
const maxContextName = 255

// contexts checks the contexts and what names them, and gives them by name.
func (c *checker) contexts(cfg *Config) map[string]*Context {
	byName := map[string]*Context{}
	for i := range cfg.Contexts {
		x, at := &cfg.Contexts[i], index("contexts", i)
		c.want(x.Name != "" && len(x.Name) <= maxContextName && !strings.ContainsAny(x.Name, " \t\r\n/"), at+".name",
			"%q: required, at most %d octets without spaces and slashes", x.Name, maxContextName)
		c.want(byName[x.Name] == nil, at+".name", "%q is given twice", x.Name)
		byName[x.Name] = x
		c.want(x.RD == "" || isVPNNumber(x.RD), at+".rd", vpnNumberRule, x.RD)
		c.targets(at+".import", x.Import)
		c.targets(at+".export", x.Export)
		c.prefixList(at+".import_prefixes", x.ImportPrefixes)
		c.prefixList(at+".export_prefixes", x.ExportPrefixes)
		c.communities(at+".require_communities", x.RequireCommunities)
		c.communities(at+".communities", x.Communities)
		c.originators(at+".accept_from", x.AcceptFrom)
	}
	c.places(cfg)
	for i, s := range cfg.Static {
		c.want(s.Context == "" || byName[s.Context] != nil, index("static", i)+".context", "%q is none of contexts", s.Context)
	}
	if cfg.Proxy == nil {
		return byName
	}
	for i := range cfg.Proxy.Senders {
		s, at := &cfg.Proxy.Senders[i], index("proxy.senders", i)
		c.vpnSender(at, s, byName)
		if x := byName[s.Context]; x != nil && (s.Proxy == cfg.Proxy.IPv4 || s.Proxy == cfg.Proxy.IPv6) {
			c.advise(x.HasPlace(), at+".context", "context %q has no place on this host: nothing is translated for the prefix", x.Name)
			c.advise(cfg.Proxy.NRP != nil, at+".context", "without proxy.nrp no notification about a VPN is taken")
		}
	}
	return byName
}

// vpnSender checks what a sender inside a VPN needs beside the rest.
func (c *checker) vpnSender(at string, s *Sender, contexts map[string]*Context) {
	if s.Context == "" {
		return
	}
	x := contexts[s.Context]
	c.want(x != nil, at+".context", "%q is none of contexts", s.Context)
	c.want(x == nil || s.Mode != "none" || x.HasPlace(), at+".mode", "none: the sender is served only if context %q has a device, a namespace, or a table with a mark", s.Context)
	if x == nil || s.Mode == "none" {
		return
	}
	if s.Mode != "originate" {
		c.want(len(x.Import) > 0, at+".context", "context %q needs import: %s follows a route of the VPN", x.Name, s.Mode)
		return
	}
	c.want(x.RD != "", at+".context", "context %q needs rd to announce anything", x.Name)
	c.want(len(x.Export) > 0, at+".context", "context %q needs export, the route targets to announce with", x.Name)
	c.want(x.Label.Given, at+".context", "context %q needs label: implicit-null where no router imports the route targets, else the router's own label of the VPN", x.Name)
}

func (c *checker) targets(key string, list []string) {
	seen := map[string]bool{}
	for i, t := range list {
		c.want(isVPNNumber(t), index(key, i), vpnNumberRule, t)
		c.want(!seen[t], index(key, i), "%q is given twice", t)
		seen[t] = true
	}
}

const vpnNumberRule = "%q is not AS:number or IPv4:number, as in 65000:100, 192.0.2.1:100 or 2:65000:100 for an AS number of four octets"

// isVPNNumber says whether a route distinguisher or route target can be read: RFC 4364 section 4.2, with
// the type in front where RFC 8294 puts it.
func isVPNNumber(s string) bool {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return false
	}
	admin, number := s[:i], s[i+1:]
	typ, rest, typed := strings.Cut(admin, ":")
	if typed {
		admin = rest
	}
	fits := func(s string, bits int) bool {
		_, err := strconv.ParseUint(s, 10, bits)
		return err == nil
	}
	if a, err := netip.ParseAddr(admin); err == nil {
		return a.Is4() && (!typed || typ == "1") && fits(number, 16)
	}
	switch {
	case !typed:
		return fits(admin, 16) && fits(number, 32) || fits(admin, 32) && !fits(admin, 16) && fits(number, 16)
	case typ == "0":
		return fits(admin, 16) && fits(number, 32)
	case typ == "2":
		return fits(admin, 32) && fits(number, 16)
	}
	return false
}
