package adjacency

import (
	"slices"
	"testing"
	"time"

	"pncd/igp/isis/packet"
)

// lan is the systems of a LAN by MAC address.
type lan map[[6]byte]*LAN

// run passes hellos between them until the time.
func (l lan) run(t *testing.T, now *time.Time, until time.Time) {
	t.Helper()
	for {
		at := until.Add(1)
		for _, s := range l {
			if s.Wake().Before(at) {
				at = s.Wake()
			}
		}
		if at.After(until) {
			*now = until
			return
		}
		if at.After(*now) {
			*now = at
		}
		for mac, s := range l {
			for _, h := range s.Tick(*now) {
				for other, r := range l {
					if other != mac {
						r.Receive(*now, wire(t, h), mac)
					}
				}
			}
		}
	}
}

func newLAN(now time.Time, priorities ...uint8) lan {
	l := lan{}
	for i, priority := range priorities {
		c := config(byte(i + 1))
		c.Priority = priority
		l[c.MAC] = NewLAN(c, packet.Level2, now)
	}
	return l
}

func TestASystemIsUpWhenItSeesItselfHeard(t *testing.T) {
	now := start
	l := newLAN(now, 0, 64, 64)
	l.run(t, &now, start.Add(time.Second))
	for mac, s := range l {
		n := s.Neighbors()
		if len(n) != 2 || n[0].State != Up || n[1].State != Up {
			t.Errorf("%x: %+v", mac, n)
		}
	}
	l.run(t, &now, start.Add(time.Minute))
	l[mac1].Events()
	h := l[mac2].hello(now)
	h.TLVs = slices.DeleteFunc(h.TLVs, func(t packet.TLV) bool { return t.Type == packet.TLVISNeighborsLAN })
	l[mac1].Receive(now, wire(t, h), mac2)
	if got := changes(l[mac1].Events()); !slices.Equal(got, []string{"02 down: not-seen"}) {
		t.Errorf("%q", got)
	}
}

func TestElection(t *testing.T) {
	for _, tc := range []struct {
		name       string
		priorities []uint8
		want       string // system, or ours, or nobody
	}{
		{"highest priority", []uint8{0, 65, 64}, "02"},
		{"highest address among equals", []uint8{0, 64, 64}, "03"},
		{"all have priority 0: still somebody is elected", []uint8{0, 0, 0}, "03"},
		{"alone", []uint8{0}, "nobody"},
		{"we would win", []uint8{64, 1, 1}, "ours"},
	} {
		now := start
		l := newLAN(now, tc.priorities...)
		l.run(t, &now, start.Add(5*time.Second))
		if dis, ours := l[mac1].Designated(now); dis != nil || ours {
			t.Errorf("%s: elected before the election", tc.name)
		}
		l.run(t, &now, start.Add(25*time.Second))
		got := "nobody"
		if dis, ours := l[mac1].Designated(now); ours {
			got = "ours"
		} else if dis != nil {
			got = dis.System.String()[12:]
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestTheDesignatedSystemsLANIDIsSaid(t *testing.T) {
	now := start
	l := newLAN(now, 0, 64)
	l.run(t, &now, start.Add(30*time.Second))
	if got, want := l[mac1].hello(now).LANID, (packet.SystemID{5: 2}).Node(2); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestFastRestartsDontGetALANStuck(t *testing.T) { // FRR #14640
	now := start
	l := newLAN(now, 0, 64)
	for range 20 {
		l.run(t, &now, now.Add(700*time.Millisecond))
		c := config(2)
		c.Priority = 64
		l[mac2] = NewLAN(c, packet.Level2, now)
	}
	l.run(t, &now, now.Add(time.Second))
	for mac, s := range l {
		if n := s.Neighbors(); len(n) != 1 || n[0].State != Up {
			t.Errorf("%x: %+v", mac, n)
		}
	}
}

func TestALevelOneLANNeedsACommonArea(t *testing.T) {
	c := config(1)
	c.Levels = packet.Level12
	a := NewLAN(c, packet.Level1, start)
	c = config(2)
	c.Levels, c.Areas = packet.Level12, []packet.Area{{0x49, 9}}
	if got := a.Receive(start, wire(t, NewLAN(c, packet.Level1, start).hello(start)), mac2); got != ReasonArea {
		t.Error(got)
	}
	if got := a.Receive(start, wire(t, NewLAN(c, packet.Level2, start).hello(start)), mac2); got != ReasonWrongKind {
		t.Error(got)
	}
}

func TestALANNeighborExpires(t *testing.T) {
	now := start
	l := newLAN(now, 0, 64)
	l.run(t, &now, start.Add(time.Second))
	s := l[mac1]
	s.Events()
	delete(l, mac2)
	l.run(t, &now, now.Add(31*time.Second))
	if got := changes(s.Events()); !slices.Equal(got, []string{"02 down: hold-time"}) || len(s.Neighbors()) != 0 {
		t.Errorf("%q", got)
	}
}

func TestALANIsBounded(t *testing.T) {
	for _, mtu := range []int{1497, 600, 8997} {
		c := config(1)
		c.MTU, c.Overhead, c.Padding = mtu, 30, PadAlways
		a := NewLAN(c, packet.Level2, start)
		h := wire(t, NewLAN(config(2), packet.Level2, start).hello(start))
		up := 0
		for i := range MaxNeighbors + 1 {
			h.Source = packet.SystemID{4: byte(i >> 8), 5: byte(i), 0: 9}
			switch why := a.Receive(start, h, [6]byte{2, 0, 0, 9, byte(i >> 8), byte(i)}); why {
			case ReasonNone:
				up++
			case ReasonTooManyNeighbors:
			default:
				t.Fatalf("neighbour %d: %s", i, why)
			}
		}
		raw, err := a.hello(start).Append(nil)
		if err != nil || len(raw)+c.Overhead > mtu {
			t.Errorf("MTU %d: a hello of %d octets with %d neighbours, %v", mtu, len(raw), up, err)
		}
		if least := min(MaxNeighbors, (mtu-200)/7); up < least {
			t.Errorf("MTU %d: %d neighbours, at least %d fit", mtu, up, least)
		}
	}
}

func TestStopEndsAllAdjacencies(t *testing.T) {
	now := start
	l := newLAN(now, 0, 64, 64)
	l.run(t, &now, start.Add(time.Second))
	s := l[mac1]
	s.Events()
	s.Stop()
	if got := changes(s.Events()); !slices.Equal(got, []string{"02 down: circuit-down", "03 down: circuit-down"}) {
		t.Errorf("%q", got)
	}
}

func TestALANNeighborThatRestartsKeepsItsAdjacency(t *testing.T) { // RFC 8706 section 3.2.1
	now := start
	l := newLAN(now, 0, 64)
	l.run(t, &now, start.Add(time.Second))
	s := l[mac1]
	s.Events()
	h := NewLAN(config(2), packet.Level2, now).hello(now)
	h.TLVs = append(h.TLVs, packet.Restart{Request: true}.TLV())
	s.Receive(now, wire(t, h), mac2)
	if got := changes(s.Events()); !slices.Equal(got, []string{"02 resync"}) {
		t.Fatalf("%q", got)
	}
	now = now.Add(time.Second)
	if sent := s.Tick(now); len(sent) != 1 || sent[0].TLVs.Restart() == nil || sent[0].TLVs.Restart().Neighbor != (packet.SystemID{5: 2}) {
		t.Errorf("%+v", sent)
	}
}
