package ospfapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"pncd/igp/ospf/ospfapi/message"
)

// queueLen bounds the messages that wait for the machine.
const queueLen = 1024

// stallLimit is how long a reader waits for room in the queue, and a request for room in the socket. ospfd writes to
// its clients and waits for them, so one that doesn't read stops the whole daemon, its hellos included: rather
// than that, the connection ends.
const stallLimit = time.Second

var errStalled = errors.New("ospf api: what the daemon says is not taken fast enough")

func isAddrInUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// event is a message, or why one couldn't be read.
type event struct {
	news    bool // of the connection for news
	message message.Message
	err     error
}

// running is a link with its readers.
type running struct {
	*Link
	events  chan event
	ended   chan error // why the readers have ended, the first one first
	quit    chan struct{}
	readers sync.WaitGroup
}

func run(l *Link) *running {
	r := &running{Link: l, events: make(chan event, queueLen), ended: make(chan error, 2), quit: make(chan struct{})}
	for _, news := range []bool{false, true} {
		r.readers.Go(func() {
			r.ended <- r.read(news)
			r.close() // at once, whatever keeps the machine: ospfd waits for who doesn't read
		})
	}
	return r
}

// stop ends the link and waits for its readers.
func (r *running) stop() {
	close(r.quit)
	r.close()
	r.readers.Wait()
}

// read brings messages to the queue until the connection ends.
func (r *running) read(news bool) error {
	c := r.requests
	if news {
		c = r.news
	}
	in := bufio.NewReaderSize(c, 1<<16)
	stall := time.NewTimer(stallLimit)
	defer stall.Stop()
	for {
		b := make([]byte, message.HeaderLen)
		if _, err := io.ReadFull(in, b); err != nil {
			return fmt.Errorf("ospf api: read: %w", err)
		}
		h, err := message.ParseHeader(b)
		if err != nil {
			return err // where the next message begins is not known
		}
		b = append(b, make([]byte, h.Length)...)
		if _, err := io.ReadFull(in, b[message.HeaderLen:]); err != nil {
			return fmt.Errorf("ospf api: read: %w", err)
		}
		e := event{news: news}
		e.message, e.err = message.Parse(b)
		stall.Reset(stallLimit)
		select {
		case r.events <- e:
		case <-r.quit:
			return net.ErrClosed
		case <-stall.C:
			return errStalled
		}
	}
}

// send writes a request at once and whole: ospfd waits for the rest of one that it has begun to read.
func (r *running) send(m message.Message) error {
	b, err := m.Append(nil)
	if err != nil {
		return err
	}
	_ = r.requests.SetWriteDeadline(time.Now().Add(stallLimit))
	if _, err := r.requests.Write(b); err != nil {
		return fmt.Errorf("ospf api: send %s: %w", m.Body.Type(), err)
	}
	return nil
}

// peerClosed reports whether a reader's error says that the daemon ended the connection.
func peerClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}
