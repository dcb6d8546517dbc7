package relay

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"pncd/bgp/guard"
)

// leg is a connection with the speaker over loopback, in place of a neighbour. One goroutine reads it
// for life.
type leg struct {
	tcp *net.TCPConn
	rd  *bufio.Reader
	to  atomic.Pointer[conn] // where what the speaker sends goes; nil: nowhere

	wmu sync.Mutex
	w   *bufio.Writer

	// Of the neighbour's mutex.
	open  []byte // the speaker's OPEN, once it is there
	ended bool   // it is over, and the speaker is being waited for
}

func newLeg(tcp *net.TCPConn) *leg {
	return &leg{tcp: tcp, rd: bufio.NewReaderSize(tcp, readBuffer), w: bufio.NewWriterSize(tcp, writeBuffer)}
}

var errFrame = errors.New("the speaker sent a message of a wrong length")

// next gives the speaker's next message, which is valid until the reader is used again.
func (l *leg) next() ([]byte, error) {
	header, err := l.rd.Peek(guard.HeaderLen)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(header[16:]))
	if n < guard.HeaderLen {
		return nil, errFrame
	}
	return l.rd.Peek(n)
}

func (l *leg) send(msgs []byte, flush bool) error {
	l.wmu.Lock()
	defer l.wmu.Unlock()
	if _, err := l.w.Write(msgs); err != nil || !flush {
		return err
	}
	return l.w.Flush()
}

func (l *leg) flush() error { return l.send(nil, true) }

// end tells the speaker that the connection is over, after a last message if there is one. What the
// speaker still has to say is read and thrown away, for a short time: a leg that is closed while
// something is unread would take the last messages with it. It needs the neighbour's mutex.
func (l *leg) end(last []byte) {
	l.ended = true
	l.to.Store(nil)
	l.tcp.SetWriteDeadline(time.Now().Add(refuseTime))
	l.send(last, true)
	l.tcp.CloseWrite()
	l.tcp.SetReadDeadline(time.Now().Add(dialTimeout))
}

// serve is a leg's goroutine: it connects to the speaker and passes on what it sends.
func (n *neighbor) serve() {
	defer n.wg.Done()
	tcp, err := dialInside(n.ctx, n.cfg.Inside, n.r.cfg.Speaker, n.r.cfg.Key)
	if err != nil {
		n.noLeg(err)
		return
	}
	l := newLeg(tcp)
	n.connected(l)
	for {
		msg, err := l.next()
		if err != nil {
			break
		}
		if c := l.to.Load(); c != nil {
			n.pass(l, c, msg)
		} else {
			n.said(l, bytes.Clone(msg))
		}
		l.rd.Discard(len(msg))
	}
	n.legOver(l)
	tcp.Close()
}

// pass sends a message of the speaker's to the neighbour. When that fails the connection is lost, and
// nothing goes there any more.
func (n *neighbor) pass(l *leg, c *conn, msg []byte) {
	more := false
	if l.rd.Buffered() > len(msg)+guard.HeaderLen {
		if b, err := l.rd.Peek(len(msg) + guard.HeaderLen); err == nil {
			next := int(binary.BigEndian.Uint16(b[len(msg)+16:]))
			more = l.rd.Buffered() >= len(msg)+next
		}
	}
	if err := c.send(msg, more); err != nil {
		n.lost(c, err)
	}
}
