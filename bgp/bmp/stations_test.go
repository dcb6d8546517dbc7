package bmp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"pncd/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// speaker is a Source that writes what it is told to each connection, and then more as long as somebody reads.
type speaker struct {
	first [][]byte
	more  []byte // again and again; none: it waits

	wg     sync.WaitGroup
	mu     sync.Mutex
	open   map[uint16]chan struct{}
	opened int
	before func(port uint16) // called before it connects, if set
}

func (s *speaker) Open(_ context.Context, port uint16, name string, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := make(chan struct{})
	if s.open == nil {
		s.open = map[uint16]chan struct{}{}
	}
	s.open[port] = over
	s.opened++
	if s.before != nil {
		s.before(port)
	}
	s.wg.Go(func() {
		c, err := net.DialTCP("tcp4", nil, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)))
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := c.Write(append(initiation(name, "the engine"), bytes.Join(s.first, nil)...)); err != nil {
			return
		}
		for err == nil && s.more != nil {
			_, err = c.Write(s.more)
		}
		<-over
	})
	return nil
}

func (s *speaker) Close(port uint16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.open[port])
	delete(s.open, port)
	return nil
}

func (s *speaker) ended(t *testing.T) {
	s.wg.Wait()
	if len(s.open) != 0 {
		t.Errorf("the speaker reports to nobody on %v", s.open)
	}
}

func listen(t *testing.T, at string) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp4", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

func accept(t *testing.T, l *net.TCPListener) *net.TCPConn {
	t.Helper()
	l.SetDeadline(time.Now().Add(20 * time.Second))
	c, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	return c
}

func next(t *testing.T, c *net.TCPConn, typ byte) []byte {
	t.Helper()
	msg, err := readMessage(c, nil)
	if err != nil || msg[atType] != typ {
		t.Fatalf("got %x, %v; want type %d", msg, err, typ)
	}
	return msg
}

func to(l *net.TCPListener) Station {
	return Station{Address: l.Addr().(*net.TCPAddr).AddrPort()}
}

func startStations(t *testing.T, s *speaker, l limits) *Stations {
	log := logrus.New()
	log.SetOutput(io.Discard)
	l.retry, l.retryMax = time.Millisecond, 10*time.Millisecond
	st := New(Config{Source: s, Lookup: known, Name: "leaf7", Descr: "pncd", Log: log, limits: l})
	t.Cleanup(func() {
		st.Close()
		s.ended(t)
	})
	return st
}

func await(t *testing.T, s *Stations, what string, ok func(Status) bool) {
	t.Helper()
	testwait.UntilRight(t, func() string {
		if got := s.Status(); len(got) != 1 || !ok(got[0]) {
			return fmt.Sprintf("%s: %+v", what, got)
		}
		return ""
	})
}

func TestAStationGetsEverythingAgainWhenItComesBack(t *testing.T) {
	s := &speaker{first: [][]byte{peerUp(inside, 50001), message(typeRouteMonitoring, netip.MustParseAddr("127.64.0.9")), message(typeRouteMonitoring, inside, 7)}}
	l := listen(t, "127.0.0.1:0")
	st := startStations(t, s, limits{})
	st.Set([]Station{to(l)})
	dump := func(c *net.TCPConn) {
		if name, _ := initiationName(next(t, c, typeInitiation)); name != "leaf7" {
			t.Errorf("sysName %q", name)
		}
		next(t, c, typePeerUp)
		if msg := next(t, c, typeRouteMonitoring); getAddr(msg[atPeerAddress:], msg[atFlags]) != session.Peer || msg[len(msg)-1] != 7 {
			t.Errorf("%x", msg)
		}
	}
	first := accept(t, l)
	dump(first)
	at := l.Addr().String()
	l.Close()
	first.Close()
	await(t, st, "station is away", func(s Status) bool { return !s.Connected && s.LastError != "" })
	again := accept(t, listen(t, at))
	dump(again)
	await(t, st, "counters", func(s Status) bool {
		return s.Connected && s.Connects == 2 && s.Messages == 4 && s.Dropped == 2 && !s.Since.IsZero()
	})
	st.Set(st.stations())
	st.Gone(netip.MustParseAddr("127.64.0.9"))
	st.Gone(inside)
	down := next(t, again, typePeerDown)
	if getAddr(down[atPeerAddress:], down[atFlags]) != session.Peer || down[len(down)-1] != downDeconfigured {
		t.Errorf("%x", down)
	}
	st.Close()
	next(t, again, typeTermination)
	if _, err := readMessage(again, nil); err != io.EOF {
		t.Errorf("after the Termination message: %v", err)
	}
}

// stations gives what was set.
func (s *Stations) stations() (out []Station) {
	for _, st := range s.Status() {
		out = append(out, st.Station)
	}
	return out
}

func TestAStationThatDoesNotReadIsLeftAndTriedAgain(t *testing.T) {
	big := message(typeRouteMonitoring, inside, make([]byte, 4000)...)
	s := &speaker{first: [][]byte{peerUp(inside, 50001)}, more: bytes.Repeat(big, 16)}
	for name, l := range map[string]limits{
		"it takes nothing": {write: 50 * time.Millisecond, queue: 1 << 20},
		"it stays behind":  {behind: 50 * time.Millisecond, queue: 1 << 16, writeChunk: 4096},
	} {
		t.Run(name, func(t *testing.T) {
			lis := listen(t, "127.0.0.1:0")
			st := startStations(t, s, l)
			st.Set([]Station{to(lis)})
			accept(t, lis)
			await(t, st, "slow", func(s Status) bool {
				return s.Slow > 0 && strings.Contains(s.LastError, ErrSlow.Error())
			})
			next(t, accept(t, lis), typeInitiation)
		})
	}
}

func TestWhatIsHeldForAStationIsBounded(t *testing.T) {
	q := newQueue(1000, 10*time.Millisecond)
	msg := message(typeRouteMonitoring, inside)
	n := 0
	for ; q.wait() == nil; n++ {
		q.add(msg)
	}
	if n*len(msg) < 1000 || (n-1)*len(msg) >= 1000 {
		t.Errorf("%d messages of %d octets", n, len(msg))
	}
	got, ok := q.take(nil)
	if !ok || len(got) != n*len(msg) {
		t.Fatalf("%d octets, %v", len(got), ok)
	}
	q.finish(termination())
	if got, ok := q.take(got); !ok || !bytes.Equal(got, termination()) {
		t.Errorf("last: %x, %v", got, ok)
	}
	if _, ok := q.take(nil); ok {
		t.Error("more after the last")
	}
}

func TestAMessageThatBreaksTheFramingEndsBothSides(t *testing.T) {
	s := &speaker{first: [][]byte{peerUp(inside, 50001), {9, 9, 9, 9, 9, 9}}}
	l := listen(t, "127.0.0.1:0")
	st := startStations(t, s, limits{})
	st.Set([]Station{to(l)})
	accept(t, l)
	await(t, st, "broken", func(s Status) bool { return s.Broken > 0 && strings.Contains(s.LastError, ErrFrame.Error()) })
	accept(t, l)
}

// Only the speaker knows the name. Others who find the port get nowhere.
func TestAnotherProcessIsNotTakenForTheSpeaker(t *testing.T) {
	s := &speaker{first: [][]byte{peerUp(inside, 50001)}}
	var impostor net.Conn
	s.before = func(port uint16) {
		var err error
		if impostor, err = net.Dial("tcp4", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port).String()); err == nil {
			_, err = impostor.Write(append(initiation("x", "y"), termination()...))
		}
		if err != nil {
			t.Error(err)
		}
	}
	l := listen(t, "127.0.0.1:0")
	st := startStations(t, s, limits{})
	st.Set([]Station{to(l)})
	c := accept(t, l)
	next(t, c, typeInitiation)
	next(t, c, typePeerUp)
	impostor.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := impostor.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the impostor's connection: %v", err)
	}
	impostor.Close()
}

func TestAChangedListTouchesTheOtherStationsOnly(t *testing.T) {
	s := &speaker{first: [][]byte{peerUp(inside, 50001)}}
	a, b := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	st := startStations(t, s, limits{})
	st.Set([]Station{to(a)})
	c := accept(t, a)
	next(t, c, typeInitiation)
	next(t, c, typePeerUp)
	st.Set([]Station{to(a), to(b)})
	d := accept(t, b)
	next(t, d, typeInitiation)
	next(t, d, typePeerUp)
	st.Set([]Station{to(a)})
	next(t, d, typeTermination)
	if got := st.Status(); len(got) != 1 || got[0].Connects != 1 || !got[0].Connected {
		t.Errorf("%+v", got)
	}
}
