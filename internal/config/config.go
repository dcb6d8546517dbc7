// Package config reads pncd's configuration file: YAML, decoded strictly, checked as a whole.
//
// Every error names the line, the key and the rule. The package knows nothing of the parts that use
// the values: it checks what can be checked without the system (ranges, formats, references between
// keys), and leaves interfaces, addresses and ports to those who open them.
//
// The reference is deploy/pncd.yaml; a test holds that it names every key.
package config

import (
	"net/netip"
	"time"
)

// Config is one configuration file with its defaults filled in. The key of each field is its yaml tag.
type Config struct {
	Node      string    `yaml:"node"`
	Enabled   bool      `yaml:"enabled"`
	Log       Log       `yaml:"log"`
	API       API       `yaml:"api"`
	Telemetry Telemetry `yaml:"telemetry"`
	Evidence  Evidence  `yaml:"evidence"`
	Resolve   Resolve   `yaml:"resolve"`
	Contexts  []Context `yaml:"contexts"`
	Static    []Static  `yaml:"static"`

	BGP            *BGP            `yaml:"bgp"`             // nil: no BGP
	ISIS           *ISIS           `yaml:"isis"`            // nil: no IS-IS
	OSPFv2         *OSPF           `yaml:"ospfv2"`          // nil: no OSPFv2
	OSPFv3         *OSPF           `yaml:"ospfv3"`          // nil: no OSPFv3
	OSPFAPI        *OSPFAPI        `yaml:"ospfapi"`         // nil: nothing is learned through FRR's API
	CongestionNode *CongestionNode `yaml:"congestion_node"` // nil: this node does not notify
	Proxy          *Proxy          `yaml:"proxy"`           // nil: this node does not translate
	Boundary       *Boundary       `yaml:"boundary"`        // nil: no border filter

	warnings []Problem
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// API says where the gRPC API listens.
type API struct {
	Listen string `yaml:"listen"` // unix:///path or host:port
	Group  string `yaml:"group"`
	TLS    TLS    `yaml:"tls"`
}

// TLS names PEM files.
type TLS struct {
	Cert     string `yaml:"cert"`
	Key      string `yaml:"key"`
	ClientCA string `yaml:"client_ca"`
}

// Telemetry says where metrics and profiles are served.
type Telemetry struct {
	Listen      string `yaml:"listen"` // empty: off
	AllowRemote bool   `yaml:"allow_remote"`
}

// Evidence bounds what is kept in memory.
type Evidence struct {
	Records int `yaml:"records"`
}

// Resolve says how a proxy is found.
type Resolve struct {
	Preference           []string `yaml:"preference"`
	Share                string   `yaml:"share"`
	DefaultRoute         bool     `yaml:"default_route"`
	ProxyViaDefaultRoute bool     `yaml:"proxy_via_default_route"`
	History              int      `yaml:"history"`
}

// Static is one capability route by configuration.
type Static struct {
	Context  string `yaml:"context"` // empty: the default one
	Prefix   Prefix `yaml:"prefix"`
	Proxy    Addr   `yaml:"proxy"`
	Override bool   `yaml:"override"`
}

// BGP configures the speaker.
type BGP struct {
	AS       uint32 `yaml:"as"`
	RouterID Addr   `yaml:"router_id"`
	Port     int    `yaml:"port"`
	Listen   []Addr `yaml:"listen"`
	PNCCode  uint16 `yaml:"pnc_code"`

	// Communities are attached to what carries the PNC.
	Communities []string `yaml:"communities"`

	// PreferLocalPref is the LOCAL_PREF of senders in mode prefer; 0: one more than the router's.
	PreferLocalPref uint32 `yaml:"prefer_local_pref"`

	GracefulRestart OwnRestart `yaml:"graceful_restart"`

	// GobgpSocket is where GoBGP's own API can be read; empty: nowhere.
	GobgpSocket string `yaml:"gobgp_socket"`

	BMPStations []BMPStation `yaml:"bmp_stations"`

	AcceptProxies []Prefix   `yaml:"accept_proxies"`
	AcceptFrom    []Prefix   `yaml:"accept_from"` // originators' BGP Identifiers
	Neighbors     []Neighbor `yaml:"neighbors"`

	ListenRanges []ListenRange `yaml:"listen_ranges"` // of neighbours that come by themselves
}

// OwnRestart says how neighbours treat restarts of this program.
type OwnRestart struct {
	Enabled      bool     `yaml:"enabled"`
	RestartTime  Duration `yaml:"restart_time"`
	DeferralTime Duration `yaml:"deferral_time"`
	OnStop       string   `yaml:"on_stop"` // withdraw or keep
	StateFile    string   `yaml:"state_file"`
}

// Values of OwnRestart.OnStop.
const (
	OnStopWithdraw = "withdraw"
	OnStopKeep     = "keep"
)

// Neighbor configures one BGP session.
type Neighbor struct {
	Address      NeighborAddr `yaml:"address"`
	LocalAddress Addr         `yaml:"local_address"`
	Port         uint16       `yaml:"port"`
	Passive      bool         `yaml:"passive"`
	ConnectRetry Duration     `yaml:"connect_retry"`
	Shutdown     string       `yaml:"shutdown"` // empty: the session is kept

	Session `yaml:",inline"`
}

// Session is what a neighbour and the neighbours of a range have in common.
type Session struct {
	AS           uint32   `yaml:"as"`
	Description  string   `yaml:"description"`
	LocalAS      uint32   `yaml:"local_as"`
	Password     string   `yaml:"password"`
	PasswordFile string   `yaml:"password_file"`
	TTLMin       uint8    `yaml:"ttl_min"`
	MultihopTTL  uint8    `yaml:"multihop_ttl"`
	HoldTime     Duration `yaml:"hold_time"`
	Keepalive    Duration `yaml:"keepalive"`
	Families     []string `yaml:"families"`
	AddPath      bool     `yaml:"add_path"`
	AcceptEBGP   bool     `yaml:"accept_ebgp"`
	SendNHC      *bool    `yaml:"send_nhc"`

	GracefulRestart  bool     `yaml:"graceful_restart"`
	LongLivedRestart Duration `yaml:"long_lived_restart"` // 0: off
	AllowOwnAS       uint8    `yaml:"allow_own_as"`

	Border             bool         `yaml:"border"`
	ImportPrefixes     []PrefixRule `yaml:"import_prefixes"`
	ExportPrefixes     []PrefixRule `yaml:"export_prefixes"`
	RequireCommunities []string     `yaml:"require_communities"`
	AcceptProxies      []Prefix     `yaml:"accept_proxies"` // empty: bgp.accept_proxies
	AcceptFrom         []Prefix     `yaml:"accept_from"`    // empty: bgp.accept_from
	MaxPrefixes        uint32       `yaml:"max_prefixes"`   // 0: no limit
}

// PrefixRule is one line of a prefix list.
type PrefixRule struct {
	Prefix Prefix `yaml:"prefix"`
	GE     int    `yaml:"ge"`
	LE     int    `yaml:"le"`
	Deny   bool   `yaml:"deny"`
}

// CongestionNode configures the notifier and its detectors.
type CongestionNode struct {
	Interfaces []string     `yaml:"interfaces"` // watched for CE marks
	Detect     Detect       `yaml:"detect"`
	SourceIPv4 Addr         `yaml:"source_ipv4"`
	SourceIPv6 Addr         `yaml:"source_ipv6"`
	Port       uint16       `yaml:"port"`
	DSCP       uint8        `yaml:"dscp"`
	TTL        uint8        `yaml:"ttl"`
	Pace       NotifierPace `yaml:"pace"`

	PortFormat2 uint16        `yaml:"port_format2"`
	Contexts    []NodeContext `yaml:"contexts"`
}

// NodeContext is a context whose congested flows are notified in format 2.
type NodeContext struct {
	Name       string   `yaml:"name"`
	NRP        int      `yaml:"nrp"` // NRP Selector ID, 32 bits
	Interfaces []string `yaml:"interfaces"`
}

// NotifierPace bounds what a congestion node sends.
type NotifierPace struct {
	Window  Duration `yaml:"window"`
	PerFlow int      `yaml:"per_flow"` // notifications a second
	Total   int      `yaml:"total"`    // notifications a second
	Burst   int      `yaml:"burst"`
	Sample  int      `yaml:"sample"`
	Flows   int      `yaml:"flows"`
}

// Proxy configures the translator, its taps and its map.
type Proxy struct {
	IPv4             Addr           `yaml:"ipv4"`
	IPv6             Addr           `yaml:"ipv6"`
	Port             uint16         `yaml:"port"`
	PortFormat2      uint16         `yaml:"port_format2"`
	NRP              *NRP           `yaml:"nrp"` // nil: notifications of format 2 are not listened to
	Taps             []string       `yaml:"taps"`
	Tap              string         `yaml:"tap"`       // auto, ring, tcx, clsact, xdp
	TapRing          int            `yaml:"tap_ring"`  // MiB
	TapFlows         int            `yaml:"tap_flows"` // entries of the kernel's map
	TapTunnels       []string       `yaml:"tap_tunnels"`
	TapComplete      bool           `yaml:"tap_complete"`
	Senders          []Sender       `yaml:"senders"`
	SenderSources    []SenderSource `yaml:"sender_sources"`
	AcceptFrom       []Prefix       `yaml:"accept_from"`
	AcceptInterfaces []string       `yaml:"accept_interfaces"`
	TTLMin           uint8          `yaml:"ttl_min"`
	Advertise        string         `yaml:"advertise"` // always, when-ready
	Readiness        Readiness      `yaml:"readiness"`
	// Where notifications are translated, and of what the kernel decides, one in so many is recorded.
	Translate           string         `yaml:"translate"` // user, kernel
	TranslateInterfaces []string       `yaml:"translate_interfaces"`
	TranslateRecords    int            `yaml:"translate_records"`
	Pace                TranslatorPace `yaml:"pace"`
	Map                 Map            `yaml:"map"`
	CNP                 CNP            `yaml:"cnp"`
	Emit                string         `yaml:"emit"` // raw, packet
}

// Values of proxy.emit.
const (
	EmitRaw    = "raw"
	EmitPacket = "packet"
)

// Readiness says when a sender prefix is ready, and how its announcement follows.
type Readiness struct {
	TrafficWithin Duration `yaml:"traffic_within"` // 0: traffic is not asked for
	LossMax       int      `yaml:"loss_max"`       // percent
	Window        Duration `yaml:"window"`
	WithdrawAfter Duration `yaml:"withdraw_after"`
	AnnounceAfter Duration `yaml:"announce_after"`
	Damping       Damping  `yaml:"damping"`
}

// Damping holds a prefix back that comes and goes; a withdrawal adds 1000 to its penalty.
type Damping struct {
	HalfLife Duration `yaml:"half_life"` // 0: off
	Suppress int      `yaml:"suppress"`
	Reuse    int      `yaml:"reuse"`
}

// Values of proxy.translate.
const (
	TranslateUser   = "user"
	TranslateKernel = "kernel"
)

// Values of proxy.advertise.
const (
	AdvertiseAlways    = "always"
	AdvertiseWhenReady = "when-ready"
)

// Values of proxy.tap.
const (
	TapAuto   = "auto"
	TapRing   = "ring"
	TapTCX    = "tcx"
	TapClsact = "clsact"
	TapXDP    = "xdp"
)

// TapTunnels are the values of proxy.tap_tunnels.
var TapTunnels = []string{"ip", "gre", "vxlan", "srv6"}

// Sender is one prefix that the proxy serves.
type Sender struct {
	Context string       `yaml:"context"` // empty: the default one
	Prefix  Prefix       `yaml:"prefix"`
	Mode    string       `yaml:"mode"` // inline, originate, path, prefer, none
	Proxy   Addr         `yaml:"proxy"`
	NextHop Addr         `yaml:"next_hop"`
	From    NeighborAddr `yaml:"from"`
}

// TranslatorPace bounds what a proxy sends.
type TranslatorPace struct {
	Window Duration `yaml:"window"`
	PerQP  int      `yaml:"per_qp"` // CNPs a second
	Total  int      `yaml:"total"`  // CNPs a second
	Burst  int      `yaml:"burst"`
	QPs    int      `yaml:"qps"`
}

// Map bounds the Source-QP map.
type Map struct {
	Entries    int      `yaml:"entries"`
	Age        Duration `yaml:"age"`
	IgnoreVLAN bool     `yaml:"ignore_vlan"`
}

// CNP sets the fields of CNPs that are not given by the flow.
type CNP struct {
	TOS  uint8  `yaml:"tos"`
	TTL  uint8  `yaml:"ttl"`
	PKey uint16 `yaml:"p_key"`
}

// Defaults of keys that are left out.
const (
	DefaultAPI         = "unix:///run/pncd/pncd.sock"
	DefaultBGPPort     = 179
	DefaultPort        = 1021  // RFC 4727; unassigned, our default
	DefaultPNCCode     = 65400 // unassigned, our default
	DefaultHoldTime    = 90 * time.Second
	DefaultRetry       = 10 * time.Second
	DefaultRestartTime = 120 * time.Second
	DefaultDeferral    = 60 * time.Second
	DefaultStateFile   = "/run/pncd/bgp-restart"
	DefaultPaceWindow  = 50 * time.Microsecond
	DefaultPacePerFlow = 1000
	DefaultPaceTotal   = 100000
	DefaultPaceBurst   = 1000
	DefaultPaceState   = 65536
	DefaultGate        = time.Millisecond
	DefaultPmax        = 10 // percent

	DefaultQdiscInterval = 10 * time.Millisecond
	DefaultReportRate    = 10000 // a second
	DefaultTopCount      = 8
	DefaultTopShare      = 5 // percent
	DefaultTopWindow     = 100 * time.Millisecond
	DefaultTopSample     = 16

	DefaultMapEntries = 262144
	DefaultMapAge     = 60 * time.Second

	DefaultTrafficWithin = 10 * time.Minute
	DefaultLossMax       = 1
	DefaultLossWindow    = 10 * time.Second
	DefaultWithdrawAfter = 30 * time.Second
	DefaultAnnounceAfter = 60 * time.Second
	DefaultHalfLife      = 5 * time.Minute
	DefaultSuppress      = 2000
	DefaultReuse         = 1000
)

// withDefaults returns a configuration with the defaults of every key that is outside of a section
// that may be left out.
func withDefaults() *Config {
	return &Config{
		Log:      Log{Level: "info", Format: "text"},
		API:      API{Listen: DefaultAPI},
		Evidence: Evidence{Records: 65536},
		Resolve: Resolve{
			Preference:           []string{"static", "bgp", "isis", "ospf"},
			Share:                "lowest",
			ProxyViaDefaultRoute: true,
			History:              16384,
		},
	}
}

// ServedPrefixes lists the prefixes of the senders outside of contexts, which notifications of format 1 are about.
func (p *Proxy) ServedPrefixes() []netip.Prefix { return p.ServedIn("") }

// ServedIn lists the prefixes of the senders in a context; empty: the default one.
func (p *Proxy) ServedIn(context string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(p.Senders))
	for _, s := range p.Senders {
		if s.Context == context {
			out = append(out, s.Prefix.Prefix)
		}
	}
	return out
}
