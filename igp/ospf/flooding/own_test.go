package flooding

import (
	"slices"
	"testing"
	"time"

	"pncd/igp/ospf/packet"
)

// v3 makes an LSA of OSPFv3 that router 2 passes on.
func v3(t *testing.T, h packet.Header, body string) packet.LSA {
	t.Helper()
	l, err := packet.NewLSA(packet.V3, h, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// OSPFv3 takes LSAs of all types: own ones that this router knows nothing of are flushed where they belong, with
// the octets that they came with (FRR PR 22862).
func TestOwnLSAsOfAnyTypeOfOSPFv3AreFlushedAsTheyCame(t *testing.T) {
	now := time.Unix(0, 0)
	for _, c := range []struct {
		name string
		typ  packet.LSType
		want []InterfaceID // where it is flushed
	}{
		{"a router LSA", packet.V3Router, []InterfaceID{1, 2}},
		{"an extended intra-area-prefix LSA", packet.V3EIntraAreaPrefix, []InterfaceID{1, 2}},
		{"a type that nobody knows, area scope", 0xA0FF, []InterfaceID{1, 2}},
		{"a type that nobody knows, domain scope", 0xC0FF, []InterfaceID{1, 2, 3}},
		{"a type that nobody knows, U bit clear: link scope", 0x20FF, []InterfaceID{1}},
		{"a grace LSA", packet.V3Grace, []InterfaceID{1}},
	} {
		m := New(Config{Version: packet.V3, Router: 1})
		for id, area := range []Area{1: {}, 2: {}, 3: {ID: 5}} {
			if id > 0 {
				m.SetInterface(InterfaceID(id), area, 1400)
				m.SetPeer(InterfaceID(id), &fakePeer{id: packet.ID(id + 1), full: true})
			}
		}
		l := v3(t, packet.Header{Age: 7, Key: packet.Key{Type: c.typ, ID: 9, Adv: 1}, Sequence: 77}, "of a former life")
		if err := m.ReceiveUpdate(now, 1, 2, &packet.Update{LSAs: []packet.LSA{l}}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []InterfaceID
		for _, s := range m.Tick(now) {
			u, ok := s.Body.(*packet.Update)
			if !ok {
				continue
			}
			got = append(got, s.Interface)
			if f := u.LSAs[0]; f.AgeSeconds() != packet.MaxAge || f.Sequence != 77 || !slices.Equal(f.Raw[2:], l.Raw[2:]) {
				t.Errorf("%s: flushed as %x, came as %x", c.name, f.Raw, l.Raw)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: flushed on %v, want %v", c.name, got, c.want)
		}
	}
}

// Where a helper begins, and ends, with a grace LSA: each instance is told, also a refresh that says the same.
func TestEachInstanceOfAGraceLSAIsTold(t *testing.T) {
	for v, k := range map[packet.Version]packet.Key{
		packet.V2: {Type: packet.V2OpaqueLink, ID: packet.OpaqueID(packet.OpaqueGrace, 0), Adv: 2},
		packet.V3: {Type: packet.V3Grace, ID: 4, Adv: 2},
	} {
		m := New(Config{Version: v, Router: 1})
		m.SetInterface(1, Area{}, 1400)
		m.SetPeer(1, &fakePeer{id: 2, full: true, opaque: true})
		told := 0
		m.OnChange(func(w Where, got packet.Key) {
			if w != (Where{Scope: packet.ScopeLink, Link: 1}) || got != k {
				t.Errorf("%s: %v of %v is told", v, got, w)
			}
			told++
		})
		body := packet.Grace{Period: time.Minute, Reason: packet.GraceRestart}.Append(nil)
		for i, age := range []uint16{1, 1, packet.MaxAge} {
			now := time.Unix(int64(i)*10, 0)
			l, err := packet.NewLSA(v, packet.Header{Age: age, Key: k, Sequence: int32(i + 1)}, body)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.ReceiveUpdate(now, 1, 2, &packet.Update{LSAs: []packet.LSA{l}}); err != nil {
				t.Fatal(err)
			}
			if told != i+1 {
				t.Errorf("%s: of %d instances %d are told", v, i+1, told)
			}
			e := m.DB(Where{Scope: packet.ScopeLink, Link: 1}).Get(k)
			if g, err := packet.ParseGrace(v, e.Body()); err != nil || g.Period != time.Minute || e.Age(now) != age {
				t.Errorf("%s: %+v, %v, age %d", v, g, err, e.Age(now))
			}
		}
	}
}

// A network LSA is named by an address in OSPFv2 only: in OSPFv3 its ID is an interface's.
func TestInOSPFv3AnAddressNamesNoNetworkLSA(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(Config{Version: packet.V3, Router: 1})
	m.SetInterface(1, Area{}, 1400)
	m.SetAddress(1, 104)
	m.SetPeer(1, &fakePeer{id: 2, full: true})
	for _, typ := range []packet.LSType{packet.V3Network, packet.V2Network} { // the latter says nothing there
		l := v3(t, packet.Header{Age: 1, Key: packet.Key{Type: typ, ID: 104, Adv: 4}, Sequence: 5}, "")
		if err := m.ReceiveUpdate(now, 1, 2, &packet.Update{LSAs: []packet.LSA{l}}); err != nil {
			t.Fatal(err)
		}
	}
	if out := m.Tick(now); len(out) > 0 {
		t.Errorf("%+v is sent", out)
	}
}

// A refresh that is due sooner by new times is made then.
func TestNewTimesHoldForWhatIsPlanned(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(Config{Version: packet.V2, Router: 1})
	m.SetInterface(1, Area{}, 1400)
	if err := m.Originate(now, Where{Scope: packet.ScopeArea}, packet.V2Router, 1, 0, nil); err != nil {
		t.Fatal(err)
	}
	m.Tick(now)
	m.Retime(Config{Refresh: time.Minute})
	if got := m.Wake(); !got.Equal(now.Add(time.Minute)) {
		t.Errorf("wake after %s", got.Sub(now))
	}
}

// LSAs that somebody makes in this router's name are flushed, and bounded all the same.
func TestForgedOwnLSAsAreFlushedAndBounded(t *testing.T) {
	now, m := time.Unix(0, 0), New(Config{Version: packet.V2, Router: 1, MaxLSAs: 10})
	for id := range InterfaceID(2) {
		m.SetInterface(id, Area{}, 1400)
		m.SetPeer(id, &fakePeer{id: packet.ID(id + 2), full: true})
	}
	if err := m.Originate(now, area0, packet.V2Router, 500, 0, []byte("wanted")); err != nil {
		t.Fatal(err)
	}
	now, _, _ = settle(t, m, now)
	now = now.Add(10 * time.Second)
	forge := func(id packet.ID) {
		t.Helper()
		l, err := packet.NewLSA(packet.V2, packet.Header{Age: 1, Key: packet.Key{Type: packet.V2Router, ID: id, Adv: 1}, Sequence: 9}, nil)
		if err == nil {
			err = m.ReceiveUpdate(now, 0, 2, &packet.Update{LSAs: []packet.LSA{l}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for id := range packet.ID(30) {
		forge(id)
	}
	forge(500)
	if c := m.Counters(); c.Full != 11 || m.DB(area0).Len() != 20 {
		t.Errorf("%d found no room, %d are there", c.Full, m.DB(area0).Len())
	}
	settle(t, m, now)
	e := m.DB(area0).Get(packet.Key{Type: packet.V2Router, ID: 500, Adv: 1})
	if m.DB(area0).Len() != 1 || e == nil || string(e.Body()) != "wanted" || e.Sequence != 10 {
		t.Errorf("%d are left, %+v", m.DB(area0).Len(), e)
	}
}
