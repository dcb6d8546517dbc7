package ospfapi

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/igp/ospf/ospfapi/learner"
	"pncd/igp/ospf/ospfapi/message"
	"pncd/igp/ospf/packet"
	"pncd/internal/testwait"
)

var itsAddress = netip.MustParseAddr("127.0.0.2")

// daemon is an ospfd on loopback that has an instance.
type daemon struct {
	t    *testing.T
	lsas []packet.LSA

	at       netip.AddrPort
	listener net.Listener
	work     sync.WaitGroup

	mu        sync.Mutex
	conns     []net.Conn
	called    int
	stranger  netip.Addr // who connects back first
	refused   bool       // the stranger was
	unwelcome []byte     // said behind the database
	fragile   bool       // ends when it is asked for the database
}

// startDaemon starts one at a port; 0 takes any.
func startDaemon(t *testing.T, port uint16, lsas ...packet.LSA) *daemon {
	t.Helper()
	d := &daemon{t: t, lsas: lsas}
	var err error
	if d.listener, err = net.Listen("tcp4", netip.AddrPortFrom(itsAddress, port).String()); err != nil {
		t.Fatal(err)
	}
	d.at = d.listener.Addr().(*net.TCPAddr).AddrPort()
	d.work.Go(d.accept)
	t.Cleanup(d.stop)
	return d
}

// stop ends it, as kill does.
func (d *daemon) stop() {
	_ = d.listener.Close()
	d.hangUp()
	d.work.Wait()
}

// hangUp ends its connections; it listens on.
func (d *daemon) hangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		_ = c.Close()
	}
	d.conns = nil
}

func (d *daemon) calls() int { d.mu.Lock(); defer d.mu.Unlock(); return d.called }

func (d *daemon) accept() {
	for {
		c, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		d.called++
		stranger := d.stranger
		d.mu.Unlock()
		if stranger.IsValid() {
			d.callBackFrom(c, stranger)
		}
		news, err := d.dialBack(c, itsAddress)
		if err != nil {
			_ = c.Close()
			continue
		}
		d.mu.Lock()
		d.conns = append(d.conns, c, news)
		d.mu.Unlock()
		d.work.Go(func() { d.serve(c, news) })
	}
}

func (d *daemon) dialBack(c net.Conn, from netip.Addr) (net.Conn, error) {
	peer := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}}
	return dialer.Dial("tcp4", netip.AddrPortFrom(peer.Addr(), peer.Port()+1).String())
}

// callBackFrom connects back from another address, and waits until that is refused.
func (d *daemon) callBackFrom(c net.Conn, from netip.Addr) {
	s, err := d.dialBack(c, from)
	if err != nil {
		return
	}
	defer s.Close()
	_ = s.SetReadDeadline(time.Now().Add(testwait.Patience))
	if _, err := s.Read(make([]byte, 1)); err == io.EOF {
		d.mu.Lock()
		d.refused = true
		d.mu.Unlock()
	}
}

func (d *daemon) serve(c, news net.Conn) {
	defer c.Close()
	defer news.Close()
	for {
		b := make([]byte, message.HeaderLen)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		h, err := message.ParseHeader(b)
		if err != nil || h.Length == 0 {
			d.t.Errorf("a real one would end at %x, %v", b, err)
			return
		}
		b = append(b, make([]byte, h.Length)...)
		if _, err := io.ReadFull(c, b[message.HeaderLen:]); err != nil {
			return
		}
		code := message.OK
		switch h.Type {
		case message.TypeOriginate:
			code = message.OpaqueNotRegistered
		case message.TypeSyncLSDB:
			d.mu.Lock()
			fragile := d.fragile
			d.mu.Unlock()
			if fragile {
				_ = d.listener.Close()
				return
			}
			for _, l := range d.lsas {
				d.say(news, h.Sequence, message.LSAChange{LSA: l})
			}
		case message.TypeSyncRouterID:
			d.say(news, h.Sequence, message.RouterID{ID: 1})
			d.mu.Lock()
			_, _ = news.Write(d.unwelcome)
			d.mu.Unlock()
		}
		d.say(c, h.Sequence, message.Reply{Code: code})
	}
}

func (d *daemon) say(c net.Conn, sequence uint32, b message.Body) {
	out, err := message.Message{Sequence: sequence, Body: b}.Append(nil)
	if err != nil {
		d.t.Error(err)
	}
	_, _ = c.Write(out)
}

// client runs one for a daemon until the test ends.
func client(t *testing.T, at netip.AddrPort, edit func(*Config)) *Client {
	t.Helper()
	log := logrus.New()
	log.SetOutput(t.Output())
	cfg := Config{Router: at.Addr(), Port: at.Port(), Learner: learner.Config{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}}
	cfg.Connect.Second, cfg.Connect.Max = time.Millisecond, 10*time.Millisecond
	if edit != nil {
		edit(&cfg)
	}
	c, err := NewClient(cfg, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

// becomes waits for a state with so many LSAs in the backbone.
func becomes(t *testing.T, c *Client, want learner.State, lsas int) {
	t.Helper()
	testwait.Until(t, want.String(), func() bool {
		st, err := c.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		db, err := c.Database(context.Background(), packet.Backbone)
		return err == nil && st.State == want && len(db) == lsas
	})
}

func someLSA(t testing.TB, adv packet.ID) packet.LSA {
	t.Helper()
	l, err := packet.NewLSA(packet.V2, packet.Header{Key: packet.Key{Type: packet.V2Router, ID: adv, Adv: adv}, Sequence: packet.InitialSequence}, packet.V2RouterLSA{}.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func quiet() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}
