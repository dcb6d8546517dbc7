package bgp_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"pncd/bgp"
)

// rawPeer is a neighbour whose messages the test writes itself.
type rawPeer struct {
	t testing.TB
	net.Conn
	sent [][]byte // what the speaker sent
}

func bgpMessage(typ byte, body ...byte) []byte {
	m := bytes.Repeat([]byte{0xff}, 16)
	m = binary.BigEndian.AppendUint16(m, uint16(19+len(body)))
	return append(append(m, typ), body...)
}

// rawOpen is an OPEN for IPv4 and IPv6 unicast, IPv6 next hops of IPv4 prefixes, and 4-octet AS numbers.
func rawOpen(as uint16, id byte) []byte {
	caps := []byte{1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1, 5, 6, 0, 1, 0, 1, 0, 2, 65, 4, 0, 0, byte(as >> 8), byte(as)}
	body := append([]byte{4, byte(as >> 8), byte(as), 0, 90, 10, 0, 0, id, byte(len(caps) + 2), 2, byte(len(caps))}, caps...)
	return bgpMessage(1, body...)
}

// dialRaw connects to a speaker as a neighbour and establishes the session.
func dialRaw(t testing.TB, from, to string, port int, as uint16) *rawPeer {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	c, err := d.Dial("tcp", net.JoinHostPort(to, strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(40 * time.Second))
	p := &rawPeer{t: t, Conn: c}
	p.Write(rawOpen(as, from[len(from)-1]))
	p.until("KEEPALIVE", func(m []byte) bool { return m[18] == 4 })
	p.Write(bgpMessage(4))
	return p
}

// until reads the speaker's messages up to the one that is meant.
func (p *rawPeer) until(what string, ok func([]byte) bool) []byte {
	p.t.Helper()
	for {
		header := make([]byte, 19)
		_, err := io.ReadFull(p, header)
		var msg []byte
		if err == nil {
			msg = append(header, make([]byte, int(binary.BigEndian.Uint16(header[16:]))-19)...)
			_, err = io.ReadFull(p, msg[19:])
		}
		if err != nil {
			p.t.Fatalf("waited for %s: %v; got %x", what, err, p.sent)
		}
		p.sent = append(p.sent, msg)
		if ok(msg) {
			return msg
		}
	}
}

// GoBGP knows its neighbours by addresses of 127/8, and itself by one. None of them may be in what
// leaves this node: not as a next hop, and nowhere else.
func TestNothingThatIsSentHasAnAddressOfTheInside(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]uint16{"IBGP": 65000, "EBGP": 65001} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			cfg := node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB), PeerAS: uint32(as), Passive: true, SendNHC: ptr(true)})
			cfg.RouterID = addr("10.0.0.99")
			cfg.Originate = []bgp.OriginateConfig{
				originate("192.0.2.0/24", "198.51.100.7", "198.51.100.1"),
				originate("198.51.100.0/24", "198.51.100.7", "2001:db8::1"), // RFC 8950
				originate("2001:db8:7::/48", "2001:db8::7", "2001:db8::1"),
			}
			a := start(t, cfg)
			a.Must(request{Enable: ptr(true)})
			p := dialRaw(t, atB, atA, port, as)
			var seen [3]bool
			for i, want := range [][]byte{{24, 192, 0, 2}, {24, 198, 51, 100}, {48, 0x20, 1, 0xd, 0xb8, 0, 7}} {
				seen[i] = func() bool {
					has := func(m []byte) bool { return m[18] == 2 && bytes.Contains(m, want) }
					for _, m := range p.sent {
						if has(m) {
							return true
						}
					}
					return has(p.until("an UPDATE", has))
				}()
			}
			for _, m := range p.sent {
				// 127.64.0.1 is the first address inside, 127.0.0.1 GoBGP's own.
				if bytes.Contains(m, []byte{127, 64}) || bytes.Contains(m, []byte{127, 0, 0, 1}) {
					t.Errorf("in a message of type %d: %x", m[18], m)
				}
			}
			got := a.AwaitUp(atB)
			n := got.Neighbor(atB)
			if n.LocalAddress != addr(atA) || int(n.LocalPort) != port || n.RemotePort != uint16(p.LocalAddr().(*net.TCPAddr).Port) ||
				n.Messages.Received.Opens != 1 || n.Messages.Sent.Updates < 3 {
				t.Errorf("%+v", n.PeerStatus)
			}
			if strings.Contains(a.Log(), "127.64.0.") {
				t.Error("an address of the inside is in the log")
			}
		})
	}
}

// What ends stock GoBGP: an attribute of no octets that its decoder indexes. The process and the
// session of another neighbour must go on.
func TestAHostileNeighbourEndsOnlyItsOwnSession(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	a := start(t, node(port, 65000, atA, bgp.NeighborConfig{Address: addr(atB), Passive: true}, bgp.NeighborConfig{Address: addr(atC), Passive: true}))
	good := dialRaw(t, atC, atA, port, 65000)
	for name, tt := range map[string]struct {
		msg  []byte
		last string // what the last error holds
	}{
		"a message of an unknown type": {bgpMessage(77, 1, 2, 3), "code 1(header) subcode 3(bad message type)"},
		"OPEN again":                   {rawOpen(65000, 2), "code 5(fsm)"},
		"a marker of zeros":            {make([]byte, 19), "code 1(header) subcode 1"},
	} {
		bad := dialRaw(t, atB, atA, port, 65000)
		a.AwaitUp(atB)
		bad.Write(tt.msg)
		bad.until("NOTIFICATION", func(m []byte) bool { return m[18] == 3 })
		if rest, err := io.ReadAll(bad); err != nil || len(rest) > 0 {
			t.Errorf("%s: %x after the NOTIFICATION, %v", name, rest, err)
		}
		bad.Close()
		got := a.Await("the end", func(x answer) bool { return !x.Up(atB) })
		if n := got.Neighbor(atB); !strings.HasPrefix(n.LastError, "sent notification: "+tt.last) || n.Faults == 0 || strings.Contains(n.LastError, "nil") {
			t.Errorf("%s: %q, %d faults", name, n.LastError, n.Faults)
		}
	}
	// An MP_REACH_NLRI and an MP_UNREACH_NLRI that are too short for what they must hold (RFC 7606 section 7.11).
	bad := dialRaw(t, atB, atA, port, 65000)
	a.AwaitUp(atB)
	bad.Write(bgpMessage(2, 0, 0, 0, 4, 0x80, 14, 1, 0))
	bad.Write(bgpMessage(2, 0, 0, 0, 4, 0x80, 15, 1, 0))
	good.Write(bgpMessage(4))
	got := a.Await("the KEEPALIVE of the other", func(x answer) bool { return x.Neighbor(atC).Messages.Received.Keepalives >= 2 })
	if n := got.Neighbor(atC); !got.Up(atC) || n.Flaps != 1 {
		t.Errorf("the other session: %+v", n.PeerStatus)
	}
}
