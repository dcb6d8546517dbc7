package relay

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"pncd/bgp/guard"
)

// GoBGP's queues have no bound: it reads a neighbour as fast as that sends, however long what came before waits to
// be handled. So a connection isn't read while too much of what it passed waits, and TCP holds the neighbour back.
const (
	// window is how many octets of a neighbour's UPDATEs may wait, and share of them when windows octets of all
	// neighbours wait. GoBGP needs up to a hundred octets of memory for each.
	window  = 128 << 10
	share   = 16 << 10
	windows = 1 << 20
	// lostTime is after how long without any handled what waits is taken for lost: an UPDATE of which the speaker
	// reports nothing.
	lostTime = 10 * time.Second
	// lookTime is how often a connection that isn't read is looked at.
	lookTime = time.Second
)

// flow is what a connection passed that isn't handled yet.
type flow struct {
	all *atomic.Int64 // octets that wait, of all connections

	mu      sync.Mutex
	begun   bool // the speaker reports of this session by now, and no more of one before
	lens    []int
	octets  int // the sum of lens
	since   time.Time
	changed chan struct{}
}

func newFlow(all *atomic.Int64) *flow { return &flow{all: all, changed: make(chan struct{}, 1)} }

// passed notes the UPDATEs among whole messages, before the speaker gets them.
func (f *flow) passed(msgs []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(msgs) >= guard.HeaderLen {
		n := min(max(int(binary.BigEndian.Uint16(msgs[16:])), guard.HeaderLen), len(msgs))
		if msgs[18] == typeUpdate {
			if f.octets == 0 {
				f.since = time.Now()
			}
			f.lens = append(f.lens, n)
			f.add(n)
		}
		msgs = msgs[n:]
	}
}

// add needs mu.
func (f *flow) add(n int) {
	f.octets += n
	f.all.Add(int64(n))
}

// begin says that what is handled from now on is of this session.
func (f *flow) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = true
}

// handled notes that the speaker has handled the UPDATE that waited longest.
func (f *flow) handled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.begun || len(f.lens) == 0 {
		return
	}
	f.since = time.Now()
	f.add(-f.lens[0])
	if f.lens = f.lens[1:]; len(f.lens) == 0 {
		f.lens = nil
	}
	f.tell()
}

// forget takes everything for handled.
func (f *flow) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(-f.octets)
	f.lens = nil
	f.tell()
}

func (f *flow) tell() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// full reports whether too much waits. Once it does, half of it must be handled before that changes.
func (f *flow) full(was bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	own, least := window, share
	if was {
		own, least = own/2, least/2
	}
	return f.octets > own || f.octets > least && f.all.Load() > windows
}

// lost reports whether nothing was handled for too long.
func (f *flow) lost(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.octets > 0 && now.Sub(f.since) >= lostTime
}

// gate holds all connections back.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed when it opens; nil while it is open
}

func (g *gate) shut(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case on && g.open == nil:
		g.open = make(chan struct{})
	case !on && g.open != nil:
		close(g.open)
		g.open = nil
	}
}

// wait is closed when the gate opens; nil: it is open.
func (g *gate) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Hold says that no more is to be read from any neighbour, or that it may be again.
func (r *Relay) Hold(on bool) { r.gate.shut(on) }

// Begun says that what Handled tells from now on is of the session that the neighbour has.
func (r *Relay) Begun(neighbor netip.Addr) {
	if f := r.flowOf(neighbor); f != nil {
		f.begin()
	}
}

// Handled says that the speaker has handled the next UPDATE of the neighbour's. Those of which nothing is ever said
// count as handled after a time.
func (r *Relay) Handled(neighbor netip.Addr) {
	if f := r.flowOf(neighbor); f != nil {
		f.handled()
	}
}

func (r *Relay) flowOf(a netip.Addr) *flow {
	n := r.neighbor(a)
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bound == nil {
		return nil
	}
	return n.bound.flow
}

// holdBack waits until the connection is to be read again, and reports false when it has ended.
//
// The neighbour's KEEPALIVEs are behind what isn't read. While there is such, it has been heard of since the last
// message that the speaker got, and the speaker gets KEEPALIVEs in their place: its hold timer goes on from
// when the connection was read last only if the neighbour has really said nothing since.
func (n *neighbor) holdBack(c *conn, l *leg) bool {
	full := c.flow.full(false)
	if !full && n.r.gate.wait() == nil {
		return true
	}
	if l.flush() != nil {
		return false
	}
	look := time.NewTicker(lookTime)
	defer look.Stop()
	for due := time.Now().Add(c.alive); ; {
		opens := n.r.gate.wait()
		if full = full && c.flow.full(true); !full && opens == nil {
			return true
		}
		select {
		case <-c.over:
			return false
		case <-c.flow.changed:
		case <-opens:
		case now := <-look.C:
			if c.flow.lost(now) && !n.r.busy() {
				c.flow.forget()
			}
			if now.Before(due) || !c.unread() {
				continue
			}
			due = now.Add(c.alive)
			if l.send(keepaliveMessage, true) != nil {
				return false
			}
		}
	}
}

func (r *Relay) busy() bool { return r.cfg.Busy != nil && r.cfg.Busy() }

// unread reports whether the neighbour has sent something that wasn't read.
func (c *conn) unread() bool {
	if c.rd.Buffered() > 0 {
		return true
	}
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	if raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) != nil || err != nil {
		return false
	}
	return n > 0
}
