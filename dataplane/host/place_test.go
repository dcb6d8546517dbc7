package host

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pncd/internal/testwait"
)

func TestATableIsAPlaceOnlyWhileNothingCanLeaveIt(t *testing.T) {
	n := newNamespace(t)
	n.veth("a", "b")
	n.addr("a", "10.0.0.1/24")
	h, err := Open(n.path)
	n.ok(err)
	t.Cleanup(h.Close)
	p := Place{Table: 100, Mark: 0x64}
	want := func(text string) {
		t.Helper()
		l, err := p.look(h, []int{unix.AF_INET})
		switch {
		case text == "" && err == nil:
			if _, own := l.local[addr("10.0.0.1")]; !own || len(l.local) == 0 {
				t.Errorf("own addresses %v", l.local)
			}
		case text == "" || err == nil || !errors.Is(err, ErrOpen) || !strings.Contains(err.Error(), text):
			t.Errorf("%v, want %q", err, text)
		}
	}
	rule := func(priority int, edit func(*netlink.Rule)) *netlink.Rule {
		t.Helper()
		r := netlink.NewRule()
		r.Family, r.Priority, r.Table = unix.AF_INET, priority, 100
		edit(r)
		n.ok(n.nl.RuleAdd(r))
		return r
	}
	want("no IPv4 rule leads from mark 0x64 to table 100; add")
	rule(200, func(r *netlink.Rule) { r.Mark = 0x64 })
	want("table 100 has no IPv4 default route")
	inTable := func(r *netlink.Route) { r.Table = 100 }
	n.route("10.0.0.0/24", "", "a", inTable)
	want("table 100 has no IPv4 default route")
	closing := n.route("0.0.0.0/0", "", "", inTable, kind(unix.RTN_UNREACHABLE), func(r *netlink.Route) { r.Priority = 4278198272 })
	want("")
	n.ok(n.nl.RouteDel(closing))
	n.route("0.0.0.0/0", "", "", inTable, kind(unix.RTN_THROW))
	want("table 100 has no IPv4 default route") // throw goes on with the next rule

	n.route("0.0.0.0/0", "", "a", inTable, func(r *netlink.Route) { r.Priority = 9 })
	want("")
	for name, edit := range map[string]func(*netlink.Rule){
		"another mark":     func(r *netlink.Rule) { r.Mark, r.Table = 0x65, 254 },
		"a forwarded link": func(r *netlink.Rule) { r.IifName, r.Table = "a", 254 },
		"another mask":     func(r *netlink.Rule) { mask := uint32(0xf0); r.Mark, r.Mask, r.Table = 0x10, &mask, 254 },
	} {
		r := rule(100, edit)
		if _, err := p.look(h, []int{unix.AF_INET}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		n.ok(n.nl.RuleDel(r))
	}
	for name, edit := range map[string]func(*netlink.Rule){
		"for all": func(r *netlink.Rule) { r.Table = 254 },
		"for some": func(r *netlink.Rule) {
			r.Dst = &net.IPNet{IP: net.IPv4(10, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}
			r.Table = 254
		},
		"with the mark":     func(r *netlink.Rule) { r.Mark, r.Table = 0x64, 254 },
		"part of the mark":  func(r *netlink.Rule) { mask := uint32(0x60); r.Mark, r.Mask, r.Table = 0x60, &mask, 254 },
		"only for some TOS": func(r *netlink.Rule) { r.Mark, r.Tos = 0x64, 0x10 },
	} {
		r := rule(100, edit)
		if _, err := p.look(h, []int{unix.AF_INET}); !errors.Is(err, ErrOpen) || !strings.Contains(err.Error(), "priority 100") {
			t.Errorf("%s: %v", name, err)
		}
		n.ok(n.nl.RuleDel(r))
	}
	if _, err := p.look(h, []int{unix.AF_INET, unix.AF_INET6}); !errors.Is(err, ErrOpen) || !strings.Contains(err.Error(), "IPv6") {
		t.Errorf("IPv6: %v", err)
	}
	if _, err := (Place{Device: "a"}).look(h, nil); err == nil || !strings.Contains(err.Error(), "of type veth; it must be a VRF") {
		t.Errorf("%v", err)
	}
	if _, err := (Place{Device: "none"}).look(h, nil); !errors.Is(err, ErrNoInterface) {
		t.Errorf("%v", err)
	}
}

func TestANamespaceIsWatchedUntilAnotherHasItsName(t *testing.T) {
	n := newNamespace(t)
	n.veth("a", "b")
	n.addr("a", "10.0.0.1/24")
	name := t.TempDir() + "/blue"
	n.ok(os.Symlink(n.path, name))
	log := logrus.New()
	log.SetOutput(t.Output())
	w, err := WatchPlace(Place{Namespace: name}, nil, log)
	n.ok(err)
	if !w.IsLocal(addr("10.0.0.1")) || w.IsLocal(addr("10.0.0.9")) {
		t.Error("own addresses of the namespace are not known")
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	n.addr("a", "10.0.0.9/24")
	testwait.Until(t, "a new address is known", func() bool { return w.IsLocal(addr("10.0.0.9")) })
	other := newNamespace(t)
	n.ok(os.Remove(name))
	n.ok(os.Symlink(other.path, name))
	select {
	case err := <-done:
		if !errors.Is(err, errReplaced) {
			t.Errorf("%v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("goes on in a namespace that has no name any more")
	}
	w, err = WatchPlace(Place{Namespace: name}, nil, log)
	n.ok(err)
	stop()
	if err := w.Run(ctx); err != nil {
		t.Errorf("stopped: %v", err)
	}
	if _, err := WatchPlace(Place{Namespace: name + "2"}, nil, log); err == nil || !strings.Contains(err.Error(), "ip netns list") {
		t.Errorf("%v", err)
	}
}

func TestInsideLeavesNoThreadInTheNamespace(t *testing.T) {
	n := newNamespace(t)
	n.veth("a", "b")
	for range 50 {
		n.ok(Inside(n.path, func() error {
			_, err := net.InterfaceByName("a")
			return err
		}))
		if _, err := net.InterfaceByName("a"); err == nil {
			t.Fatal("this thread is in the namespace")
		}
	}
	boom := errors.New("boom")
	if err := Inside(n.path, func() error { return boom }); !errors.Is(err, boom) {
		t.Error(err)
	}
	if err := Inside(t.TempDir()+"/none", func() error { return nil }); err == nil || !strings.Contains(err.Error(), "ip netns list") {
		t.Error(err)
	}
	ran := false
	n.ok(Inside("", func() error { ran = true; return nil }))
	if !ran {
		t.Error("not run")
	}
}
