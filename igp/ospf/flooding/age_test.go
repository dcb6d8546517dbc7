package flooding

import (
	"testing"
	"time"

	"pncd/igp/internal/exchanges"
	"pncd/igp/ospf/packet"
)

// An LSA at MaxAge doesn't count any more (RFC 2328 section 14), however long its removal waits for neighbours.
func TestThatAnLSAHasGrownOldIsToldAtOnce(t *testing.T) {
	m := New(Config{Version: packet.V2, Router: 1})
	m.SetInterface(1, Area{}, 1400)
	m.SetPeer(1, &fakePeer{id: 2, full: true, opaque: true}) // who acknowledges nothing
	s := &script{Script: exchanges.New(t), m: m}
	l := s.lsa("r3/5/3590")
	if err := m.ReceiveUpdate(time.Unix(0, 0), 1, 2, &packet.Update{LSAs: []packet.LSA{l}}); err != nil {
		t.Fatal(err)
	}
	var told []packet.Key
	m.OnChange(func(_ Where, k packet.Key) { told = append(told, k) })
	m.Tick(time.Unix(9, 0))
	if len(told) != 0 {
		t.Fatal("told before it is old")
	}
	m.Tick(time.Unix(10, 0))
	if len(told) != 1 || told[0] != l.Key {
		t.Errorf("told of %v", told)
	}
	if !m.Changed(1, 2) {
		t.Error("the neighbour is not waited for as for a change")
	}
}
