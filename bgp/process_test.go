package bgp_test

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

func TestMain(m *testing.M) {
	speakertest.Serve()
	serveHeld()
	os.Exit(m.Run())
}

type (
	request = speakertest.Request
	answer  = speakertest.Answer
	process = speakertest.Process
)

func start(t *testing.T, cfg bgp.Config) *process {
	t.Helper()
	return speakertest.Start(t, cfg, speakertest.Here)
}

func route(a answer, prefix, peer string) *pnc.Route {
	for _, r := range a.Of(prefix) {
		if r.Peer == peer {
			return &r
		}
	}
	return nil
}

func believes(prefix, peer, proxy string) func(answer) bool {
	return func(a answer) bool {
		r := route(a, prefix, peer)
		return r != nil && r.Believed() && r.Proxy.String() == proxy
	}
}

// freePort gives a TCP port that nobody uses on the loopback addresses.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

var (
	addr   = netip.MustParseAddr
	prefix = netip.MustParsePrefix
)

func ptr[T any](v T) *T { return &v }

// node is exactly with one end of each session passive, so that the two ends' connections never
// collide.
func node(port int, as uint32, at string, neighbors ...bgp.NeighborConfig) bgp.Config {
	for i := range neighbors {
		neighbors[i].Passive = addr(at).Less(neighbors[i].Address)
	}
	return exactly(port, as, at, neighbors...)
}

// exactly is a configuration of a speaker on a loopback address, with neighbours on others.
func exactly(port int, as uint32, at string, neighbors ...bgp.NeighborConfig) bgp.Config {
	for i := range neighbors {
		n := &neighbors[i]
		n.Port, n.LocalAddress = uint16(port), addr(at)
		if n.PeerAS == 0 {
			n.PeerAS = as
		}
		if n.ConnectRetry == 0 {
			n.ConnectRetry = time.Second
		}
		if n.Families == nil {
			n.Families = []bgp.Family{bgp.IPv4Unicast, bgp.IPv6Unicast}
		}
	}
	return bgp.Config{
		RouterID: addr(at), AS: as, ListenPort: port, ListenAddresses: []netip.Addr{addr(at)}, Neighbors: neighbors,
	}
}
