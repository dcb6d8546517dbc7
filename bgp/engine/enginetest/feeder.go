package enginetest

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

// Feeder is an IBGP neighbour that waits for a speaker to connect, and then sends what it is given. It
// believes nothing and checks nothing: what it sends is up to the caller.
type Feeder struct {
	as  uint32
	id  netip.Addr
	lis net.Listener

	mu      sync.Mutex // keeps messages whole
	conn    net.Conn
	err     error // that ended the session
	readers sync.WaitGroup
	ended   chan struct{}
}

// Listen makes a neighbour at a loopback address, on a port that is free.
func Listen(at netip.Addr, as uint32, id netip.Addr) (*Feeder, error) {
	lis, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return nil, err
	}
	return &Feeder{as: as, id: id, lis: lis, ended: make(chan struct{})}, nil
}

// Port is where the speaker has to connect to.
func (f *Feeder) Port() uint16 { return f.lis.Addr().(*net.TCPAddr).AddrPort().Port() }

// Establish waits for the speaker, and until the session is established. From then on the session is
// kept until Close. It is called once.
func (f *Feeder) Establish(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { f.lis.Close() })
	defer stop()
	conn, err := f.lis.Accept()
	if err != nil {
		return fmt.Errorf("no speaker has connected: %w", errors.Join(err, ctx.Err()))
	}
	f.conn = conn
	stopRead := context.AfterFunc(ctx, func() { conn.Close() })
	defer stopRead()
	if _, err := conn.Write(append(open(f.as, f.id), message(typeKeepalive, nil)...)); err != nil {
		return err
	}
	for _, want := range []byte{typeOpen, typeKeepalive} {
		if typ, err := readMessage(conn); err != nil {
			return err
		} else if typ != want {
			return fmt.Errorf("message of type %d, want %d", typ, want)
		}
	}
	f.readers.Go(f.read)
	f.readers.Go(f.keep)
	return nil
}

// readMessage reads a message and gives its type; a NOTIFICATION is an error.
func readMessage(r io.Reader) (byte, error) {
	var buf [maxMessage]byte
	if _, err := io.ReadFull(r, buf[:headerLen]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint16(buf[16:]))
	if n < headerLen || n > maxMessage {
		return 0, fmt.Errorf("message of %d octets", n)
	}
	if _, err := io.ReadFull(r, buf[headerLen:n]); err != nil {
		return 0, err
	}
	if buf[18] == typeNotification {
		return 0, fmt.Errorf("the speaker sent a NOTIFICATION, % x", buf[headerLen:n])
	}
	return buf[18], nil
}

// read throws away what the speaker sends.
func (f *Feeder) read() {
	defer close(f.ended)
	for {
		if _, err := readMessage(f.conn); err != nil {
			f.mu.Lock()
			f.err = err
			f.mu.Unlock()
			return
		}
	}
}

// keep keeps the session from expiring.
func (f *Feeder) keep() {
	tick := time.NewTicker(holdTime / 8 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.Send(message(typeKeepalive, nil)) // an error is the session's end, which read sees
		case <-f.ended:
			return
		}
	}
}

// Send sends whole messages. It blocks while the speaker doesn't read.
func (f *Feeder) Send(messages []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	_, err := f.conn.Write(messages)
	return err
}

// Ended is closed when the session has ended.
func (f *Feeder) Ended() <-chan struct{} { return f.ended }

// Close ends the session, if there is one, and listens no more.
func (f *Feeder) Close() {
	f.lis.Close()
	if f.conn != nil {
		f.conn.Close()
		f.readers.Wait()
	}
}
