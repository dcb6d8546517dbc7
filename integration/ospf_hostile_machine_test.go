package integration

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	speakers "pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/speaker"
)

// TestOSPFHostileMachine sends all kinds of packets to the state machine, in a time of its own. A good router is
// beside it on a link with keys, the attacker's routers are on a network without.
func TestOSPFHostileMachine(t *testing.T) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		t.Run(v.String(), func(t *testing.T) { t.Parallel(); hostileMachine(t, v) })
	}
}

const (
	hostileMaxLSAs      = 2000
	hostileMaxNeighbors = 64

	goodID packet.ID = 0x0AFF0001 // the good router's
)

// machines are pncd's and the good router's, joined by the link "outer".
type machines struct {
	t             *testing.T
	v             packet.Version
	now           time.Time
	victim, other *speaker.Machine
	a             *ospfAttacker
	learned       map[string]string // by the victim
	shots         uint64            // and the good router's packets, that the victim got
}

func hostileMachine(t *testing.T, v packet.Version) {
	m := newMachines(t, v)
	m.pass(40 * time.Second)
	if wrong := m.unhealthy(true); wrong != "" {
		t.Fatal(wrong)
	}
	if len(m.a.recorded) < 20 {
		t.Fatalf("%d recorded", len(m.a.recorded))
	}
	since := m.since()
	inner := slices.Concat(ospfPacketKinds, ospfLSAKinds)
	for i := range 25_000 {
		if i%500 == 0 {
			if st := m.victim.Status(m.now); accounted(st) != m.shots {
				t.Fatalf("shot %d: %d of %d accounted for: %v", i, accounted(st), m.shots, st.Drops)
			}
			if wrong := m.unhealthy(false); wrong != "" {
				t.Fatalf("shot %d: %s", i, wrong)
			}
		}
		m.shoot("inner", m.a.kind(i, inner).make(m.a))
		if i%5 == 0 {
			m.shoot("outer", m.a.kind(i/5, ospfOuterKinds).make(m.a))
		}
		m.pass(time.Millisecond)
	}
	st := m.victim.Status(m.now)
	t.Logf("received %v, used %d, dropped %v", st.Received, st.Used, st.Drops)
	t.Logf("%+v", st.Counters)
	for _, l := range st.Links {
		t.Logf("%s: %v, %d neighbours", l.Name, l.Refused, len(l.Neighbors))
		for _, n := range l.Neighbors {
			if n.State > neighbor.TwoWay {
				t.Logf("%s: %s since %s, %d on the request list, %d on the retransmission list, %v", n.Router, n.State, n.Since.Sub(start2026), n.Requests, n.Retransmission, n.Dropped)
			}
		}
	}
	t.Logf("%+v", st.Areas)
	if now := m.since(); now != since {
		t.Errorf("the adjacencies with the good router and the attacker's steady one are of %v, before %v", now, since)
	}
	m.pass(2 * time.Minute)
	if wrong := m.unhealthy(true); wrong != "" {
		t.Error("two minutes later:", wrong)
	}
}

var start2026 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// accounted is what a machine has counted as used or dropped; -1 when that isn't what it received.
func accounted(st speaker.Status) (n uint64) {
	received := uint64(0)
	for _, c := range st.Received {
		received += c
	}
	n = st.Used
	for _, c := range st.Drops {
		n += c
	}
	if n != received {
		return ^uint64(0)
	}
	return n
}

func newMachines(t *testing.T, v packet.Version) *machines {
	m := &machines{t: t, v: v, now: start2026, learned: map[string]string{}}
	key := auth.Key{ID: 1, Algorithm: auth.MD5, Secret: "secret"}
	if v == packet.V3 {
		key.Algorithm = auth.HMACSHA256
	}
	outer := speaker.LinkConfig{Name: "outer", Hello: ospfHostileHello, Dead: ospfHostileDead, Authentication: auth.Chain{Send: key, Accept: []auth.Key{key}}}
	inner := speaker.LinkConfig{Name: "inner", Area: 1, Broadcast: true, Hello: ospfHostileHello, Dead: ospfHostileDead, MaxNeighbors: hostileMaxNeighbors}
	config := func(id packet.ID, links ...speaker.LinkConfig) speaker.Config {
		return speaker.Config{
			Version: v, Router: id, Carrier: marks.Carrier{Bit: 2}, Links: links, MaxLSAs: hostileMaxLSAs,
			MinLSInterval: 200 * time.Millisecond, MinLSArrival: 100 * time.Millisecond, AckDelay: 200 * time.Millisecond,
			SPF: backoff.Config{Initial: 50 * time.Millisecond, Second: 50 * time.Millisecond, Max: 100 * time.Millisecond},
		}
	}
	const victim packet.ID = 0x0AFE000B
	m.victim = must(speaker.New(config(victim, outer, inner), m.now))
	m.other = must(speaker.New(config(goodID, outer), m.now))
	network, at, addresses := netip.MustParsePrefix("10.66.0.0/16"), netip.MustParseAddr("10.66.255.11"), [2]string{"10.9.0.11/24", "10.9.0.1/24"}
	if v == packet.V3 {
		network, at, addresses = netip.MustParsePrefix("fe80::/64"), netip.MustParseAddr("fe80::ff11"), [2]string{"fe80::9:11/64", "fe80::9:1/64"}
	}
	up := func(address string) speaker.Link {
		return speaker.Link{Up: true, Index: 7, MTU: ospfHostileMTU, Address: netip.MustParsePrefix(address)}
	}
	m.victim.LinkChanged(m.now, "outer", up(addresses[0]))
	m.other.LinkChanged(m.now, "outer", up(addresses[1]))
	m.victim.LinkChanged(m.now, "inner", speaker.Link{Up: true, Index: 8, MTU: ospfHostileMTU, Address: netip.PrefixFrom(at, network.Bits())})
	m.victim.Advertise(m.now, []speakers.Advertisement{hostileAd(v, 9)})
	m.other.Advertise(m.now, []speakers.Advertisement{hostileAd(v, 1), hostileAd(v, 2)})
	m.a = newOSPFAttacker(v, 20262, 1, victim, at, network, func(s ospfShot) { m.shoot("inner", s) })
	m.a.begin(m.now)
	return m
}

// hostileAd is a mark of a version: of the prefix that ends in n.
func hostileAd(v packet.Version, n byte) speakers.Advertisement {
	if v == packet.V2 {
		return speakers.Advertisement{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 0, 0}), 24), Proxy: netip.MustParseAddr(igpProxy)}
	}
	return speakers.Advertisement{Prefix: netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0x0D, 0xB8, 5: n}), 48), Proxy: netip.MustParseAddr("2001:db8:ffff::11")}
}

// shoot brings a packet to the victim.
func (m *machines) shoot(link string, s ospfShot) {
	m.shots++
	m.victim.Receive(m.now, speaker.Datagram{Link: link, Source: s.from, Destination: s.to, Payload: s.payload})
}

// pass lets time pass, in steps of a few milliseconds.
func (m *machines) pass(d time.Duration) {
	for end := m.now.Add(d); m.now.Before(end); {
		m.now = m.now.Add(min(end.Sub(m.now), 5*time.Millisecond))
		m.step()
	}
}

func (m *machines) step() {
	m.a.tick(m.now)
	if !m.victim.Wake().After(m.now) {
		for _, d := range m.victim.Tick(m.now) {
			if d.Link == "inner" {
				m.a.hear(m.now, d.Source, d.Destination, d.Payload)
				continue
			}
			m.a.record(ospfShot{from: d.Source, to: d.Destination, payload: slices.Clone(d.Payload)})
			m.other.Receive(m.now, d)
		}
		for _, l := range m.victim.Learned() {
			if l.Gone {
				delete(m.learned, l.Prefix.String())
			} else {
				m.learned[l.Prefix.String()] = fmt.Sprintf("%s: %v %s", l.Originator, l.P, l.Proxy)
			}
		}
	}
	if !m.other.Wake().After(m.now) {
		for _, d := range m.other.Tick(m.now) {
			m.a.record(ospfShot{from: d.Source, to: d.Destination, payload: slices.Clone(d.Payload)})
			m.shoot("outer", ospfShot{from: d.Source, to: d.Destination, payload: d.Payload})
		}
	}
}

func (m *machines) goodNeighbor() speaker.NeighborStatus { return m.neighbor("outer", goodID) }

func (m *machines) neighbor(link string, id packet.ID) speaker.NeighborStatus {
	for _, l := range m.victim.Status(m.now).Links {
		for _, n := range l.Neighbors {
			if l.Name == link && n.Router == id {
				return n
			}
		}
	}
	return speaker.NeighborStatus{}
}

// since is since when the victim is full with those whose adjacencies are to stay.
func (m *machines) since() [2]time.Time {
	return [2]time.Time{m.goodNeighbor().Since, m.neighbor("inner", steadyID).Since}
}

// unhealthy says what is wrong: between the good ones, and, when the attack is over, with the attacker's routers.
func (m *machines) unhealthy(quiet bool) string {
	if n := m.goodNeighbor(); n.State != neighbor.Full {
		return fmt.Sprintf("the good router is %+v", n)
	}
	for i := range 2 {
		ad := hostileAd(m.v, byte(1+i))
		if got := m.learned[ad.Prefix.String()]; !strings.Contains(got, "true "+ad.Proxy.String()) {
			return fmt.Sprintf("%s is %q", ad.Prefix, got)
		}
	}
	for p, v := range m.learned {
		if strings.HasPrefix(v, "102.") {
			return p + " is believed of " + v
		}
	}
	st := m.victim.Status(m.now)
	for _, x := range st.Areas {
		if x.LSAs > 2*hostileMaxLSAs || x.Error != nil { // twice: with what others say in its name
			return fmt.Sprintf("%+v", x)
		}
	}
	for _, l := range st.Links {
		if len(l.Neighbors) > hostileMaxNeighbors || l.LSAs > 2*hostileMaxLSAs {
			return fmt.Sprintf("%s has %d neighbours, %d LSAs", l.Name, len(l.Neighbors), l.LSAs)
		}
		if quiet && l.Name == "inner" {
			full := 0
			for _, n := range l.Neighbors {
				if n.State == neighbor.Full {
					full++
				}
			}
			if full != 2 || len(l.Neighbors) != 2 {
				return fmt.Sprintf("%d of %d neighbours are full on the inner network: %+v", full, len(l.Neighbors), l.Neighbors)
			}
		}
	}
	return ""
}
