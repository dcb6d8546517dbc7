package bgp_test

import (
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pncd/bgp"
)

// Neighbours over TCP come and go, a hundred sessions in all, half of which end without a word, each with routes
// and PNCs. In the speaker's process nothing stays of it: no route, no socket, no goroutine at the end, and no
// memory that grows with the number of sessions. There are several neighbours because GoBGP takes a connection
// of the same one again after five seconds only.
func TestAHundredSessionsOverTCPLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	const neighbors, rounds, prefixes = 25, 4, 40
	port := freePort(t)
	var list []bgp.NeighborConfig
	for n := range neighbors {
		list = append(list, bgp.NeighborConfig{Address: peerAt(n), Passive: true})
	}
	p := start(t, exactly(port, 65000, atA, list...))
	pid := p.Ask(request{}).PID
	var memory uint64
	var open int
	for round := range rounds {
		var conns []net.Conn
		for n := range neighbors {
			conns = append(conns, rawSession(t, port, n, prefixes))
		}
		p.Await("the routes", func(a answer) bool {
			return len(a.Routes) == neighbors*prefixes && a.Counters.Paths == neighbors*prefixes && a.Routes[0].Believed() && a.Neighbors[0].PNCBelieved == prefixes
		})
		for n, c := range conns {
			if n%2 == 0 {
				if _, err := c.Write(message(3, []byte{6, 4})); err != nil { // Cease, Administrative Reset
					t.Fatal(err)
				}
			}
			c.Close()
		}
		p.Await("no route", func(a answer) bool {
			for _, n := range a.Neighbors {
				if n.Received != 0 || n.NHCReceived != 0 || n.PNCBelieved != 0 || n.State.String() == "established" {
					return false
				}
			}
			return len(a.Routes) == 0 && a.Counters.Paths == 0 && a.Counters.Prefixes == 0
		})
		if round == 0 {
			memory, open = resident(t, pid), sockets(t, pid)
		}
	}
	flaps := uint64(0)
	for _, n := range p.Ask(request{}).Neighbors {
		flaps += n.Flaps
	}
	if flaps != neighbors*rounds {
		t.Errorf("%d sessions were established, want %d", flaps, neighbors*rounds)
	}
	if n := sockets(t, pid); n > open {
		t.Errorf("%d sockets are open, %d after the first round", n, open)
	}
	after := resident(t, pid)
	t.Logf("resident: %d KiB after %d sessions, %d KiB after %d", memory, neighbors, after, flaps)
	if after > memory+32<<10 {
		t.Errorf("resident memory grew from %d to %d KiB", memory, after)
	}
	p.Must(request{Stop: true}) // an error if a goroutine is left
}

func peerAt(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 1, byte(n + 1)}) }

// rawSession is an established session of a neighbour that has announced its prefixes, each with a PNC. What comes is
// read and forgotten, so that the other end never waits.
func rawSession(t *testing.T, port, n, prefixes int) net.Conn {
	t.Helper()
	attrs := octets(t, "40010100 400200 400304c6336401 40050400000064 c02710 0001 01 04 c6336401 ff78 0004 c6336407")
	body := append([]byte{0, 0, 0, byte(len(attrs))}, attrs...)
	for i := range prefixes {
		body = append(body, 24, 10, byte(n), byte(i))
	}
	c := rawConn(t, port, n, message(2, body))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, c)
	}()
	t.Cleanup(func() { c.Close(); <-done })
	return c
}

func octets(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// message puts a BGP header in front.
func message(typ byte, body []byte) []byte {
	m := make([]byte, 16, 19+len(body))
	for i := range m {
		m[i] = 0xff
	}
	n := 19 + len(body)
	return append(append(m, byte(n>>8), byte(n), typ), body...)
}

// resident is the memory of a process, in KiB.
func resident(t *testing.T, pid int) uint64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			n, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no VmRSS in %s", text)
	return 0
}

// sockets counts the sockets that a process has open.
func sockets(t *testing.T, pid int) (n int) {
	t.Helper()
	fds, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
