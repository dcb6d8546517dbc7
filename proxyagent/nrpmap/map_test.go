package nrpmap

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	t0 = time.Unix(1_700_000_000, 0)
	a1 = netip.MustParseAddr("198.51.100.2")
	b1 = netip.MustParseAddr("192.0.2.1")
	c6 = netip.MustParseAddr("2001:db8::1")
)

func toVPN(nrp uint32, name string) Mapping { return Mapping{Key: Key{NRP: nrp}, Context: name} }

func toQP(nrp, qp uint32, context string) Mapping {
	return Mapping{Key: Key{nrp, a1, b1}, SourceQP: qp, Context: context}
}

func TestTheEntryOfTheFlowComesBeforeThatOfTheVPN(t *testing.T) {
	m := New(100)
	if _, err := m.Set([]Mapping{toVPN(7, "blue"), toQP(7, 0x123, "red"), toQP(8, 0x124, "")}, t0); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		nrp              uint32
		sender, receiver netip.Addr
		want             string
	}{
		{7, a1, b1, "nrp 7 198.51.100.2>192.0.2.1"}, {7, b1, a1, "nrp 7"}, {7, a1, c6, "nrp 7"},
		{8, a1, b1, "nrp 8 198.51.100.2>192.0.2.1"}, {8, b1, a1, ""}, {0, a1, b1, ""},
	} {
		e, ok := m.Lookup(tc.nrp, tc.sender, tc.receiver)
		if ok != (tc.want != "") || ok && e.Key.String() != tc.want {
			t.Errorf("nrp %d %s>%s: %v, %+v", tc.nrp, tc.sender, tc.receiver, ok, e)
		}
	}
	if n := testing.AllocsPerRun(100, func() { m.Lookup(7, b1, a1) }); n != 0 {
		t.Errorf("%v allocations in a look-up", n)
	}
}

func TestVersionsStepWithChangesOnly(t *testing.T) {
	m := New(100)
	set := func(at time.Time, list ...Mapping) []Entry {
		t.Helper()
		out, err := m.Set(list, at)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := set(t0, toVPN(7, "blue"), toVPN(8, "red"))
	if first[0].Version != 1 || first[1].Version != 2 || m.Snapshot().Version() != 2 {
		t.Errorf("%+v", first)
	}
	again := set(t0.Add(time.Second), toVPN(7, "blue"), toVPN(8, "green"))
	if again[0] != first[0] || again[1].Version != 3 || !again[1].ChangedAt.Equal(t0.Add(time.Second)) {
		t.Errorf("%+v", again)
	}
	if err := m.Delete(Key{NRP: 8}); err != nil || m.Snapshot().Version() != 4 {
		t.Errorf("%v, version %d", err, m.Snapshot().Version())
	}
	if err := m.Delete(Key{NRP: 8}); !errors.Is(err, ErrNotFound) || m.Snapshot().Version() != 4 {
		t.Errorf("%v, version %d", err, m.Snapshot().Version())
	}
}

func TestTheConfigurationsEntriesAreTheConfigurations(t *testing.T) {
	m := New(100)
	if _, err := m.Set([]Mapping{toVPN(1, "api"), toVPN(2, "api")}, t0); err != nil {
		t.Fatal(err)
	}
	configure := func(list ...Mapping) {
		t.Helper()
		if err := m.Configure(list, 100, t0); err != nil {
			t.Fatal(err)
		}
	}
	configure(toVPN(2, "file"), toVPN(3, "file"))
	if _, err := m.Set([]Mapping{toVPN(1, "other"), toVPN(3, "api")}, t0); !errors.Is(err, ErrConfigured) || !strings.Contains(err.Error(), "mappings[1]") {
		t.Errorf("%v", err)
	}
	if err := m.Delete(Key{NRP: 3}); !errors.Is(err, ErrConfigured) || err.Error() != "nrp 3: the entry belongs to the configuration" {
		t.Errorf("%v", err)
	}
	check := func(want string) {
		t.Helper()
		var got []string
		for _, e := range m.Snapshot().Entries() {
			by := "api"
			if e.Configured {
				by = "file"
			}
			got = append(got, e.Key.String()+" "+e.Context+" by "+by)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
	check("nrp 1 api by api, nrp 2 file by file, nrp 3 file by file")
	before := m.Snapshot()
	configure(toVPN(3, "file"))
	check("nrp 1 api by api, nrp 3 file by file")
	if before.Len() != 3 || before.Version() == m.Snapshot().Version() {
		t.Error("a snapshot changed, or the version did not")
	}
}

func TestTheMapIsBounded(t *testing.T) {
	m := New(2)
	if _, err := m.Set([]Mapping{toVPN(1, "x"), toVPN(2, "x"), toVPN(3, "x")}, t0); !errors.Is(err, ErrFull) || m.Snapshot().Len() != 0 {
		t.Errorf("%v, %d entries", err, m.Snapshot().Len())
	}
	if _, err := m.Set([]Mapping{toVPN(1, "x"), toVPN(2, "x")}, t0); err != nil {
		t.Fatal(err)
	}
	if err := m.Check([]Mapping{toVPN(3, "x")}, 2); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	if err := m.Check([]Mapping{toVPN(3, "x")}, 3); err != nil || m.Snapshot().Len() != 2 {
		t.Errorf("%v, %d entries: a check changed something", err, m.Snapshot().Len())
	}
	if err := m.Configure([]Mapping{toVPN(3, "x")}, 2, t0); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	if err := m.Configure([]Mapping{toVPN(3, "x")}, 3, t0); err != nil {
		t.Error(err)
	}
	if err := m.Configure(nil, 1, t0); !errors.Is(err, ErrFull) || m.Snapshot().Len() != 3 {
		t.Errorf("%v, %d entries", err, m.Snapshot().Len())
	}
	if _, err := m.Set([]Mapping{toVPN(4, "x")}, t0); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
}

func TestErrorsNameTheFieldAndTheRule(t *testing.T) {
	for want, edit := range map[string]func(*Mapping){
		"context: required":                func(m *Mapping) { *m = Mapping{Key: Key{NRP: 7}} },
		"context: longer":                  func(m *Mapping) { m.Context = strings.Repeat("x", 256) },
		"source_qp: needs sender":          func(m *Mapping) { *m = Mapping{Key: Key{NRP: 7}, Context: "x", SourceQP: 2} },
		"source_qp: 1: must be":            func(m *Mapping) { m.SourceQP = 1 },
		"source_qp: 0x1000000: more":       func(m *Mapping) { m.SourceQP = 1 << 24 },
		"sender: invalid IP: must be":      func(m *Mapping) { m.Sender = netip.Addr{} },
		"receiver: invalid IP: must be":    func(m *Mapping) { m.Receiver = netip.Addr{} },
		"receiver: 2001:db8::1 is not":     func(m *Mapping) { m.Receiver = c6 },
		"sender: 224.0.0.1: must be":       func(m *Mapping) { m.Sender = netip.MustParseAddr("224.0.0.1") },
		"sender: 255.255.255.255: must be": func(m *Mapping) { m.Sender = broadcast },
		"receiver: fe80::1%eth0: must be":  func(m *Mapping) { m.Receiver = netip.MustParseAddr("fe80::1%eth0") },
		"sender: ::ffff:1.2.3.4: must be":  func(m *Mapping) { m.Sender = netip.MustParseAddr("::ffff:1.2.3.4") },
	} {
		entry := toQP(7, 2, "")
		edit(&entry)
		list := []Mapping{toVPN(1, "x"), entry}
		_, err := New(100).Set(list, t0)
		for _, err := range []error{err, New(100).Configure(list, 100, t0), New(100).Check(list, 100)} {
			var field *FieldError
			if !errors.As(err, &field) || field.Index != 1 || !strings.HasPrefix(field.Field+": "+field.Rule, want) || !strings.HasPrefix(err.Error(), "mappings[1]."+want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

func TestReadersSeeWholeChanges(t *testing.T) {
	m := New(100)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				s := m.Snapshot()
				if n := s.Len(); n != 0 && n != 2 {
					t.Errorf("%d entries", n)
					return
				}
			}
		})
	}
	for range 200 {
		if err := m.Configure([]Mapping{toVPN(1, "x"), toVPN(2, "x")}, 100, t0); err != nil {
			t.Error(err)
		}
		if err := m.Configure(nil, 100, t0); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
}

// Whoever is told of changes finds the new entries already, and hears of nothing that changed nothing.
func TestChangesAreToldOnceTheyAreThere(t *testing.T) {
	m := New(2)
	var told []string
	m.OnChange(func() {
		e, _ := m.Lookup(7, a1, b1)
		told = append(told, e.Context)
	})
	for _, step := range []error{
		errOf(m.Set([]Mapping{toVPN(7, "blue")}, t0)),
		errOf(m.Set([]Mapping{toVPN(7, "blue")}, t0)), // says so already
		errOf(m.Set([]Mapping{toQP(7, 0x123, "red")}, t0)),
		m.Delete(Key{7, a1, b1}),
		m.Configure([]Mapping{toVPN(7, "file")}, 2, t0),
		m.Configure([]Mapping{toVPN(7, "file")}, 2, t0),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if _, err := m.Set([]Mapping{toVPN(8, "x"), toVPN(9, "x")}, t0); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	m.OnChange(nil)
	if err := m.Configure(nil, 2, t0); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(told, " "); got != "blue red blue file" {
		t.Errorf("told %q", got)
	}
}

func errOf(_ []Entry, err error) error { return err }
