package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/bgp/guard"
)

// ErrExists and ErrNone say that a neighbour is there already, or isn't.
var (
	ErrExists = errors.New("neighbour exists already")
	ErrNone   = errors.New("no such neighbour")
)

// Config is what a relay needs to know.
type Config struct {
	RouterID netip.Addr       // our BGP Identifier
	Listen   []netip.AddrPort // where neighbours connect; none: nowhere
	Speaker  netip.AddrPort   // where the speaker listens, on loopback
	Key      string           // the TCP MD5 key of the legs, at most 80 octets
	Own      OwnRestart

	// Decoder, when not nil, gives what decodes a message under a session's options, for messages that
	// the guard isn't sure of. It gets both OPENs. It must not panic, nor may what it gives.
	Decoder func(sent, received []byte) func(msg []byte) error
	// Note is told what an operator wants to know about a neighbour. It must not call the relay.
	Note func(neighbor netip.Addr, n Note)
	// Busy, when not nil, reports whether the speaker's report of an UPDATE is being taken: Handled may come late.
	Busy func() bool
	// Knock is told that somebody of a range has connected and waits for Add or Refuse. It must neither wait
	// nor call the relay, and says whether one of them will be called.
	Knock func(from netip.Addr) bool
	Log   logrus.FieldLogger
}

// Note is something to know about a neighbour: one of its fields is set.
type Note struct {
	Text     string       // a connection couldn't be made, or was lost
	Received []byte       // a NOTIFICATION that came in place of an OPEN
	Fault    *guard.Fault // why a connection was ended, and with which NOTIFICATION
}

// Peer is a neighbour.
type Peer struct {
	Address      netip.Addr // of the neighbour; a link-local one with its zone
	Port         uint16
	LocalAddress netip.Addr // source of connections, and the only address at which they are taken; invalid: any
	Passive      bool
	Dynamic      bool          // of a range, whose key and minimum TTL are in force on the listener already
	Password     string        // TCP MD5 key, at most 80 octets; empty: none
	TTL          uint8         // of what is sent; 0: the system's
	TTLMin       uint8         // of what is taken; 0: any
	ConnectRetry time.Duration // at least a second
	HoldTime     time.Duration // after how long without reading a neighbour is lost
	LocalAS      uint32
	Restart      bool       // routes are kept through a graceful restart
	Inside       netip.Addr // of 127/8, by which the speaker knows it
	Guard        guard.Config
}

// State is what the speaker is at with a neighbour.
type State uint8

// The states.
const (
	Down        State = iota
	Active            // takes a connection
	Opening           // has one
	Established       // has a session
)

// Stats is what a relay knows about a neighbour.
type Stats struct {
	Local, Remote netip.AddrPort        // of the connection that has the session; invalid without
	Last          Connection            // that had the last session, or has it
	Findings      map[guard.Kind]uint64 // what the guard mended or ignored
	Faults        uint64                // connections ended for what the neighbour sent
}

// Connection is one with a neighbour, and the one over loopback that belonged to it. The zero value is none.
type Connection struct {
	Local, Remote netip.AddrPort
	Leg           uint16 // port from which the speaker was connected to
}

// Relay owns the connections of all neighbours. It is safe for concurrent use.
type Relay struct {
	cfg     Config
	lis     *listeners
	accepts sync.WaitGroup
	conns   sync.WaitGroup

	over    atomic.Bool // this node's restart, if there was one
	gate    gate
	waiting atomic.Int64 // octets that were passed to the speaker and aren't handled yet

	mu     sync.Mutex
	closed bool
	peers  map[netip.Addr]*neighbor
	ranges []Range
	guests map[netip.Addr]*net.TCPConn // of ranges, and no neighbours yet
	seen   time.Time                   // when a stranger was logged
}

// Start begins to listen. Errors wrap ErrListen.
func Start(ctx context.Context, cfg Config) (*Relay, error) {
	lis, err := listen(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	r := &Relay{cfg: cfg, lis: lis, peers: map[netip.Addr]*neighbor{}, guests: map[netip.Addr]*net.TCPConn{}}
	for _, l := range lis.socks {
		r.accepts.Add(1)
		go r.accept(l)
	}
	return r, nil
}

// acceptPause is how long to wait when the system has no more file descriptors.
const acceptPause = 100 * time.Millisecond

func (r *Relay) accept(l *listener) {
	defer r.accepts.Done()
	for {
		c, err := l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			r.cfg.Log.WithError(err).Warn("bgp relay: a connection couldn't be taken")
			time.Sleep(acceptPause)
			continue
		}
		r.welcome(c)
	}
}

// welcome hands a connection to its neighbour. A stranger's is closed.
func (r *Relay) welcome(c *net.TCPConn) {
	from, err := remoteOf(c)
	if err != nil {
		c.Close() // it is over already, or its interface is gone
		return
	}
	r.mu.Lock()
	n := r.peers[from.Addr()]
	if n == nil && r.receive(c, from.Addr()) {
		r.mu.Unlock()
		return
	}
	now := time.Now()
	log := n == nil && now.Sub(r.seen) >= time.Second // no more often: it is for the stranger to decide how often
	if log {
		r.seen = now
	}
	r.mu.Unlock()
	if n == nil {
		c.Close()
		if log {
			r.cfg.Log.WithField("from", from.String()).Info("bgp: closed the connection of someone who is no neighbour")
		}
		return
	}
	n.welcome(c)
}

func (n *neighbor) welcome(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err == nil {
		err = onSocket(raw, n.cfg.secure)
	}
	if err != nil {
		n.note(fmt.Sprintf("connection not taken: %v", err))
		c.Close()
		return
	}
	n.offer(c)
}

// Listens reports whether neighbours of the address's family can connect.
func (r *Relay) Listens(a netip.Addr) bool { return r.lis.hasFamily(a) }

// Add makes a neighbour known and puts its key and minimum TTL into force, before any connection with it
// is taken or made. Errors wrap ErrExists, ErrMD5 or ErrTTLMin; then it isn't known.
func (r *Relay) Add(p Peer) error {
	if err := p.probe(); err != nil {
		return err
	}
	n := &neighbor{r: r, cfg: p, self: speaker{r.cfg.RouterID, p.LocalAS}, wake: make(chan struct{}, 1)}
	n.ctx, n.stop = context.WithCancel(context.Background())
	guest, err := r.enter(n)
	if err != nil {
		n.stop()
		return err
	}
	if guest != nil {
		n.welcome(guest)
	}
	return nil
}

// enter gives the connection with which the neighbour has come from a range, if it has. One that isn't of a range has
// a key of its own, which a connection from before doesn't have.
func (r *Relay) enter(n *neighbor) (*net.TCPConn, error) {
	p := n.cfg
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, net.ErrClosed
	}
	if r.peers[p.Address] != nil {
		return nil, fmt.Errorf("%w: %s", ErrExists, p.Address)
	}
	if err := r.secure(p); err != nil {
		return nil, errors.Join(err, r.unsecure(p))
	}
	r.peers[p.Address] = n
	n.wg.Add(1)
	go n.runSteps()
	if !p.Dynamic {
		r.dismissGuest(p.Address)
		return nil, nil
	}
	guest := r.guests[p.Address]
	delete(r.guests, p.Address)
	return guest, nil
}

// secure needs mu, as unsecure.
func (r *Relay) secure(p Peer) error {
	if p.Dynamic {
		return nil
	}
	if p.Password != "" {
		if err := r.lis.setKey(p.Address, p.Password); err != nil {
			return err
		}
	}
	if p.TTLMin == 0 && !r.guarded(p.Address) {
		return nil
	}
	min := r.minTTLs()
	min[hostPrefix(p.Address)] = p.TTLMin
	return r.lis.setMinTTL(min)
}

func (r *Relay) unsecure(p Peer) error {
	if p.Dynamic {
		return nil
	}
	var errs []error
	if p.Password != "" {
		errs = append(errs, r.lis.setKey(p.Address, r.keyOf(p.Address)))
	}
	if p.TTLMin != 0 || r.guarded(p.Address) {
		errs = append(errs, r.lis.setMinTTL(r.minTTLs()))
	}
	return errors.Join(errs...)
}

// keyOf is the key that neighbours with the address have on any interface: keys of the kernel have none.
func (r *Relay) keyOf(a netip.Addr) string {
	for other, n := range r.peers {
		if other.WithZone("") == a.WithZone("") && n.cfg.Password != "" && !n.cfg.Dynamic {
			return n.cfg.Password
		}
	}
	return ""
}

// minTTLs has 0 for those that are inside of a range with a minimum and have none themselves.
func (r *Relay) minTTLs() map[netip.Prefix]uint8 {
	m := map[netip.Prefix]uint8{}
	for _, x := range r.ranges {
		if x.TTLMin != 0 || r.guarded(x.Prefix.Addr()) {
			m[x.Prefix] = x.TTLMin
		}
	}
	for a, n := range r.peers {
		if !n.cfg.Dynamic && (n.cfg.TTLMin != 0 || r.guarded(a)) {
			m[hostPrefix(a)] = n.cfg.TTLMin
		}
	}
	return m
}

// Remove forgets a neighbour. The speaker has ended its session before: what it sent at the end is
// written, and then the connection is closed. An error says that a key or a filter stayed behind.
func (r *Relay) Remove(a netip.Addr) error {
	r.mu.Lock()
	n := r.peers[a]
	delete(r.peers, a)
	r.mu.Unlock()
	if n == nil {
		return fmt.Errorf("%w: %s", ErrNone, a)
	}
	n.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.peers[a] != nil || r.closed {
		return nil
	}
	return r.unsecure(n.cfg)
}

// Tell says what the speaker is at with a neighbour, and whether it is to stay down.
func (r *Relay) Tell(a netip.Addr, s State, down bool) {
	if n := r.neighbor(a); n != nil {
		n.setState(s, down)
	}
}

// Stats reads what is known about a neighbour.
func (r *Relay) Stats(a netip.Addr) Stats {
	n := r.neighbor(a)
	if n == nil {
		return Stats{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.stats
	s.Findings = maps.Clone(s.Findings)
	return s
}

func (r *Relay) neighbor(a netip.Addr) *neighbor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peers[a]
}

// Close stops listening, ends all connections and waits for every goroutine.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	ns := r.peers
	r.peers = map[netip.Addr]*neighbor{}
	for a := range r.guests {
		r.dismissGuest(a)
	}
	r.mu.Unlock()
	r.lis.close()
	r.accepts.Wait()
	var wg sync.WaitGroup
	for _, n := range ns {
		wg.Go(n.close)
	}
	wg.Wait()
	r.conns.Wait()
}

func jitter(d time.Duration) time.Duration { return rand.N(d) }
