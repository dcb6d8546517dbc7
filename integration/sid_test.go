//go:build sid

package integration

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pncd/bgp"
	"pncd/bgp/speakertest"
	"pncd/integration/lab"
	"pncd/pnc"
)

// The lab of `make lab-frr-sid`: FRR 10.4 or newer, which knows NHC, as the route reflector. It runs from a
// folder that holds Debian sid (sid.sh); what is mounted for it is in the node's own mount namespace and
// ends with it.

// sidRoot is the folder.
func sidRoot(t *testing.T) string {
	t.Helper()
	root := os.Getenv("SID_ROOT")
	if _, err := os.Stat(filepath.Join(root, "usr/lib/frr/bgpd")); root == "" || err != nil {
		t.Fatalf("SID_ROOT=%q holds no FRR: run `make lab-frr-sid`", root)
	}
	return root
}

// sidMounts shows the node's own /run, /etc/frr and /proc in the folder, which is read-only otherwise.
const sidMounts = `set -e
root=$1
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind /run "$root/run"
mount --rbind /etc/frr "$root/etc/frr" # with the files that are bound into it
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
for d in tmp var/tmp var/lib/frr var/log; do mount -t tmpfs -o mode=1777 tmp "$root/$d"; done
chroot "$root" chown frr:frr /run/frr # its frr has another number than this machine's
`

// sidFRR runs the folder's FRR in a node.
type sidFRR struct {
	l          *bgpLab
	root, node string
}

func (l *bgpLab) startSid(node string) *sidFRR {
	l.t.Helper()
	s := &sidFRR{l: l, root: sidRoot(l.t), node: node}
	l.run(node, "sh", "-c", sidMounts, "sh", s.root)
	for _, d := range []string{"mgmtd", "zebra", "bgpd"} {
		p, err := l.Start(l.ctx, node, lab.Proc{Name: d, Argv: []string{
			"chroot", s.root, "/usr/lib/frr/" + d, "-A", "127.0.0.1", "--log", "stdout", "--log-level", "informational"}})
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() {
			if text, err := os.ReadFile(p.Log()); err == nil && l.t.Failed() {
				l.t.Logf("log of %s in %s:\n%s", d, node, text[max(0, len(text)-2000):])
			}
		})
		wait, cancel := context.WithTimeout(l.ctx, patience)
		err = l.WaitFor(wait, func(context.Context) error {
			c, err := net.Dial("unix", filepath.Join(l.RunDir(node), "frr", d+".vty"))
			if err != nil {
				return err
			}
			return c.Close()
		})
		cancel()
		if err != nil {
			l.t.Fatalf("%s does not answer: %v", d, err)
		}
	}
	s.vtysh("-f", "/etc/frr/frr.conf")
	l.t.Cleanup(func() {
		if l.t.Failed() {
			l.t.Logf("%s", s.vtysh("-c", "show running-config", "-c", "show bgp summary", "-c", "show bgp nexthop"))
		}
	})
	return s
}

// downWhenInterrupted takes the lab down on a signal; the test then fails at its next step and removes the rest.
func (l *bgpLab) downWhenInterrupted() {
	signals, quit, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(ended)
		select {
		case s := <-signals:
			l.t.Errorf("%s: the lab goes down", s)
			if err := l.Down(); err != nil {
				l.t.Error(err)
			}
		case <-quit:
		}
	}()
	l.t.Cleanup(func() {
		close(quit)
		<-ended
		signal.Stop(signals)
	})
}

func (s *sidFRR) vtysh(args ...string) string {
	s.l.t.Helper()
	return s.l.run(s.node, append([]string{"chroot", s.root, "vtysh"}, args...)...)
}

// version is FRR's; it has to be one that knows NHC.
func (s *sidFRR) version() string {
	s.l.t.Helper()
	out := s.vtysh("-c", "show version")
	_, rest, ok := strings.Cut(out, "FRRouting ")
	v, _, _ := strings.Cut(rest, " ")
	parts := strings.SplitN(v, ".", 3)
	if !ok || len(parts) < 2 {
		s.l.t.Fatalf("version of FRR: %q", out)
	}
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	if major < 10 || major == 10 && minor < 4 {
		s.l.t.Fatalf("FRR %s doesn't know NHC: 10.4 or newer is needed; remove %s and run again", v, s.root)
	}
	return v
}

// nhc switches NHC on all sessions and begins them anew: it is offered in the OPEN.
func (s *sidFRR) nhc(on bool) {
	s.l.t.Helper()
	args := []string{"-c", "configure terminal", "-c", "router bgp 65000"}
	for _, n := range []int{nRouter, nProxy, nCongestion} {
		args = append(args, "-c", strings.TrimSpace(map[bool]string{false: "no"}[on]+" neighbor "+s.l.at(n).String()+" send-nexthop-characteristics"))
	}
	s.vtysh(args...)
	s.vtysh("-c", "clear bgp *")
}

func sidReflector(f labFamily) string {
	var b strings.Builder
	b.WriteString("frr defaults traditional\nhostname reflector\nrouter bgp 65000\n bgp router-id 10.200.0.2\n no bgp default ipv4-unicast\n")
	clients := []int{nRouter, nProxy, nCongestion}
	for _, n := range clients {
		fmt.Fprintf(&b, " neighbor %[1]s remote-as 65000\n neighbor %[1]s timers connect 1\n", labAddr(f.v6, n))
	}
	fmt.Fprintf(&b, " address-family %s unicast\n", f.af)
	for _, n := range clients {
		fmt.Fprintf(&b, "  neighbor %[1]s activate\n  neighbor %[1]s route-reflector-client\n", labAddr(f.v6, n))
	}
	b.WriteString(" exit-address-family\n")
	return b.String()
}

// sidChanger is this machine's FRR: it makes itself the next hop and leaves the header as it was.
func sidChanger(t *testing.T, f labFamily) string {
	proxy, rr := labAddr(f.v6, nProxy).String(), labAddr(f.v6, nReflector).String()
	return fmt.Sprintf(`frr defaults traditional
hostname changer
router bgp 65000
 bgp router-id 10.200.0.1
 no bgp default ipv4-unicast
 neighbor %[1]s remote-as 65000
 neighbor %[1]s timers connect 1
 neighbor %[2]s remote-as 65000
 neighbor %[2]s timers connect 1
%[4]s%[5]s address-family %[3]s unicast
  neighbor %[1]s activate
  neighbor %[1]s route-reflector-client
  neighbor %[2]s activate
  neighbor %[2]s next-hop-self force
 exit-address-family
`, proxy, rr, f.af, frrNHC(t, proxy), frrNHC(t, rr))
}

func TestSidFRRThatKnowsNHC(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[v6], func(t *testing.T) { testSid(t, familyOf(v6)) })
	}
}

func testSid(t *testing.T, f labFamily) {
	sidRoot(t)
	l := upBGP(t, "sid"+map[bool]string{true: "6"}[f.v6], f.v6, []bgpNode{
		{name: "changer", n: nRouter, image: "frr", files: map[string]string{"/etc/frr/frr.conf": sidChanger(t, f)}},
		{name: "reflector", n: nReflector, files: map[string]string{"/etc/frr/frr.conf": sidReflector(f)}},
		{name: "proxy", n: nProxy},
		{name: "congestion", n: nCongestion},
	})
	l.downWhenInterrupted()
	s := l.startSid("reflector")
	t.Logf("proxy %s, a hop that changes the next hop %s (FRR of this machine), reflector %s (FRR %s), congestion node %s",
		l.at(nProxy), l.at(nRouter), l.at(nReflector), s.version(), l.at(nCongestion))

	w := waysOf(f.v6)
	kept, changed := w.originate, w.inline // by the reflector alone, and by the hop before it
	only := func(p string) bgp.PrefixList { return bgp.PrefixList{{Prefix: netip.MustParsePrefix(p)}} }
	cfg := l.config(nProxy,
		bgp.NeighborConfig{Address: l.at(nReflector), Passive: true, ExportPrefixes: only(kept)},
		bgp.NeighborConfig{Address: l.at(nRouter), Passive: true, ExportPrefixes: only(changed)})
	// The first proxy is of the congestion node's domain, the other of another one.
	own, foreign := netip.MustParseAddr(proxyAddr), netip.MustParseAddr("203.0.113.99")
	for p, proxy := range map[string]netip.Addr{kept: own, changed: foreign} {
		cfg.Originate = append(cfg.Originate, bgp.OriginateConfig{Prefix: netip.MustParsePrefix(p), Proxy: proxy, NextHop: l.at(nProxy)})
	}
	proxy := l.speaker("proxy", cfg)
	learning := func(accept ...netip.Prefix) bgp.Config {
		c := l.config(nCongestion, bgp.NeighborConfig{Address: l.at(nReflector), Passive: true})
		c.AcceptProxies = accept
		return c
	}
	congestion := l.speaker("congestion", learning())
	on := true
	proxy.Must(speakertest.Request{Enable: &on})

	// see waits until both routes are there as wanted, and tells what the congestion node has.
	see := func(what string, ok func(kept, changed pnc.Route) bool) {
		t.Helper()
		got := congestion.Await(what, func(a speakertest.Answer) bool {
			k, c := a.Of(kept), a.Of(changed)
			return len(k) == 1 && len(c) == 1 && k[0].NextHop == l.at(nProxy) && c[0].NextHop == l.at(nRouter) && ok(k[0], c[0])
		})
		for _, r := range got.Routes {
			t.Logf("%-42s %-17s next hop %-17s %s", what+":", r.Prefix, r.NextHop, saySid(r))
		}
	}
	none := func(r pnc.Route) bool { return !r.Proxy.IsValid() && r.Disregarded == pnc.DisregardNone }
	see("NHC off, FRR's default", func(k, c pnc.Route) bool { return none(k) && none(c) })

	s.nhc(true)
	see("NHC on", func(k, c pnc.Route) bool {
		// The second is laundered: its header names a node that has no part in it.
		return k.Believed() && k.Proxy == own && c.Believed() && c.Proxy == foreign
	})
	next := learning(netip.PrefixFrom(own, 32))
	congestion.Must(speakertest.Request{Configure: &next})
	see("NHC on, accept_proxies: [10.200.0.3/32]", func(k, c pnc.Route) bool {
		return k.Believed() && k.Proxy == own && c.Disregarded == pnc.DisregardProxyNotAccepted && c.Proxy == foreign
	})
	if n := congestion.Ask(speakertest.Request{}).Neighbor(l.at(nReflector).String()); n.Flaps != 2 {
		t.Errorf("the session came up %d times, want 2: once for each of the reflector's settings", n.Flaps)
	}

	s.nhc(false)
	see("NHC off again", func(k, c pnc.Route) bool { return none(k) && none(c) })
}

func saySid(r pnc.Route) string {
	switch {
	case !r.Proxy.IsValid():
		return "no PNC"
	case r.Believed():
		return "PNC " + r.Proxy.String() + " believed"
	}
	return fmt.Sprintf("PNC %s refused: %s", r.Proxy, r.Disregarded)
}
