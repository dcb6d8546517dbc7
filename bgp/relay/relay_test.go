package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

// update is an UPDATE that withdraws so many routes.
func update(n int) []byte {
	body := []byte{byte(4 * n >> 8), byte(4 * n)}
	for i := range n {
		body = append(body, 24, 10, byte(i>>8), byte(i))
	}
	return message(2, append(body, 0, 0)...)
}

func TestMessagesPassWholeAndInOrderBothWays(t *testing.T) {
	n, r := up(t, "127.0.0.40", Peer{})
	for _, part := range [][]byte{update(3)[:5], append(update(3)[5:], update(500)[:1000]...), append(update(500)[1000:], keepalive...), update(1)} {
		r.Write(part)
	}
	n.await("three UPDATEs", func() bool { return len(n.got) == 4 })
	for i, want := range [][]byte{openOf(there, 180, false), update(3), update(500), update(1)} {
		if !bytes.Equal(n.seen().got[i], want) {
			t.Errorf("message %d: %x, want %x", i, n.seen().got[i], want)
		}
	}
	n.leg().Write(append(update(700)[:100:100], nil...))
	n.leg().Write(append(update(700)[100:], update(2)...))
	for _, want := range [][]byte{update(700), update(2)} {
		if got := r.expect(2); !bytes.Equal(got, want) {
			t.Errorf("%x, want %x", got, want)
		}
	}
	s := n.relay.Stats(n.peer.Address)
	if s.Local != addrPort(r.RemoteAddr()) || s.Remote != addrPort(r.LocalAddr()) {
		t.Errorf("%+v, the connection is %s to %s", s, r.RemoteAddr(), r.LocalAddr())
	}
}

func TestALossIsALossForTheSpeaker(t *testing.T) {
	for name, end := range map[string]func(*remote){
		"FIN": func(r *remote) { r.Close() },
		"RST": func(r *remote) { r.SetLinger(0); r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			n, r := up(t, "127.0.0.40", Peer{})
			r.Write(update(1))
			n.await("the UPDATE", func() bool { return len(n.got) == 2 })
			end(r)
			n.await("the end", func() bool { return len(n.ended) == 1 })
			if len(n.seen().got) != 2 || n.seen().ended[0] != io.EOF {
				t.Errorf("the speaker got %x, %v", n.seen().got[2:], n.seen().ended[0])
			}
			if text := n.seen().notes[0].Text; !strings.HasPrefix(text, "connection lost: ") {
				t.Errorf("note %q", text)
			}
			if s := n.relay.Stats(n.peer.Address); s.Remote.IsValid() {
				t.Errorf("%+v without a connection", s)
			}
		})
	}
}

// What the neighbour sends while the speaker says its last words must not make TCP throw them away.
func TestTheSpeakersLastWordsReachTheNeighbour(t *testing.T) {
	for range 20 {
		n, r := up(t, "127.0.0.40", Peer{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; i < 10000; i++ {
				if _, err := r.Write(update(100)); err != nil {
					return
				}
			}
		}()
		n.leg().Write(append(update(900), notification(6, 2, []byte("\x02no"))...))
		n.leg().CloseWrite()
		r.expect(2)
		r.refused(6, 2)
		r.Close()
		<-done
	}
}

func TestAFaultEndsTheSessionForGood(t *testing.T) {
	n, r := up(t, "127.0.0.40", Peer{})
	r.Write(append(update(1), message(9)...))
	r.refused(1, 3) // RFC 4271 section 6.1: bad message type
	n.await("the end", func() bool { return len(n.ended) == 1 })
	// RFC 8538 section 3: a hard reset, so that no routes are kept.
	if last := n.seen().got[len(n.seen().got)-1]; len(n.seen().got) != 3 || !bytes.Equal(last, notification(6, 9, []byte{1, 3})) || n.seen().ended[0] != io.EOF {
		t.Errorf("the speaker got %x, %v", n.seen().got[1:], n.seen().ended[0])
	}
	if s := n.relay.Stats(n.peer.Address); s.Faults != 1 {
		t.Errorf("%+v", s)
	}
	if len(n.seen().notes) != 1 || n.seen().notes[0].Fault == nil {
		t.Errorf("notes %+v", n.seen().notes)
	}
}

func TestFindingsAreCounted(t *testing.T) {
	n, r := up(t, "127.0.0.40", Peer{})
	// ROUTE-REFRESH of IPv6, which wasn't negotiated.
	r.Write(append(message(5, 0, 2, 0, 1), update(1)...))
	n.await("the UPDATE", func() bool { return len(n.got) == 2 })
	if s := n.relay.Stats(n.peer.Address); len(s.Findings) != 1 || s.Faults != 0 {
		t.Errorf("%+v", s)
	}
}

// An OPEN that is refused here doesn't cost the speaker an attempt.
func TestASpeakerSeesOnlyOpensThatItCanTake(t *testing.T) {
	n, port := passive(t, "127.0.0.40", Peer{})
	n.active()
	for name, tt := range map[string]struct {
		first         []byte
		code, subcode byte
	}{
		"no OPEN":        {keepalive, 5, 1},
		"no message":     {make([]byte, 19), 1, 1},
		"hold time 0":    {openOf(there, 0, false), 2, 6},
		"version 3":      {append(append(message(1)[:16:16], 0, 29, 1), 3, 0, 1, 0, 90, 1, 1, 1, 1, 0), 2, 1},
		"another kind":   {message(9), 1, 3},
		"wrong length":   {append(append([]byte{}, keepalive[:16]...), 0, 18, 4), 1, 2},
		"BGP ID of zero": {openOf(speaker{addr("0.0.0.0"), 65000}, 90, false), 2, 3},
	} {
		r := connect(t, "127.0.0.42", port)
		r.Write(tt.first)
		for {
			msg, err := readMessage(r.r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if msg[18] == typeOpen {
				continue // ours, when it was faster
			}
			if msg[18] != typeNotification || msg[19] != tt.code || msg[20] != tt.subcode {
				t.Errorf("%s: %x, want NOTIFICATION %d/%d", name, msg, tt.code, tt.subcode)
			}
			break
		}
		r.closed()
	}
	r := connect(t, "127.0.0.42", port)
	r.Write(notification(6, 5, nil))
	n.await("the note", func() bool { return len(n.notes) == 8 && n.notes[7].Received != nil })
	r2 := connect(t, "127.0.0.42", port)
	r2.establish(false)
	n.await("the session", func() bool { return n.up == 1 })
	if len(n.seen().got) != 1 || n.seen().legs != 1 {
		t.Errorf("the speaker got %x over %d legs", n.seen().got, n.seen().legs)
	}
}

func TestAConnectionWaitsForASpeakerThatIsNotReady(t *testing.T) {
	n, port := passive(t, "127.0.0.40", Peer{})
	old := connect(t, "127.0.0.42", port)
	r := connect(t, "127.0.0.42", port)
	old.closed() // the neighbour has begun anew
	r.Write(openOf(there, 180, false))
	n.active()
	r.expect(typeOpen)
	r.expect(4)
}

// GoBGP may give a session up and leave its connection open.
func TestALegThatTheSpeakerHasGivenUpIsClosed(t *testing.T) {
	n, first := up(t, "127.0.0.40", Peer{})
	n.relay.Tell(n.peer.Address, Down, false)
	first.closed()
	n.await("the end of the leg", func() bool { return len(n.ended) == 1 })
	connect(t, "127.0.0.42", addrPort(first.RemoteAddr())).establish(false)
}

func TestANeighbourThatIsToStayDownIsRefused(t *testing.T) {
	n, port := passive(t, "127.0.0.40", Peer{})
	n.relay.Tell(n.peer.Address, Down, true)
	connect(t, "127.0.0.42", port).closed()
	connect(t, "127.0.0.43", port).closed() // who is no neighbour
}

func TestAConnectionToAnotherAddressIsRefused(t *testing.T) {
	n := start(t, here, netip.MustParseAddrPort("0.0.0.0:0"), Peer{Address: addr("127.0.0.42"), Passive: true, LocalAddress: addr("127.0.0.40")})
	n.active()
	port := addrPort(n.relay.lis.socks[0].Addr()).Port()
	connect(t, "127.0.0.42", netip.AddrPortFrom(addr("127.0.0.41"), port)).closed()
	n.await("a note", func() bool { return len(n.notes) == 1 })
	if !strings.Contains(n.seen().notes[0].Text, "local address must be 127.0.0.40") {
		t.Errorf("%+v", n.seen().notes)
	}
	connect(t, "127.0.0.42", netip.AddrPortFrom(addr("127.0.0.40"), port)).establish(false)
}

// RFC 4271 section 6.8, and section 5 of RFC 4724.
func TestASecondConnectionOfAnEstablishedNeighbour(t *testing.T) {
	t.Run("without graceful restart", func(t *testing.T) {
		n, first := up(t, "127.0.0.40", Peer{})
		second := connect(t, "127.0.0.42", addrPort(first.RemoteAddr()))
		second.refused(6, 7)
		first.Write(update(1))
		n.await("the first goes on", func() bool { return len(n.got) == 2 })
	})
	t.Run("with graceful restart", func(t *testing.T) {
		n, first := up(t, "127.0.0.40", Peer{Restart: true})
		second := connect(t, "127.0.0.42", addrPort(first.RemoteAddr()))
		second.establish(true)
		n.await("the second session", func() bool { return n.up == 2 })
		if n.seen().ended[0] != io.EOF || len(n.seen().got) != 2 {
			t.Errorf("the first ended with %v; the speaker got %x", n.seen().ended[0], n.seen().got)
		}
		first.closed()
	})
}

// Two that connect to each other at once must come up soon, with one connection.
func TestTwoThatConnectAtOnceComeUp(t *testing.T) {
	for round := range 12 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			at := [2]string{fmt.Sprintf("127.0.1.%d", 2*round+1), fmt.Sprintf("127.0.1.%d", 2*round+2)}
			l, err := net.Listen("tcp4", at[0]+":0")
			if err != nil {
				t.Fatal(err)
			}
			port := addrPort(l.Addr()).Port()
			l.Close()
			who := [2]speaker{here, there}
			if round%2 == 1 {
				who = [2]speaker{there, here}
			}
			var ns [2]*node
			for i := range ns {
				ns[i] = start(t, who[i], netip.AddrPortFrom(addr(at[i]), port), Peer{Address: addr(at[1-i]), Port: port, LocalAddress: addr(at[i])})
			}
			for _, n := range ns {
				nb := n.relay.neighbor(n.peer.Address)
				nb.mu.Lock()
				nb.dialAt = time.Now().Add(100 * time.Millisecond) // both at the same time
				nb.mu.Unlock()
				n.active()
			}
			begin := time.Now()
			for _, n := range ns {
				n.await("the session", func() bool { return n.up > 0 })
			}
			if d := time.Since(begin); d > 10*time.Second {
				t.Errorf("it took %s", d)
			}
			a, b := ns[0].relay.Stats(ns[0].peer.Address), ns[1].relay.Stats(ns[1].peer.Address)
			if a.Local != b.Remote || a.Remote != b.Local {
				t.Errorf("they have different connections: %+v, %+v", a, b)
			}
		})
	}
}

func TestANeighbourThatCannotBeReachedIsTriedAgain(t *testing.T) {
	n := start(t, here, netip.AddrPort{}, Peer{Address: addr("127.0.0.42"), LocalAddress: addr("127.0.0.40"), Port: 1})
	n.active()
	n.await("two attempts", func() bool { return len(n.notes) >= 2 })
	if text := n.seen().notes[1].Text; !strings.HasPrefix(text, "connect: ") || !strings.Contains(text, "refused") {
		t.Errorf("%q", text)
	}
}

func TestANeighbourThatDoesNotReadIsLost(t *testing.T) {
	n, r := up(t, "127.0.0.40", Peer{HoldTime: time.Second})
	leg, wrote := n.leg(), 0
	leg.SetWriteDeadline(time.Now().Add(deadline))
	for {
		w, err := leg.Write(update(900))
		if wrote += w; err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("the speaker wasn't told within %s, after %d octets", deadline, wrote)
			}
			break
		}
	}
	n.await("a note", func() bool { return len(n.notes) == 1 })
	if text := n.seen().notes[0].Text; text != "connection lost: the neighbour doesn't read" {
		t.Errorf("%q", text)
	}
	// Buffers of two TCP connections, and no more.
	if wrote > 32<<20 {
		t.Errorf("%d octets went nowhere", wrote)
	}
	r.Close()
}

// A process of this host that connects to the speaker from a neighbour's address, without the key.
func TestNobodyElseOnThisHostCanBeTheNeighbour(t *testing.T) {
	n, _ := passive(t, "127.0.0.40", Peer{})
	n.active()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(n.peer.Inside.String())}, Timeout: time.Second}
	c, err := d.Dial("tcp", n.lis.Addr().String())
	if err == nil {
		c.Close()
		t.Fatal("it was let in")
	}
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("%v, want no answer at all", err)
	}
}

func TestRemovingANeighbourWaitsForTheLastWords(t *testing.T) {
	n, r := up(t, "127.0.0.40", Peer{})
	n.leg().Write(notification(6, 3, nil))
	n.leg().CloseWrite()
	if err := n.relay.Remove(n.peer.Address); err != nil {
		t.Fatal(err)
	}
	r.refused(6, 3)
	if err := n.relay.Remove(n.peer.Address); !errors.Is(err, ErrNone) {
		t.Errorf("%v", err)
	}
	if err := n.relay.Add(n.peer); err != nil {
		t.Fatal(err)
	}
	if err := n.relay.Add(n.peer); !errors.Is(err, ErrExists) {
		t.Errorf("%v", err)
	}
	n.active()
	again := connect(t, "127.0.0.42", addrPort(r.RemoteAddr()))
	again.establish(false)
}
