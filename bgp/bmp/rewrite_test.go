package bmp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"
)

var (
	inside  = netip.MustParseAddr("127.64.0.1")
	inside6 = netip.MustParseAddr("127.64.0.2")
	session = Session{
		Peer: netip.MustParseAddr("192.0.2.254"), Local: netip.MustParseAddrPort("192.0.2.1:41000"), Remote: netip.MustParseAddrPort("192.0.2.254:179"),
	}
	session6 = Session{
		Peer: netip.MustParseAddr("fe80::2%eth1"), Local: netip.MustParseAddrPort("[fe80::1%eth1]:179"), Remote: netip.MustParseAddrPort("[fe80::2%eth1]:42000"),
	}
)

func known(at netip.Addr, port uint16) (Session, bool) {
	switch {
	case at == inside && port == 50001:
		return session, true
	case at == inside6:
		return session6, true
	}
	return Session{}, false
}

// message is one about a neighbour, in the speaker's words (RFC 7854 section 4.2). What the addresses aren't is 0xAA.
func message(typ byte, peer netip.Addr, body ...byte) []byte {
	msg := append(header(typ, peerHeaderLen+len(body)), bytes.Repeat([]byte{0xaa}, peerHeaderLen)...)
	msg[atPeerType], msg[atFlags] = 0, 0x20
	putAddr(msg[atPeerAddress:], peer)
	return append(msg, body...)
}

func peerUp(peer netip.Addr, port uint16) []byte {
	body := make([]byte, 16)
	putAddr(body, netip.MustParseAddr("127.0.0.1"))
	body = binary.BigEndian.AppendUint16(body, 40179)
	body = binary.BigEndian.AppendUint16(body, port)
	return message(typePeerUp, peer, append(body, "two OPENs"...)...)
}

// same reports what differs outside of the addresses, the ports and the V flag.
func same(before, after []byte) bool {
	clear := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[atFlags] &^= flagV
		copy(b[atPeerAddress:], make([]byte, 16))
		if b[atType] == typePeerUp {
			copy(b[atLocal:], make([]byte, 20))
		}
		return b
	}
	return bytes.Equal(clear(before), clear(after))
}

func TestTheNeighboursOwnAddressesTakeThePlaceOfTheSpeakers(t *testing.T) {
	for _, tt := range []struct {
		at    netip.Addr
		want  Session
		v     byte
		ports [2]uint16
	}{
		{inside, session, 0, [2]uint16{41000, 179}},
		{inside6, session6, flagV, [2]uint16{179, 42000}},
	} {
		r := NewRewriter(known)
		for _, msg := range [][]byte{
			peerUp(tt.at, 50001),
			message(typeRouteMonitoring, tt.at, []byte("an UPDATE with 127.64.0.1")...),
			message(typeStatistics, tt.at, 0, 0, 0, 0),
			message(typeRouteMirroring, tt.at),
			message(typePeerDown, tt.at, 4),
		} {
			got := bytes.Clone(msg)
			if ok, err := r.Rewrite(got); !ok || err != nil {
				t.Fatalf("type %d: %v, %v", msg[atType], ok, err)
			}
			if a := getAddr(got[atPeerAddress:], got[atFlags]); a != plain(tt.want.Peer) || got[atFlags]&flagV != tt.v {
				t.Errorf("type %d: peer %s, flags %#x", msg[atType], a, got[atFlags])
			}
			if !same(msg, got) {
				t.Errorf("type %d: more than the addresses changed:\n%x\n%x", msg[atType], msg, got)
			}
			if msg[atType] != typePeerUp {
				continue
			}
			local, ports := getAddr(got[atLocal:], got[atFlags]), [2]uint16{binary.BigEndian.Uint16(got[atLocalPort:]), binary.BigEndian.Uint16(got[atRemotePort:])}
			if local != plain(tt.want.Local.Addr()) || ports != tt.ports {
				t.Errorf("Peer Up: local %s, ports %v", local, ports)
			}
		}
	}
}

func TestWhatIsAboutNoNeighbourPassesAsItIs(t *testing.T) {
	locRIB := message(typeRouteMonitoring, netip.IPv4Unspecified())
	locRIB[atPeerType] = peerTypeLocRIB
	for _, msg := range [][]byte{initiation("a", "b"), termination(), header(typeTermination, 0), locRIB} {
		got := bytes.Clone(msg)
		if ok, err := NewRewriter(known).Rewrite(got); !ok || err != nil || !bytes.Equal(got, msg) {
			t.Errorf("%x: %v, %v, %x", msg, ok, err, got)
		}
	}
}

func TestWhatIsNotKnownIsNotPassedOn(t *testing.T) {
	r := NewRewriter(known)
	for name, msg := range map[string][]byte{
		"Peer Up of a stranger":      peerUp(netip.MustParseAddr("127.64.0.9"), 50001),
		"Peer Up without a session":  peerUp(inside, 1),
		"a route before Peer Up":     message(typeRouteMonitoring, inside),
		"Peer Down without Peer Up":  message(typePeerDown, inside, 1),
		"a message of another type":  header(7, 0),
		"a route of a zero address":  message(typeRouteMonitoring, netip.IPv4Unspecified()),
		"a route of an IPv6 address": message(typeRouteMonitoring, netip.MustParseAddr("2001:db8::1")),
	} {
		if ok, err := r.Rewrite(msg); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

// The speaker reports the end of a neighbour's session when the neighbour may be forgotten already.
func TestANeighbourIsKnownFromPeerUpToPeerDown(t *testing.T) {
	gone := false
	r := NewRewriter(func(at netip.Addr, port uint16) (Session, bool) {
		if gone {
			return Session{}, false
		}
		return known(at, port)
	})
	pass := func(msg []byte, want bool) {
		t.Helper()
		if ok, err := r.Rewrite(msg); ok != want || err != nil {
			t.Errorf("type %d: %v, %v", msg[atType], ok, err)
		}
	}
	pass(peerUp(inside, 50001), true)
	gone = true
	pass(message(typeRouteMonitoring, inside), true)
	down := message(typePeerDown, inside, 5)
	pass(down, true)
	if a := getAddr(down[atPeerAddress:], down[atFlags]); a != session.Peer {
		t.Errorf("Peer Down of %s", a)
	}
	pass(message(typeRouteMonitoring, inside), false)
	pass(peerUp(inside, 50001), false)
}

func TestTheEndOfANeighbourThatIsRemovedIsTold(t *testing.T) {
	r, now := NewRewriter(known), time.Unix(1_800_000_000, 7000)
	if msg := r.Gone(inside6, now); msg != nil {
		t.Errorf("a neighbour that isn't up: %x", msg)
	}
	up := peerUp(inside6, 7)
	if ok, err := r.Rewrite(up); !ok || err != nil {
		t.Fatal(ok, err)
	}
	got := r.Gone(inside6, now)
	want := append(header(typePeerDown, peerHeaderLen+1), up[headerLen:headerLen+peerHeaderLen]...)
	want = append(want, 5)
	copy(want[atTime:], []byte{0x6b, 0x49, 0xd2, 0x00, 0, 0, 0, 7})
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	if ok, _ := r.Rewrite(message(typeRouteMonitoring, inside6)); ok {
		t.Error("a route after its end")
	}
}

func TestWhatBreaksTheFramingIsAnError(t *testing.T) {
	wrongVersion, long, short := termination(), termination(), peerUp(inside, 50001)[:peerUpLen-1]
	wrongVersion[0] = 2
	long[4]++
	binary.BigEndian.PutUint32(short[1:], uint32(len(short)))
	for name, msg := range map[string][]byte{
		"nothing": nil, "half a header": termination()[:5], "version": wrongVersion, "length": long, "short Peer Up": short,
		"short peer header": header(typeStatistics, 0), "too long": {3, 0xff, 0xff, 0xff, 0xff, 0},
	} {
		if _, err := NewRewriter(known).Rewrite(msg); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, head := range [][]byte{wrongVersion, {3, 0xff, 0xff, 0xff, 0xff, 0}, {3, 0, 0, 0, 5, 0}} {
		if _, err := readMessage(bytes.NewReader(head), nil); !errors.Is(err, ErrFrame) {
			t.Errorf("%x: %v", head, err)
		}
	}
}

// A stream of messages never panics, and what passes differs in the addresses alone and shows no address of the
// speaker's.
func FuzzRewrite(f *testing.F) {
	f.Add(bytes.Join([][]byte{initiation("a", "b"), peerUp(inside, 50001), message(typeRouteMonitoring, inside, 1, 2, 3), message(typePeerDown, inside, 1)}, nil))
	f.Add(bytes.Join([][]byte{peerUp(inside6, 7), message(typeStatistics, inside6, 0, 0, 0, 0), termination()}, nil))
	f.Add(message(typeRouteMonitoring, inside))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r, rd := NewRewriter(known), bytes.NewReader(stream)
		var buf []byte
		for {
			msg, err := readMessage(rd, buf)
			if err != nil {
				return
			}
			buf = msg
			initiationName(msg)
			before := bytes.Clone(msg)
			pass, err := r.Rewrite(msg)
			switch {
			case err != nil || !pass:
				continue
			case len(msg) < headerLen+peerHeaderLen || msg[atType] == typeInitiation || msg[atType] == typeTermination || msg[atPeerType] == peerTypeLocRIB:
				if !bytes.Equal(msg, before) {
					t.Fatalf("changed:\n%x\n%x", before, msg)
				}
			default:
				if !same(before, msg) {
					t.Fatalf("more than the addresses changed:\n%x\n%x", before, msg)
				}
				if a := getAddr(msg[atPeerAddress:], msg[atFlags]); a != session.Peer && a != plain(session6.Peer) {
					t.Fatalf("peer %s", a)
				}
			}
		}
	})
}
