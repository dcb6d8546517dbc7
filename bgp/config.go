package bgp

import (
	"net/netip"
	"time"

	"pncd/bgp/engine"
)

// Defaults of the configuration.
const (
	DefaultPort         = 179              // RFC 4271 section 4.1
	DefaultHoldTime     = 90 * time.Second // RFC 4271 section 10
	DefaultConnectRetry = 10 * time.Second // shorter than RFC 4271's 120 s: our neighbours are near
)

// Config is what an operator says about BGP. The zero value of a field is its default.
type Config struct {
	RouterID        netip.Addr   // BGP Identifier, an IPv4 address; required
	AS              uint32       // our autonomous system; required
	ListenPort      int          // 0: 179; -1: don't listen, then no neighbour can be passive
	ListenAddresses []netip.Addr // none: 0.0.0.0 and ::
	LocalAddress    netip.Addr   // source of outgoing sessions of its family, where the neighbour has none
	Context         string       // the pnc context that routes go to; empty for the default one

	Restart OwnRestart // of this node

	// GobgpSocket is the path of a unix socket on which GoBGP's own API can be read; empty: none.
	GobgpSocket string

	Stations []Station // that are told over BMP (RFC 7854) what neighbours send
	// Descr is what they are told that this program is (sysDescr); fixed at the start.
	Descr string

	Neighbors []NeighborConfig
	Ranges    []RangeConfig // of neighbours that come by themselves
	// Own are further addresses of this node, which no range may hold.
	Own []netip.Addr

	Originate []OriginateConfig

	Contexts []ContextConfig // VPNs

	// Communities are attached to what carries the PNC, beside those of the router's path.
	Communities []Community

	// PreferLocalPref is the LOCAL_PREF of ModePrefer; 0: one more than the router's path has.
	PreferLocalPref uint32

	PNCCode       uint16         // characteristic code of the PNC; 0: nhc.DefaultPNCCode
	AcceptProxies []netip.Prefix // proxies outside of these are disregarded; none: all are accepted
	// AcceptFrom bounds whose routes a PNC is believed on, by BGP Identifier: the route's ORIGINATOR_ID
	// (RFC 4456), without one and over EBGP the neighbour's own. IPv4 prefixes; none: anybody's.
	AcceptFrom []netip.Prefix
}

// Family is an address family of routes.
type Family = engine.Family

// Station is a BMP station.
type Station = engine.Station

// The families that are carried.
const (
	IPv4Unicast = engine.IPv4Unicast
	IPv6Unicast = engine.IPv6Unicast
)

// NeighborConfig is one configured session. Sessions exist with configured neighbours, and with those that
// come from a configured range.
type NeighborConfig struct {
	Address     netip.Addr // required; a link-local address has a zone
	Port        uint16     // 0: 179
	PeerAS      uint32     // required; equal to LocalAS for IBGP
	LocalAS     uint32     // 0: Config.AS
	Description string

	Passive      bool          // wait for the neighbour to connect
	Password     string        // TCP MD5 (RFC 2385), at most 80 octets
	TTLMin       uint8         // TTL security (RFC 5082): drop what arrives with less; 0: off
	EBGPMultihop uint8         // TTL of what we send to an EBGP neighbour that is not on the link; 0: 1
	HoldTime     time.Duration // 0: 90 s; at least 3 s
	Keepalive    time.Duration // 0: a third of the hold time
	ConnectRetry time.Duration // 0: 10 s
	LocalAddress netip.Addr    // source of the session; also the only address on which it is accepted

	Families []Family // none: the unicast family of Address
	AddPath  bool     // receive several paths of a prefix (RFC 7911)

	// GracefulRestart helps the neighbour through a restart (RFC 4724): its routes stay, marked as
	// stale, instead of leaving with the session. It is the helper's part only.
	GracefulRestart bool
	// LongLivedRestart bounds how long its routes stay beyond the restart time, if it asks for that
	// (RFC 9494): as the least preferred. It needs GracefulRestart. 0: not at all.
	LongLivedRestart time.Duration

	// AcceptEBGP takes in the routes of an EBGP neighbour and believes the PNC on them. Without, its
	// routes are ignored and each PNC on one is reported as disregarded.
	AcceptEBGP bool
	// SendNHC says whether announcements go to this neighbour. Nil: to IBGP neighbours, not to EBGP
	// ones. Announcements exist only to carry the PNC, so without NHC none go there.
	SendNHC *bool
	// Border takes in the routes of an EBGP neighbour, so that they count where senders are looked up, and
	// believes no PNC on them: the border of the domain.
	Border bool
	// ImportPrefixes says which of its routes are taken, ExportPrefixes which announcements go there;
	// empty: all.
	ImportPrefixes, ExportPrefixes PrefixList
	// RequireCommunities lets a PNC be believed only on a route with one of these; none: on any.
	RequireCommunities []Community
	// AcceptProxies and AcceptFrom hold in place of those of Config; none: those hold.
	AcceptProxies, AcceptFrom []netip.Prefix
	// MaxPrefixes ends the session when the neighbour announces more of a family (RFC 4486); it stays down
	// until its configuration changes. 0: no limit.
	MaxPrefixes uint32
	// Shutdown keeps the session down, and says to the neighbour why (RFC 9003), in at most 255 octets of
	// UTF-8. Empty: the session is kept.
	Shutdown string
	// AllowOwnAS is how often our own AS may be in the AS_PATH of a route from this neighbour.
	AllowOwnAS uint8

	dynamic bool // it has come from a range
}

// Mode says how a prefix is announced beside the router's own announcement of it.
type Mode uint8

// The modes.
const (
	// ModeOriginate announces the prefix as our own route: nobody else announces it in BGP.
	ModeOriginate Mode = iota
	// ModeInline passes the router's path on as ours, with every attribute kept and NHC added. Goes
	// with the router's path; goes on without NHC while the mechanism is off.
	ModeInline
	// ModePath announces a copy beside the router's own path, with the same next hop; reflectors and
	// learners need add-path. Goes with the router's path.
	ModePath
	// ModePrefer announces a copy as ModePath does, with a higher LOCAL_PREF, so that it wins over the
	// router's own path and needs no add-path. It draws the traffic of a prefix with several exits to
	// the router that is followed. Goes with the router's path.
	ModePrefer
)

var modeNames = [...]string{"originate", "inline", "path", "prefer"}

// String gives the name used in configuration: originate, inline, path or prefer.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "unknown"
}

// ParseMode reads a name that String gives.
func ParseMode(s string) (Mode, bool) {
	for i, n := range modeNames {
		if s == n {
			return Mode(i), true
		}
	}
	return 0, false
}

// OriginateConfig is one sender prefix for which this node announces the PNC.
type OriginateConfig struct {
	// Context is the VPN that the prefix is in, the name of a ContextConfig; empty outside of VPNs.
	// ModeOriginate announces with what the context says; the other modes follow a route that the context
	// imports, and keep its route distinguisher, label and route targets.
	Context string
	Prefix  netip.Prefix // required
	Mode    Mode
	Proxy   netip.Addr // the proxy's address in the PNC; required
	// NextHop is for ModeOriginate, and required there: where traffic to the prefix goes, normally the
	// router's loopback. It is never an address of this node's own unless this node is the router.
	NextHop netip.Addr
	// From is the neighbour whose path the modes other than ModeOriginate follow. Without it: any, but
	// inline only follows a path that a neighbour announces itself, not one that it reflects. ModePrefer
	// never follows a reflected path that came without add-path: winning would push it out.
	From netip.Addr
}
