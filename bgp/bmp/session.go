package bmp

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// comeTime is how long the speaker may take to connect.
const comeTime = 10 * time.Second

const readBuffer = 64 << 10

// session connects to the station, then has the speaker connect to us, and passes on what it reports until one of
// the two ends, or ctx. It always gives an error.
func (s *station) session(ctx context.Context) error {
	d := net.Dialer{Timeout: s.all.limits.dial}
	out, err := d.DialContext(ctx, "tcp", s.cfg.Address.String())
	if err != nil {
		return fmt.Errorf("connect: %w", reason(err))
	}
	defer out.Close()
	in, rd, end, err := s.speaker(ctx)
	if err != nil {
		return fmt.Errorf("the speaker's BMP: %w", err)
	}
	// The speaker is told first: it would connect again else.
	defer in.Close()
	defer end()
	s.note(func(st *Status) {
		st.Connected, st.Since = true, time.Now()
		st.Connects++
	})
	s.log.Info("bmp: connected with the station")
	return s.pass(ctx, in, rd, out)
}

// speaker gets the speaker's connection. Who knows the name that only the speaker was told is the speaker: its
// Initiation message has been read.
func (s *station) speaker(ctx context.Context) (net.Conn, *bufio.Reader, func(), error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, nil, err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	deadline := time.Now().Add(comeTime)
	l.SetDeadline(deadline)
	port, name := uint16(l.Addr().(*net.TCPAddr).Port), rand.Text()
	if err := s.all.Source.Open(ctx, port, name, s.cfg.Statistics); err != nil {
		return nil, nil, nil, err
	}
	end := func() {
		if err := s.all.Source.Close(port); err != nil {
			s.log.WithError(err).Error("bmp: the speaker keeps reporting to nobody")
		}
	}
	for {
		c, err := l.Accept()
		if err != nil {
			end()
			return nil, nil, nil, reason(err)
		}
		c.SetReadDeadline(deadline)
		rd := bufio.NewReaderSize(c, readBuffer)
		msg, err := readMessage(rd, nil)
		if got, ok := initiationName(msg); err == nil && ok && got == name {
			c.SetReadDeadline(time.Time{})
			return c, rd, end, nil
		}
		c.Close()
	}
}

// pass has three goroutines, and waits for them.
func (s *station) pass(ctx context.Context, in net.Conn, rd *bufio.Reader, out net.Conn) error {
	q := newQueue(s.all.limits.queue, s.all.limits.behind)
	q.add(initiation(s.all.Name, s.all.Descr))
	live := &live{w: NewRewriter(s.all.Lookup), q: q}
	s.setLive(live)
	defer s.setLive(nil)
	var wg sync.WaitGroup
	ends := make(chan error, 3)
	written := make(chan struct{})
	wg.Go(func() { ends <- s.read(rd, live) })
	wg.Go(func() {
		ends <- s.write(q, out)
		close(written)
	})
	wg.Go(func() {
		// A station sends nothing; this is for its end.
		_, err := io.Copy(io.Discard, out)
		if err == nil {
			err = errors.New("closed by the station")
		}
		ends <- reason(err)
	})
	var err error
	select {
	case err = <-ends:
	case <-ctx.Done():
		err = ctx.Err()
		q.finish(termination())
		select {
		case <-written:
		case <-time.After(s.all.limits.last):
		}
	}
	close(q.done)
	in.SetDeadline(time.Now()) // ends what reads; it is closed after the speaker was told
	out.Close()
	wg.Wait()
	return err
}

// live is what a connection knows. Messages get into the queue in the order in which they were rewritten.
type live struct {
	mu sync.Mutex
	w  *Rewriter
	q  *queue
}

func (l *live) add(msg []byte) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pass, err := l.w.Rewrite(msg)
	if pass {
		l.q.add(msg)
	}
	return pass, err
}

func (l *live) gone(inside netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if msg := l.w.Gone(inside, now); msg != nil {
		l.q.add(msg) // a few octets: it doesn't wait for room
	}
}

// read takes what the speaker reports.
func (s *station) read(rd *bufio.Reader, l *live) error {
	var buf []byte
	for {
		if err := l.q.wait(); err != nil {
			return err
		}
		msg, err := readMessage(rd, buf)
		if err != nil {
			return fmt.Errorf("the speaker's BMP: %w", reason(err))
		}
		buf = msg
		pass, err := l.add(msg)
		if err != nil {
			return err
		}
		s.note(func(st *Status) {
			if pass {
				st.Messages++
			} else {
				st.Dropped++
			}
		})
	}
}

// write sends what is in the queue. It ends without an error after the last message.
func (s *station) write(q *queue, out net.Conn) error {
	l := &s.all.limits
	var buf []byte
	for {
		got, ok := q.take(buf)
		if !ok {
			return errDone
		}
		for rest := got; len(rest) > 0; {
			n := min(len(rest), l.writeChunk)
			out.SetWriteDeadline(time.Now().Add(l.write))
			if _, err := out.Write(rest[:n]); errors.Is(err, os.ErrDeadlineExceeded) {
				return fmt.Errorf("%w: it took nothing for %s", ErrSlow, l.write)
			} else if err != nil {
				return reason(err)
			}
			rest = rest[n:]
		}
		buf = got
	}
}

// reason leaves the ports of our side out, which differ each time.
func reason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
