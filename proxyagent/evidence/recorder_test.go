package evidence

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	pncv1 "pncd/api/pnc/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	start    = time.Unix(1_800_000_000, 0)
	sender   = netip.MustParseAddr("198.51.100.2")
	receiver = netip.MustParseAddr("192.0.2.1")
)

const miss = pncv1.Outcome_OUTCOME_PROXY_MAP_MISS

func newRecorder(t *testing.T, capacity int) *Recorder {
	t.Helper()
	r, err := NewRecorder(Config{Node: "r1", Boot: "b1", Capacity: capacity})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func record(i int) *Record {
	return &Record{
		At: start.Add(time.Duration(i) * time.Second), Outcome: miss,
		Flow: Flow{Sender: sender, Receiver: receiver, DestQP: uint32(i)},
	}
}

func sequences(records []Record) []uint64 {
	var all []uint64
	for i := range records {
		all = append(all, records[i].Sequence)
	}
	return all
}

func TestRingKeepsTheNewestInOrder(t *testing.T) {
	r := newRecorder(t, 4)
	for i := range 10 {
		r.Record(record(i))
	}
	for _, tc := range []struct {
		limit int
		want  []uint64
	}{{0, []uint64{7, 8, 9, 10}}, {2, []uint64{9, 10}}, {100, []uint64{7, 8, 9, 10}}} {
		got := r.List(Filter{}, tc.limit)
		if !equal(sequences(got), tc.want) {
			t.Errorf("limit %d: sequences %v, want %v", tc.limit, sequences(got), tc.want)
		}
		for i := range got {
			if uint64(got[i].Flow.DestQP) != got[i].Sequence-1 {
				t.Errorf("sequence %d holds record %d", got[i].Sequence, got[i].Flow.DestQP)
			}
		}
	}
	if r.Overwritten() != 6 || r.Dropped() != 0 || r.Outcome(miss) != 10 {
		t.Errorf("overwritten %d, dropped %d, counted %d; want 6, 0, 10", r.Overwritten(), r.Dropped(), r.Outcome(miss))
	}
}

func equal(a, b []uint64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestListBeforeAnythingIsEmpty(t *testing.T) {
	if got := newRecorder(t, 4).List(Filter{}, 0); len(got) != 0 {
		t.Errorf("%d records", len(got))
	}
}

func TestNegativeCapacityIsRefused(t *testing.T) {
	if _, err := NewRecorder(Config{Capacity: -1}); err == nil {
		t.Error("no error")
	}
}

func TestOfferKeepsWithoutCounting(t *testing.T) {
	r := newRecorder(t, 4)
	r.Offer(record(1))
	if r.Outcome(miss) != 0 || len(r.List(Filter{}, 0)) != 1 {
		t.Errorf("counted %d, kept %d; want 0, 1", r.Outcome(miss), len(r.List(Filter{}, 0)))
	}
}

func TestAWriterDoesNotWaitForAReader(t *testing.T) {
	r := newRecorder(t, 1)
	r.ring.slots[0].mu.Lock() // a reader that is just copying
	r.Record(record(1))       // would deadlock if it waited
	r.ring.slots[0].mu.Unlock()
	if r.Dropped() != 1 || r.Outcome(miss) != 1 {
		t.Errorf("dropped %d, counted %d; want 1, 1", r.Dropped(), r.Outcome(miss))
	}
	r.Record(record(2))
	if got := sequences(r.List(Filter{}, 0)); !equal(got, []uint64{2}) {
		t.Errorf("sequences %v; the gap must show", got)
	}
}

func TestARecordOvertakenByALapIsDropped(t *testing.T) {
	r := newRecorder(t, 1)
	r.ring.slots[0].rec.Sequence = 99
	r.Record(record(1))
	if r.Dropped() != 1 || r.ring.slots[0].rec.Sequence != 99 {
		t.Errorf("dropped %d, slot holds %d", r.Dropped(), r.ring.slots[0].rec.Sequence)
	}
}

// The sum of outcomes equals the number received, whatever becomes of the records.
func TestCountersAreExactUnderLoadWhileRecordsAreDropped(t *testing.T) {
	const writers, each = 8, 20_000
	r := newRecorder(t, 8) // small, so that writers and readers collide
	outcomes := Outcomes(PartProxy)
	done := make(chan struct{})
	var readers, all sync.WaitGroup
	w := r.Watch(Filter{}, false) // never read
	defer w.Close()
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				r.List(Filter{}, 0)
			}
		}
	})
	for g := range writers {
		all.Go(func() {
			for i := range each {
				r.Received(PartProxy, 1)
				rec := record(i)
				rec.Outcome = outcomes[(g+i)%len(outcomes)]
				r.Record(rec)
			}
		})
	}
	all.Wait()
	close(done)
	readers.Wait()
	if got := r.Sum(PartProxy); got != writers*each || r.TotalReceived(PartProxy) != writers*each {
		t.Errorf("outcomes sum up to %d, received %d; want %d", got, r.TotalReceived(PartProxy), writers*each)
	}
	var sum uint64
	for _, o := range outcomes {
		sum += r.Outcome(o)
		if n := r.Outcome(o); n < writers*each/uint64(len(outcomes))-writers || n > writers*each/uint64(len(outcomes))+writers {
			t.Errorf("%s: %d", Name(o), n)
		}
	}
	if sum != writers*each {
		t.Errorf("sum %d", sum)
	}
	for _, rec := range r.List(Filter{}, 0) {
		if rec.Sequence == 0 || rec.Flow.Sender != sender {
			t.Errorf("torn record %+v", rec)
		}
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	r := newRecorder(t, 64)
	w := r.Watch(Filter{}, false)
	defer w.Close()
	rec := record(1)
	if allocs := testing.AllocsPerRun(1000, func() { r.Record(rec) }); allocs != 0 {
		t.Errorf("%v allocations for each record", allocs)
	}
}

func TestFilterChoosesByEachField(t *testing.T) {
	rec := record(5)
	other := netip.MustParseAddr("2001:db8::1")
	set := func(o ...Outcome) (s OutcomeSet) {
		for _, x := range o {
			s.Add(x)
		}
		return s
	}
	for _, tc := range []struct {
		name string
		f    Filter
		want bool
	}{
		{"all", Filter{}, true},
		{"sender", Filter{Sender: sender}, true},
		{"other sender", Filter{Sender: other}, false},
		{"receiver", Filter{Receiver: receiver}, true},
		{"other receiver", Filter{Receiver: sender}, false},
		{"QP", Filter{HasDestQP: true, DestQP: 5}, true},
		{"other QP", Filter{HasDestQP: true, DestQP: 6}, false},
		{"the default context", Filter{Context: new(string)}, true},
		{"another context", Filter{Context: &[]string{"blue"}[0]}, false},
		{"QP not asked for", Filter{DestQP: 6}, true},
		{"outcome", Filter{Outcomes: set(miss, 1)}, true},
		{"other outcome", Filter{Outcomes: set(1)}, false},
		{"since its time", Filter{Since: rec.At}, true},
		{"since later", Filter{Since: rec.At.Add(1)}, false},
		{"until its time", Filter{Until: rec.At}, false},
		{"until later", Filter{Until: rec.At.Add(1)}, true},
	} {
		if got := tc.f.Match(rec); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if (&Filter{HasDestQP: true}).Match(&Record{}) {
		t.Error("QP 0 chooses a record without a flow")
	}
}

func TestWatchGivesHistoryThenNewOnesEachOnce(t *testing.T) {
	r := newRecorder(t, 8)
	for i := range 3 {
		r.Record(record(i))
	}
	w := r.Watch(Filter{}, true)
	defer w.Close()
	w.offer(&w.history[2]) // a record that came between registering and reading the history
	for i := range 2 {
		r.Record(record(3 + i))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for want := uint64(1); want <= 5; want++ {
		rec, dropped, err := w.Next(ctx)
		if err != nil || rec.Sequence != want || dropped != 0 {
			t.Fatalf("sequence %d, dropped %d, error %v; want %d", rec.Sequence, dropped, err, want)
		}
	}
}

func TestWatchCountsWhatASlowReaderMissed(t *testing.T) {
	r := newRecorder(t, 8)
	w := r.Watch(Filter{HasDestQP: true, DestQP: 7}, false)
	defer w.Close()
	for range DefaultWatchQueue + 5 {
		r.Record(record(7))
		r.Record(record(8)) // not asked for, so not missed
	}
	rec, dropped, err := w.Next(context.Background())
	if err != nil || rec.Sequence != 1 || dropped != 5 {
		t.Errorf("sequence %d, dropped %d, error %v; want 1, 5", rec.Sequence, dropped, err)
	}
	if _, dropped, _ = w.Next(context.Background()); dropped != 0 {
		t.Errorf("dropped %d told twice", dropped)
	}
}

func TestWatchEndsByContextAndByClose(t *testing.T) {
	r := newRecorder(t, 8)
	w := r.Watch(Filter{}, false)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	errs := make(chan error)
	go func() {
		_, _, err := w.Next(context.Background())
		errs <- err
	}()
	w.Close()
	w.Close()
	if err := <-errs; !errors.Is(err, ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
	if n := len(*r.watchers.Load()); n != 0 {
		t.Errorf("%d watchers left", n)
	}
	r.Record(record(1))
}

func BenchmarkRecord(b *testing.B) {
	b.ReportAllocs()
	r, err := NewRecorder(Config{})
	if err != nil {
		b.Fatal(err)
	}
	rec := record(1)
	for b.Loop() {
		r.Record(rec)
	}
}

func TestMadeCountsRecordsAndNotOutcomes(t *testing.T) {
	r, err := NewRecorder(Config{Capacity: 2})
	if err != nil {
		t.Fatal(err)
	}
	rec := Record{Outcome: pncv1.Outcome_OUTCOME_PROXY_RECEIVE_OVERFLOW}
	r.Count(rec.Outcome, 100)
	r.Offer(&rec) // one record stands for the hundred
	for range 3 {
		r.Record(&Record{Outcome: pncv1.Outcome_OUTCOME_SENT})
	}
	if r.Made() != 4 || r.Overwritten() != 2 {
		t.Errorf("made %d, overwritten %d; want 4, 2", r.Made(), r.Overwritten())
	}
}
