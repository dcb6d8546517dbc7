package guard

import (
	"encoding/binary"
	"sync/atomic"
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

// Verdict is what becomes of a message. All of it is valid until the next call.
type Verdict struct {
	// Pass is what GoBGP gets: the message itself, one or two other whole messages in its place, or
	// nothing. It may share memory with the message.
	Pass []byte
	// Fault, when not nil, ends the session; then there is nothing else.
	Fault *Fault
	// Findings are what was mended or ignored, in the order in which it was found.
	Findings []Finding
	// Unsure says that Pass holds attributes that this package doesn't know the inside of. It is to be
	// decoded under recover first; when that fails, Withdraw gives what to pass instead.
	Unsure bool
}

// Session checks what one TCP connection brings. FromPeer, Withdraw and FrameLen are for one goroutine;
// another may call ToPeer at the same time.
type Session struct {
	cfg      Config
	ours     atomic.Pointer[open] // the OPEN that GoBGP sent
	theirs   *open                // the OPEN that the neighbour sent
	state    state
	agreed   agreed
	isAgreed bool

	update   update
	findings []Finding
	out      []byte
}

// state is how far the neighbour's side of the session is (RFC 4271 section 8.2.2).
type state uint8

const (
	waitOpen      state = iota // OpenSent
	waitKeepalive              // OpenConfirm
	established
)

// New makes the guard of one TCP connection.
func New(cfg Config) *Session { return &Session{cfg: cfg} }

// ToPeer notes a message that GoBGP sends. It must be called before the message is written to the
// neighbour, and doesn't change it.
func (s *Session) ToPeer(msg []byte) {
	if len(msg) < HeaderLen || msg[18] != typeOpen {
		return
	}
	if o, f := readOpen(msg[HeaderLen:]); f == nil {
		s.ours.Store(o)
	}
}

// FromPeer checks one whole message, header included, as FrameLen delimits it.
func (s *Session) FromPeer(msg []byte) Verdict {
	s.findings = s.findings[:0]
	if n, f := s.FrameLen(msg); f != nil {
		return Verdict{Fault: f}
	} else if n != len(msg) {
		return Verdict{Fault: badLength(msg, "message isn't as long as its header says")}
	}
	typ := msg[18]
	if f := s.expect(typ); f != nil {
		return Verdict{Fault: f}
	}
	switch typ {
	case typeOpen:
		return s.fromOpen(msg)
	case typeKeepalive:
		s.state = established
	case typeUpdate:
		return s.fromUpdate(msg)
	case typeRouteRefresh:
		return s.fromRefresh(msg)
	}
	return Verdict{Pass: msg}
}

// expect holds the state machine: RFC 6608 section 4 says which message ends the session in which state.
func (s *Session) expect(typ uint8) *Fault {
	var ok bool
	switch typ {
	case typeNotification:
		ok = true
	case typeOpen:
		ok = s.state == waitOpen
	case typeKeepalive:
		ok = s.state != waitOpen
	default:
		ok = s.state == established
	}
	if !ok {
		return &Fault{Code: codeFSM, Subcode: uint8(s.state) + 1, Data: []byte{typ},
			Reason: typeName(typ) + " isn't expected in state " + s.state.String()}
	}
	if (typ == typeUpdate || typ == typeRouteRefresh) && !s.isAgreed {
		ours := s.ours.Load()
		if ours == nil {
			return &Fault{Code: codeFSM, Subcode: fsmOpenSent, Data: []byte{typ}, Reason: typeName(typ) + " before our OPEN"}
		}
		s.agreed, s.isAgreed = agree(s.cfg, ours, s.theirs), true
	}
	return nil
}

func (s state) String() string {
	return [...]string{"OpenSent", "OpenConfirm", "Established"}[s]
}

func (s *Session) find(k Kind, a Action, attribute uint8, f Family) {
	s.findings = append(s.findings, Finding{Kind: k, Action: a, Attribute: attribute, Family: f})
}

func u16(b []byte) int { return int(binary.BigEndian.Uint16(b)) }
