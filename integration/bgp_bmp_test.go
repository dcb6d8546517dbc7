//go:build !race

// GoBGP v3.37.0 writes out a received OPEN's capabilities for Peer Up and for its API without a lock, each filling
// in the same octets anew. `make test` runs this file without the race detector.

package integration

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/speakertest"
)

// BMP messages and their offsets (RFC 7854 sections 4.1, 4.2 and 4.10).
const (
	bmpRoutes, bmpPeerDown, bmpPeerUp, bmpInitiation = 0, 2, 3, 4

	bmpHeader, bmpPeerHeader = 6, 42
	bmpPeerAddress           = bmpHeader + 10
	bmpBody                  = bmpHeader + bmpPeerHeader
)

// bmpConn is what a station reads.
type bmpConn struct {
	t  *testing.T
	c  net.Conn
	rd *bufio.Reader
}

// listenBMP listens in a node.
func (l *bgpLab) listenBMP(node string, at netip.AddrPort) *net.TCPListener {
	l.t.Helper()
	var lis *net.TCPListener
	err := inNode(l.Lab, node, func() (err error) {
		lis, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { lis.Close() })
	return lis
}

func acceptBMP(t *testing.T, l *net.TCPListener) *bmpConn {
	t.Helper()
	l.SetDeadline(time.Now().Add(speakertest.Deadline))
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(2 * speakertest.Deadline))
	return &bmpConn{t, c, bufio.NewReader(c)}
}

// next reads messages until one is of a type and satisfies what is wanted. None may be about any other neighbour.
func (b *bmpConn) next(typ byte, peer netip.Addr, ok func(msg []byte) bool) []byte {
	b.t.Helper()
	for {
		msg := make([]byte, bmpHeader)
		if _, err := io.ReadFull(b.rd, msg); err != nil {
			b.t.Fatalf("waiting for type %d: %v", typ, err)
		}
		msg = append(msg, make([]byte, binary.BigEndian.Uint32(msg[1:])-bmpHeader)...)
		if _, err := io.ReadFull(b.rd, msg[bmpHeader:]); err != nil {
			b.t.Fatal(err)
		}
		if msg[5] < bmpInitiation {
			if got := netip.AddrFrom4([4]byte(msg[bmpPeerAddress+12:])); got != peer {
				b.t.Fatalf("a message of type %d about %s", msg[5], got)
			}
		}
		if msg[5] == typ && (ok == nil || ok(msg)) {
			return msg
		}
	}
}

// A congestion node, its router (FRR) and a station: what the router sends is told as the router's own.
func TestBGPMonitoringStationSeesTheRoutersOwnSession(t *testing.T) {
	needFRR(t, "bgpd")
	const prefix = "192.0.2.0/24"
	conf := `frr defaults traditional
router bgp 65000
 bgp router-id 10.200.0.1
 no bgp network import-check
 neighbor 10.200.0.3 remote-as 65000
 neighbor 10.200.0.3 timers connect 1
 neighbor 10.200.0.4 remote-as 65000
 neighbor 10.200.0.4 timers connect 1
` + frrNHC(t, "10.200.0.3") + frrNHC(t, "10.200.0.4") + ` address-family ipv4 unicast
  neighbor 10.200.0.3 route-reflector-client
  neighbor 10.200.0.4 route-reflector-client
 exit-address-family
`
	l := upBGP(t, "bgp-bmp", false, []bgpNode{
		{name: "router", n: 1, image: "frr", files: map[string]string{"/etc/frr/frr.conf": conf}},
		{name: "proxy", n: 3},
		{name: "congestion", n: 4},
		{name: "station", n: 9},
	})
	router := l.at(1)
	at := netip.AddrPortFrom(l.at(9), 11019)
	lis := l.listenBMP("station", at)
	proxy := l.config(3, bgp.NeighborConfig{Address: router, Passive: true})
	proxy.Originate = []bgp.OriginateConfig{{Prefix: netip.MustParsePrefix(prefix), Proxy: l.at(3), NextHop: l.at(9)}}
	on := true
	l.speaker("proxy", proxy).Must(speakertest.Request{Enable: &on})
	cfg := l.config(4, bgp.NeighborConfig{Address: router, Passive: true})
	cfg.Stations = []bgp.Station{{Address: at, Statistics: time.Second}}
	p := l.speaker("congestion", cfg)

	nlri := []byte{24, 192, 0, 2}
	hasRoute := func(msg []byte) bool {
		// The attribute as FRR passes it on: optional, transitive, type 39; the Partial and length bits may be set.
		update := msg[bmpBody:]
		i := bytes.IndexByte(update, 39)
		return i > 0 && update[i-1]&0xc0 == 0xc0 && bytes.HasSuffix(update, nlri)
	}
	dump := func(s *bmpConn) {
		t.Helper()
		s.next(bmpInitiation, router, nil)
		up := s.next(bmpPeerUp, router, nil)[bmpBody:]
		n := p.AwaitUp(router.String()).Neighbor(router.String())
		local, ports := netip.AddrFrom4([4]byte(up[12:])), [2]uint16{binary.BigEndian.Uint16(up[16:]), binary.BigEndian.Uint16(up[18:])}
		if local != l.at(4) || ports != [2]uint16{n.LocalPort, n.RemotePort} || ports[0] != 179 {
			t.Errorf("Peer Up with local address %s, ports %v; the session has %d and %d", local, ports, n.LocalPort, n.RemotePort)
		}
		// FRR knows the connection by the same ports.
		want := fmt.Sprintf("Local host: %s, Local port: %d", router, ports[1])
		if out := l.vtysh("router", "show bgp neighbors "+l.at(4).String()); !bytes.Contains([]byte(out), []byte(want)) {
			t.Errorf("FRR doesn't say %q: %s", want, out)
		}
		s.next(bmpRoutes, router, hasRoute)
	}
	first := acceptBMP(t, lis)
	dump(first)
	// The station restarts.
	lis.Close()
	first.c.Close()
	again := acceptBMP(t, l.listenBMP("station", at))
	dump(again)
	l.killBGP("router")
	again.next(bmpPeerDown, router, nil)
}
