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
	Level1Keys    []Key         `yaml:"level_1_keys"`
	Level2Keys    []Key         `yaml:"level_2_keys"`
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
	Interface  string   `yaml:"interface"`
	Type       string   `yaml:"type"`
	Level      string   `yaml:"level"` // empty: the system's
	Hello      Duration `yaml:"hello"`
	Multiplier int      `yaml:"multiplier"`
	Priority   uint8    `yaml:"priority"`
	Padding    string   `yaml:"padding"`
	Keys       []Key    `yaml:"keys"`
	Veth       *Veth    `yaml:"veth"` // nil: the interface is somebody else's
}

// Values of the keys that take names.
var (
	isisLevels     = []string{"level-1", "level-2", "level-1-2"}
	isisTypes      = []string{pointToPoint, broadcast}
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
		"retransmit": {&s.Timers.Retransmit, 5 * time.Second}, "psnp": {&s.Timers.PSNP, 2 * time.Second}, "csnp": {&s.Timers.CSNP, 10 * time.Second},
	} {
		setDefault(given, "isis.timers."+key, t.d, Duration{t.v})
	}
	t := &s.Timers
	waits(given, "isis.timers.generation", &t.GenInitial, &t.GenSecond, &t.Generation)
	waits(given, "isis.timers.spf", &t.SPFInitial, &t.SPFSecond, &t.SPF)
	for i := range s.Circuits {
		c, at := &s.Circuits[i], index("isis.circuits", i)
		setDefault(given, at+".type", &c.Type, pointToPoint)
		setDefault(given, at+".level", &c.Level, s.Level)
		setDefault(given, at+".hello", &c.Hello, Duration{10 * time.Second})
		setDefault(given, at+".multiplier", &c.Multiplier, 3)
		setDefault(given, at+".padding", &c.Padding, "until-up")
		c.Veth.fillDefaults(given, at+".veth")
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
	c.span("isis.timers.retransmit", t.Retransmit, 100*time.Millisecond, 120*time.Second)
	c.span("isis.timers.psnp", t.PSNP, 10*time.Millisecond, 120*time.Second)
	c.span("isis.timers.csnp", t.CSNP, time.Second, 600*time.Second)
	c.waits("isis.timers.generation", t.GenInitial, t.GenSecond, t.Generation)
	c.waits("isis.timers.spf", t.SPFInitial, t.SPFSecond, t.SPF)
	c.isisKeys("isis.level_1_keys", s.Level1Keys)
	c.isisKeys("isis.level_2_keys", s.Level2Keys)
	c.advise(len(s.Circuits) > 0, "isis.circuits", "none: this system speaks with nobody")
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
	}
}

func (c *checker) isisKeys(at string, keys []Key) {
	for i, k := range keys {
		at := index(at, i)
		c.key(at, k, isisAlgorithms)
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
