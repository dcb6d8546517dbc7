package relay

import (
	"bufio"
	"context"
	"encoding/binary"
	"flag"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"pncd/bgp/guard"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run()) // the fuzzer has goroutines of its own
	}
	goleak.VerifyTestMain(m)
}

const deadline = 20 * time.Second

// message puts a header in front of a body.
func message(typ byte, body ...byte) []byte {
	m := make([]byte, guard.HeaderLen, guard.HeaderLen+len(body))
	for i := range 16 {
		m[i] = 0xff
	}
	binary.BigEndian.PutUint16(m[16:], uint16(guard.HeaderLen+len(body)))
	m[18] = typ
	return append(m, body...)
}

func openOf(s speaker, hold uint16, restarts bool) []byte {
	body := binary.BigEndian.AppendUint16([]byte{4}, uint16(s.as))
	body = binary.BigEndian.AppendUint16(body, hold)
	body = append(body, s.id.AsSlice()...)
	caps := []byte{1, 4, 0, 1, 0, 1, 65, 4}
	caps = binary.BigEndian.AppendUint32(caps, s.as)
	if restarts {
		caps = append(caps, 64, 6, 0, 120, 0, 1, 1, 0x80)
	}
	body = append(body, byte(len(caps)+2), 2, byte(len(caps)))
	return message(typeOpen, append(body, caps...)...)
}

var keepalive = message(4)

func readMessage(r io.Reader) ([]byte, error) {
	header := make([]byte, guard.HeaderLen)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	msg := append(header, make([]byte, int(binary.BigEndian.Uint16(header[16:]))-guard.HeaderLen)...)
	_, err := io.ReadFull(r, msg[guard.HeaderLen:])
	return msg, err
}

// node is a relay with a speaker behind it that does as GoBGP: it takes a connection when it is active,
// sends OPEN, answers the neighbour's with KEEPALIVE, and is idle for a moment after a session.
type node struct {
	t     *testing.T
	self  speaker
	relay *Relay
	lis   *net.TCPListener
	peer  Peer
	idle  time.Duration
	// mute has the speaker read nothing after the neighbour's KEEPALIVE.
	mute bool

	wg    sync.WaitGroup
	mu    sync.Mutex
	cond  *sync.Cond
	legs  []*net.TCPConn // all so far
	got   [][]byte       // what the neighbour's connections passed, without KEEPALIVEs
	ended []error        // how legs ended
	up    int
	notes []Note
}

func quiet() *logrus.Logger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

// start makes a node at an address, with one neighbour.
func start(t *testing.T, self speaker, at netip.AddrPort, p Peer) *node {
	t.Helper()
	n := &node{t: t, self: self, idle: 20 * time.Millisecond}
	n.cond = sync.NewCond(&n.mu)
	var err error
	if n.lis, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	p.Inside, p.LocalAS, p.Guard = addr("127.64.0.1"), self.as, guard.Config{Families: []guard.Family{{AFI: 1, SAFI: 1}}}
	if p.HoldTime == 0 {
		p.HoldTime = deadline
	}
	if p.ConnectRetry == 0 {
		p.ConnectRetry = time.Second
	}
	key := "0123456789abcdef"
	raw, _ := n.lis.SyscallConn()
	if err := onSocket(raw, func(fd int) error { return setKey(fd, p.Inside, key) }); err != nil {
		t.Fatal(err)
	}
	cfg := Config{RouterID: self.id, Speaker: addrPort(n.lis.Addr()), Key: key, Log: quiet(),
		Note: func(_ netip.Addr, note Note) { n.change(func() { n.notes = append(n.notes, note) }) }}
	if at.IsValid() {
		cfg.Listen = []netip.AddrPort{at}
	}
	if n.relay, err = Start(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	n.peer = p
	if err := n.relay.Add(p); err != nil {
		t.Fatal(err)
	}
	n.wg.Add(1)
	go n.accept()
	t.Cleanup(func() {
		n.lis.Close()
		n.each((*net.TCPConn).CloseWrite)
		n.relay.Close()
		n.each((*net.TCPConn).Close)
		n.wg.Wait()
	})
	return n
}

func (n *node) each(f func(*net.TCPConn) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.legs {
		f(l)
	}
}

func (n *node) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.cond.Broadcast()
}

// await waits for a condition, which is asked under the lock.
func (n *node) await(what string, ok func() bool) {
	n.t.Helper()
	stop := time.AfterFunc(deadline, func() { n.cond.Broadcast() })
	defer stop.Stop()
	end := time.Now().Add(deadline)
	n.mu.Lock()
	defer n.mu.Unlock()
	for !ok() {
		if time.Now().After(end) {
			n.t.Fatalf("waited in vain for: %s; notes %+v, got %x, ended %v", what, n.notes, n.got, n.ended)
		}
		n.cond.Wait()
	}
}

func (n *node) active() { n.relay.Tell(n.peer.Address, Active, false) }

func (n *node) accept() {
	defer n.wg.Done()
	for {
		c, err := n.lis.AcceptTCP()
		if err != nil {
			return
		}
		n.change(func() { n.legs = append(n.legs, c) })
		n.wg.Add(1)
		go n.speak(c)
	}
}

func (n *node) speak(c *net.TCPConn) {
	defer n.wg.Done()
	n.relay.Tell(n.peer.Address, Opening, false)
	c.Write(openOf(n.self, 180, n.peer.Restart))
	var err error
	for r := bufio.NewReader(c); err == nil; {
		var msg []byte
		if msg, err = readMessage(r); err != nil {
			break
		}
		switch msg[18] {
		case typeOpen:
			c.Write(keepalive)
			n.change(func() { n.got = append(n.got, msg) })
		case 4:
			n.relay.Tell(n.peer.Address, Established, false)
			n.change(func() { n.up++ })
			if n.mute {
				return
			}
		default:
			n.change(func() { n.got = append(n.got, msg) })
		}
	}
	c.Close()
	n.change(func() { n.ended = append(n.ended, err) })
	n.relay.Tell(n.peer.Address, Down, false)
	time.AfterFunc(n.idle, n.active)
}

// seen is what happened so far.
type seen struct {
	got   [][]byte
	ended []error
	notes []Note
	legs  int
}

func (n *node) seen() seen {
	n.mu.Lock()
	defer n.mu.Unlock()
	return seen{slices.Clone(n.got), slices.Clone(n.ended), slices.Clone(n.notes), len(n.legs)}
}

// leg gives the last leg.
func (n *node) leg() *net.TCPConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.legs[len(n.legs)-1]
}

// remote is a neighbour whose connection the test has in its hands.
type remote struct {
	t *testing.T
	*net.TCPConn
	r *bufio.Reader
}

var (
	here  = speaker{addr("192.0.2.1"), 65000}
	there = speaker{addr("192.0.2.2"), 65000}
)

// connect connects to a node as the neighbour.
func connect(t *testing.T, from string, to netip.AddrPort) *remote {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: deadline}
	c, err := d.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(deadline))
	return &remote{t, c.(*net.TCPConn), bufio.NewReader(c)}
}

func (r *remote) expect(typ byte) []byte {
	r.t.Helper()
	msg, err := readMessage(r.r)
	if err != nil || msg[18] != typ {
		r.t.Fatalf("got %x, %v, want a message of type %d", msg, err, typ)
	}
	return msg
}

// refused expects a NOTIFICATION and then the end.
func (r *remote) refused(code, subcode byte) {
	r.t.Helper()
	if msg := r.expect(typeNotification); msg[19] != code || msg[20] != subcode {
		r.t.Errorf("NOTIFICATION %d/%d, want %d/%d", msg[19], msg[20], code, subcode)
	}
	r.closed()
}

func (r *remote) closed() {
	r.t.Helper()
	if msg, err := readMessage(r.r); err != io.EOF {
		r.t.Errorf("got %x, %v, want the end", msg, err)
	}
}

// establish goes through the beginning of a session.
func (r *remote) establish(restarts bool) {
	r.t.Helper()
	r.Write(openOf(there, 180, restarts))
	r.expect(typeOpen)
	r.expect(4)
	r.Write(keepalive)
}

// passive is a node that waits at the address for its neighbour at 127.0.0.42.
func passive(t *testing.T, at string, p Peer) (*node, netip.AddrPort) {
	t.Helper()
	p.Address, p.Passive = addr("127.0.0.42"), true
	n := start(t, here, netip.AddrPortFrom(addr(at), 0), p)
	return n, addrPort(n.relay.lis.socks[0].Addr())
}

// up is one whose session is established.
func up(t *testing.T, at string, p Peer) (*node, *remote) {
	t.Helper()
	n, port := passive(t, at, p)
	n.active()
	r := connect(t, "127.0.0.42", port)
	r.establish(p.Restart)
	n.await("the session", func() bool { return n.up == 1 })
	return n, r
}
