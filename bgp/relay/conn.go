package relay

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"pncd/bgp/guard"
)

const (
	// readBuffer is room for one message of any length.
	readBuffer  = guard.MaxExtendedLen + 1
	writeBuffer = 32 << 10
	// lingerTime is how long a connection may take to end after the last message was written: closed
	// at once, what the neighbour sent meanwhile would make the kernel throw that message away.
	lingerTime = 2 * time.Second
	// refuseTime is how long a last NOTIFICATION may take to be written.
	refuseTime = 200 * time.Millisecond
)

// conn is a TCP connection with a neighbour. One goroutine reads it for life.
type conn struct {
	tcp      *net.TCPConn
	incoming bool
	since    time.Time
	guard    *guard.Session
	rd       *bufio.Reader
	timeout  time.Duration // of a write

	wmu sync.Mutex
	w   *bufio.Writer
	outgoing

	bind chan *leg     // gets the leg, once
	over chan struct{} // closed by finish
	once sync.Once
	// ending says that the last message is being written.
	ending atomic.Bool
	flow   *flow
	// told says that a NOTIFICATION went one way or the other: the end that follows is no loss.
	told atomic.Bool

	// Of the neighbour's mutex.
	first  []byte // the first message
	open   open
	opened time.Time // when the neighbour's OPEN came; zero before
	served time.Time // when our OPEN went out; zero before
	leg    *leg
	decode func([]byte) error
	alive  time.Duration // how often the speaker hears of the neighbour at least; before it is bound
}

func newConn(tcp *net.TCPConn, incoming bool, p *Peer, now time.Time, waiting *atomic.Int64) *conn {
	return &conn{
		flow: newFlow(waiting),
		tcp:  tcp, incoming: incoming, since: now, guard: guard.New(p.Guard), timeout: p.HoldTime,
		rd: bufio.NewReaderSize(tcp, readBuffer), w: bufio.NewWriterSize(tcp, writeBuffer),
		bind: make(chan *leg, 1), over: make(chan struct{}),
	}
}

// next gives the next message, which is valid until skip. A fault says that it can't be one.
func (c *conn) next() ([]byte, *guard.Fault, error) {
	header, err := c.rd.Peek(guard.HeaderLen)
	if err != nil {
		return nil, nil, cut(err, len(header))
	}
	n, fault := c.guard.FrameLen(header)
	if fault != nil {
		return nil, fault, nil
	}
	msg, err := c.rd.Peek(n)
	if err != nil {
		return nil, nil, cut(err, len(msg))
	}
	return msg, nil, nil
}

func cut(err error, have int) error {
	if err == io.EOF && have > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (c *conn) skip(msg []byte) { c.rd.Discard(len(msg)) }

// send writes a message of the speaker's to the neighbour. More says that another follows at once.
func (c *conn) send(msg []byte, more bool) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if c.ending.Load() {
		return net.ErrClosed
	}
	if isNotification(msg) {
		c.told.Store(true)
	}
	c.tcp.SetWriteDeadline(time.Now().Add(c.timeout))
	if c.pass(msg) {
		c.guard.ToPeer(msg)
		if _, err := c.w.Write(msg); err != nil {
			return err
		}
	}
	if more {
		return nil
	}
	return c.w.Flush()
}

// refuse ends the connection with a NOTIFICATION. Where the neighbour doesn't read, it soon goes without.
func (c *conn) refuse(code, subcode uint8, data []byte) {
	c.ending.Store(true)
	c.tcp.SetWriteDeadline(time.Now().Add(refuseTime))
	c.wmu.Lock()
	c.told.Store(true)
	c.w.Write(notification(code, subcode, data)) // fails when a message before it was cut short
	c.w.Flush()
	c.wmu.Unlock()
	c.finish()
}

// finish ends the connection once everything that was written is sent, as far as the neighbour takes it.
func (c *conn) finish() {
	c.once.Do(func() {
		c.tcp.SetReadDeadline(time.Now().Add(lingerTime))
		c.tcp.SetWriteDeadline(time.Now()) // a write that waits will wait in vain
		c.tcp.CloseWrite()
		close(c.over)
	})
}

// linger reads until the neighbour has closed its side too.
func (c *conn) linger() { io.Copy(io.Discard, c.rd) }

// await reads the first message, and waits until it has a leg. It gives nil when there will be none.
func (n *neighbor) await(c *conn) *leg {
	msg, fault, err := c.next()
	msg = bytes.Clone(msg)
	c.skip(msg)
	if !n.arrived(c, msg, fault, err) {
		return nil
	}
	// Until our OPEN is there the neighbour has nothing more to say. So that its end is noticed while
	// the connection waits for its leg, it is read all the same.
	if next, err := c.rd.Peek(guard.HeaderLen); err != nil || next[18] == typeNotification {
		n.gone(c, err)
	}
	select {
	case l := <-c.bind:
		return l
	case <-c.over:
		return nil
	}
}

// run is the connection's goroutine.
func (n *neighbor) run(c *conn) {
	defer n.r.conns.Done()
	defer c.tcp.Close()
	defer c.flow.forget()
	if l := n.await(c); l != nil {
		n.pump(c, l)
	}
	c.linger()
}

// pump passes what the neighbour sends, until either side ends.
func (n *neighbor) pump(c *conn, l *leg) {
	for {
		msg, fault, err := c.next()
		if err != nil {
			n.lost(c, err)
			return
		}
		var pass []byte
		if fault == nil {
			pass, fault = n.check(c, msg)
		}
		if fault != nil {
			n.fault(c, fault)
			return
		}
		if isNotification(msg) {
			c.told.Store(true)
		}
		c.flow.passed(pass)
		err = l.send(pass, false)
		c.skip(msg)
		if err == nil && !whole(c.rd) {
			err = l.flush()
		}
		if err != nil || !n.holdBack(c, l) {
			return // the speaker has ended it, and its goroutine does the rest
		}
	}
}

// check asks the guard, and where that isn't sure the decoder.
func (n *neighbor) check(c *conn, msg []byte) ([]byte, *guard.Fault) {
	v := c.guard.FromPeer(msg)
	n.count(v.Findings)
	if v.Fault == nil && v.Unsure && c.decode != nil {
		if err := c.decode(v.Pass); err != nil {
			v = c.guard.Withdraw(msg)
			n.count(v.Findings)
		}
	}
	return v.Pass, v.Fault
}
