package exchanges

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// echo sends, a second later, the words that it is told to.
type echo struct {
	s     *Script
	at    time.Time
	words []string
}

type reason string

func (r reason) String() string { return string(r) }

func (e *echo) Do(f []string) bool {
	switch f[0] {
	case "say":
		e.at, e.words = e.s.Now.Add(time.Second), f[1:]
	case "drop":
		e.s.Dropped(reason(f[1]))
	case "refuse":
		e.s.Refused(errors.New(strings.Join(f[1:], " ")))
	case "again":
		e.at = e.s.Now
	default:
		return false
	}
	return true
}

func (e *echo) Wake() time.Time { return e.at }

func (e *echo) Tick() []string {
	if e.at.IsZero() || e.at.After(e.s.Now) || e.words == nil {
		return nil
	}
	out := e.words
	e.at, e.words = time.Time{}, nil
	return out
}

// failing is a test that ends with Fatalf, and says why.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestWhatDiffersFails(t *testing.T) {
	for _, c := range []struct {
		name, body string
		anyOrder   bool
		want       string // "": it passes
	}{
		{"as said", "say a b # and a comment\n. 1s\n< a\n< b", false, ""},
		{"sent at its time", "say a\n. 999ms\n. 1ms\n< a", false, ""},
		{"too early", "say a\n. 999ms\n< a", false, `"< a": sent is []`},
		{"another order", "say a b\n. 1s\n< b\n< a", false, `"< b": sent is ["a" "b"]`},
		{"no order", "say a b\n. 1s\n< b\n< a", true, ""},
		{"more was sent", "say a b\n. 1s\n< a\n. 1s", false, `also sent ["b"]`},
		{"more was sent at the end", "say a\n. 1s", false, `also sent ["a"]`},
		{"a reason", "drop mtu\n! mtu", false, ""},
		{"no reason", "drop none\n. 1s", false, ""},
		{"another reason", "drop mtu\n! mt", false, `dropped for "mtu"`},
		{"a reason unsaid", "drop mtu", false, `dropped for "mtu"`},
		{"an error", "refuse it is bad\n! is bad", false, ""},
		{"another error", "refuse it is bad\n! is good", false, "refused with it is bad"},
		{"an error unsaid", "refuse it is bad\n. 1s", false, "refused with it is bad"},
		{"not refused", "say a\n! is bad", false, "refused with <nil>"},
		{"an unknown verb", "sya a", false, `"sya a": unknown`},
		{"no time", ". soon", false, "invalid duration"},
		{"no rest", "again\n. 1s", false, "again and again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &failing{}
			s := New(f)
			s.AnyOrder = c.anyOrder
			done := make(chan struct{})
			go func() {
				defer close(done)
				Exchange{c.name, c.body}.run(s, &echo{s: s})
			}()
			<-done
			if (c.want == "") != (f.why == "") || !strings.Contains(f.why, c.want) {
				t.Errorf("failed with %q, want %q", f.why, c.want)
			}
		})
	}
}

func TestAFileIsCutIntoExchanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "exchanges.txt")
	if err := os.WriteFile(path, []byte("# head\n== one\nsay a\n\n== two: more\n. 1s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := Read(t, path, 2)
	if len(all) != 2 || all[0].Name != "one" || strings.TrimSpace(all[0].body) != "say a" || all[1].Name != "two: more" || all[1].body != ". 1s\n" {
		t.Errorf("%+v", all)
	}
}
