package lsdb

import (
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
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

// What has grown old here counted until it is flushed: the flush is a change, or nobody would be told.
func TestAFlushOfWhatHasGrownOldIsAChange(t *testing.T) {
	d := New(0)
	install(t, d, at(0), lsa(t, packet.Header{Key: key(1), Age: 3000}, "a"))
	if _, got := install(t, d, at(600), lsa(t, packet.Header{Key: key(1), Age: packet.MaxAge}, "a")); got != Changed {
		t.Errorf("%d, want %d", got, Changed)
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

func TestADatabaseFullOfOctetsRefusesAllButOwnLSAs(t *testing.T) {
	d := New(1 << 11)
	big := func(n uint32, octets int) packet.LSA {
		return lsa(t, packet.Header{Key: key(n)}, strings.Repeat("x", octets-packet.HeaderLen))
	}
	const each, fit = 1 << 15, 64 // of 2 MiB
	for n := range uint32(fit) {
		install(t, d, at(0), big(n, each))
	}
	refused := func(what string, l packet.LSA) {
		t.Helper()
		if _, _, err := d.Install(at(1), l, false); !errors.Is(err, ErrFull) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another LSA", big(fit, packet.HeaderLen))
	refused("one that grows", big(1, each+1))
	install(t, d, at(1), big(1, each)) // as large as before
	install(t, d, at(1), big(2, each/2))
	install(t, d, at(1), big(fit, each/2))
	refused("another LSA, when there is as much as before", big(fit+1, packet.HeaderLen))
	if _, _, err := d.Install(at(1), big(fit+1, each), true); err != nil {
		t.Errorf("own: %v", err)
	}
	for n := range uint32(fit + 2) {
		d.Remove(key(n))
	}
	for n := range uint32(fit) {
		install(t, d, at(2), big(n, each))
	}
}

func TestASmallDatabaseTakesALargeLSA(t *testing.T) {
	install(t, New(1), at(0), lsa(t, packet.Header{Key: key(1)}, strings.Repeat("x", 0xFFFF-packet.HeaderLen)))
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
		k.Adv = packet.ID(r.Uint32N(5))
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
		if r.IntN(20) == 0 {
			lists(t, d, model)
		}
	}
	lists(t, d, model)
	for k := range model {
		d.Remove(k)
	}
	if n := len(slices.Collect(d.Routers())); n > 0 {
		t.Errorf("nothing is there, of %d routers", n)
	}
}

// lists holds what the database lists, of all routers and of each, beside a model.
func lists(t *testing.T, d *DB, model map[packet.Key]time.Time) {
	t.Helper()
	of := map[packet.ID][]packet.Key{}
	want := slices.SortedFunc(maps.Keys(model), packet.Key.Compare)
	for _, k := range want {
		of[k.Adv] = append(of[k.Adv], k)
	}
	if got := keys(d.All()); !slices.Equal(got, want) {
		t.Fatalf("listed are %v, want %v", got, want)
	}
	for adv := range packet.ID(6) {
		if got := keys(d.ByRouter(adv)); !slices.Equal(got, of[adv]) {
			t.Fatalf("of router %d are listed %v, want %v", adv, got, of[adv])
		}
	}
	if got, want := slices.Sorted(d.Routers()), slices.Sorted(maps.Keys(of)); !slices.Equal(got, want) {
		t.Fatalf("routers %v, want %v", got, want)
	}
}

func keys(list iter.Seq[*Entry]) (out []packet.Key) {
	for e := range list {
		out = append(out, e.Key)
	}
	return out
}

func TestAListMayEndEarly(t *testing.T) {
	d := New(0)
	for n := range uint32(3) {
		install(t, d, at(0), lsa(t, packet.Header{Key: key(2 - n)}, ""))
	}
	for e := range d.All() {
		if e.ID != 0 {
			t.Errorf("%s is first", e.Key)
		}
		break
	}
}

// BenchmarkInstall fills a database with LSAs in random order and lists it.
func BenchmarkInstall(b *testing.B) {
	const n = 100_000
	list := make([]packet.LSA, n)
	for i, j := range rand.New(rand.NewPCG(5, 6)).Perm(n) {
		list[i], _ = packet.NewLSA(packet.V2, packet.Header{Key: packet.Key{Type: packet.V2External, ID: packet.ID(j), Adv: packet.ID(j % 1000)}}, make([]byte, 16))
	}
	b.ReportAllocs()
	for b.Loop() {
		d := New(n)
		for _, l := range list {
			if _, _, err := d.Install(start, l, false); err != nil {
				b.Fatal(err)
			}
		}
		if got := len(keys(d.All())); got != n {
			b.Fatalf("%d listed", got)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/LSA")
}

// BenchmarkByRouter reads the LSAs of one router among 1000, after one of them came and went.
func BenchmarkByRouter(b *testing.B) {
	d := New(0)
	for i := range 100_000 {
		l, _ := packet.NewLSA(packet.V2, packet.Header{Key: packet.Key{Type: packet.V2External, ID: packet.ID(i), Adv: packet.ID(i % 1000)}}, nil)
		if _, _, err := d.Install(start, l, false); err != nil {
			b.Fatal(err)
		}
	}
	other, _ := packet.NewLSA(packet.V2, packet.Header{Key: packet.Key{Type: packet.V2Router, ID: 7, Adv: 7}}, nil)
	for b.Loop() {
		if _, _, err := d.Install(start, other, false); err != nil {
			b.Fatal(err)
		}
		if n := len(keys(d.ByRouter(7))); n != 101 {
			b.Fatalf("%d LSAs", n)
		}
		d.Remove(other.Key)
	}
}
