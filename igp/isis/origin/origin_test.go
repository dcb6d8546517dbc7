package origin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pncd/igp/isis/packet"
)

var head = packet.TLVs{packet.AreasTLV(packet.Area{0x49, 0, 1}), {Type: packet.TLVDynamicHostname, Value: []byte("r1")}}

func item(n int, body string) Item {
	return Item{Key: fmt.Sprintf("p%06d", n), Type: packet.TLVExtendedIPReach, Body: []byte(body)}
}

func items(from, to int) (all []Item) {
	for n := from; n < to; n++ {
		all = append(all, item(n, fmt.Sprintf("body of %06d", n)))
	}
	return all
}

// state is what the network holds after changes.
type state map[uint8]packet.TLVs

func (s state) apply(t *testing.T, size int, changed []Fragment) {
	t.Helper()
	for _, f := range changed {
		if f.Purge {
			if _, ok := s[f.Number]; !ok {
				t.Fatalf("fragment %d is purged and was never there", f.Number)
			}
			delete(s, f.Number)
			continue
		}
		if f.TLVs.Len()+27 > size {
			t.Fatalf("fragment %d has %d octets", f.Number, f.TLVs.Len()+27)
		}
		if _, err := f.TLVs.Append(nil); err != nil {
			t.Fatal(err)
		}
		s[f.Number] = f.TLVs
	}
}

// holds counts how often a body is announced.
func (s state) holds(t *testing.T, want []Item) {
	t.Helper()
	total := 0
	all := ""
	for _, l := range s {
		for _, v := range l.All(packet.TLVExtendedIPReach) {
			total += len(v)
			all += string(v) + "|"
		}
	}
	octets := 0
	for _, it := range want {
		octets += len(it.Body)
	}
	if total != octets {
		t.Fatalf("%d octets are announced, want %d", total, octets)
	}
}

func TestTenThousandItemsAndBackToOneFragment(t *testing.T) {
	p, s := New(1492), state{}
	all := items(0, 10_000)
	changed, left, err := p.Update(head, all)
	if err != nil || len(left) > 0 {
		t.Fatalf("%d left, %v", len(left), err)
	}
	s.apply(t, 1492, changed)
	s.holds(t, all)
	if len(s) < 96 || len(s) > 105 {
		t.Errorf("%d fragments", len(s))
	}
	changed, _, err = p.Update(head, all[:3])
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, 1492, changed)
	s.holds(t, all[:3])
	if len(s) != 1 || s[0] == nil {
		t.Errorf("%d fragments", len(s))
	}
}

func TestOneChangeFloodsOneFragment(t *testing.T) {
	p := New(1492)
	all := items(0, 5000)
	if _, _, err := p.Update(head, all); err != nil {
		t.Fatal(err)
	}
	if changed, _, _ := p.Update(head, all); len(changed) != 0 {
		t.Fatalf("%d fragments changed with nothing", len(changed))
	}
	all[2500].Body = []byte("other of 002500")[:len(all[2500].Body)]
	if changed, _, _ := p.Update(head, all); len(changed) != 1 {
		t.Errorf("%d fragments changed with one body", len(changed))
	}
	if changed, _, _ := p.Update(head, slices.Delete(slices.Clone(all), 100, 101)); len(changed) != 1 {
		t.Errorf("%d fragments changed with one item less", len(changed))
	}
	if changed, _, _ := p.Update(head, all); len(changed) != 1 {
		t.Errorf("%d fragments changed with one item more", len(changed))
	}
}

func TestTheFirstFragmentIsAlwaysThere(t *testing.T) {
	changed, _, err := New(1492).Update(head, nil)
	if err != nil || len(changed) != 1 || changed[0].Number != 0 || changed[0].Purge || len(changed[0].TLVs) != 2 {
		t.Errorf("%+v, %v", changed, err)
	}
}

func TestWhatDoesNotFitIsSaid(t *testing.T) {
	p := New(200)
	_, left, err := p.Update(head, items(0, 5000))
	if !errors.Is(err, ErrFull) || len(left) == 0 || len(left) == 5000 {
		t.Errorf("%d left, %v", len(left), err)
	}
	if _, left, err = p.Update(head, items(0, 100)); err != nil || len(left) != 0 {
		t.Errorf("afterwards: %d left, %v", len(left), err)
	}
	if _, _, err = New(30).Update(head, nil); !errors.Is(err, ErrHead) {
		t.Errorf("%v", err)
	}
	if _, left, err = New(1492).Update(head, []Item{item(1, string(make([]byte, 256)))}); !errors.Is(err, ErrFull) || len(left) != 1 {
		t.Errorf("%d left, %v", len(left), err)
	}
}

func TestLeadsAreKeptApart(t *testing.T) {
	changed, _, err := New(1492).Update(head, []Item{
		{Key: "a", Type: 237, Lead: "\x00\x02", Body: []byte("one")}, {Key: "b", Type: 237, Lead: "\x00\x02", Body: []byte("two")},
		{Key: "c", Type: 237, Lead: "\x00\x03", Body: []byte("three")},
	})
	if err != nil || len(changed) != 1 {
		t.Fatal(changed, err)
	}
	var got []string
	for _, v := range changed[0].TLVs.All(237) {
		got = append(got, string(v))
	}
	if !slices.Equal(got, []string{"\x00\x02onetwo", "\x00\x03three"}) {
		t.Errorf("%q", got)
	}
}

func TestRandomChangesAnnounceExactlyWhatIsWanted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p, s, now := New(600), state{}, map[int]Item{}
	for step := range 300 {
		for range r.IntN(60) {
			n := r.IntN(700)
			if r.IntN(2) == 0 {
				delete(now, n)
			} else {
				now[n] = item(n, string(make([]byte, 5+r.IntN(80))))
			}
		}
		h := slices.Clone(head)
		for range r.IntN(3) {
			h = append(h, packet.TLV{Type: 250, Value: make([]byte, r.IntN(100))})
		}
		var all []Item
		for _, it := range now {
			all = append(all, it)
		}
		changed, left, err := p.Update(h, all)
		if err != nil || len(left) != 0 {
			t.Fatalf("step %d: %d left, %v", step, len(left), err)
		}
		s.apply(t, 600, changed)
		s.holds(t, all)
	}
}
