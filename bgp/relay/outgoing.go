package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"pncd/bgp/guard"
)

// GoBGP's own restarts don't fit a node whose announcements come one after the other: it takes the first
// neighbour that has sent everything for the end of the restart, for all neighbours, so that one that connects
// later gets an OPEN without the R bit, and it sends End-of-RIB before what follows a router's path is announced.
// So GoBGP doesn't know about them, and what it sends is changed here.

// OwnRestart is how this node's own restarts are told to neighbours (RFC 4724 section 4.1).
type OwnRestart struct {
	Asked bool // neighbours with Restart are asked to keep what is announced
	// Until is how long neighbours that are met for the first time are told that this start is a restart;
	// zero when it is none.
	Until time.Time
}

// What is read of messages here beside message.go (RFC 4271 section 4, RFC 4724 sections 2 and 3).
const (
	typeUpdate    = 2
	attrMPUnreach = 15

	flagRestarted = 0x80 // of the first octet of the restart capability
	flagForward   = 0x80 // of a family in it
	flagExtended  = 0x10 // of an attribute: its length has two octets
)

// markRestart sets the bits of the graceful restart capability in an OPEN of ours: F of each family, because
// what forwards is the router and not this node; R when this node has restarted. An OPEN that isn't as GoBGP
// writes them stays as it is.
func markRestart(msg []byte, restarted bool) {
	const params = 28 // where their length is
	if len(msg) <= params || msg[18] != typeOpen || len(msg)-params-1 != int(msg[params]) {
		return
	}
	eachTLV(msg[params+1:], func(typ byte, caps []byte) {
		if typ != 2 { // capabilities (RFC 5492 section 4)
			return
		}
		eachTLV(caps, func(code byte, v []byte) {
			if code != capRestart || len(v) < 2 {
				return
			}
			if restarted {
				v[0] |= flagRestarted
			}
			for t := v[2:]; len(t) >= 4; t = t[4:] {
				t[3] |= flagForward
			}
		})
	})
}

// eachTLV goes through type, length and value of one octet, one and that many; it stops at a cut.
func eachTLV(b []byte, each func(typ byte, value []byte)) {
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		n := 2 + int(b[1])
		each(b[0], b[2:n])
		b = b[n:]
	}
}

// endOfRIBOf says of which family a message is End-of-RIB (RFC 4724 section 2), AFI and SAFI in one number.
func endOfRIBOf(msg []byte) (family uint32, yes bool) {
	const empty = 23 // no withdrawn routes, no attributes
	switch {
	case len(msg) < empty || msg[18] != typeUpdate || msg[19] != 0 || msg[20] != 0:
		return 0, false
	case len(msg) == empty:
		return 1<<8 | 1, true
	}
	attr := msg[empty:]
	if int(binary.BigEndian.Uint16(msg[21:])) != len(attr) || len(attr) < 4 || attr[1] != attrMPUnreach {
		return 0, false
	}
	v, n := attr[3:], int(attr[2])
	if attr[0]&flagExtended != 0 {
		v, n = attr[4:], int(binary.BigEndian.Uint16(attr[2:]))
	}
	if len(v) != n || n != 3 {
		return 0, false
	}
	return uint32(v[0])<<16 | uint32(v[1])<<8 | uint32(v[2]), true
}

// outgoing changes what the speaker sends over one connection.
type outgoing struct {
	asked     bool // the neighbour is asked to keep our routes
	restarted bool // it has not been met since this node restarted
	// early says that the connection is older than the last announcement that End-of-RIB stands for. What
	// the speaker sends at the session's start ends with one that comes too soon then; that of a full resend
	// after the restart is over is right.
	early bool
	over  *atomic.Bool
	seen  map[uint32]struct{} // families whose first End-of-RIB was held back
}

// pass changes a whole message where that is due, and reports whether it goes out at all.
func (o *outgoing) pass(msg []byte) bool {
	if o.asked {
		markRestart(msg, o.restarted)
	}
	if !o.early {
		return true
	}
	f, eor := endOfRIBOf(msg)
	if !eor {
		return true
	}
	_, again := o.seen[f]
	if o.seen == nil {
		o.seen = map[uint32]struct{}{}
	}
	o.seen[f] = struct{}{}
	return again && o.over.Load()
}

// outgoing is what holds for a new connection. It needs mu.
func (n *neighbor) outgoing() outgoing {
	own := n.r.cfg.Own
	asked := own.Asked && n.cfg.Restart
	return outgoing{
		asked:     asked,
		restarted: asked && !n.met && time.Now().Before(own.Until),
		early:     asked && !own.Until.IsZero() && !n.r.over.Load(),
		over:      &n.r.over,
	}
}

// Complete says that everything is announced after a restart. On connections from now on End-of-RIB isn't held
// back; those that there are get theirs with the next full resend.
func (r *Relay) Complete() { r.over.Store(true) }

// Early reports whether the neighbour's connection waits for End-of-RIB by a full resend.
func (r *Relay) Early(a netip.Addr) bool {
	n := r.neighbor(a)
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bound != nil && n.bound.early
}

// Leave ends all connections without a word and makes no others: neighbours take it for a restart.
func (r *Relay) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.peers {
		n.leave()
	}
}

func (n *neighbor) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left = true
	for _, c := range []*conn{n.in, n.out} {
		if c != nil {
			n.drop(c)
			c.finish()
		}
	}
	if c := n.bound; c != nil {
		n.release(c, nil)
		c.finish()
	}
}

// What Refresh answers when it can't be done.
var (
	ErrNoSession = errors.New("the session isn't established")
	ErrNoRefresh = errors.New("the neighbour doesn't offer route refresh (RFC 2918)")
)

// Refresh asks a neighbour to send its routes of the families again (RFC 2918). Errors wrap ErrNone, ErrNoSession
// or ErrNoRefresh, or say why the connection was lost.
func (r *Relay) Refresh(a netip.Addr, families []guard.Family) error {
	n := r.neighbor(a)
	if n == nil {
		return fmt.Errorf("%w: %s", ErrNone, a)
	}
	n.mu.Lock()
	c, up := n.bound, n.state == Established
	n.mu.Unlock()
	switch {
	case c == nil || !up:
		return ErrNoSession
	case !c.open.refresh:
		return ErrNoRefresh
	}
	for i, f := range families {
		if err := c.send(routeRefresh(f), i < len(families)-1); err != nil {
			return err
		}
	}
	return nil
}
