package lsdb

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pncd/igp/isis/packet"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func put(t *testing.T, d *DB, now time.Time, system byte, seq uint32, life uint16) *Entry {
	t.Helper()
	p := packet.LSP{Header: packet.Header{Type: packet.L2LSP}, ID: packet.LSPID{5: system}, Sequence: seq, Lifetime: life,
		TLVs: packet.TLVs{{Type: 250, Value: []byte{1, 2, 3}}}}
	raw, err := p.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Checksum = packet.SetChecksum(raw)
	e, err := d.Put(now, p, raw, false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOrderOfInstances(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, b Version
		want Order
	}{
		{"greater sequence number", Version{Sequence: 2}, Version{Sequence: 1}, Newer},
		{"greater sequence number than a purge", Version{Sequence: 2}, Version{Sequence: 1, Purged: true}, Newer},
		{"beyond 2^31", Version{Sequence: 0xFFFFFFFF}, Version{Sequence: 1}, Newer},
		{"purge of the same", Version{Sequence: 1, Purged: true}, Version{Sequence: 1, Checksum: 7}, Newer},
		{"two purges", Version{Sequence: 1, Purged: true}, Version{Sequence: 1, Checksum: 7, Purged: true}, Same},
		{"the same", Version{Sequence: 1, Checksum: 7}, Version{Sequence: 1, Checksum: 7}, Same},
		{"other contents", Version{Sequence: 1, Checksum: 7}, Version{Sequence: 1, Checksum: 8}, Confused},
	} {
		if got := tc.a.Compare(tc.b); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
		back := tc.want
		if back == Newer {
			back = Older
		}
		if got := tc.b.Compare(tc.a); got != back {
			t.Errorf("%s, the other way: %d, want %d", tc.name, got, back)
		}
	}
}

func TestAnLSPThatLivesIsNeverSentWithLifetimeZero(t *testing.T) {
	d := New(Config{})
	e := put(t, d, start, 2, 1, 1200)
	for _, at := range []time.Duration{1199 * time.Second, 1199*time.Second + 999*time.Millisecond, 1300 * time.Second} {
		if got := e.Lifetime(start.Add(at)); got != 1 {
			t.Errorf("after %s: %d", at, got)
		}
	}
	if got := e.Lifetime(start.Add(time.Millisecond)); got != 1200 {
		t.Errorf("at the begin: %d", got)
	}
}

func TestWhatIsExpiredIsHeaderOnly(t *testing.T) {
	d := New(Config{})
	put(t, d, start, 2, 1, 1200)
	expired, _ := d.Expire(start.Add(1200 * time.Second))
	if len(expired) != 1 || !expired[0].Purged || len(expired[0].LSP().TLVs) != 0 || d.Get(packet.LSPID{5: 2}) != expired[0] {
		t.Fatalf("%+v", expired)
	}
	raw := expired[0].AppendTo(nil, start)
	if p, err := packet.ParseLSP(raw); err != nil || p.Lifetime != 0 || p.Sequence != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestSequenceNumberZeroIsNotStored(t *testing.T) {
	if _, err := New(Config{}).Put(start, packet.LSP{}, nil, false); !errors.Is(err, ErrZeroSequence) {
		t.Error(err)
	}
}

// TestAgainstAModel compares with a map that is searched from end to end.
func TestAgainstAModel(t *testing.T) {
	type modelled struct {
		ends   time.Time
		purged bool
	}
	r := rand.New(rand.NewPCG(1, 2))
	d, model, now := New(Config{}), map[packet.LSPID]modelled{}, start
	for step := range 20_000 {
		now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
		d.Expire(now)
		for id, m := range model {
			for !m.ends.After(now) && model[id] != (modelled{}) {
				if m.purged {
					delete(model, id)
					break
				}
				// Expire sees the end of the lifetime now, and counts ZeroAge from there.
				m = modelled{now.Add(60 * time.Second), true}
				model[id] = m
			}
		}
		system := byte(r.IntN(200))
		life := uint16(0)
		if r.IntN(3) > 0 {
			life = uint16(1200 + r.IntN(100))
		}
		put(t, d, now, system, uint32(step+1), life)
		m := modelled{now.Add(time.Duration(life) * time.Second), false}
		if life == 0 {
			m = modelled{now.Add(60 * time.Second), true}
		}
		model[packet.LSPID{5: system}] = m

		if d.Len() != len(model) {
			t.Fatalf("step %d: %d LSPs, want %d", step, d.Len(), len(model))
		}
		var ids []packet.LSPID
		next := time.Time{}
		for e := range d.All() {
			ids = append(ids, e.ID)
			if m := model[e.ID]; m.purged != e.Purged {
				t.Fatalf("step %d: %s purged %v, want %v", step, e.ID, e.Purged, m.purged)
			}
		}
		for _, m := range model {
			if next.IsZero() || m.ends.Before(next) {
				next = m.ends
			}
		}
		if !slices.IsSortedFunc(ids, packet.LSPID.Compare) || len(ids) != len(model) {
			t.Fatalf("step %d: %d LSPs in order, want %d", step, len(ids), len(model))
		}
		if !d.Wake().Equal(next) {
			t.Fatalf("step %d: wakes at %s, want %s", step, d.Wake(), next)
		}
	}
}
