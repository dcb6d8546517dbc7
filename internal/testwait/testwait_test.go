package testwait

import (
	"fmt"
	"testing"
)

// failing keeps why it failed.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	panic(f)
}

func TestUntil(t *testing.T) {
	n := 0
	Until(t, "three looks", func() bool { n++; return n == 3 })
	if n != 3 {
		t.Errorf("%d looks", n)
	}
}

func TestWhatIsWrongAtTheEndFailsTheTest(t *testing.T) {
	f := &failing{TB: t}
	func() {
		defer func() { _ = recover() }()
		untilRight(f, 0, func() string { return "two are missing" })
	}()
	if f.why != "not within 0s: two are missing" {
		t.Errorf("%q", f.why)
	}
}
