//go:build !race

// GoBGP v3.37.0 writes out a received OPEN's capabilities for Peer Up and for its API without a lock, each filling
// in the same octets anew. `make test` runs this file without the race detector.

package engine

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"github.com/osrg/gobgp/v3/pkg/packet/bmp"

	"pncd/bgp/engine/enginetest"
)

// bmpStation is a connection that a station has taken.
type bmpStation struct {
	t  *testing.T
	c  net.Conn
	rd *bufio.Reader
}

func acceptBMP(t *testing.T, l net.Listener) *bmpStation {
	t.Helper()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second))
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	return &bmpStation{t, c, bufio.NewReader(c)}
}

// next gives the next message, without those that wait isn't for.
func (s *bmpStation) next(typ uint8) *bmp.BMPMessage {
	s.t.Helper()
	for {
		head, err := s.rd.Peek(bmp.BMP_HEADER_SIZE)
		if err != nil {
			s.t.Fatalf("waiting for type %d: %v", typ, err)
		}
		var h bmp.BMPHeader
		if err := h.DecodeFromBytes(head); err != nil {
			s.t.Fatal(err)
		}
		buf := make([]byte, h.Length)
		if _, err := io.ReadFull(s.rd, buf); err != nil {
			s.t.Fatal(err)
		}
		msg, err := bmp.ParseBMPMessage(buf)
		if err != nil {
			s.t.Fatalf("%x: %v", buf, err)
		}
		if msg.Header.Type != bmp.BMP_MSG_STATISTICS_REPORT || typ == bmp.BMP_MSG_STATISTICS_REPORT {
			if msg.Header.Type != typ {
				s.t.Fatalf("got %+v, want type %d", msg, typ)
			}
			return msg
		}
	}
}

// route reads Route Monitoring until a prefix is there, and gives its attributes.
func (s *bmpStation) route(peer netip.Addr, prefix string) []bgp.PathAttributeInterface {
	s.t.Helper()
	for {
		msg := s.next(bmp.BMP_MSG_ROUTE_MONITORING)
		if got := msg.PeerHeader.PeerAddress.String(); got != peer.String() {
			s.t.Fatalf("a route of %s", got)
		}
		u := msg.Body.(*bmp.BMPRouteMonitoring).BGPUpdate.Body.(*bgp.BGPUpdate)
		for _, n := range u.NLRI {
			if n.String() == prefix {
				return u.PathAttributes
			}
		}
	}
}

func (s *bmpStation) peerUp(peer netip.Addr, port uint16) {
	s.t.Helper()
	msg := s.next(bmp.BMP_MSG_PEER_UP_NOTIFICATION)
	up := msg.Body.(*bmp.BMPPeerUpNotification)
	if msg.PeerHeader.PeerAddress.String() != peer.String() || up.RemotePort != port || up.LocalAddress.String() == loopbackText || up.LocalPort == 0 {
		s.t.Fatalf("Peer Up %+v, %+v", msg.PeerHeader, up)
	}
}

const loopbackText = "127.0.0.1" // where GoBGP's end of each session is

func TestStationsSeeTheNeighboursOwnAddresses(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	neighbor, ours := addr("127.0.0.31"), addr("127.0.0.32")
	feeder, err := enginetest.Listen(neighbor, 65000, addr("192.0.2.7"))
	if err != nil {
		t.Fatal(err)
	}
	defer feeder.Close()
	out, _ := quiet()
	out.SetOutput(io.Discard)
	e := New(Config{RouterID: addr("192.0.2.1"), AS: 65000, ListenPort: -1, Log: out})
	stopped := false
	stop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := e.Stop(ctx); err != nil && !stopped {
			t.Error(err)
		}
		stopped = true
	}
	defer stop()
	if err := e.SetStations(nil); err != ErrStopped {
		t.Errorf("before the start: %v", err)
	}
	if err := e.Start(ctx); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := l.Addr().(*net.TCPAddr).AddrPort()
	// One that nobody is at must not matter.
	if err := e.SetStations([]Station{{Address: at, Statistics: time.Second}, {Address: netip.MustParseAddrPort("127.0.0.33:1")}}); err != nil {
		t.Fatal(err)
	}
	s := acceptBMP(t, l)
	s.next(bmp.BMP_MSG_INITIATION)
	if err := e.AddPeer(ctx, Peer{
		Address: neighbor, Port: feeder.Port(), LocalAddress: ours, PeerAS: 65000, LocalAS: 65000, HoldTime: 90 * time.Second, Keepalive: 30 * time.Second,
		ConnectRetry: time.Second, Families: []Family{IPv4Unicast}, Export: true,
	}); err != nil {
		t.Fatal(err)
	}
	if err := feeder.Establish(ctx); err != nil {
		t.Fatal(err)
	}
	s.peerUp(neighbor, feeder.Port())
	nhc := []byte{0xc0, 39, 4, 1, 2, 3, 4}
	if err := feeder.Send(enginetest.AppendUpdates(nil, enginetest.Attributes{NextHop: addr("192.0.2.9"), NHC: nhc}, pfx)); err != nil {
		t.Fatal(err)
	}
	check := func(attrs []bgp.PathAttributeInterface) {
		t.Helper()
		for _, a := range attrs {
			if b, err := a.Serialize(); err == nil && slices.Equal(b, nhc) {
				return
			}
		}
		t.Errorf("no NHC as it was sent among %v", attrs)
	}
	check(s.route(neighbor, pfx.String()))
	if msg := s.next(bmp.BMP_MSG_STATISTICS_REPORT); msg.PeerHeader.PeerAddress.String() != neighbor.String() {
		t.Errorf("statistics of %s", msg.PeerHeader.PeerAddress)
	}
	// The station goes and comes back: everything again.
	s.c.Close()
	s = acceptBMP(t, l)
	s.next(bmp.BMP_MSG_INITIATION)
	s.peerUp(neighbor, feeder.Port())
	check(s.route(neighbor, pfx.String()))
	// The neighbour is removed: it is known until its Peer Down.
	if msg := s.next(bmp.BMP_MSG_ROUTE_MONITORING); len(msg.Body.(*bmp.BMPRouteMonitoring).BGPUpdate.Body.(*bgp.BGPUpdate).NLRI) != 0 {
		t.Errorf("not the dump's End-of-RIB: %+v", msg)
	}
	if err := e.RemovePeer(ctx, neighbor); err != nil {
		t.Fatal(err)
	}
	if msg := s.next(bmp.BMP_MSG_PEER_DOWN_NOTIFICATION); msg.PeerHeader.PeerAddress.String() != neighbor.String() {
		t.Errorf("Peer Down of %s", msg.PeerHeader.PeerAddress)
	}
	got := e.Stations()
	i := slices.IndexFunc(got, func(s StationStatus) bool { return s.Address == at })
	if len(got) != 2 || !got[i].Connected || got[i].Connects != 2 || got[i].Dropped != 0 || got[1-i].Connected || got[1-i].LastError == "" {
		t.Errorf("%+v", got)
	}
	stop()
	s.next(bmp.BMP_MSG_TERMINATION)
}
