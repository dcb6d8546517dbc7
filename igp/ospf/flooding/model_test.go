package flooding

import (
	"math/rand/v2"
	"testing"
	"time"

	"pncd/igp/ospf/packet"
)

// chaos is a machine with two interfaces to which anything happens.
type chaos struct {
	*testing.T
	r     *rand.Rand
	m     *Machine
	now   time.Time
	peers [2]*fakePeer
	sent  []Send // and not acknowledged
}

// TestAnythingInAnyOrder holds what must be so after each step, and that all settles when the neighbours answer.
func TestAnythingInAnyOrder(t *testing.T) {
	for seed := range uint64(20) {
		c := &chaos{T: t, r: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(0, 0)}
		c.m = New(Config{Version: packet.V2, Router: 1, MaxLSAs: 30, Burst: 3})
		for i := range c.peers {
			c.m.SetInterface(InterfaceID(i), Area{}, 200)
			c.meet(i)
		}
		for range 1500 {
			c.step()
			if c.r.IntN(3) > 0 {
				c.tick()
			}
			c.holds()
		}
		c.settles()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// meet makes a neighbour, which replaces the one before.
func (c *chaos) meet(i int) {
	c.peers[i] = &fakePeer{id: packet.ID(i + 2), full: c.r.IntN(3) > 0, opaque: true, designated: c.r.IntN(4) == 0, asks: map[packet.Key]packet.Header{}}
	c.m.SetPeer(InterfaceID(i), c.peers[i])
}

func (c *chaos) lsa() packet.LSA {
	h := packet.Header{Age: 1, Key: packet.Key{Type: packet.V2Router, ID: packet.ID(c.r.IntN(9)), Adv: packet.ID(1 + c.r.IntN(5))}, Sequence: int32(c.r.IntN(6))}
	switch c.r.IntN(5) {
	case 0:
		h.Age = packet.MaxAge
	case 1:
		h.Age = packet.MaxAge - uint16(c.r.IntN(100))
	case 2:
		h.Sequence = packet.MaxSequence
	}
	l, err := packet.NewLSA(packet.V2, h, []byte{byte(c.r.IntN(2))})
	if err != nil {
		c.Fatal(err)
	}
	return l
}

func (c *chaos) step() {
	i := c.r.IntN(2)
	id, router, own := InterfaceID(i), packet.ID(i+2), packet.ID(c.r.IntN(9))
	switch c.r.IntN(12) {
	case 0, 1, 2:
		_ = c.m.ReceiveUpdate(c.now, id, router, &packet.Update{LSAs: []packet.LSA{c.lsa(), c.lsa(), c.lsa()}})
	case 3, 4:
		c.acknowledge(c.r.IntN(2) == 0)
	case 5:
		if err := c.m.Originate(c.now, area0, packet.V2Router, own, 0, []byte{byte(c.r.IntN(3))}); err != nil {
			c.Fatal(err)
		}
	case 6:
		c.m.Withdraw(c.now, area0, packet.V2Router, own)
	case 7:
		c.m.RemovePeer(id, router)
	case 8:
		c.meet(i)
	case 9:
		c.peers[i].full = !c.peers[i].full
	case 10:
		l := c.lsa()
		c.peers[i].asks[l.Key] = l.Header
		_ = c.m.Retransmit(c.now, id, router, []packet.Key{l.Key})
	case 11:
		c.now = c.now.Add(time.Duration(c.r.IntN(4000)) * time.Millisecond)
	}
}

func (c *chaos) tick() {
	for ticks := 0; ; ticks++ {
		c.sent = append(c.sent, c.m.Tick(c.now)...)
		if at := c.m.Wake(); at.IsZero() || at.After(c.now) {
			return
		}
		if ticks > 10 {
			c.Fatal("a Tick is wanted again and again")
		}
	}
}

// acknowledge answers what was sent, or loses it.
func (c *chaos) acknowledge(lose bool) {
	for _, s := range c.sent {
		u, ok := s.Body.(*packet.Update)
		if !ok || lose {
			continue
		}
		ack := &packet.Ack{}
		for _, l := range u.LSAs {
			ack.Headers = append(ack.Headers, l.Header)
		}
		_ = c.m.ReceiveAck(c.now, s.Interface, packet.ID(s.Interface+2), ack)
	}
	c.sent = nil
}

func (c *chaos) holds() {
	for id, l := range c.m.links {
		if len(l.queue) != len(l.queued) {
			c.Errorf("%d LSAs are to be flooded, %d by the set", len(l.queue), len(l.queued))
		}
		for _, p := range l.peers {
			sent := 0
			for k := range p.waits {
				_, queued := l.queued[k]
				if p.again.Has(k) {
					sent++
				} else if !queued {
					c.Errorf("interface %d: %s waits for ever", id, k)
				}
			}
			if sent != p.again.Len() {
				c.Errorf("interface %d: %d LSAs are to be sent again, %d of them wait", id, p.again.Len(), sent)
			}
		}
	}
	for e := range c.m.DB(area0).All() {
		if _, yes := c.m.dying.all[area0][e.Key]; yes != (e.AgeSeconds() == packet.MaxAge) {
			c.Errorf("%s, age %d: to be removed: %t", e.Key, e.AgeSeconds(), yes)
		}
	}
	for k, o := range c.m.own {
		if o.wrap && c.m.dying.all[k.Where] == nil {
			c.Errorf("%v waits for a removal that doesn't come", k)
		}
	}
}

// settles has both neighbours be full and answer. In the end the own LSAs that are wanted are there with their
// contents, none else is of this router, nothing is at MaxAge, and nothing waits.
func (c *chaos) settles() {
	for i := range c.peers {
		if c.m.links[InterfaceID(i)].peers[packet.ID(i+2)] == nil {
			c.meet(i)
		}
		c.peers[i].full = true
	}
	for end := c.now.Add(time.Minute); c.now.Before(end); {
		c.tick()
		c.acknowledge(false)
		at := c.m.Wake()
		if at.IsZero() {
			break
		}
		c.now = later(c.now, at)
	}
	if c.m.Pending() {
		c.Error("something is pending")
	}
	own := 0
	for e := range c.m.DB(area0).All() {
		if e.AgeSeconds() == packet.MaxAge {
			c.Errorf("%s is still at MaxAge", e.Key)
		}
		if e.Adv != 1 {
			continue
		}
		if own++; c.m.own[ownKey{area0, e.Type, e.ID}] == nil || e.Body()[0] != c.m.own[ownKey{area0, e.Type, e.ID}].body[0] {
			c.Errorf("%s is not what is wanted", e.Key)
		}
	}
	if own != len(c.m.own) {
		c.Errorf("%d of %d own LSAs are there", own, len(c.m.own))
	}
}
