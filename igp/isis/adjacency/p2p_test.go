package adjacency

import (
	"slices"
	"testing"
	"time"

	"pncd/igp/isis/packet"
)

// pair runs two ends of a circuit until the time, with frames that take no time.
func pair(t *testing.T, now *time.Time, until time.Time, a, b *P2P) {
	t.Helper()
	for {
		at := a.Wake()
		if b.Wake().Before(at) {
			at = b.Wake()
		}
		if at.After(until) {
			*now = until
			return
		}
		if at.After(*now) {
			*now = at
		}
		for _, h := range a.Tick(*now) {
			b.Receive(*now, wire(t, h), mac1)
		}
		for _, h := range b.Tick(*now) {
			a.Receive(*now, wire(t, h), mac2)
		}
	}
}

func TestTwoEndsComeUpInOneHelloExchange(t *testing.T) {
	now := start
	a, b := NewP2P(config(1), now), NewP2P(config(2), now)
	pair(t, &now, start.Add(time.Second), a, b)
	for _, p := range []*P2P{a, b} {
		if n := p.Neighbors(); len(n) != 1 || n[0].State != Up || !n[0].ThreeWay {
			t.Fatalf("%+v", n)
		}
	}
	if got := changes(a.Events()); !slices.Equal(got, []string{"02 up"}) {
		t.Errorf("%q", got)
	}
	pair(t, &now, start.Add(time.Hour), a, b)
	if got := a.Events(); len(got) != 0 {
		t.Errorf("within an hour: %q", changes(got))
	}
}

func TestARestartedNeighborsCircuitIDIsTakenAnew(t *testing.T) { // FRR #4783
	now := start
	a, b := NewP2P(config(1), now), NewP2P(config(2), now)
	pair(t, &now, start.Add(time.Second), a, b)
	a.Events()
	c := config(2)
	c.Circuit = 77
	b = NewP2P(c, now)
	pair(t, &now, start.Add(3*time.Second), a, b)
	if n := a.Neighbors(); len(n) != 1 || n[0].State != Up || n[0].Circuit != 77 {
		t.Fatalf("%+v", n)
	}
	if got := changes(a.Events()); !slices.Equal(got, []string{"02 down: handshake", "02 up"}) {
		t.Errorf("%q", got)
	}
}

func TestUpInitDownLeavesNoEntry(t *testing.T) { // FRR #16162
	now := start
	a, b := NewP2P(config(1), now), NewP2P(config(2), now)
	pair(t, &now, start.Add(time.Second), a, b)
	down := wire(t, NewP2P(config(2), now).hello(now)) // forgot everything
	a.Receive(now, down, mac2)
	if n := a.Neighbors(); len(n) != 1 || n[0].State != Initializing {
		t.Fatalf("%+v", n)
	}
	now = now.Add(31 * time.Second)
	a.Tick(now)
	if n := a.Neighbors(); len(n) != 0 {
		t.Fatalf("after its holding time: %+v", n)
	}
	if got := changes(a.Events()); !slices.Equal(got, []string{"02 up", "02 down: handshake"}) {
		t.Errorf("%q", got)
	}
}

func TestTheHandshakesTable(t *testing.T) { // RFC 5303 section 3.2
	for _, tc := range []struct {
		have, received, want State
	}{
		{Down, Down, Initializing}, {Down, Initializing, Up}, {Down, Up, Down},
		{Initializing, Down, Initializing}, {Initializing, Initializing, Up}, {Initializing, Up, Up},
		{Up, Down, Initializing}, {Up, Initializing, Up}, {Up, Up, Up},
	} {
		now := start
		a := NewP2P(config(1), now)
		send := func(s State) {
			h := NewP2P(config(2), now).hello(now)
			w := packet.ThreeWay{State: packet.AdjacencyState(2 - s), Circuit: 2, HasNeighbor: true, Neighbor: packet.SystemID{5: 1}, NeighborCircuit: 1}
			h.TLVs = append(slices.DeleteFunc(h.TLVs, func(t packet.TLV) bool { return t.Type == packet.TLVThreeWay }), w.TLV())
			if why := a.Receive(now, wire(t, h), mac2); why != ReasonNone {
				t.Fatal(why)
			}
		}
		for _, s := range map[State][]State{Initializing: {Down}, Up: {Initializing}}[tc.have] {
			send(s)
		}
		send(tc.received)
		got := Down
		if n := a.Neighbors(); len(n) == 1 {
			got = n[0].State
		}
		if got != tc.want {
			t.Errorf("%s, received %s: %s, want %s", tc.have, tc.received, got, tc.want)
		}
	}
}

func TestANeighborWithoutThreeWayComesUpTwoWay(t *testing.T) {
	now := start
	a := NewP2P(config(1), now)
	h := NewP2P(config(2), now).hello(now)
	h.TLVs = slices.DeleteFunc(h.TLVs, func(t packet.TLV) bool { return t.Type == packet.TLVThreeWay })
	a.Receive(now, wire(t, h), mac2)
	if n := a.Neighbors(); len(n) != 1 || n[0].State != Up || n[0].ThreeWay {
		t.Errorf("%+v", n)
	}
}

func TestWhyAHelloIsRefused(t *testing.T) {
	three := func(system byte, circuit uint32) packet.TLV {
		return packet.ThreeWay{Circuit: 2, HasNeighbor: true, Neighbor: packet.SystemID{5: system}, NeighborCircuit: circuit}.TLV()
	}
	for _, tc := range []struct {
		name   string
		ours   func(*Config)
		theirs func(*Config)
		change func(*packet.Hello)
		want   Reason
	}{
		{name: "all is right", want: ReasonNone},
		{name: "our own system ID", theirs: func(c *Config) { c.System = packet.SystemID{5: 1} }, want: ReasonSystemID},
		{name: "maximum of areas", change: func(h *packet.Hello) { h.MaxAreas = 4 }, want: ReasonMaxAreas},
		{name: "maximum of areas, as 3", change: func(h *packet.Hello) { h.MaxAreas = 3 }, want: ReasonNone},
		{name: "another area, level 2", theirs: func(c *Config) { c.Areas = []packet.Area{{0x49, 0, 2}} }, want: ReasonNone},
		{name: "another area, level 1", ours: func(c *Config) { c.Levels = 1 },
			theirs: func(c *Config) { c.Levels, c.Areas = 1, []packet.Area{{0x49, 0, 2}} }, want: ReasonArea},
		{name: "no level in common", theirs: func(c *Config) { c.Levels = 1 }, want: ReasonLevel},
		{name: "no protocol in common", theirs: func(c *Config) { c.IPv6, c.IPv4 = c.IPv4, nil }, change: func(h *packet.Hello) {
			h.TLVs = packet.TLVs{packet.AreasTLV(area), {Type: 129, Value: []byte{packet.NLPIDIPv6}}}
		}, want: ReasonProtocol},
		{name: "TLV 129 is missing", change: func(h *packet.Hello) { h.TLVs = packet.TLVs{packet.AreasTLV(area)} }, want: ReasonProtocol},
		{name: "areas cut", change: func(h *packet.Hello) { h.TLVs[0].Value = []byte{9, 1} }, want: ReasonMalformed},
		{name: "three-way of a wrong length", change: func(h *packet.Hello) { h.TLVs = append(packet.TLVs{{Type: 240, Value: []byte{1, 2}}}, h.TLVs...) }, want: ReasonMalformed},
		{name: "three-way names another system", change: func(h *packet.Hello) { h.TLVs = append(packet.TLVs{three(3, 1)}, h.TLVs...) }, want: ReasonNotForUs},
		{name: "three-way names another circuit", change: func(h *packet.Hello) { h.TLVs = append(packet.TLVs{three(1, 9)}, h.TLVs...) }, want: ReasonNotForUs},
		{name: "a LAN hello", change: func(h *packet.Hello) { h.Type = packet.L2LANHello }, want: ReasonWrongKind},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ours, theirs := config(1), config(2)
			if tc.ours != nil {
				tc.ours(&ours)
			}
			if tc.theirs != nil {
				tc.theirs(&theirs)
			}
			h := NewP2P(theirs, start).hello(start)
			if tc.change != nil {
				tc.change(&h)
			}
			a := NewP2P(ours, start)
			if got := a.Receive(start, wire(t, h), mac2); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if tc.want != ReasonNone && (a.Refused(tc.want) != 1 || len(a.Neighbors()) != 0) {
				t.Errorf("counted %d, neighbours %+v", a.Refused(tc.want), a.Neighbors())
			}
		})
	}
}

func TestAnAdjacencyEndsWithItsReason(t *testing.T) {
	other := config(3)
	noLevel := config(2)
	noLevel.Levels = packet.Level1
	for name, tc := range map[string]struct {
		end  func(a *P2P, now time.Time)
		want string
	}{
		"holding time": {func(a *P2P, now time.Time) { a.Tick(now.Add(40 * time.Second)) }, "02 down: hold-time"},
		"another system": {func(a *P2P, now time.Time) { a.Receive(now, wire(t, NewP2P(other, now).hello(now)), mac3) },
			"02 down: replaced"},
		"the neighbour's level changed": {func(a *P2P, now time.Time) { a.Receive(now, wire(t, NewP2P(noLevel, now).hello(now)), mac2) },
			"02 down: level"},
		"the circuit went down": {func(a *P2P, now time.Time) { a.Stop() }, "02 down: circuit-down"},
	} {
		now := start
		a, b := NewP2P(config(1), now), NewP2P(config(2), now)
		pair(t, &now, start.Add(time.Second), a, b)
		a.Events()
		tc.end(a, now)
		if got := changes(a.Events()); !slices.Equal(got, []string{tc.want}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestARestartingNeighborKeepsItsAdjacency(t *testing.T) { // RFC 8706 section 3.2.1
	now := start
	a, b := NewP2P(config(1), now), NewP2P(config(2), now)
	pair(t, &now, start.Add(time.Second), a, b)
	a.Events()
	h := NewP2P(config(2), now).hello(now) // the handshake is down: it knows nothing
	h.TLVs = append(h.TLVs, packet.Restart{Request: true}.TLV())
	now = now.Add(5 * time.Second)
	a.Receive(now, wire(t, h), mac2)
	if got := changes(a.Events()); !slices.Equal(got, []string{"02 resync"}) {
		t.Fatalf("%q", got)
	}
	sent := a.Tick(now)
	if len(sent) != 1 {
		t.Fatalf("%d hellos at once", len(sent))
	}
	r := wire(t, sent[0]).TLVs.Restart()
	if r == nil || !r.Acknowledge || r.Neighbor != (packet.SystemID{5: 2}) || r.RemainingTime != 30 {
		t.Errorf("%+v", r)
	}
	if sent = a.Tick(now.Add(10 * time.Second)); len(sent) != 1 || sent[0].TLVs.Restart() != nil {
		t.Errorf("acknowledged again: %+v", sent)
	}
}

func TestARestartRequestWithoutAnAdjacencyIsAnOrdinaryHello(t *testing.T) {
	a := NewP2P(config(1), start)
	h := NewP2P(config(2), start).hello(start)
	h.TLVs = append(h.TLVs, packet.Restart{Request: true, Suppress: true}.TLV())
	a.Receive(start, wire(t, h), mac2)
	if n := a.Neighbors(); len(n) != 1 || n[0].State != Initializing || !n[0].Suppressed || len(a.Events()) != 0 {
		t.Errorf("%+v", n)
	}
}

func TestPadding(t *testing.T) {
	for _, tc := range []struct {
		padding      Padding
		before, then int
	}{{PadNever, 0, 0}, {PadUntilUp, 1497, 0}, {PadAlways, 1497, 1497}} {
		now := start
		c := config(1)
		c.Padding, c.Overhead = tc.padding, 19
		a, b := NewP2P(c, now), NewP2P(config(2), now)
		length := func() int {
			raw, err := a.hello(now).Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(raw) < 200 {
				return 0
			}
			return len(raw) + c.Overhead
		}
		if got := length(); got != tc.before {
			t.Errorf("padding %d, not up: %d octets, want %d", tc.padding, got, tc.before)
		}
		pair(t, &now, start.Add(time.Second), a, b)
		if got := length(); got != tc.then {
			t.Errorf("padding %d, up: %d octets, want %d", tc.padding, got, tc.then)
		}
	}
}

func TestHellosAreNotProvoked(t *testing.T) {
	a := NewP2P(config(1), start)
	up := NewP2P(config(2), start)
	up.neighbor = &Neighbor{System: packet.SystemID{5: 1}, State: Up, Circuit: 1}
	h := wire(t, up.hello(start))
	sent := 0
	for i := range 1000 { // a neighbour that insists on a state that isn't there
		now := start.Add(time.Duration(i) * time.Millisecond)
		a.Receive(now, h, mac2)
		sent += len(a.Tick(now))
	}
	if sent > 21 {
		t.Errorf("%d hellos within a second", sent)
	}
}
