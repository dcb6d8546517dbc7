package daemon

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"pncd/dataplane/boundary"
	"pncd/dataplane/tap/taptest"
)

// Two filters in one network namespace would put their tables back without end.
func TestANetworkNamespaceHasOneBorderFilter(t *testing.T) {
	a, _ := taptest.Pair(t)
	log := logrus.New()
	log.SetOutput(io.Discard)
	var ns *os.File
	if err := a.Do(func() (err error) { ns, err = os.Open("/proc/thread-self/ns/net"); return err }); err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	filter := func() *borderFilter {
		return &borderFilter{Filter: boundary.New(boundary.Config{Namespace: int(ns.Fd())}, log)}
	}
	apply := func(b *borderFilter, p *boundary.Policy) error {
		return a.Do(func() error { return b.Apply(p) })
	}
	policy := &boundary.Policy{Ports: []uint16{1021}, Borders: []string{"va"}}
	first, second := filter(), filter()
	if err := apply(first, policy); err != nil {
		t.Fatal(err)
	}
	if err := apply(second, policy); !errors.Is(err, errHeld) {
		t.Errorf("a second one: %v", err)
	}
	if err := apply(second, nil); err != nil {
		t.Errorf("one without: %v", err)
	}
	if rules, err := first.Ruleset(); err != nil || rules.String() == "" {
		t.Errorf("the first one's tables are gone: %v", err)
	}
	if err := errors.Join(apply(first, policy), apply(first, nil), apply(second, policy), apply(second, nil)); err != nil {
		t.Errorf("one after the other: %v", err)
	}
}

// Anybody can take the name; a stranger who does so refuses nobody.
func TestAStrangerHoldsNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it becomes another user")
	}
	name := filepath.Base(t.TempDir()) + t.Name()
	listening := make(chan net.Listener)
	go func() {
		runtime.LockOSThread() // and never unlocked: it is another user's
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 12345, 12345, 12345); e != 0 {
			t.Error(e)
		}
		l, err := net.Listen("unix", "@pncd/"+name)
		if err != nil {
			t.Error(err)
		}
		listening <- l
	}()
	l := <-listening
	if l == nil {
		t.FailNow()
	}
	defer l.Close()
	if h, err := takeHold(name); h != nil || err != nil || held(name) {
		t.Errorf("%v, %v", h, err)
	}
	l.Close()
	h, err := takeHold(name)
	if err != nil || h == nil || !held(name) {
		t.Fatalf("%v, %v", h, err)
	}
	defer h.release()
	if _, err := takeHold(name); !errors.Is(err, errHeld) {
		t.Error(err)
	}
}
