package guard

// HeaderLen is the length of a message's header in octets (RFC 4271 section 4.1).
const HeaderLen = 19

// MaxLen is how long a message can be in octets when no extended messages were negotiated, MaxExtendedLen
// when they were (RFC 4271 section 4.1, RFC 8654 section 4).
const (
	MaxLen         = 4096
	MaxExtendedLen = 65535
)

// Family is an address family of routes, with IANA's numbers.
type Family struct {
	AFI  uint16
	SAFI uint8
}

// Config is what is known of a session before it begins.
type Config struct {
	// Families are those that this node offers. Routes of others are kept from GoBGP.
	Families []Family
	// EBGP says that the neighbour's AS is another.
	EBGP bool
}

// Fault says that a session must end, and with which NOTIFICATION (RFC 4271 section 4.5).
type Fault struct {
	Code, Subcode uint8
	Data          []byte
	Reason        string // for people: which field breaks which rule
}

// Verdict is what becomes of a message.
type Verdict struct {
	// Pass is what GoBGP gets: the message itself, one or two other whole messages in its place, or
	// nothing.
	Pass []byte
	// Fault, when not nil, ends the session; then Pass is nil.
	Fault *Fault
	// Findings are what was mended or ignored, in the order in which it was found; valid until the
	// next call.
	Findings []Finding
	// Unsure says that Pass holds attributes that this package doesn't know the inside of. It is to be
	// decoded under recover first; when that fails, Withdraw gives what to pass instead.
	Unsure bool
}

// Session checks one TCP connection. FromPeer, Withdraw and FrameLen are for one goroutine, ToPeer may
// be called by another at the same time.
type Session struct {
	cfg Config
}

// New makes the guard of one TCP connection.
func New(cfg Config) *Session { return &Session{cfg: cfg} }

// FrameLen says how long the message is, header included, that begins with these HeaderLen octets, or
// why the session must end (RFC 4271 section 6.1).
func (s *Session) FrameLen(header []byte) (int, *Fault) {
	return int(header[16])<<8 | int(header[17]), nil
}

// ToPeer notes a message that GoBGP sends. It must be called before the message is written to the
// neighbour, and doesn't change it.
func (s *Session) ToPeer(msg []byte) {}

// FromPeer checks one whole message, header included, as FrameLen delimits it. The result may share
// memory with msg.
func (s *Session) FromPeer(msg []byte) Verdict { return Verdict{Pass: msg} }

// Withdraw gives the treat-as-withdraw form (RFC 7606 section 2) of an UPDATE that FromPeer passed.
func (s *Session) Withdraw(msg []byte) Verdict { return Verdict{Pass: msg} }
