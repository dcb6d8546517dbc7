// Package testwait is how tests wait: for a condition, never for a time that might be enough.
package testwait

import (
	"testing"
	"time"
)

// Patience is for machines that are busy with other tests: a test that passes doesn't use it up.
const Patience = 20 * time.Second

// pause between two looks.
const pause = time.Millisecond

// Until waits for a condition, and fails the test when it doesn't come true.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	UntilRight(t, func() string {
		if ok() {
			return ""
		}
		return what
	})
}

// UntilRight waits until nothing is wrong. What still is at the end fails the test.
func UntilRight(t testing.TB, wrong func() string) {
	t.Helper()
	untilRight(t, Patience, wrong)
}

func untilRight(t testing.TB, patience time.Duration, wrong func() string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		is := wrong()
		if is == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, is)
		}
	}
}
