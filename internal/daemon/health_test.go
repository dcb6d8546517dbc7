package daemon

import (
	"context"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/config"
)

func TestLinkHealthNamesWhatIsWrong(t *testing.T) {
	if err := linkHealth("lo")(); err != nil {
		t.Errorf("lo: %v", err)
	}
	if err := linkHealth("nosuch0")(); err == nil || !strings.Contains(err.Error(), "renamed or removed") {
		t.Errorf("an interface that is gone: %v", err)
	}
	down := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, and its namespace with it
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			down <- nil
			return
		}
		down <- linkHealth("lo")() // a new namespace's loopback is down
	}()
	err := <-down
	if err == nil {
		t.Skip("needs CAP_SYS_ADMIN for a network namespace: run as root")
	}
	if !strings.Contains(err.Error(), "is down") {
		t.Errorf("an interface that is down: %v", err)
	}
}

func TestAPartThatRunsInVainIsNotReady(t *testing.T) {
	r := start(t, template)
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	if ready, why := r.Ready(); !ready {
		t.Fatalf("not ready: %v", why)
	}
	// The address of the running configuration leaves the node.
	c := *r.config.Load()
	gone := *c.CongestionNode
	gone.SourceIPv4 = config.Addr{Addr: netip.MustParseAddr("192.0.2.77")}
	c.CongestionNode = &gone
	r.config.Store(&c)
	ready, why := r.Ready()
	if ready || len(why) != 1 || why[0] != "sender: this node has no address 192.0.2.77 any more" {
		t.Errorf("ready %v, %q", ready, why)
	}
	for _, p := range r.partList() {
		if failed := p.GetState() == pncv1.PartState_PART_STATE_FAILED; failed != (p.GetName() == "sender") {
			t.Errorf("%s: %s %s", p.GetName(), p.GetState(), p.GetDetail())
		}
	}
}

func TestEachPartSaysHowItDoesItsPart(t *testing.T) {
	r := start(t, strings.Replace(vpnTemplate, "  port_format2: %PORT2%\n", "", 1))
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"sender":           "raw: the kernel routes each packet",
		"context:blue":     "raw: the kernel routes each packet",
		"tap:lo":           "ring: proxy.tap asks for it",
		"tap:blue/lo":      "ring: taps of contexts are packet rings",
		"learner":          "reads the taps' packet rings",
		"learner:contexts": "reads the taps' packet rings",
	}
	for _, p := range r.partList() {
		if text, ok := want[p.GetName()]; ok && p.GetDetail() != text {
			t.Errorf("%s: %q, want %q", p.GetName(), p.GetDetail(), text)
		}
		delete(want, p.GetName())
	}
	if len(want) > 0 {
		t.Errorf("no parts %v", want)
	}
}

func TestServesOnlyWhatTheSendersCover(t *testing.T) {
	p := &config.Proxy{Senders: []config.Sender{{Prefix: config.Prefix{Prefix: netip.MustParsePrefix("198.51.100.0/24")}}}}
	for prefix, want := range map[string]bool{
		"198.51.100.0/24": true, "198.51.100.128/25": true, "198.51.0.0/16": false, "203.0.113.0/24": false, "2001:db8::/32": false,
	} {
		if got := serves(p, netip.MustParsePrefix(prefix)); got != want {
			t.Errorf("%s: %v", prefix, got)
		}
	}
}
