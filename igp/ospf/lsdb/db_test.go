package lsdb

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pncd/igp/ospf/packet"
)

var start = time.Unix(1_700_000_000, 0)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func lsa(t *testing.T, h packet.Header, body string) packet.LSA {
	t.Helper()
	l, err := packet.NewLSA(packet.V3, h, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func key(n uint32) packet.Key { return packet.Key{Type: packet.V3Router, ID: packet.ID(n), Adv: 1} }

func install(t *testing.T, d *DB, now time.Time, l packet.LSA) (*Entry, Change) {
	t.Helper()
	e, c, err := d.Install(now, l, false)
	if err != nil {
		t.Fatal(err)
	}
	return e, c
}

func TestTheAgeGrows(t *testing.T) {
	d := New(0)
	e, _ := install(t, d, at(0), lsa(t, packet.Header{Age: 100, Key: key(1)}, ""))
	if got := e.Age(at(50)); got != 150 {
		t.Errorf("after 50 s: %d", got)
	}
	if got := e.Age(at(-50)); got != 100 {
		t.Errorf("the clock went back: %d", got)
	}
	if got := e.Age(at(10_000)); got != packet.MaxAge {
		t.Errorf("after all: %d", got)
	}
	if got := e.HeaderNow(at(50)).Age; got != 150 {
		t.Errorf("header: %d", got)
	}
	if got, err := packet.ParseLSA(packet.V3, e.AppendTo(nil, at(50), 1)); err != nil || got.Age != 151 || !got.ChecksumOK() {
		t.Errorf("sent: %+v, %v", got.Header, err)
	}
	if got, err := packet.ParseLSA(packet.V3, e.AppendTo(nil, at(3499), 5)); err != nil || got.Age != packet.MaxAge {
		t.Errorf("sent at its end: %+v, %v", got.Header, err)
	}
}

// RFC 1793 section 2.2.
func TestWithDoNotAgeTheAgeStays(t *testing.T) {
	d := New(0)
	e, _ := install(t, d, at(0), lsa(t, packet.Header{Age: packet.DoNotAge | 7, Key: key(1)}, ""))
	if got := e.Age(at(9999)); got != 7 {
		t.Errorf("age %d", got)
	}
	if got := e.HeaderNow(at(9999)).Age; got != packet.DoNotAge|7 {
		t.Errorf("header %#x", got)
	}
	if !d.Wake().IsZero() || len(d.Aged(at(9999))) != 0 {
		t.Error("it reached MaxAge")
	}
	flushed, _ := install(t, d, at(1), lsa(t, packet.Header{Age: packet.DoNotAge | packet.MaxAge, Key: key(2)}, ""))
	if got := flushed.Age(at(1)); got != packet.MaxAge {
		t.Errorf("DoNotAge and MaxAge: %d", got)
	}
}

func TestWhatReachesMaxAgeIsToldOnce(t *testing.T) {
	d := New(0)
	install(t, d, at(0), lsa(t, packet.Header{Age: 3000, Key: key(1)}, ""))
	install(t, d, at(0), lsa(t, packet.Header{Age: 3500, Key: key(2)}, ""))
	install(t, d, at(10), lsa(t, packet.Header{Age: packet.MaxAge, Key: key(3)}, ""))
	install(t, d, at(20), lsa(t, packet.Header{Age: 0, Key: key(1)}, "")) // a refresh
	told := func(now time.Time) (ids []packet.ID) {
		for _, e := range d.Aged(now) {
			ids = append(ids, e.ID)
		}
		return ids
	}
	if got := told(at(20)); !slices.Equal(got, []packet.ID{3}) {
		t.Errorf("%v", got)
	}
	if got := d.Wake(); !got.Equal(at(100)) {
		t.Errorf("wake %s", got.Sub(start))
	}
	if got := told(at(100)); !slices.Equal(got, []packet.ID{2}) {
		t.Errorf("%v", got)
	}
	if got := told(at(3619)); got != nil {
		t.Errorf("%v", got)
	}
	if got := told(at(3620)); !slices.Equal(got, []packet.ID{1}) {
		t.Errorf("%v", got)
	}
	if d.Len() != 3 {
		t.Error("they went by themselves")
	}
	if !d.Remove(key(1)) || d.Remove(key(1)) || d.Get(key(1)) != nil || d.Len() != 2 {
		t.Error("removing")
	}
}

// RFC 2328 section 13.2.
func TestWhatCountsAsAChange(t *testing.T) {
	d := New(0)
	h := packet.Header{Key: key(1), Sequence: 1}
	steps := []struct {
		name string
		age  uint16
		body string
		want Change
	}{
		{"the first", 0, "a", Added},
		{"a refresh", 0, "a", Refreshed},
		{"another body", 0, "b", Changed},
		{"a longer body", 0, "bc", Changed},
		{"a flush", packet.MaxAge, "bc", Changed},
		{"flushed again", packet.MaxAge, "bc", Refreshed},
		{"alive again", 5, "bc", Changed},
	}
	for i, s := range steps {
		h.Sequence, h.Age = int32(i), s.age
		if _, got := install(t, d, at(i), lsa(t, h, s.body)); got != s.want {
			t.Errorf("%s: %d, want %d", s.name, got, s.want)
		}
	}
}

func TestAFullDatabaseRefusesAllButOwnLSAs(t *testing.T) {
	d := New(2)
	install(t, d, at(0), lsa(t, packet.Header{Key: key(1)}, ""))
	install(t, d, at(0), lsa(t, packet.Header{Key: key(2)}, ""))
	if _, _, err := d.Install(at(0), lsa(t, packet.Header{Key: key(3)}, ""), false); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	install(t, d, at(0), lsa(t, packet.Header{Key: key(2)}, "new")) // in place of another
	if _, _, err := d.Install(at(0), lsa(t, packet.Header{Key: key(3)}, ""), true); err != nil || d.Len() != 3 {
		t.Errorf("own: %v", err)
	}
}

func TestTheOctetsAreCopied(t *testing.T) {
	d := New(0)
	l := lsa(t, packet.Header{Key: key(1)}, "abc")
	e, _ := install(t, d, at(0), l)
	l.Raw[packet.HeaderLen] = 'x'
	if string(e.Body()) != "abc" {
		t.Errorf("%q", e.Body())
	}
}

func TestManyChangesBesideAModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	d, model := New(0), map[packet.Key]time.Time{}
	for i := range 5000 {
		k, now := key(r.Uint32N(200)), at(i)
		switch {
		case r.IntN(4) == 0:
			_, there := model[k]
			if d.Remove(k) != there {
				t.Fatalf("step %d: remove %s", i, k)
			}
			delete(model, k)
		default:
			age := uint16(r.UintN(packet.MaxAge))
			install(t, d, now, lsa(t, packet.Header{Age: age, Key: k}, ""))
			model[k] = now.Add(time.Duration(packet.MaxAge-age) * time.Second)
		}
		for _, e := range d.Aged(now) {
			if due, ok := model[e.Key]; !ok || due.After(now) {
				t.Fatalf("step %d: %s told at the wrong time", i, e.Key)
			}
			d.Remove(e.Key)
			delete(model, e.Key)
		}
		next := time.Time{}
		for _, due := range model {
			if !due.After(now) {
				t.Fatalf("step %d: one was not told", i)
			}
			if next.IsZero() || due.Before(next) {
				next = due
			}
		}
		if !d.Wake().Equal(next) || d.Len() != len(model) {
			t.Fatalf("step %d: wake %s, %d LSAs; want %s, %d", i, d.Wake(), d.Len(), next, len(model))
		}
	}
	var keys []packet.Key
	for e := range d.All() {
		keys = append(keys, e.Key)
	}
	if !slices.IsSortedFunc(keys, packet.Key.Compare) || len(keys) != len(model) {
		t.Errorf("%d keys, want %d in order", len(keys), len(model))
	}
}
