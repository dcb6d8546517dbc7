package boundary

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

func tables(t *testing.T, f *Filter) string {
	t.Helper()
	r, err := f.Ruleset()
	if err != nil {
		t.Fatal(err)
	}
	return r.stateless()
}

func TestNothingIsLeftAfterTheStop(t *testing.T) {
	s := newSite(t)
	f := filterIn(t, s.router)
	stop := run(t, f)
	apply(t, f, s.policy(FamilyAuto))
	if tables(t, f) == "" {
		t.Fatal("nothing was programmed")
	}
	stop()
	if left := nft(t, s.router, "list", "ruleset"); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}

func TestTheNextRunAdoptsWhatWasLeft(t *testing.T) {
	s := newSite(t)
	p := s.policy(FamilyAuto)
	killed := filterIn(t, s.router)
	apply(t, killed, p)
	send(t, s.inside, stranger, routerInside, 1021, []byte("before"), 3)
	wantCounts(t, killed, Counts{CounterNotOurDomain: 3})
	handles := nft(t, s.router, "-a", "list", "ruleset")

	next := filterIn(t, s.router)
	apply(t, next, p)
	if now := nft(t, s.router, "-a", "list", "ruleset"); now != handles {
		t.Errorf("what was as it should be was made again:\n%s", now)
	}
	wantCounts(t, next, Counts{}) // those were the other run's
	send(t, s.inside, stranger, routerInside, 1021, []byte("after"), 2)
	wantCounts(t, next, Counts{CounterNotOurDomain: 2})

	other := filterIn(t, s.router) // with another configuration
	q := s.policy(FamilyInet)
	q.Ports = []uint16{2021}
	apply(t, other, q)
	if text := tables(t, other); strings.Contains(text, "netdev") || !strings.Contains(text, "2021") {
		t.Errorf("not replaced:\n%s", text)
	}
	last := filterIn(t, s.router) // without any
	apply(t, last, nil)
	if left := nft(t, s.router, "list", "ruleset"); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}

func TestCountersLiveThroughAChange(t *testing.T) {
	s := newSite(t)
	f := filterIn(t, s.router)
	p := s.policy(FamilyAuto)
	apply(t, f, p)
	send(t, s.inside, stranger, routerInside, 1021, []byte("before"), 3)
	q := s.policy(FamilyAuto)
	q.Total = Limit{1000, 100}
	apply(t, f, q)
	send(t, s.inside, stranger, routerInside, 1021, []byte("after"), 2)
	wantCounts(t, f, Counts{CounterNotOurDomain: 5})
	apply(t, f, p) // a counter less
	wantCounts(t, f, Counts{CounterNotOurDomain: 5})
	apply(t, f, nil)
}

func TestAForeignTableIsNotTouched(t *testing.T) {
	s := newSite(t)
	nft(t, s.router, "add table inet pncd; add chain inet pncd theirs")
	f := filterIn(t, s.router)
	if err := f.Apply(s.policy(FamilyAuto)); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "table inet pncd") {
		t.Errorf("%v, want ErrForeign", err)
	}
	if text := nft(t, s.router, "list", "ruleset"); !strings.Contains(text, "theirs") || strings.Contains(text, "netdev") {
		t.Errorf("touched:\n%s", text)
	}
}

func TestARefusedPolicyLeavesTheOldOne(t *testing.T) {
	s := newSite(t)
	f := filterIn(t, s.router)
	apply(t, f, s.policy(FamilyAuto))
	before := tables(t, f)
	bad := s.policy(FamilyAuto)
	bad.Ports = nil
	if err := f.Apply(bad); err == nil {
		t.Error("taken")
	}
	run(t, f)
	f.check()
	if tables(t, f) != before || f.Status().Mended != 0 {
		t.Error("not as before")
	}
}

func TestWhatSomebodyChangesIsPutBack(t *testing.T) {
	for name, change := range map[string][]string{
		"all is flushed":        {"flush ruleset"},
		"a table goes":          {"delete table inet pncd"},
		"rules go":              {"flush table inet pncd"},
		"a border's chain goes": {"delete chain netdev pncd in_ext0"},
		"a rule more":           {"insert rule inet pncd notifications accept"},
		"a prefix more":         {"add element inet pncd domain4 { 10.77.0.0/16 }"},
		"a set goes":            {"flush chain inet pncd notifications", "delete set inet pncd domain4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			f := filterIn(t, s.router)
			changes := make(chan Change, 16)
			f.onChange = func(c Change) { changes <- c }
			apply(t, f, s.policy(FamilyAuto))
			before := tables(t, f)
			run(t, f)
			for i, c := range change {
				if i > 0 && f.Status().Mended > 0 {
					break // the filter was quicker
				}
				nft(t, s.router, c)
			}
			testwait.Until(t, "it is put back", func() bool { return f.Status().Mended > 0 && tables(t, f) == before })
			told := <-changes // what is mended is told before it is counted
			if want := "changed"; told.Err != nil || told.Table != "inet pncd" && told.Table != "netdev pncd" ||
				told.What != want && (name != "all is flushed" && name != "a table goes" || told.What != "removed") {
				t.Errorf("told %+v", told)
			}
		})
	}
}

func TestABorderInterfaceThatComesLater(t *testing.T) {
	s := newSite(t)
	f := filterIn(t, s.router)
	p := s.policy(FamilyNetdev)
	p.Borders = append(p.Borders, "ext1")
	apply(t, f, p)
	run(t, f)
	if a := f.Status().Absent; len(a) != 1 || a[0] != "ext1" {
		t.Fatalf("absent: %v", a)
	}
	n := s.outside
	veth(t, s.router, "ext1", n, "eth1")
	testwait.Until(t, "it has its chains", func() bool {
		return strings.Contains(tables(t, f), `hook egress device "ext1"`) && len(f.Status().Absent) == 0
	})
	if err := s.router.Delete("ext1"); err != nil {
		t.Fatal(err)
	}
	testwait.UntilRight(t, func() string {
		if text := tables(t, f); strings.Contains(text, `device "ext1"`) || len(f.Status().Absent) != 1 {
			return fmt.Sprintf("its chains are there: %v\n%s", f.Status(), text)
		}
		return ""
	})
	veth(t, s.router, "ext1", n, "eth1")
	testwait.Until(t, "it has its chains again", func() bool {
		return strings.Contains(tables(t, f), `hook egress device "ext1"`) && len(f.Status().Absent) == 0
	})
}

func veth(t *testing.T, a *taptest.NS, nameA string, b *taptest.NS, nameB string) {
	t.Helper()
	if err := taptest.Veth(a, nameA, b, nameB); err != nil {
		t.Fatal(err)
	}
}

func TestOnlySomebodysChangeIsTold(t *testing.T) {
	var told []string
	f := New(Config{OnChange: func(c Change) { told = append(told, fmt.Sprint(c.Table, " ", c.What, " ", c.Err)) }}, quiet())
	f.absent = []string{"ext9"}
	want := func(what string, lines ...string) {
		t.Helper()
		if !slices.Equal(told, lines) {
			t.Errorf("%s: told %q, want %q", what, told, lines)
		}
		told = nil
	}
	found := differences{{table: "inet pncd", found: "changed", did: "replaced"}}
	f.note(found, nil, errors.New("no buffer space"))
	want("an interface that came can't be followed")
	f.note(found, nil, nil)
	want("it is followed")
	f.note(found, nil, errors.New("permission denied"))
	want("somebody's change stays", "inet pncd changed permission denied")
	f.note(found, nil, errors.New("permission denied"))
	want("and stays")
	f.note(found, nil, nil)
	want("it is put back", "inet pncd changed <nil>")
	f.note(found, []string{"ext9"}, nil)
	want("an interface went")
	if !slices.Equal(f.absent, []string{"ext9"}) || f.mended != 1 {
		t.Errorf("%q are absent, %d changes were mended", f.absent, f.mended)
	}
}
