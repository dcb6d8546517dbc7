package bmp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Session is a session as the neighbour sees it.
type Session struct {
	Peer          netip.Addr     // of the neighbour; a zone isn't told
	Local, Remote netip.AddrPort // of the connection; a port that isn't known is 0
}

// Lookup gives the session of the neighbour that the speaker knows by an address, over the speaker's connection
// from a port. It says false when there is none.
type Lookup func(inside netip.Addr, port uint16) (Session, bool)

// Rewriter puts the neighbours' own addresses into the messages of one connection with the speaker. It does no
// input or output, and is for one goroutine.
type Rewriter struct {
	lookup Lookup
	up     map[netip.Addr]neighbor // by the speaker's address, from Peer Up to Peer Down
}

type neighbor struct {
	addr   netip.Addr
	header [peerHeaderLen]byte // of its Peer Up, rewritten
}

// NewRewriter makes one.
func NewRewriter(lookup Lookup) *Rewriter {
	return &Rewriter{lookup: lookup, up: map[netip.Addr]neighbor{}}
}

// Rewrite changes a whole message in place; its length stays. It reports whether the message is to be passed on: one
// about a neighbour that isn't known, or that isn't up (RFC 7854 section 3.3: Peer Up comes first), isn't, and neither
// is one of an unknown type, whose addresses can't be found. Errors wrap ErrFrame.
//
// A neighbour's own address is looked up at Peer Up and holds until its Peer Down, which may come when the neighbour
// is not configured any more.
func (r *Rewriter) Rewrite(msg []byte) (bool, error) {
	n, err := frame(msg)
	if err != nil {
		return false, err
	}
	if n != len(msg) {
		return false, fmt.Errorf("%w: length %d in a message of %d", ErrFrame, n, len(msg))
	}
	least := headerLen + peerHeaderLen
	typ := msg[atType]
	switch typ {
	case typeInitiation, typeTermination:
		return true, nil
	case typePeerUp:
		least = peerUpLen
	case typeRouteMonitoring, typeStatistics, typePeerDown, typeRouteMirroring:
	default:
		return false, nil
	}
	if n < least {
		return false, fmt.Errorf("%w: length %d for type %d", ErrFrame, n, typ)
	}
	if msg[atPeerType] == peerTypeLocRIB {
		return true, nil // its address is zero: it is about ourselves
	}
	inside := getAddr(msg[atPeerAddress:], msg[atFlags])
	if typ == typePeerUp {
		return r.peerUp(msg, inside), nil
	}
	peer, ok := r.up[inside]
	if !ok {
		return false, nil
	}
	if typ == typePeerDown {
		delete(r.up, inside)
	}
	putPeer(msg, peer.addr)
	return true, nil
}

// Gone gives the Peer Down message for a neighbour that is no longer configured, which the speaker says nothing about;
// nil when it isn't up.
func (r *Rewriter) Gone(inside netip.Addr, now time.Time) []byte {
	n, ok := r.up[inside]
	if !ok {
		return nil
	}
	delete(r.up, inside)
	msg := append(header(typePeerDown, peerHeaderLen+1), n.header[:]...)
	binary.BigEndian.PutUint32(msg[atTime:], uint32(now.Unix()))
	binary.BigEndian.PutUint32(msg[atTime+4:], uint32(now.Nanosecond()/1000))
	return append(msg, downDeconfigured)
}

func (r *Rewriter) peerUp(msg []byte, inside netip.Addr) bool {
	delete(r.up, inside)
	s, ok := r.lookup(inside, binary.BigEndian.Uint16(msg[atRemotePort:]))
	peer, local := plain(s.Peer), plain(s.Local.Addr())
	if !ok || !peer.IsValid() || !local.IsValid() || peer.Is4() != local.Is4() {
		return false
	}
	putPeer(msg, peer)
	r.up[inside] = neighbor{peer, [peerHeaderLen]byte(msg[headerLen:])}
	putAddr(msg[atLocal:], local)
	binary.BigEndian.PutUint16(msg[atLocalPort:], s.Local.Port())
	binary.BigEndian.PutUint16(msg[atRemotePort:], s.Remote.Port())
	return true
}

func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func putPeer(msg []byte, a netip.Addr) {
	msg[atFlags] &^= flagV
	if a.Is6() {
		msg[atFlags] |= flagV
	}
	putAddr(msg[atPeerAddress:], a)
}

// putAddr writes an address: 16 octets, of which IPv4 takes the last four and leaves the others zero.
func putAddr(to []byte, a netip.Addr) {
	var b [16]byte
	if a.Is4() {
		v4 := a.As4()
		copy(b[12:], v4[:])
	} else {
		b = a.As16()
	}
	copy(to, b[:])
}

func getAddr(b []byte, flags byte) netip.Addr {
	if flags&flagV != 0 {
		return netip.AddrFrom16([16]byte(b[:16]))
	}
	return netip.AddrFrom4([4]byte(b[12:16]))
}
