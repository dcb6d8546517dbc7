package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/host"
	"pncd/internal/config"
	"pncd/internal/testwait"
)

// fakeHost is what an attachment does, in words.
type fakeHost struct {
	mu    sync.Mutex
	log   []string
	fail  error
	added []host.Address // by the next mend
}

func (k *fakeHost) ensure(v host.VethConfig) (bool, error) {
	err := k.do("make " + v.Name + " " + v.PeerNamespace)
	return err == nil, err
}

func (k *fakeHost) mend(v host.VethConfig) ([]host.Address, error) {
	err := k.do("mend " + v.Name)
	k.mu.Lock()
	defer k.mu.Unlock()
	added := k.added
	k.added = nil
	return added, err
}

func (k *fakeHost) remove(v host.VethConfig) error { return k.do("remove " + v.Name) }

func (k *fakeHost) do(what string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		what += " failed"
	}
	if len(k.log) == 0 || k.log[len(k.log)-1] != what { // tried again and again
		k.log = append(k.log, what)
	}
	return k.fail
}

func (k *fakeHost) setFail(err error) { k.mu.Lock(); k.fail = err; k.mu.Unlock() }

func (k *fakeHost) text() string { k.mu.Lock(); defer k.mu.Unlock(); return strings.Join(k.log, ", ") }

func (k *fakeHost) want(t *testing.T, want string) {
	t.Helper()
	testwait.UntilRight(t, func() string {
		if got := k.text(); got != want {
			return fmt.Sprintf("%q, want %q", got, want)
		}
		return ""
	})
}

func TestVethPairsAreMadeKeptAndRemoved(t *testing.T) {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	pair := func(namespace string) map[string]host.VethConfig {
		return map[string]host.VethConfig{"isis0": {Name: "isis0", Peer: "r", PeerNamespace: namespace}}
	}
	k := &fakeHost{fail: errors.New("no such namespace")}
	a := newAttachment(pair("a"), log)
	changes := &fakeHost{}
	a.ensure, a.remove, a.retry = k.ensure, k.remove, time.Millisecond
	a.onChange = func(_ pncv1.HostObjectKind, name, change string, err error) {
		_ = changes.do(fmt.Sprint(name, " ", change, " ", err))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	k.want(t, "make isis0 a failed")
	k.setFail(nil) // the namespace comes
	k.want(t, "make isis0 a failed, make isis0 a")
	a.linksChanged([]string{"isis0", "isis1"}, map[string]host.Interface{"isis0": {}}) // it is there: nothing to do
	a.want(pair("b"))
	k.want(t, "make isis0 a failed, make isis0 a, make isis0 b")
	if err := a.err("isis0"); err != nil {
		t.Errorf("%v", err)
	}
	a.want(nil)
	k.want(t, "make isis0 a failed, make isis0 a, make isis0 b, remove isis0")
	a.want(pair("c"))
	k.want(t, "make isis0 a failed, make isis0 a, make isis0 b, remove isis0, make isis0 c")
	if got := changes.text(); got != "" {
		t.Errorf("what the configuration moved, somebody else changed: %s", got)
	}
	k.setFail(errors.New("x"))
	a.linksChanged([]string{"isis0"}, nil) // it has vanished
	k.want(t, "make isis0 a failed, make isis0 a, make isis0 b, remove isis0, make isis0 c, make isis0 c failed")
	changes.want(t, "isis0 removed x")
	k.setFail(nil)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(k.text(), ", remove isis0") {
		t.Errorf("not removed at the end: %s", k.text())
	}
}

func TestWhatSomebodyTookFromAPairIsPutBackWithARecord(t *testing.T) {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	address, router := netip.MustParsePrefix("192.0.2.10/31"), netip.MustParsePrefix("192.0.2.11/31")
	k, changes := &fakeHost{}, &fakeHost{}
	a := newAttachment(map[string]host.VethConfig{"isis0": {Name: "isis0", Peer: "isis-r", PeerNamespace: "r", Addresses: []netip.Prefix{address}, PeerAddresses: []netip.Prefix{router}}}, log)
	a.ensure, a.mend, a.remove, a.retry, a.look = k.ensure, k.mend, k.remove, time.Millisecond, time.Hour
	a.onChange = func(kind pncv1.HostObjectKind, name, change string, err error) {
		_ = changes.do(fmt.Sprint(enumName(kind.String(), "HOST_OBJECT_KIND_"), " ", name, " ", change, " ", err))
	}
	if got := fmt.Sprint(a.objects()); strings.Count(got, "not made yet") != 3 {
		t.Errorf("before the start: %s", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	k.want(t, "make isis0 r")
	up := host.Interface{Link: host.Link{Up: true}, Addresses: []netip.Prefix{address}}
	told := func(i host.Interface) { a.linksChanged([]string{"isis0"}, map[string]host.Interface{"isis0": i}) }
	told(up)
	told(host.Interface{}) // down: an operator's wish
	up.Addresses = nil
	k.mu.Lock()
	k.added = []host.Address{{Interface: "isis0", Prefix: address}}
	k.mu.Unlock()
	told(up)
	k.want(t, "make isis0 r, mend isis0")
	changes.want(t, "address 192.0.2.10/31 of isis0 removed <nil>")
	k.setFail(errors.New("no buffer space"))
	told(up)
	changes.want(t, "address 192.0.2.10/31 of isis0 removed <nil>, address isis0 addresses are lacking no buffer space")
	if got := fmt.Sprint(a.objects()); strings.Count(got, "no buffer space") != 3 {
		t.Errorf("objects: %s", got)
	}
	k.setFail(nil)
	testwait.UntilRight(t, func() string {
		if err := a.err("isis0"); err != nil {
			return err.Error()
		}
		return ""
	})
	a.linksChanged([]string{"isis0"}, nil)
	changes.want(t, "address 192.0.2.10/31 of isis0 removed <nil>, address isis0 addresses are lacking no buffer space, veth isis0 removed <nil>")
	if got := fmt.Sprint(a.objects()); strings.Contains(got, "error") || !strings.Contains(got, "192.0.2.11/31 of isis-r") {
		t.Errorf("objects: %s", got)
	}
}

func TestTheOtherEndsOfPairsAreLookedAt(t *testing.T) {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	k := &fakeHost{}
	a := newAttachment(map[string]host.VethConfig{
		"isis0": {Name: "isis0", PeerAddresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.11/31")}},
	}, log)
	a.ensure, a.mend, a.remove, a.look = k.ensure, k.mend, k.remove, time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	k.want(t, "make isis0 , mend isis0")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestVethSettings(t *testing.T) {
	cfg, err := config.Parse([]byte("node: r1\nisis:\n  net: 49.0001.1921.6800.1001.00\n  circuits:\n    - interface: isis0\n" +
		"      veth: {peer: isis-r, namespace: router, addresses: [192.0.2.10/31]}\n    - interface: isis1\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := veths(cfg)
	if v := got["isis0"]; len(got) != 1 || v.Peer != "isis-r" || v.PeerNamespace != "router" || v.MTU != 1500 || v.Addresses[0].String() != "192.0.2.10/31" {
		t.Errorf("%+v", got)
	}
}
