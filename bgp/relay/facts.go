package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"pncd/bgp/guard"
)

// What the goroutines of connections and legs see, and the speaker tells.

// setState notes what the speaker is at.
func (n *neighbor) setState(s State, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s == Active && n.state != Active && n.dialAt.Before(time.Now()) {
		n.dialAt = time.Now().Add(jitter(firstDial))
	}
	n.state, n.down = s, down
	n.met = n.met || s == Established
	if l := n.leg; l != nil && !l.ended {
		// GoBGP ends a session without closing its connection when it finds the OPEN wrong before it has noted
		// whose it is (v3.37.0: fsm.h is set once its goroutine runs). The leg would stay for good.
		var until time.Time
		if s == Down || s == Active {
			until = time.Now().Add(closeTime)
		}
		l.tcp.SetReadDeadline(until)
	}
	n.poke()
}

// arrived notes the first message on a connection, and reports whether the connection goes on.
func (n *neighbor) arrived(c *conn, msg []byte, fault *guard.Fault, err error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.poke()
	switch {
	case n.in != c && n.out != c:
		return false
	case err != nil:
		n.drop(c)
		n.note(fmt.Sprintf("connection ended before an OPEN: %v", reason(err)))
		c.finish()
		return false
	case isNotification(msg):
		n.drop(c)
		n.tell(Note{Received: msg})
		c.finish()
		return false
	}
	o, ok := parseOpen(msg)
	if !ok && fault == nil {
		fault = &guard.Fault{Code: codeFSM, Subcode: fsmInOpenSent, Reason: "the first message is no OPEN"}
	}
	if ok && o.hold == 0 {
		// RFC 4271 section 4.2 allows to refuse it. GoBGP takes the hold time for how long a write may
		// take, and couldn't write at all.
		fault = &guard.Fault{Code: codeOpen, Subcode: openHoldTime, Reason: "a hold time of 0 isn't accepted"}
	}
	if fault != nil {
		n.drop(c)
		n.faulty(c, fault)
		return false
	}
	c.first, c.open, c.opened = msg, o, time.Now()
	return true
}

// gone notes the end of a connection that had sent its OPEN, and has no leg yet.
func (n *neighbor) gone(c *conn, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.in != c && n.out != c {
		return // it has its leg by now, or is over
	}
	n.drop(c)
	if err != nil {
		n.note(fmt.Sprintf("connection lost: %v", reason(err)))
	}
	c.finish()
	n.poke()
}

// lost notes that the connection with the neighbour has ended, or that it doesn't read any more.
func (n *neighbor) lost(c *conn, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bound == c {
		if !c.told.Load() {
			n.note(fmt.Sprintf("connection lost: %v", reason(err)))
		}
		n.release(c, nil)
	}
	c.finish()
}

// fault ends a session for what the neighbour sent.
func (n *neighbor) fault(c *conn, f *guard.Fault) {
	n.mu.Lock()
	if n.bound == c {
		n.stats.Faults++
		n.tell(Note{Fault: f})
		// As from a neighbour that wants the session to end for good: through a loss, or with the N bit
		// (RFC 8538) after another NOTIFICATION, the speaker would keep the routes.
		n.release(c, notification(codeCease, ceaseHardReset, []byte{f.Code, f.Subcode}))
	}
	n.mu.Unlock()
	c.refuse(f.Code, f.Subcode, f.Data)
}

// faulty ends a connection that has no session.
func (n *neighbor) faulty(c *conn, f *guard.Fault) {
	n.stats.Faults++
	n.tell(Note{Fault: f})
	c.refuse(f.Code, f.Subcode, f.Data)
}

// release takes the leg from a connection, and ends it.
func (n *neighbor) release(c *conn, last []byte) {
	n.unbind()
	c.leg.end(last)
	n.poke()
}

func (n *neighbor) unbind() {
	n.bound = nil
	n.stats.Local, n.stats.Remote = netip.AddrPort{}, netip.AddrPort{}
	if n.state != Established {
		n.retry() // it failed early, and would again
	}
}

// connected notes a leg.
func (n *neighbor) connected(l *leg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leg = l
	if n.closed {
		l.end(nil)
	}
}

// noLeg notes that there is none.
func (n *neighbor) noLeg(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serving = false
	if n.closed {
		return
	}
	n.r.cfg.Log.WithError(err).WithField("neighbor", n.cfg.Address.String()).Error("bgp relay: no connection with GoBGP over loopback")
	n.note(fmt.Sprintf("connection inside this host: %v", err))
	n.again()
}

// again sets a speaker that didn't take a leg to be asked again, unless it has told more meanwhile.
func (n *neighbor) again() {
	if n.state == Opening {
		n.state = Active
		n.serveAt = time.Now().Add(againTime)
	}
	n.poke()
}

// said notes a message of the speaker's on a leg that no connection has: its OPEN, or why it gives up.
func (n *neighbor) said(l *leg, msg []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.open == nil && msg[18] == typeOpen {
		l.open = msg
		n.poke()
	}
}

// legOver notes that the speaker has closed its side, after the connection has got what it sent.
func (n *neighbor) legOver(l *leg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.bound; c != nil {
		n.unbind()
		c.finish()
	}
	n.leg, n.serving = nil, false
	if l.open == nil {
		n.again()
	}
	n.poke()
}

func (n *neighbor) count(fs []guard.Finding) {
	if len(fs) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.countLocked(fs)
}

func (n *neighbor) countLocked(fs []guard.Finding) {
	for _, f := range fs {
		if n.stats.Findings == nil {
			n.stats.Findings = map[guard.Kind]uint64{}
		}
		n.stats.Findings[f.Kind]++
	}
}

func (n *neighbor) note(text string) { n.tell(Note{Text: text}) }

func (n *neighbor) tell(note Note) {
	if n.r.cfg.Note != nil {
		n.r.cfg.Note(n.cfg.Address, note)
	}
}

// reason says in a few words why a connection has ended.
func reason(err error) string {
	var op *net.OpError
	var sys *os.SyscallError
	switch {
	case errors.Is(err, io.EOF):
		return "closed by the neighbour"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "closed by the neighbour within a message"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "the neighbour doesn't read"
	case errors.As(err, &sys):
		return sys.Err.Error()
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
