package engine

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"pncd/bgp/guard"
	"pncd/bgp/relay"
)

// What can go wrong by configuration or by the kernel's doing.
var (
	ErrMD5        = relay.ErrMD5
	ErrTTLMin     = relay.ErrTTLMin
	ErrListen     = relay.ErrListen
	ErrStopped    = errors.New("engine is stopped")
	ErrNoPeer     = errors.New("no such peer")
	ErrNoListener = errors.New("no listener of the peer's family")
	ErrDown       = relay.ErrNoSession
	ErrNoRefresh  = relay.ErrNoRefresh
)

// Engine speaks BGP. It is safe for concurrent use. An engine starts once and stops once: GoBGP
// can't be started again in a process, and there can be only one in a process.
type Engine interface {
	// Start begins to listen. Errors wrap ErrListen or ErrMD5.
	Start(ctx context.Context) error
	// AddPeer begins a session. With a password or a minimum TTL, an error (ErrMD5, ErrTTLMin) means
	// that it can't be put into force; then the session doesn't exist.
	AddPeer(ctx context.Context, p Peer) error
	// RemovePeer ends a session with a Cease and forgets the peer.
	RemovePeer(ctx context.Context, addr netip.Addr) error
	// SetRanges says from where peers may come by themselves, in place of what was said before: Knocks gives who
	// has, and that one waits for AddPeer, with Peer.Dynamic, or Refuse. Errors wrap ErrMD5, ErrTTLMin or
	// ErrNoListener, and change nothing.
	SetRanges(list []Range) error
	Knocks() <-chan netip.Addr
	Refuse(addr netip.Addr)
	// SetStations says to whom what peers send is reported over BMP, in place of what was said before. It fails by
	// no station's doing: Stations says what became of each, sorted by address.
	SetStations(list []Station) error
	Stations() []StationStatus
	// Shutdown ends a session with a Cease that says why (RFC 9003); the peer stays, and its session down.
	Shutdown(ctx context.Context, addr netip.Addr, message string) error
	// Announce replaces or adds announcements, each identified by its prefix.
	Announce(ctx context.Context, a []Announcement) error
	// Withdraw takes announcements back; those that don't exist are skipped.
	Withdraw(ctx context.Context, prefixes []VPNPrefix) error
	// Replay reports as events what the established peers sent in the families and didn't withdraw,
	// for a receiver that wants to see paths again that it didn't keep.
	Replay(ctx context.Context, families []Family) error
	// Paths reads what a peer sent for a prefix, with raw attributes, sorted by path identifier. In a VPN
	// family it takes time in proportion to what the peer sent in the family.
	Paths(ctx context.Context, peer netip.Addr, prefix VPNPrefix) ([]RawPath, error)
	// Status reads the state of all peers.
	Status(ctx context.Context) ([]PeerStatus, error)
	// Events gets a value when Take has something to give.
	Events() <-chan struct{}
	// Take gives what happened since it was called last, in order; for a path only the last state
	// between two changes of its session. What it gives is valid until it is called again.
	Take() []Event
	// Counters counts what went wrong inside.
	Counters() Counters
	// Refresh asks an established peer for its routes again (in, RFC 2918), or sends it the announcements
	// again (out), and gives the families concerned. Errors wrap ErrNoPeer, ErrDown or ErrNoRefresh.
	Refresh(ctx context.Context, addr netip.Addr, in, out bool) ([]Family, error)
	// EndOfRIB says that after a restart everything is announced: peers that wait for it get End-of-RIB
	// (RFC 4724 section 4.1).
	EndOfRIB(ctx context.Context) error
	// Leave closes the sessions without a word and stops, as Stop does: peers that are asked to keep what is
	// announced do so.
	Leave(ctx context.Context) error
	// Stop withdraws everything, waits until the withdrawals were sent or ctx ends, closes the
	// sessions and stops listening.
	Stop(ctx context.Context) error
}

// Family is an address family of routes.
type Family uint8

// The families.
const (
	IPv4Unicast Family = iota + 1
	IPv6Unicast
	IPv4VPN // RFC 4364
	IPv6VPN // RFC 4659
)

// String gives the name used in configuration, as in ipv4-unicast.
func (f Family) String() string {
	switch f {
	case IPv4Unicast:
		return "ipv4-unicast"
	case IPv6Unicast:
		return "ipv6-unicast"
	case IPv4VPN:
		return "vpnv4-unicast"
	case IPv6VPN:
		return "vpnv6-unicast"
	}
	return "unknown"
}

// FamilyOf is the unicast family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Unmap().Is4() {
		return IPv4Unicast
	}
	return IPv6Unicast
}

// Peer is a session to keep.
type Peer struct {
	Address      netip.Addr
	Port         uint16
	PeerAS       uint32
	LocalAS      uint32
	Passive      bool
	Dynamic      bool // it has come from a range
	Password     string
	TTLMin       uint8
	Multihop     uint8
	HoldTime     time.Duration
	Keepalive    time.Duration
	ConnectRetry time.Duration
	LocalAddress netip.Addr
	Families     []Family
	AddPath      bool
	Restart      bool // help through a graceful restart
	LongLived    bool // and through one that takes long (RFC 9494)
	Export       bool // announcements go to this peer
	// ExportPrefixes bounds which; empty: all.
	ExportPrefixes PrefixList
	MaxPrefixes    uint32 // of a family; the session ends for good when there are more; 0: no limit
	Shutdown       string // keeps the session down, with this as the reason shown
	Description    string
}

// RawAttribute is a path attribute as it is on the wire: flags, type, length, value.
type RawAttribute []byte

// Type is the attribute's type code; zero when it is too short to have one.
func (a RawAttribute) Type() uint8 {
	if len(a) < 2 {
		return 0
	}
	return a[1]
}

// RawPath is a path with its attributes as they are on the wire. NEXT_HOP and MP_REACH_NLRI are not
// among them: NextHop says what they said.
type RawPath struct {
	PathID     uint32
	NextHop    netip.Addr
	Label      uint32 // VPN families: the MPLS label, 20 bits
	Attributes []RawAttribute
	Stale      bool
}

// Announcement is a path that this node announces.
type Announcement struct {
	Prefix     netip.Prefix
	NextHop    netip.Addr     // never unspecified: GoBGP would put its own address in
	Attributes []RawAttribute // without NEXT_HOP and MP_REACH_NLRI
	// NotTo is the BGP Identifier of a speaker that doesn't get this announcement, because the path
	// comes from it; invalid when all get it.
	NotTo netip.Addr
	// VPN makes it an announcement of the prefix inside a VPN; nil outside.
	VPN *VPNInfo
}

// EventKind says what an event is about.
type EventKind uint8

// The kinds of events.
const (
	EventPath     EventKind = iota + 1 // a path was announced or withdrawn
	EventState                         // a session changed its state
	EventEndOfRIB                      // a peer sent End-of-RIB for a family (RFC 4724 section 2)
)

// Event is one thing that happened.
type Event struct {
	Kind   EventKind
	Peer   netip.Addr
	Family Family // EventPath and EventEndOfRIB
	Path   Path   // EventPath
	State  State  // EventState
	// Keep of EventState says that the peer restarts, or has restarted: its paths may stay as stale.
	Keep    bool
	Restart Restart // EventState, established: what the peer's OPEN said
}

// Path is a path as a peer announced it.
type Path struct {
	Prefix    netip.Prefix
	PathID    uint32
	Withdrawn bool       // then only Prefix, RD and PathID are set
	Stale     bool       // Replay: kept through a restart and not yet announced again
	PeerAS    uint32     // the peer's AS
	PeerID    netip.Addr // the peer's BGP Identifier

	NextHop      netip.Addr // invalid when it can't be read
	Origin       uint8      // 0 IGP, 1 EGP, 2 incomplete
	ASPathLen    int        // RFC 4271 section 9.1.2.2 a: an AS_SET counts one
	NeighborAS   uint32     // the first AS of AS_PATH; zero when it is empty
	OwnAS        int        // how often our AS towards this peer is in AS_PATH
	MED          uint32
	LocalPref    uint32 // 100 without the attribute
	OriginatorID netip.Addr
	ClusterList  []netip.Addr
	Communities  []Community // large ones too

	RD      RD            // VPN families
	Targets []RouteTarget // VPN families: whom the path is for

	HasNHC   bool
	NHCFlags uint8
	NHC      []byte // value of attribute 39

	asPath []uint32 // all AS numbers, until they were looked through for our own
}

// State is a session's state (RFC 4271 section 8.2.2).
type State uint8

// The states.
const (
	StateUnknown State = iota
	StateIdle
	StateConnect
	StateActive
	StateOpenSent
	StateOpenConfirm
	StateEstablished
)

var stateNames = [...]string{"unknown", "idle", "connect", "active", "opensent", "openconfirm", "established"}

// String gives the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// PeerStatus is what is known about a session.
type PeerStatus struct {
	Address      netip.Addr
	PeerAS       uint32
	LocalAS      uint32
	State        State
	Since        time.Time
	RouterID     netip.Addr
	LocalAddress netip.Addr // of the connection; invalid without one, as the ports are zero
	LocalPort    uint16
	RemotePort   uint16
	Families     []Family // negotiated; empty while down
	Received     uint64   // paths in the adj-RIB-in
	Advertised   uint64   // paths that are announced to it
	SentUpdates  uint64
	HoldTime     time.Duration // negotiated; zero while down
	LastError    string
	Flaps        uint64 // times that the session was established
	Restart      Restart
	Messages     Messages
	// Findings counts by kind what was wrong in the peer's messages and didn't end its session; Faults
	// how often it ended a session or an attempt. Both since the peer was added.
	Findings map[guard.Kind]uint64
	Faults   uint64
}

// Messages counts messages since the peer was added.
type Messages struct {
	Sent, Received MessageCounts
}

// MessageCounts counts messages of one direction by type (RFC 4271 section 4.1, RFC 2918).
type MessageCounts struct {
	Opens, Updates, Notifications, Keepalives, Refreshes uint64
}

// Counters counts what went wrong inside an engine.
type Counters struct {
	ConversionErrors uint64 // paths whose attributes GoBGP couldn't hand out
	CallbackPanics   uint64 // panics in our own callbacks and in GoBGP's gRPC API, recovered
	EnginePanics     uint64 // Panic or Fatal that GoBGP asked its logger for
	Coalesced        uint64 // path events that a later one replaced before they were taken
}
