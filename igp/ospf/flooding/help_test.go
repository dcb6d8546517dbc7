package flooding

import (
	"testing"
	"time"

	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// helper does what a speaker does for a neighbour that restarts (RFC 3623 section 3), with what the machines tell.
type helper struct {
	*router
	now     time.Time
	refusal neighbor.Refusal
}

func newHelper(t *testing.T) *helper {
	h := &helper{router: newRouter(t, 1, 2, 0)}
	h.m.OnChange(func(w Where, k packet.Key) {
		switch {
		case k.IsGrace(packet.V2) && k.Adv == h.n.Router():
			h.grace(w, k)
		case k.Type.Topology(packet.V2):
			h.n.HelpEnds(h.now)
		}
	})
	other := newRouter(t, 2, 1, 0)
	h.now = run(time.Unix(0, 0), time.Second, h.router, other)
	if !h.n.Full() {
		t.Fatal("no adjacency")
	}
	// Another neighbour tells of changes.
	h.m.SetInterface(2, Area{}, 1400)
	h.m.SetPeer(2, &fakePeer{id: 9, full: true, opaque: true})
	return h
}

func (h *helper) grace(w Where, k packet.Key) {
	e := h.m.DB(w).Get(k)
	if e == nil {
		return // it is removed
	}
	if e.Age(h.now) == packet.MaxAge {
		h.n.HelpEnds(h.now)
		return
	}
	g, err := packet.ParseGrace(packet.V2, e.Body())
	if err != nil {
		h.Fatal(err)
	}
	h.refusal = h.n.Help(h.now, neighbor.Grace{
		Period: g.Period, Age: time.Duration(e.Age(h.now)) * time.Second, Allowed: true,
		Changed: h.m.Changed(w.Link, k.Adv),
	})
}

// hears has an LSA come in.
func (h *helper) hears(from packet.ID, age uint16, sequence int32, k packet.Key, body string) {
	h.Helper()
	l, err := packet.NewLSA(packet.V2, packet.Header{Age: age, Key: k, Sequence: sequence}, []byte(body))
	if err != nil {
		h.Fatal(err)
	}
	id := InterfaceID(1)
	if from == 9 {
		id = 2
	}
	if err := h.m.ReceiveUpdate(h.now, id, from, &packet.Update{LSAs: []packet.LSA{l}}); err != nil {
		h.Fatal(err)
	}
}

// silence lets so much time pass in which the neighbour says nothing.
func (h *helper) silence(d time.Duration) {
	for end := h.now.Add(d); h.now.Before(end); h.now = h.now.Add(time.Second) {
		h.n.Tick(h.now)
		h.m.Tick(h.now)
	}
}

var (
	graceKey  = packet.Key{Type: packet.V2OpaqueLink, ID: packet.OpaqueID(packet.OpaqueGrace, 0), Adv: 2}
	routerKey = packet.Key{Type: packet.V2Router, ID: 7, Adv: 7}
	twoMin    = string(packet.Grace{Period: 2 * time.Minute, Reason: packet.GraceRestart}.Append(nil))
)

func (h *helper) full(want bool, when string) {
	h.Helper()
	if h.n.Full() != want {
		h.Errorf("%s: full is %t", when, h.n.Full())
	}
}

func TestARestartingNeighborIsKept(t *testing.T) {
	h := newHelper(t)
	h.hears(2, 1, 1, graceKey, twoMin)
	h.silence(100 * time.Second)
	h.full(true, "within the grace period")
	h.hears(2, 1, 2, graceKey, twoMin)
	h.silence(100 * time.Second)
	h.full(true, "within the second one, which a refresh began")
	h.silence(30 * time.Second)
	h.full(false, "after it")
}

func TestHelpEndsWithTheGraceLSA(t *testing.T) {
	h := newHelper(t)
	h.hears(2, 1, 1, graceKey, twoMin)
	h.silence(50 * time.Second)
	h.hears(2, packet.MaxAge, 1, graceKey, twoMin)
	h.silence(time.Second)
	h.full(false, "the neighbour has ended it, and was silent for too long")
}

func TestHelpEndsWithAChangeOfTheTopology(t *testing.T) {
	h := newHelper(t)
	h.hears(9, 1, 1, routerKey, "link")
	h.silence(time.Second)
	if err := h.m.ReceiveAck(h.now, 1, 2, &packet.Ack{Headers: []packet.Header{h.m.DB(area0).Get(routerKey).Header}}); err != nil {
		t.Fatal(err)
	}
	h.hears(2, 1, 1, graceKey, twoMin)
	h.silence(50 * time.Second)
	h.hears(9, 1, 2, routerKey, "link")
	h.silence(time.Second)
	h.full(true, "after a refresh")
	h.hears(9, 1, 3, routerKey, "other")
	h.silence(time.Second)
	h.full(false, "after a change")
}

func TestNoHelpWhenTheNeighborHasNotSeenAChange(t *testing.T) {
	h := newHelper(t)
	h.hears(9, 1, 1, routerKey, "link")
	h.hears(2, 1, 1, graceKey, twoMin)
	if h.refusal != neighbor.RefusalChanged {
		t.Errorf("refused for %s", h.refusal)
	}
	h.silence(50 * time.Second)
	h.full(false, "without help")
}
