package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"pncd/bgp/guard"
)

const (
	// openTime is how long a neighbour may take to send its OPEN (RFC 4271 section 8.2.2: a large hold time).
	openTime = 4 * time.Minute
	// heldTime is how long a connection waits for a speaker that isn't ready. GoBGP isn't for five
	// seconds after a session.
	heldTime = time.Minute
	// collisionTime is how long the OPEN on the connection that is to stay is waited for.
	collisionTime = 3 * time.Second
	// firstDial bounds the time to the first connection: the two ends shouldn't connect at once.
	firstDial = time.Second
	// againTime is after how long the speaker is connected to again when it didn't take the leg.
	againTime = time.Second
	// closeTime is how long the speaker may take to close a leg whose neighbour is forgotten.
	closeTime = 3 * time.Second
	forever   = time.Hour
)

// neighbor keeps the connections with one neighbour. What happens is noted under mu, by the goroutines
// that see it; what follows from it is done in step, by the neighbour's own goroutine.
type neighbor struct {
	r    *Relay
	cfg  Peer
	self speaker

	ctx  context.Context
	stop context.CancelFunc
	wake chan struct{}
	wg   sync.WaitGroup // its goroutines but those of connections with the neighbour, which may linger

	mu      sync.Mutex
	state   State // the speaker's
	down    bool  // it is to stay down
	closed  bool
	left    bool  // connections were ended for good, and the speaker lives on
	met     bool  // it had a session
	in, out *conn // wait for a leg
	bound   *conn // has it
	leg     *leg
	serving bool // the leg's goroutine runs
	dialing bool
	dialAt  time.Time
	serveAt time.Time
	stats   Stats
}

// runSteps is the neighbour's goroutine.
func (n *neighbor) runSteps() {
	defer n.wg.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.wake:
		case <-timer.C:
		}
		now := time.Now()
		n.mu.Lock()
		next := n.step(now)
		n.mu.Unlock()
		timer.Reset(next.Sub(now))
	}
}

func (n *neighbor) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// ready reports whether the speaker takes a connection, or has a leg that no connection has.
func (n *neighbor) ready() bool {
	return n.bound == nil && (n.state == Active && !n.serving || n.leg != nil && !n.leg.ended)
}

// step does what is due, and says when to look again at the latest. It needs mu, as everything below.
func (n *neighbor) step(now time.Time) time.Time {
	next := now.Add(forever)
	at := func(t time.Time) bool {
		if !t.After(now) {
			return true
		}
		if t.Before(next) {
			next = t
		}
		return false
	}
	if n.closed || n.left {
		return next
	}
	n.dismiss(at)
	if n.down {
		return next
	}
	waiting := n.in != nil || n.out != nil
	if waiting && n.bound == nil && n.state == Active && !n.serving && at(n.serveAt) {
		n.state, n.serving = Opening, true
		n.wg.Add(1)
		go n.serve()
	}
	if n.bound == nil && n.leg != nil && n.leg.open != nil && !n.leg.ended {
		n.present(now)
		n.choose(at)
	}
	if !n.cfg.Passive && !n.dialing && n.ready() && n.in == nil && n.out == nil && at(n.dialAt) {
		n.dialing = true
		n.wg.Add(1)
		go n.dial()
	}
	return next
}

// dismiss ends connections that have no prospect: the neighbour is to stay down or has a session, or
// takes too long.
func (n *neighbor) dismiss(at func(time.Time) bool) {
	for _, c := range []*conn{n.in, n.out} {
		switch {
		case c == nil:
		case n.down:
			// Without a word: what the neighbour was told at the end of its session stays the last that it heard.
			n.drop(c)
			c.finish()
		case n.bound != nil && n.state == Established:
			n.drop(c)
			c.refuse(codeCease, ceaseCollision, nil)
		case c.served.IsZero() && at(c.since.Add(heldTime)):
			n.drop(c)
			c.finish()
		case !c.served.IsZero() && c.opened.IsZero() && at(c.served.Add(openTime)):
			n.drop(c)
			n.note("no OPEN within " + openTime.String())
			c.refuse(codeHoldTimer, 0, nil)
		}
	}
}

// drop takes a connection out of those that wait.
func (n *neighbor) drop(c *conn) {
	if n.in == c {
		n.in = nil
	}
	if n.out == c {
		n.out = nil
		n.retry()
	}
}

// retry sets when to connect again, with the jitter of RFC 4271 section 10.
func (n *neighbor) retry() {
	d := n.cfg.ConnectRetry
	n.dialAt = time.Now().Add(d - rand.N(d/4+1))
}

// present sends our OPEN to who has none. The connections are new, so that it doesn't wait.
func (n *neighbor) present(now time.Time) {
	for _, c := range []*conn{n.in, n.out} {
		if c == nil || !c.served.IsZero() {
			continue
		}
		c.served = now
		if err := c.send(n.leg.open, false); err != nil {
			n.drop(c)
			n.note(fmt.Sprintf("connection lost: %v", reason(err)))
			c.finish()
		}
	}
}

// choose gives the leg to a connection on which the neighbour's OPEN has come. Of two, RFC 4271 section
// 6.8 says which; both ends have sent their OPEN on both, so both choose the same. The OPEN on the one
// that is to stay is waited for, for a short time.
func (n *neighbor) choose(at func(time.Time) bool) {
	keep, other := n.in, n.out
	if keep == nil || keep.opened.IsZero() {
		keep, other = other, keep
	}
	if keep == nil || keep.opened.IsZero() {
		return
	}
	if other != nil && keepIncoming(n.self, keep.open.speaker) != keep.incoming {
		switch {
		case !other.opened.IsZero():
			keep, other = other, keep
		case !at(keep.opened.Add(collisionTime)):
			return
		}
	}
	if !n.give(keep) {
		n.poke() // the other one's turn
		return
	}
	if other != nil {
		n.drop(other)
		other.refuse(codeCease, ceaseCollision, nil)
	}
}

// give binds a connection to the leg, and passes its OPEN. An OPEN that the guard refuses doesn't get
// to the speaker.
func (n *neighbor) give(c *conn) bool {
	n.drop(c)
	v := c.guard.FromPeer(c.first)
	n.countLocked(v.Findings)
	if v.Fault != nil {
		n.faulty(c, v.Fault)
		return false
	}
	if n.r.cfg.Decoder != nil {
		c.decode = n.r.cfg.Decoder(n.leg.open, c.first)
	}
	if v.Unsure && c.decode != nil {
		if err := c.decode(v.Pass); err != nil {
			n.faulty(c, &guard.Fault{Code: codeOpen, Reason: fmt.Sprintf("OPEN can't be decoded: %v", err)})
			return false
		}
	}
	n.bound, c.leg = c, n.leg
	c.alive = min(n.cfg.HoldTime, time.Duration(c.open.hold)*time.Second) / 3
	n.stats.Local, n.stats.Remote = addrPort(c.tcp.LocalAddr()), addrPort(c.tcp.RemoteAddr())
	n.stats.Last = Connection{n.stats.Local, n.stats.Remote, addrPort(n.leg.tcp.LocalAddr()).Port()}
	n.leg.to.Store(c)
	n.leg.send(v.Pass, true) // when it fails the speaker has closed it, which its goroutine sees
	c.bind <- n.leg
	return true
}

// dial connects to the neighbour.
func (n *neighbor) dial() {
	defer n.wg.Done()
	tcp, err := dialPeer(n.ctx, &n.cfg)
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.poke()
	n.dialing = false
	switch {
	case err != nil:
		n.retry()
		if !n.closed {
			n.note(fmt.Sprintf("connect: %v", err))
		}
	case n.closed || n.left || n.down || n.out != nil || n.bound != nil:
		tcp.Close()
		n.retry()
	default:
		n.out = n.start(tcp, false)
	}
}

func (n *neighbor) start(tcp *net.TCPConn, incoming bool) *conn {
	c := newConn(tcp, incoming, &n.cfg, time.Now(), &n.r.waiting)
	c.outgoing = n.outgoing()
	n.r.conns.Add(1)
	go n.run(c)
	return c
}

// offer takes a connection that the neighbour has made.
func (n *neighbor) offer(tcp *net.TCPConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	local := addrPort(tcp.LocalAddr()).Addr()
	switch {
	case n.closed || n.left:
		tcp.Close()
		return
	case n.cfg.LocalAddress.IsValid() && n.cfg.LocalAddress.WithZone("") != local.WithZone(""):
		n.note(fmt.Sprintf("neighbour connected to %s, local address must be %s", local, n.cfg.LocalAddress))
		tcp.Close()
		return
	}
	if c := n.bound; c != nil && n.state == Established && n.cfg.Restart && c.open.restarts {
		// RFC 4724 section 5: it has restarted, and the old connection's end was lost.
		n.note("the neighbour has connected anew: it has restarted")
		n.release(c, nil)
		c.finish()
	}
	if old := n.in; old != nil {
		n.drop(old)
		old.finish()
	}
	n.in = n.start(tcp, true)
	n.poke()
}

// close ends everything. What the speaker sent is still written.
func (n *neighbor) close() {
	n.mu.Lock()
	n.closed = true
	for _, c := range []*conn{n.in, n.out} {
		if c != nil {
			n.drop(c)
			c.refuse(codeCease, ceaseDeconfigured, nil)
		}
	}
	if n.leg != nil && n.bound == nil {
		n.leg.end(nil)
	}
	n.mu.Unlock()
	n.stop()
	force := time.AfterFunc(closeTime, n.kill)
	defer force.Stop()
	n.wg.Wait()
}

// kill ends what doesn't end by itself.
func (n *neighbor) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bound != nil {
		n.bound.finish()
	}
	if n.leg != nil {
		n.leg.tcp.Close()
	}
}
