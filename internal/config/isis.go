package config

import (
	"encoding/hex"
	"regexp"
	"strings"
	"time"
)

// ISIS configures the IS-IS system.
type ISIS struct {
	NET           string        `yaml:"net"`
	Areas         []string      `yaml:"areas"` // further ones
	Level         string        `yaml:"level"`
	Hostname      string        `yaml:"hostname"`
	Advertise     bool          `yaml:"advertise"`
	AcceptProxies []Prefix      `yaml:"accept_proxies"`
	Flag          uint8         `yaml:"flag"`
	LinkMetric    uint32        `yaml:"link_metric"`
	PrefixMetric  uint32        `yaml:"prefix_metric"`
	MultiTopology bool          `yaml:"multi_topology"`
	LSPSize       int           `yaml:"lsp_size"` // octets
	MaxLSPs       int           `yaml:"max_lsps"`
	Timers        ISISTimers    `yaml:"timers"`
	Level1Keys    []ISISKey     `yaml:"level_1_keys"`
	Level2Keys    []ISISKey     `yaml:"level_2_keys"`
	Circuits      []ISISCircuit `yaml:"circuits"`
}

// ISISTimers are those of the update process and of SPF.
type ISISTimers struct {
	LSPLifetime Duration `yaml:"lsp_lifetime"`
	Refresh     Duration `yaml:"refresh"`
	Generation  Duration `yaml:"generation"` // the longest wait of the back-off
	GenInitial  Duration `yaml:"generation_initial"`
	GenSecond   Duration `yaml:"generation_second"`
	Retransmit  Duration `yaml:"retransmit"`
	PSNP        Duration `yaml:"psnp"`
	CSNP        Duration `yaml:"csnp"`
	SPF         Duration `yaml:"spf"` // the longest wait of the back-off
	SPFInitial  Duration `yaml:"spf_initial"`
	SPFSecond   Duration `yaml:"spf_second"`
}

// ISISCircuit is an interface towards routers.
type ISISCircuit struct {
	Interface  string    `yaml:"interface"`
	Type       string    `yaml:"type"`
	Level      string    `yaml:"level"` // empty: the system's
	Hello      Duration  `yaml:"hello"`
	Multiplier int       `yaml:"multiplier"`
	Priority   uint8     `yaml:"priority"`
	Padding    string    `yaml:"padding"`
	Keys       []ISISKey `yaml:"keys"`
	Veth       *ISISVeth `yaml:"veth"` // nil: the interface is somebody else's
}

// ISISVeth is the veth pair that pncd makes, one end of which is the circuit's interface.
type ISISVeth struct {
	Peer          string          `yaml:"peer"`      // name of the other end
	Namespace     string          `yaml:"namespace"` // of the other end: name, path or the ID of a process; empty: pncd's
	Bridge        string          `yaml:"bridge"`    // there, which the other end is a port of; empty: none
	Addresses     []InterfaceAddr `yaml:"addresses"`
	PeerAddresses []InterfaceAddr `yaml:"peer_addresses"`
	MTU           int             `yaml:"mtu"` // octets
}

// ISISKey is an authentication key; of a list the first one is sent, and all are accepted.
type ISISKey struct {
	ID           uint16 `yaml:"id"`
	Algorithm    string `yaml:"algorithm"`
	Password     string `yaml:"password"`
	PasswordFile string `yaml:"password_file"`
}

// Values of the keys that take names.
var (
	isisLevels     = []string{"level-1", "level-2", "level-1-2"}
	isisTypes      = []string{"point-to-point", "broadcast"}
	isisPaddings   = []string{"never", "until-up", "always"}
	isisAlgorithms = []string{"hmac-md5", "hmac-sha-1", "hmac-sha-224", "hmac-sha-256", "hmac-sha-384", "hmac-sha-512"}
)

// Bounds of metrics (RFC 5305): a prefix above maxPathMetric is never routed, a link of 2^24-1 never used.
const (
	maxPathMetric = 0xFE000000
	maxLinkMetric = 0xFFFFFF
)

func (s *ISIS) fillDefaults(given func(string) bool, node string) {
	setDefault(given, "isis.level", &s.Level, "level-2")
	setDefault(given, "isis.hostname", &s.Hostname, node)
	setDefault(given, "isis.advertise", &s.Advertise, true)
	setDefault(given, "isis.flag", &s.Flag, 7)
	setDefault(given, "isis.link_metric", &s.LinkMetric, maxLinkMetric-1)
	setDefault(given, "isis.prefix_metric", &s.PrefixMetric, maxPathMetric+1)
	setDefault(given, "isis.lsp_size", &s.LSPSize, 1492)
	setDefault(given, "isis.max_lsps", &s.MaxLSPs, 65536)
	for key, t := range map[string]struct {
		d *Duration
		v time.Duration
	}{
		"lsp_lifetime": {&s.Timers.LSPLifetime, 1200 * time.Second}, "refresh": {&s.Timers.Refresh, 900 * time.Second},
		"generation": {&s.Timers.Generation, 5 * time.Second}, "retransmit": {&s.Timers.Retransmit, 5 * time.Second},
		"psnp": {&s.Timers.PSNP, 2 * time.Second}, "csnp": {&s.Timers.CSNP, 10 * time.Second}, "spf": {&s.Timers.SPF, 5 * time.Second},
	} {
		setDefault(given, "isis.timers."+key, t.d, Duration{t.v})
	}
	// Whoever lowers the longest wait alone means the shorter ones, too.
	wait := func(key string, d *Duration, v, longest time.Duration) {
		setDefault(given, "isis.timers."+key, d, Duration{min(v, longest)})
	}
	t := &s.Timers
	wait("generation_initial", &t.GenInitial, 50*time.Millisecond, t.Generation.Duration)
	wait("generation_second", &t.GenSecond, 200*time.Millisecond, t.Generation.Duration)
	wait("spf_initial", &t.SPFInitial, 50*time.Millisecond, t.SPF.Duration)
	wait("spf_second", &t.SPFSecond, 200*time.Millisecond, t.SPF.Duration)
	for i := range s.Circuits {
		c, at := &s.Circuits[i], index("isis.circuits", i)
		setDefault(given, at+".type", &c.Type, "point-to-point")
		setDefault(given, at+".level", &c.Level, s.Level)
		setDefault(given, at+".hello", &c.Hello, Duration{10 * time.Second})
		setDefault(given, at+".multiplier", &c.Multiplier, 3)
		setDefault(given, at+".padding", &c.Padding, "until-up")
		if c.Veth != nil {
			setDefault(given, at+".veth.mtu", &c.Veth.MTU, 1500)
		}
	}
}

func (c *checker) isis(s *ISIS) {
	c.want(isNET(s.NET), "isis.net", "%q is not a network entity title such as 49.0001.1921.6800.1001.00: an area of 1 to 13 octets, the system ID of six, and 00", s.NET)
	c.want(len(s.Areas) <= 2, "isis.areas", "at most two beside that of the net (ISO 10589 clause 7.1.5)")
	for i, a := range s.Areas {
		raw, err := hex.DecodeString(strings.ReplaceAll(a, ".", ""))
		c.want(err == nil && len(raw) >= 1 && len(raw) <= 13, index("isis.areas", i), "%q is not an area of 1 to 13 octets such as 49.0002", a)
	}
	c.oneOf("isis.level", s.Level, isisLevels...)
	c.want(len(s.Hostname) <= 255 && printable(s.Hostname), "isis.hostname", "must be at most 255 printable ASCII characters without spaces (RFC 5301)")
	c.want(s.Flag != 0 && s.Flag != 1, "isis.flag", "bits 0 and 1 are assigned to X and R (RFC 7794)")
	c.want(s.LinkMetric > 0 && s.LinkMetric < maxLinkMetric, "isis.link_metric", "%d is not between 1 and %d: %d keeps a link out of SPF (RFC 5305 section 3)", s.LinkMetric, maxLinkMetric-1, maxLinkMetric)
	c.want(s.PrefixMetric > maxPathMetric, "isis.prefix_metric", "%d is not above %d: routers would send traffic here (RFC 5305 section 4)", s.PrefixMetric, uint32(maxPathMetric))
	c.within("isis.lsp_size", s.LSPSize, 256, 9000)
	c.within("isis.max_lsps", s.MaxLSPs, 256, 1<<24)
	t := &s.Timers
	c.span("isis.timers.lsp_lifetime", t.LSPLifetime, 60*time.Second, 65535*time.Second)
	c.span("isis.timers.refresh", t.Refresh, 10*time.Second, 65535*time.Second)
	c.want(t.Refresh.Duration < t.LSPLifetime.Duration, "isis.timers.refresh", "must be less than lsp_lifetime")
	c.span("isis.timers.generation", t.Generation, 10*time.Millisecond, 120*time.Second)
	c.span("isis.timers.retransmit", t.Retransmit, 100*time.Millisecond, 120*time.Second)
	c.span("isis.timers.psnp", t.PSNP, 10*time.Millisecond, 120*time.Second)
	c.span("isis.timers.csnp", t.CSNP, time.Second, 600*time.Second)
	c.span("isis.timers.spf", t.SPF, 10*time.Millisecond, 120*time.Second)
	c.span("isis.timers.generation_initial", t.GenInitial, 0, t.Generation.Duration)
	c.span("isis.timers.generation_second", t.GenSecond, 0, t.Generation.Duration)
	c.span("isis.timers.spf_initial", t.SPFInitial, 0, t.SPF.Duration)
	c.span("isis.timers.spf_second", t.SPFSecond, 0, t.SPF.Duration)
	c.isisKeys("isis.level_1_keys", s.Level1Keys)
	c.isisKeys("isis.level_2_keys", s.Level2Keys)
	seen := map[string]int{}
	for i := range s.Circuits {
		x, at := &s.Circuits[i], index("isis.circuits", i)
		c.interfaceName(at+".interface", x.Interface)
		first, twice := seen[x.Interface]
		c.want(!twice, at+".interface", "%s is circuits[%d] already", x.Interface, first)
		seen[x.Interface] = i
		c.oneOf(at+".type", x.Type, isisTypes...)
		c.oneOf(at+".level", x.Level, isisLevels...)
		c.want(x.Level == s.Level || s.Level == "level-1-2", at+".level", "%s is not one of the system's, %s", x.Level, s.Level)
		c.span(at+".hello", x.Hello, 100*time.Millisecond, 600*time.Second)
		c.within(at+".multiplier", x.Multiplier, 2, 100)
		c.want(x.Priority <= 127, at+".priority", "%d is more than 127", x.Priority)
		c.oneOf(at+".padding", x.Padding, isisPaddings...)
		c.isisKeys(at+".keys", x.Keys)
		if x.Veth != nil {
			c.isisVeth(at+".veth", x.Interface, x.Veth)
		}
	}
}

func (c *checker) isisVeth(at, name string, v *ISISVeth) {
	c.interfaceName(at+".peer", v.Peer)
	c.want(v.Peer != name || v.Namespace != "", at+".peer", "%q is the circuit's interface itself", v.Peer)
	if v.Bridge != "" {
		c.interfaceName(at+".bridge", v.Bridge)
		c.want(len(v.PeerAddresses) == 0, at+".peer_addresses", "the port of a bridge has none")
	}
	c.within(at+".mtu", v.MTU, 576, 65535)
	for i, p := range v.Addresses {
		c.want(isUnicast(p.Addr()), index(at+".addresses", i), "%s is not a unicast address", p)
	}
	for i, p := range v.PeerAddresses {
		c.want(isUnicast(p.Addr()), index(at+".peer_addresses", i), "%s is not a unicast address", p)
	}
}

func (c *checker) isisKeys(at string, keys []ISISKey) {
	for i, k := range keys {
		at := index(at, i)
		c.oneOf(at+".algorithm", k.Algorithm, isisAlgorithms...)
		c.want((k.Password == "") != (k.PasswordFile == ""), at+".password", "give either password or password_file")
		c.want(k.Algorithm != "hmac-md5" || k.ID == 0, at+".id", "hmac-md5 has no key ID (RFC 5304)")
	}
}

var netRE = regexp.MustCompile(`^[0-9a-fA-F]{2}(\.?[0-9a-fA-F]{2})*$`)

func isNET(s string) bool {
	raw := strings.ReplaceAll(s, ".", "")
	return netRE.MatchString(s) && len(raw)%2 == 0 && len(raw) >= 16 && len(raw) <= 40 && strings.HasSuffix(raw, "00") &&
		raw[len(raw)-14:len(raw)-2] != "000000000000"
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
