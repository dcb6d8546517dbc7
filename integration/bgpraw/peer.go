package bgpraw

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Peer is one connection to a speaker.
type Peer struct {
	conn net.Conn
	came chan Message // closed when the connection has ended
	stop chan struct{}
	done sync.WaitGroup

	mu  sync.Mutex // one writer at a time
	err error      // how reading ended; set before came is closed
}

// Dial connects from a local address. Close must be called.
func Dial(ctx context.Context, from netip.Addr, to netip.AddrPort) (*Peer, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	conn, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return New(conn), nil
}

// New is a peer on a connection that was dialled or accepted.
func New(conn net.Conn) *Peer {
	p := &Peer{conn: conn, came: make(chan Message, 1024), stop: make(chan struct{})}
	p.done.Add(1)
	go p.read()
	return p
}

func (p *Peer) read() {
	defer p.done.Done()
	defer close(p.came)
	for {
		var h [HeaderLen]byte
		if _, p.err = io.ReadFull(p.conn, h[:]); p.err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(h[16:]))
		if n < HeaderLen {
			p.err = fmt.Errorf("header says %d octets", n)
			return
		}
		m := Message{Type: h[18], Body: make([]byte, n-HeaderLen)}
		if _, p.err = io.ReadFull(p.conn, m.Body); p.err != nil {
			return
		}
		select {
		case p.came <- m:
		case <-p.stop:
			return
		}
	}
}

// Send writes octets as they are.
func (p *Peer) Send(b ...[]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range b {
		if _, err := p.conn.Write(m); err != nil {
			return err
		}
	}
	return nil
}

// Next gives the next message. It gives io.EOF when the speaker has closed the connection.
func (p *Peer) Next(ctx context.Context) (Message, error) {
	select {
	case m, ok := <-p.came:
		if !ok {
			return m, p.err
		}
		return m, nil
	case <-ctx.Done():
		return Message{}, ctx.Err()
	}
}

// Await gives the next message of a type and passes over others, but not over a NOTIFICATION.
func (p *Peer) Await(ctx context.Context, typ uint8) (Message, error) {
	for {
		m, err := p.Next(ctx)
		switch {
		case err != nil:
			return m, err
		case m.Type == typ:
			return m, nil
		case m.Type == Notification:
			return m, fmt.Errorf("NOTIFICATION %v %x", m.Code(), m.Body[2:])
		}
	}
}

// Ended waits for the end of the session: the NOTIFICATION that came, or zero when the connection was
// closed without.
func (p *Peer) Ended(ctx context.Context) (Code, error) {
	m, err := p.Await(ctx, Notification)
	if errors.Is(err, ctx.Err()) && ctx.Err() != nil {
		return Code{}, err
	}
	return m.Code(), nil
}

// Alive reports whether the session hasn't ended so far. It takes what came.
func (p *Peer) Alive() bool {
	for {
		select {
		case m, ok := <-p.came:
			if !ok || m.Type == Notification {
				return false
			}
		default:
			return true
		}
	}
}

// Establish brings the session up with an OPEN and keeps it alive until Close. It gives the speaker's OPEN.
func (p *Peer) Establish(ctx context.Context, open []byte) (Message, error) {
	theirs, err := p.exchange(ctx, open)
	if err != nil {
		return theirs, fmt.Errorf("session doesn't come up: %w", err)
	}
	if hold := binary.BigEndian.Uint16(open[HeaderLen+3:]); hold != 0 {
		p.done.Add(1)
		go p.keepAlive(time.Duration(hold) * time.Second / 3)
	}
	return theirs, nil
}

func (p *Peer) exchange(ctx context.Context, open []byte) (theirs Message, err error) {
	if err = p.Send(open); err != nil {
		return theirs, err
	}
	if theirs, err = p.Await(ctx, Open); err != nil {
		return theirs, err
	}
	if err = p.Send(Bytes(Keepalive, nil)); err != nil {
		return theirs, err
	}
	_, err = p.Await(ctx, Keepalive)
	return theirs, err
}

func (p *Peer) keepAlive(every time.Duration) {
	defer p.done.Done()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			if p.Send(Bytes(Keepalive, nil)) != nil {
				return
			}
		}
	}
}

// Close ends the connection without a NOTIFICATION and waits for the peer's goroutines.
func (p *Peer) Close() {
	p.conn.Close()
	close(p.stop)
	p.done.Wait()
}
