package flowmap

import (
	"net/netip"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

// sees shows the map a packet of a stream between two addresses.
func sees(m *Map, at time.Time, op roce.Opcode, from, to string, qp uint32) {
	p := roce.Packet{Src: netip.MustParseAddr(from), Dst: netip.MustParseAddr(to), TTL: 64, SrcPort: 50000, Body: make([]byte, 4),
		BTH: roce.BTH{Opcode: op, PKey: 0xFFFF, DestQP: qp, PSN: uint32(at.UnixMilli()) & psnMask}}
	m.Observe(&Observation{Packet: &p, IfIndex: 1, At: at})
}

// homePrefix is one of the default context.
func homePrefix(s string) Prefix { return Prefix{Prefix: netip.MustParsePrefix(s)} }

func TestTrafficIsToldByPrefixAndDirection(t *testing.T) {
	wide, narrow, six := homePrefix("10.0.0.0/8"), homePrefix("10.1.0.0/24"), homePrefix("2001:db8:1::/48")
	now := time.Unix(1_700_000_000, 0)
	at := func(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }
	m := New(Config{ICRCSample: -1})
	sees(m, at(0), rcSend, "10.1.0.2", "192.0.2.9", 7) // nobody follows anything yet
	m.Follow([]Prefix{wide, narrow, six, narrow})
	check := func(what string, p Prefix, from, towards int, host string) {
		t.Helper()
		got, ok := m.Traffic(p)
		want := Traffic{}
		if from >= 0 {
			want.From, want.Host = at(from), netip.MustParseAddr(host)
		}
		if towards >= 0 {
			want.Towards = at(towards)
		}
		if !ok || !got.From.Equal(want.From) || !got.Towards.Equal(want.Towards) || got.Host != want.Host {
			t.Errorf("%s: %s has %+v (followed %v), want %+v", what, p, got, ok, want)
		}
	}
	check("before any traffic", narrow, -1, -1, "")
	sees(m, at(200), rcSend, "10.1.0.2", "192.0.2.9", 7)
	check("from the prefix", narrow, 200, -1, "10.1.0.2")
	sees(m, at(300), rcAck, "192.0.2.9", "10.1.0.3", 8)
	check("towards another host of it", narrow, 200, 300, "10.1.0.2")
	check("the longest prefix counts alone", wide, -1, -1, "")
	sees(m, at(400), rcSend, "10.9.0.2", "10.1.0.2", 9)
	check("between two prefixes, the sender's", wide, 400, -1, "10.9.0.2")
	check("between two prefixes, the receiver's", narrow, 200, 400, "10.1.0.2")
	sees(m, at(450), rcSend, "10.1.0.2", "192.0.2.9", 7)
	check("to a tenth of a second", narrow, 450, 400, "10.1.0.2")
	sees(m, at(500), rcSend, "10.1.0.2", "192.0.2.9", 7)
	check("no sooner", narrow, 450, 400, "10.1.0.2")
	sees(m, at(600), roce.OpcodeCNP, "2001:db8:9::1", "2001:db8:1::1", 8)
	check("a CNP doesn't count", six, -1, -1, "")
	sees(m, at(700), rcSend, "2001:db8:9::1", "2001:db8:1::1", 8)
	check("IPv6", six, -1, 700, "")
	if _, ok := m.Traffic(homePrefix("10.2.0.0/24")); ok {
		t.Error("a prefix that isn't followed has traffic")
	}
}

func TestTrafficFollowsPrefixesThatComeAndGo(t *testing.T) {
	a, b := homePrefix("10.1.0.0/24"), homePrefix("10.2.0.0/24")
	now := time.Unix(1_700_000_000, 0)
	m := New(Config{ICRCSample: -1})
	m.Follow([]Prefix{a})
	sees(m, now, rcSend, "10.1.0.2", "10.2.0.2", 7)
	m.Follow([]Prefix{a, b})
	if got, _ := m.Traffic(a); !got.From.Equal(now) {
		t.Errorf("a prefix that stays has lost its traffic: %+v", got)
	}
	if got, ok := m.Traffic(b); !ok || !got.Towards.IsZero() {
		t.Errorf("a new prefix has traffic of before: %+v", got)
	}
	later := now.Add(time.Second)
	sees(m, later, rcSend, "10.1.0.2", "10.2.0.2", 7)
	if got, _ := m.Traffic(b); !got.Towards.Equal(later) {
		t.Errorf("a stream that was there before doesn't count for the new prefix: %+v", got)
	}
	m.Follow([]Prefix{b})
	if _, ok := m.Traffic(a); ok {
		t.Error("a prefix that is gone is followed")
	}
	m.Follow([]Prefix{a, b})
	if got, _ := m.Traffic(a); !got.From.IsZero() {
		t.Errorf("a prefix that comes back knows of before: %+v", got)
	}
	m.Follow(nil)
	sees(m, later.Add(time.Second), rcSend, "10.1.0.2", "10.2.0.2", 7)
	if _, ok := m.Traffic(b); ok {
		t.Error("without prefixes one is followed")
	}
}

func TestTrafficOfAVPNDoesNotCountForTheSameAddressesElsewhere(t *testing.T) {
	home := homePrefix("10.1.0.0/24")
	blue := Prefix{Context: 1, Prefix: home.Prefix}
	now := time.Unix(1_700_000_000, 0)
	for _, seen := range []uint32{0, 1, 2} {
		m := New(Config{ICRCSample: -1})
		m.Follow([]Prefix{home, blue})
		p := roce.Packet{Src: netip.MustParseAddr("10.1.0.2"), Dst: netip.MustParseAddr("192.0.2.9"), TTL: 64, SrcPort: 50000, Body: make([]byte, 4), BTH: roce.BTH{Opcode: rcSend, PKey: 0xFFFF, DestQP: 7}}
		m.Observe(&Observation{Packet: &p, IfIndex: 1, At: now, Context: seen})
		for _, of := range []Prefix{home, blue} {
			if got, ok := m.Traffic(of); !ok || got.From.IsZero() == (of.Context == seen) {
				t.Errorf("traffic of context %d: context %d has %+v, %v", seen, of.Context, got, ok)
			}
		}
	}
}

func TestAnotherHostIsNamedWhenTheNamedOneIsSilent(t *testing.T) {
	p := homePrefix("10.1.0.0/24")
	now := time.Unix(1_700_000_000, 0)
	m := New(Config{ICRCSample: -1})
	m.Follow([]Prefix{p})
	sees(m, now, rcSend, "10.1.0.2", "192.0.2.9", 7)
	for _, s := range []struct {
		after time.Duration
		want  string
	}{{time.Second, "10.1.0.2"}, {time.Minute, "10.1.0.2"}, {time.Minute + time.Second, "10.1.0.3"}} {
		sees(m, now.Add(s.after), rcSend, "10.1.0.3", "192.0.2.9", 7)
		if got, _ := m.Traffic(p); got.Host != netip.MustParseAddr(s.want) {
			t.Errorf("%s after the last packet of 10.1.0.2: %v is named, want %s", s.after, got.Host, s.want)
		}
	}
}

// Of a settled pair there is no stream, and yet its host is named and stays so.
func TestHostOfASettledPairIsNamed(t *testing.T) {
	l, n := settled(t)
	p := homePrefix("10.0.0.0/24")
	l.m.Follow([]Prefix{p})
	for i := range uint32(4) {
		l.m.Seen(FlowID{Key: n.ab.key(), SrcPort: n.ab.port}, Progress{Sight: Followed, LastSeen: l.now})
		l.wait(50 * time.Second)
		l.request(newConn(hostC, netip.MustParseAddr("192.0.2.9"), 0, 0x300+i, 49152, 0).ab, 1)
		if got, _ := l.m.Traffic(p); got.Host != hostA {
			t.Fatalf("%v is named, want %v", got.Host, hostA)
		}
	}
	l.settled(1)
}

// Observing must not allocate, whether prefixes are followed or not.
func TestNotingTrafficAllocatesNothing(t *testing.T) {
	m := New(Config{ICRCSample: -1})
	m.Follow([]Prefix{homePrefix("10.1.0.0/24"), homePrefix("10.2.0.0/24")})
	now := time.Unix(1_700_000_000, 0)
	p := roce.Packet{Src: netip.MustParseAddr("10.1.0.2"), Dst: netip.MustParseAddr("10.2.0.2"), TTL: 64, SrcPort: 50000, BTH: roce.BTH{Opcode: rcSend, PKey: 0xFFFF, DestQP: 7}}
	o := Observation{Packet: &p, IfIndex: 1}
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(200 * time.Millisecond)
		o.At, p.BTH.PSN = now, p.BTH.PSN+1
		m.Observe(&o)
	}); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
	if got, _ := m.Traffic(homePrefix("10.1.0.0/24")); !got.From.Equal(now) {
		t.Errorf("seen at %v, want %v", got.From, now)
	}
}
