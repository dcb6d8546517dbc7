package flooding

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pncd/igp/internal/exchanges"
	"pncd/igp/ospf/packet"
)

// The exchanges of testdata/exchanges.txt: packets and times in, packets and the state of the databases out.
//
//	== name, or the trap that it holds
//	if 1 [area=5] [stub] [nssa] [size=200]       an interface; area 0 and 1476 octets unless said otherwise
//	no-if 1
//	peer 1 2 full | peer 1 2 exchange asks=r3/5,r4/1 | peer 1 2 full dr | peer 1 2 full no-opaque
//	peer 1 2 init                                its LSAs are not taken
//	no-peer 1 2
//	address 1 104                                of interface 1
//	burst 2 100ms                                as the first line: so many LSAs at once
//	retransmit 1 2 r4 ...                        neighbour 2 was not told of these
//	waits 1 2 3 | changed 1 2 yes                the length of its retransmission list; whether a change is on it
//	asks 1 2 r4 ...                              its request list
//	own r 0 text | own l 1 text                  router LSA of area 0; opaque LSA of link 1: text is the body
//	unown r 0 | stop
//	told r 0                                     a neighbour asked for the own LSA, and has it
//	> 1 2 upd r3/5 [r4/1/max ...] [badsum]       an update of neighbour 2 on interface 1
//	> 1 2 ack r1/1 ...
//	! text                                       the packet before was refused with this text
//	. 2s                                         time passes, Tick is called at each Wake; what is sent must follow:
//	< 1 * upd r3/5 ...                           to all; < 1 2 upd ... to neighbour 2
//	< 1 * ack r3/5
//	= r3/5 [area=5] | = r3 none | = r1 text x
//
// An LSA is its kind (r router, n NSSA, x external, w network, whose link state ID is 100 more than its router; o opaque
// of an area, l opaque of a link, a opaque of the domain and p its Extended Prefix LSA, z a type that nobody knows), its router, its sequence number counted from 1, and /max for MaxAge or /age. A body is
// given with =text behind. Router 1 is this one.
func TestExchanges(t *testing.T) {
	for _, e := range exchanges.Read(t, "testdata/exchanges.txt", 70) {
		e.Run(t, e.Name, func(s *exchanges.Script) exchanges.Verbs {
			s.AnyOrder = true
			return &script{Script: s, peers: map[packet.ID]*fakePeer{}, m: New(Config{Version: packet.V2, Router: 1, MaxLSAs: 10})}
		})
	}
}

type fakePeer struct {
	id                       packet.ID
	full, opaque, designated bool
	down                     bool
	asks                     map[packet.Key]packet.Header
}

func (p *fakePeer) Router() packet.ID    { return p.id }
func (p *fakePeer) Flooding() bool       { return !p.down }
func (p *fakePeer) Full() bool           { return p.full }
func (p *fakePeer) Opaque() bool         { return p.opaque }
func (p *fakePeer) Designated() bool     { return p.designated }
func (p *fakePeer) Satisfy(k packet.Key) { delete(p.asks, k) }
func (p *fakePeer) Requested(k packet.Key) (packet.Header, bool) {
	h, ok := p.asks[k]
	return h, ok
}

type script struct {
	*exchanges.Script
	m     *Machine
	peers map[packet.ID]*fakePeer
}

func (s *script) Wake() time.Time { return s.m.Wake() }

var kinds = map[byte]packet.LSType{
	'r': packet.V2Router, 'w': packet.V2Network, 'n': packet.V2NSSA, 'x': packet.V2External, 'o': packet.V2OpaqueArea, 'l': packet.V2OpaqueLink, 'a': packet.V2OpaqueAS, 'p': packet.V2OpaqueAS, 'z': 13,
}

// lsa makes an LSA of its notation.
func (s *script) lsa(text string) packet.LSA {
	text, body, _ := strings.Cut(text, "=")
	part := strings.Split(text, "/")
	router := packet.ID(s.Number(part[0][1:]))
	h := packet.Header{Age: 1, Key: packet.Key{Type: kinds[part[0][0]], ID: router, Adv: router}}
	switch {
	case h.Type == packet.V2Network:
		h.ID += 100
	case part[0][0] == 'a':
		h.ID = packet.OpaqueID(packet.OpaqueRouterInfo, 0)
	case h.Type.Opaque():
		h.ID = packet.OpaqueID(packet.OpaqueExtendedPrefix, 0)
	}
	if len(part) > 1 {
		if h.Sequence = packet.InitialSequence + int32(s.Number(part[1])) - 1; part[1] == "0" {
			h.Sequence = packet.MaxSequence
		}
	}
	if len(part) > 2 {
		if h.Age = packet.MaxAge; part[2] != "max" {
			h.Age = uint16(s.Number(part[2]))
		}
	}
	l, err := packet.NewLSA(packet.V2, h, []byte(body))
	if err != nil {
		s.Fatalf("%v", err)
	}
	return l
}

// notation writes an LSA's header, and the body if it is known.
func notation(h packet.Header, body []byte) string {
	kind := byte('?')
	for k, t := range kinds {
		if t == h.Type && (k == 'p') == h.ASExtendedPrefix(packet.V2) {
			kind = k
		}
	}
	seq := strconv.Itoa(int(h.Sequence-packet.InitialSequence) + 1)
	if h.Sequence == packet.MaxSequence {
		seq = "0"
	}
	text := fmt.Sprintf("%c%d/%s", kind, uint32(h.Adv), seq)
	if h.AgeSeconds() == packet.MaxAge {
		text += "/max"
	}
	if len(body) > 0 {
		text += "=" + string(body)
	}
	return text
}

func option(f []string, name string) (value string, ok bool) {
	for _, o := range f {
		if v, found := strings.CutPrefix(o, name+"="); found {
			return v, true
		}
	}
	return "", false
}

// place gives a database: of a link for kind l, else of an area.
func (s *script) place(kind byte, number int) Where {
	switch kinds[kind].Scope(packet.V2) {
	case packet.ScopeLink:
		return Where{Scope: packet.ScopeLink, Link: InterfaceID(number)}
	case packet.ScopeAS:
		return Where{Scope: packet.ScopeAS}
	}
	return Where{Scope: packet.ScopeArea, Area: packet.ID(number)}
}

func (s *script) Do(f []string) bool {
	switch f[0] {
	case "if":
		a, size := Area{Stub: slices.Contains(f, "stub"), NSSA: slices.Contains(f, "nssa")}, 1476
		if v, ok := option(f, "area"); ok {
			a.ID = packet.ID(s.Number(v))
		}
		if v, ok := option(f, "size"); ok {
			size = s.Number(v)
		}
		s.m.SetInterface(InterfaceID(s.Number(f[1])), a, size)
	case "no-if":
		s.m.RemoveInterface(InterfaceID(s.Number(f[1])))
	case "peer":
		s.peer(f)
	case "no-peer":
		s.m.RemovePeer(InterfaceID(s.Number(f[1])), packet.ID(s.Number(f[2])))
	case "address":
		s.m.SetAddress(InterfaceID(s.Number(f[1])), packet.ID(s.Number(f[2])))
	case "burst":
		c := s.m.cfg
		c.Burst, c.BurstInterval = s.Number(f[1]), s.Duration(f[2])
		s.m.Retime(c)
	case "retransmit":
		var keys []packet.Key
		for _, text := range f[3:] {
			keys = append(keys, s.lsa(text).Key)
		}
		s.Refused(s.m.Retransmit(s.Now, InterfaceID(s.Number(f[1])), packet.ID(s.Number(f[2])), keys))
	case "waits":
		if got := s.m.Waiting(InterfaceID(s.Number(f[1])), packet.ID(s.Number(f[2]))); got != s.Number(f[3]) {
			s.Fatalf("%d wait", got)
		}
	case "changed":
		if got := s.m.Changed(InterfaceID(s.Number(f[1])), packet.ID(s.Number(f[2]))); got != (f[3] == "yes") {
			s.Fatalf("is %t", got)
		}
	case "asks":
		s.asks(s.peers[packet.ID(s.Number(f[2]))], f[3:])
	case "own":
		kind := f[1][0]
		l := s.lsa(f[1] + "1")
		s.Refused(s.m.Originate(s.Now, s.place(kind, s.Number(f[2])), l.Type, l.ID, 0, []byte(strings.Join(f[3:], " "))))
	case "unown":
		l := s.lsa(f[1] + "1")
		s.m.Withdraw(s.Now, s.place(f[1][0], s.Number(f[2])), l.Type, l.ID)
	case "told":
		l := s.lsa(f[1] + "1")
		s.m.Told(s.Now, s.place(f[1][0], s.Number(f[2])), l.Key)
	case "stop":
		s.m.WithdrawAll(s.Now)
	case ">":
		s.receive(InterfaceID(s.Number(f[1])), packet.ID(s.Number(f[2])), f[3], f[4:])
	case "=":
		s.holds(f[1:])
	default:
		return false
	}
	return true
}

func (s *script) peer(f []string) {
	p := &fakePeer{id: packet.ID(s.Number(f[2])), full: f[3] == "full", down: f[3] == "init", opaque: !slices.Contains(f, "no-opaque"), designated: slices.Contains(f, "dr"), asks: map[packet.Key]packet.Header{}}
	if v, ok := option(f, "asks"); ok {
		for _, text := range strings.Split(v, ",") {
			l := s.lsa(text)
			p.asks[l.Key] = l.Header
		}
	}
	if old := s.peers[p.id]; old != nil {
		*old = *p // its state changed
		return
	}
	s.peers[p.id] = p
	s.m.SetPeer(InterfaceID(s.Number(f[1])), p)
}

func (s *script) asks(p *fakePeer, want []string) {
	for _, text := range want {
		if _, yes := p.asks[s.lsa(text).Key]; !yes {
			s.Fatalf("%s is not asked for", text)
		}
	}
	if len(p.asks) != len(want) {
		s.Fatalf("%d are asked for", len(p.asks))
	}
}

func (s *script) receive(id InterfaceID, from packet.ID, typ string, list []string) {
	bad := slices.Contains(list, "badsum")
	var u packet.Update
	var a packet.Ack
	for _, text := range list {
		if text == "badsum" {
			continue
		}
		l := s.lsa(text)
		if bad {
			l.Raw[16] ^= 1
		}
		u.LSAs = append(u.LSAs, l)
		a.Headers = append(a.Headers, l.Header)
	}
	switch typ {
	case "upd":
		s.Refused(s.m.ReceiveUpdate(s.Now, id, from, &u))
	case "ack":
		s.Refused(s.m.ReceiveAck(s.Now, id, from, &a))
	}
}

func (s *script) Tick() (sent []string) {
	for _, x := range s.m.Tick(s.Now) {
		to := "*"
		if x.To != 0 {
			to = strconv.Itoa(int(x.To))
		}
		var list []string
		typ := ""
		switch b := x.Body.(type) {
		case *packet.Update:
			typ = "upd"
			for _, l := range b.LSAs {
				if !l.ChecksumOK() {
					s.Fatalf("%s was sent with a wrong checksum", l.Key)
				}
				list = append(list, notation(l.Header, l.Body()))
			}
		case *packet.Ack:
			typ = "ack"
			for _, h := range b.Headers {
				list = append(list, notation(h, nil))
			}
		}
		sent = append(sent, fmt.Sprintf("%d %s %s %s", x.Interface, to, typ, strings.Join(list, " ")))
	}
	return sent
}

func (s *script) holds(f []string) {
	area := 0
	if v, ok := option(f, "area"); ok {
		area = s.Number(v)
	}
	if v, ok := option(f, "if"); ok {
		area = s.Number(v)
	}
	want := s.lsa(f[0])
	e := s.m.DB(s.place(f[0][0], area)).Get(want.Key)
	if f[len(f)-1] == "none" {
		if e != nil {
			s.Fatalf("%s is there", notation(e.HeaderNow(s.Now), e.Body()))
		}
		return
	}
	if e == nil {
		s.Fatalf("not there")
	}
	if got := notation(e.HeaderNow(s.Now), e.Body()); got != notation(want.Header, want.Body()) {
		s.Fatalf("there is %s", got)
	}
}

func TestALeafOriginatesNothingForTheDomain(t *testing.T) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		m := New(Config{Version: v, Router: 1})
		m.SetInterface(1, Area{}, 1400)
		for typ := range 1 << 16 {
			for _, w := range []Where{{Scope: packet.ScopeAS}, {Scope: packet.ScopeArea}, {Scope: packet.ScopeLink, Link: 1}} {
				err := m.Originate(time.Unix(0, 0), w, packet.LSType(typ), 0, 0, nil)
				if packet.LSType(typ).Scope(v) == packet.ScopeAS && err == nil {
					t.Fatalf("%s: an LSA of type %#x was originated", v, typ)
				}
			}
		}
	}
}

func TestAnAreaGoesWithItsLastInterface(t *testing.T) {
	at := func(id packet.ID) Where { return Where{Scope: packet.ScopeArea, Area: id} }
	m := New(Config{Version: packet.V2, Router: 1})
	m.SetInterface(1, Area{ID: 5}, 1400)
	m.SetInterface(2, Area{ID: 5}, 1400)
	if err := m.Originate(time.Unix(0, 0), at(5), packet.V2Router, 1, 0, nil); err != nil {
		t.Fatal(err)
	}
	m.SetInterface(1, Area{ID: 6}, 1400)
	if m.DB(at(5)) == nil || m.DB(at(6)) == nil {
		t.Error("both areas have an interface")
	}
	m.SetInterface(2, Area{ID: 6}, 1400)
	if m.DB(at(5)) != nil || len(m.own) > 0 {
		t.Errorf("no interface is in the area any more, and it is kept, with %d own LSAs", len(m.own))
	}
	m.RemoveInterface(1)
	if m.DB(at(6)) == nil {
		t.Error("one interface is still in the area")
	}
	m.RemoveInterface(2)
	if m.DB(at(6)) != nil {
		t.Error("the last interface has gone, and the area is kept")
	}
}

func TestOriginateNamesTheRule(t *testing.T) {
	m := New(Config{Version: packet.V2, Router: 1})
	for want, err := range map[string]error{
		"has area scope, not link": m.Originate(time.Unix(0, 0), Where{Scope: packet.ScopeLink, Link: 1}, packet.V2Router, 1, 0, nil),
		"no such area":             m.Originate(time.Unix(0, 0), Where{Scope: packet.ScopeArea}, packet.V2Router, 1, 0, nil),
		"scope of the domain":      m.Originate(time.Unix(0, 0), Where{Scope: packet.ScopeAS}, packet.V2OpaqueAS, 1, 0, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	m.SetInterface(1, Area{}, 1400)
	if err := m.Originate(time.Unix(0, 0), Where{Scope: packet.ScopeArea}, packet.V2Router, 1, 0, make([]byte, 65535)); err == nil || !strings.Contains(err.Error(), "at most 65535") {
		t.Errorf("%v", err)
	}
}

func TestCountersSayWhatBecameOfEachLSA(t *testing.T) {
	m := New(Config{Version: packet.V2, Router: 1})
	m.SetInterface(1, Area{}, 1400)
	m.SetPeer(1, &fakePeer{id: 2, full: true, opaque: true})
	s := &script{Script: exchanges.New(t), m: m}
	total := 0
	for i, text := range []string{"r3/5", "r3/5", "r3/4", "r4/1/max", "z3/1", "r3/6", "x3/1", "o3/1=abcd"} {
		now := time.Unix(int64(i/6*10), 0) // r3/6 comes too soon
		l := s.lsa(text)
		if err := m.ReceiveUpdate(now, 1, 2, &packet.Update{LSAs: []packet.LSA{l}}); err != nil {
			t.Fatal(err)
		}
		total++
	}
	if err := m.ReceiveUpdate(time.Unix(0, 0), 1, 9, &packet.Update{}); err == nil || errors.Is(err, ErrBadRequest) {
		t.Errorf("of a stranger: %v", err)
	}
	m.SetPeer(1, &fakePeer{id: 8, down: true})
	if err := m.ReceiveUpdate(time.Unix(0, 0), 1, 8, &packet.Update{}); err == nil || errors.Is(err, ErrBadRequest) {
		t.Errorf("of a neighbour below Exchange: %v", err)
	}
	if err := m.ReceiveAck(time.Unix(0, 0), 7, 2, &packet.Ack{}); err == nil {
		t.Errorf("on an interface that is not there: %v", err)
	}
	want := Counters{Stored: 3, Duplicate: 1, Outdated: 1, UnknownMaxAge: 1, Unsupported: 1, TooSoon: 1, BelowExchange: 3}
	if got := m.Counters(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if sum := want.Stored + want.Duplicate + want.Outdated + want.UnknownMaxAge + want.Unsupported + want.TooSoon; sum != uint64(total) {
		t.Errorf("%d of %d", sum, total)
	}
	if got := cmp.Compare(len(m.Tick(time.Unix(10, 0))), 0); got == 0 {
		t.Error("nothing was sent")
	}
}
