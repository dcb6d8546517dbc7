package neighbor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pncd/igp/ospf/packet"
)

// end is one of two machines over a bad link, with the part of flooding that answers requests.
type end struct {
	m  *Machine
	db memory
	in []arrival
}

type arrival struct {
	at   time.Time
	body packet.Body
}

// TestTwoMachines holds that two machines over a link that loses, repeats and reorders packets become full,
// with the same database.
func TestTwoMachines(t *testing.T) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		for seed := range uint64(40) {
			t.Run(fmt.Sprintf("%s/%d", v, seed), func(t *testing.T) { twoMachines(t, v, rand.New(rand.NewPCG(seed, 1))) })
		}
	}
}

func twoMachines(t *testing.T, v packet.Version, r *rand.Rand) {
	var ends [2]*end
	for i := range ends {
		db := memory{v, map[packet.Key]packet.LSA{}}
		for n := range 300 {
			if r.IntN(3) == 0 {
				continue
			}
			h := packet.Header{Key: packet.Key{Type: kinds[v][""], ID: packet.ID(n), Adv: 9}, Sequence: int32(1 + r.IntN(2))}
			l, err := packet.NewLSA(v, h, make([]byte, 40))
			if err != nil {
				t.Fatal(err)
			}
			db.lsas[l.Key] = l
		}
		ends[i] = &end{db: db, m: New(Config{Version: v, Router: packet.ID(i + 1), Options: packet.OptionE, MTU: 600}, packet.ID(2-i), db)}
		ends[i].m.AdjOK(begin, true)
	}
	now, hello := begin, begin
	for steps := 0; !ends[0].m.Full() || !ends[1].m.Full() || len(ends[0].db.lsas) != len(ends[1].db.lsas); steps++ {
		if steps > 100000 {
			t.Fatalf("after %v: %v and %v", now.Sub(begin), ends[0].m.state, ends[1].m.state)
		}
		if !hello.After(now) {
			hello = now.Add(10 * time.Second)
			for _, e := range ends {
				e.m.Hello(now)
				e.m.TwoWay(now)
			}
		}
		for i, e := range ends {
			e.arrive(t, now)
			for _, b := range e.m.Tick(now) {
				ends[1-i].carry(r, now, again(t, v, b))
			}
		}
		now = next(now, hello, ends)
	}
	for k, l := range ends[0].db.lsas {
		if other := ends[1].db.lsas[k]; other.Newer(l.Header) != 0 {
			t.Errorf("%v: %+v and %+v", k, l.Header, other.Header)
		}
	}
}

// again is the body after a way over the wire.
func again(t *testing.T, v packet.Version, b packet.Body) packet.Body {
	p := packet.Packet{Version: v, Body: b}
	raw := p.Append(nil)
	if len(raw) > 600-20 {
		t.Fatalf("a %s of %d octets", p.Type(), len(raw))
	}
	q, err := packet.Parse(v, raw)
	if err != nil {
		t.Fatal(err)
	}
	return q.Body
}

// carry loses a fifth of the packets, repeats a tenth, and delays all of them by something.
func (e *end) carry(r *rand.Rand, now time.Time, b packet.Body) {
	copies := 1
	switch r.IntN(10) {
	case 0, 1:
		copies = 0
	case 2:
		copies = 2
	}
	for range copies {
		e.in = append(e.in, arrival{now.Add(time.Duration(1+r.IntN(50)) * time.Millisecond), b})
	}
}

func (e *end) arrive(t *testing.T, now time.Time) {
	slices.SortStableFunc(e.in, func(a, b arrival) int { return a.at.Compare(b.at) })
	for len(e.in) > 0 && !e.in[0].at.After(now) {
		b := e.in[0].body
		e.in = e.in[1:]
		u, ok := b.(*packet.Update)
		if !ok {
			e.m.Receive(now, b)
			continue
		}
		if !e.m.Flooding() {
			continue
		}
		for _, l := range u.LSAs {
			if have, ok := e.db.lsas[l.Key]; !ok || l.Newer(have.Header) > 0 {
				e.db.lsas[l.Key] = l
			}
			e.m.Satisfy(l.Key)
		}
	}
}

func next(now, hello time.Time, ends [2]*end) time.Time {
	at := hello
	for _, e := range ends {
		at = first(at, e.m.Wake())
		for _, a := range e.in {
			at = first(at, a.at)
		}
	}
	if at.After(now) {
		return at
	}
	return now
}

// FuzzReceive holds that no packets in no order break a machine: it sends no more than one description and
// one request at a time, wants no tick again and again, and is full only with nothing left to ask for.
func FuzzReceive(f *testing.F) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		var in []byte
		for _, b := range []packet.Body{
			&packet.Description{MTU: 1500, Options: packet.OptionE | packet.V2OptO, Flags: 7, Sequence: 7},
			&packet.Description{MTU: 1500, Options: packet.OptionE | packet.V2OptO, Flags: 1, Sequence: 8, Headers: []packet.Header{{Key: packet.Key{Type: kinds[v][""], ID: 1}, Length: 20}}},
			&packet.Request{Keys: []packet.Key{{Type: kinds[v][""], ID: 9, Adv: 9}}},
		} {
			p := packet.Packet{Version: v, Body: b}
			in = append(p.Append(in), 0)
		}
		f.Add(uint8(v), in)
	}
	f.Fuzz(func(t *testing.T, version uint8, in []byte) {
		v := packet.V2 + packet.Version(version&1)
		db := memory{v, map[packet.Key]packet.LSA{}}
		l, _ := packet.NewLSA(v, packet.Header{Key: packet.Key{Type: kinds[v][""], ID: 9, Adv: 9}, Sequence: 1}, nil)
		db.lsas[l.Key] = l
		m, now := New(Config{Version: v, Router: 2, Options: packet.OptionE, MTU: 1500}, 3, db), begin
		m.AdjOK(now, true)
		m.Hello(now)
		for len(in) > 0 {
			p, err := packet.Parse(v, in)
			if err != nil {
				in = in[1:]
				continue
			}
			in = in[packet.Length(in):]
			if len(in) > 0 {
				now = now.Add(time.Duration(in[0]) * time.Second / 8)
			}
			m.Receive(now, p.Body)
			step(t, m, now)
			if u, ok := p.Body.(*packet.Update); ok {
				for _, l := range u.LSAs {
					m.Satisfy(l.Key)
				}
			}
		}
	})
}

func step(t *testing.T, m *Machine, now time.Time) {
	kinds := map[packet.Type]int{}
	for _, b := range m.Tick(now) {
		p := packet.Packet{Version: m.cfg.Version, Body: b}
		p.Append(nil)
		kinds[p.Type()]++
	}
	if kinds[packet.TypeDescription] > 1 || kinds[packet.TypeRequest] > 1 {
		t.Fatalf("sent at once: %v", kinds)
	}
	if at := m.Wake(); !at.IsZero() && !at.After(now) {
		t.Fatalf("wants a tick at %v again, it is %v", at, now)
	}
	if m.Full() && m.Requests() > 0 {
		t.Fatalf("full with %d requests", m.Requests())
	}
	for _, e := range m.Events() {
		if e.From == e.To && e.To != ExStart {
			t.Fatalf("an event without a change: %+v", e)
		}
	}
}
