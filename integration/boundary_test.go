package integration

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/integration/lab"
	"pncd/internal/labtraffic"
	"pncd/proxyagent/message"
)

// The sender's side is outside of the domain here, and the congestion node alone is inside: the router between
// forwards, and is a stranger.
const (
	userFilter = "accept_from: [10.255.0.3/32, \"fd00:255::3/128\"]\n  ttl_min: 200\n  accept_interfaces: [eth2]\n"
	userOpen   = "accept_from: [0.0.0.0/0, \"::/0\"]\n"
	nftFilter  = "boundary:\n  border_interfaces: [eth1]\n  refuse_cnps: false\n  accept_from: [10.255.0.3/32, \"fd00:255::3/128\"]\n  ttl_min: 200\n"
)

// spoof sends notifications of a flow from a node to the proxy's address of the same family.
func spoof(t *testing.T, b *bed.Bed, node, from string, ttl int, payload []byte, count int) {
	t.Helper()
	err := inNode(b.Lab, node, func() error {
		source, family := netip.MustParseAddr(from), 4
		if source.Is6() {
			family = 6
		}
		to := netip.AddrPortFrom(bed.PlanFor(family).Proxy, 1021)
		c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0)), net.UDPAddrFromAddrPort(to))
		if err != nil {
			return err
		}
		defer c.Close()
		if family == 4 {
			err = ipv4.NewConn(c).SetTTL(ttl)
		} else {
			err = ipv6.NewConn(c).SetHopLimit(ttl)
		}
		if err != nil {
			return err
		}
		for range count {
			if _, err := c.Write(payload); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Notifications from outside, from inside with a wrong source, from too far and malformed: no CNP, each counted;
// the kernel's filter and the translator each suffice without the other. CNPs towards the outside are refused.
func TestSpoofedNotificationsBecomeNoCNPAndAreCounted(t *testing.T) {
	for name, proxy := range map[string]string{
		"nft and user space": userFilter + nftFilter, "nft alone": userOpen + nftFilter, "user space alone": userFilter,
	} {
		t.Run(name, func(t *testing.T) {
			b := upBed(t, edited(t, "proxy.pncd.yaml", "accept_from: [10.255.0.0/24, \"fd00:255::/64\"]\n", proxy))
			ctx := testContext(t)
			seen := watchCNPs(t, b, bed.Sender)
			want := map[string]uint64{}
			counted := func() {
				t.Helper()
				var l ledger
				wait(t, b, "the outcomes", func(ctx context.Context) (err error) {
					if l, err = ledgerOf(ctx, b.Proxy, "proxy"); err != nil {
						return err
					}
					if got := fmt.Sprint(nonzero(l.by)); got != fmt.Sprint(want) {
						return fmt.Errorf("outcomes are %s, want %v", got, want)
					}
					return nil
				})
				if l.received != l.sum {
					t.Errorf("%d were received, and %d have an outcome", l.received, l.sum)
				}
			}
			var good []byte
			for i, family := range []int{4, 6} {
				p := bed.PlanFor(family)
				g, stop := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300})
				pair := g.Pairs()[0]
				waitLearned(t, b, p.Sender, p.Receiver, pair.PeerQPN, pair.LocalQPN)
				stop()
				n := message.Notification{Src: p.Sender, Dst: p.Receiver, SrcPort: pair.LocalPort, DstPort: 4791, Proto: 17, DestQP: pair.PeerQPN}
				var err error
				if good, err = n.Append(nil); err != nil {
					t.Fatal(err)
				}
				spoof(t, b, bed.Sender, p.Sender.String(), 255, good, 3)             // from outside
				spoof(t, b, bed.Reflector, p.Reflector.String(), 255, good, 4)       // inside, wrong source
				spoof(t, b, bed.Congestion, p.Congestion.String(), 2, good, 5)       // arrives with TTL 1
				spoof(t, b, bed.Congestion, p.Congestion.String(), 255, good[:7], 6) // malformed
				want["not-our-domain"] += 7
				want["ttl-too-low"] += 5
				want["malformed"] += 6
				counted()
				if c := seen.count(); c != i {
					t.Errorf("%d CNPs were sent for strangers", c-i)
				}
				spoof(t, b, bed.Congestion, p.Congestion.String(), 255, good, 1)
				want["translated"]++
				counted()
				wait(t, b, "the CNP of the right one", func(context.Context) error {
					if c := seen.count(); c != i+1 {
						return fmt.Errorf("%d CNPs", c)
					}
					return nil
				})
			}
			r, err := b.Proxy.Control.GetBoundary(ctx, &pncv1.GetBoundaryRequest{})
			if err != nil || r.GetConfigured() != strings.Contains(proxy, "boundary") || r.GetConfigured() && !strings.Contains(r.GetRuleset(), `counter name "border_in" drop`) {
				t.Errorf("GetBoundary: %v, %v", r, err)
			}
			if !r.GetConfigured() {
				return
			}
			// The sender is outside: with CNPs refused there, none arrives any more.
			if err := reconfigure(t, b, strings.Replace(proxy, "refuse_cnps: false", "refuse_cnps: true", 1)); err != nil {
				t.Fatal(err)
			}
			spoof(t, b, bed.Congestion, bed.PlanFor(6).Congestion.String(), 255, good, 1)
			wait(t, b, "the CNP to be refused at the border", func(ctx context.Context) error {
				r, err := b.Proxy.Control.GetBoundary(ctx, &pncv1.GetBoundaryRequest{})
				if err == nil && r.GetPackets()["cnp_out"] != 1 {
					err = fmt.Errorf("%v", r.GetPackets())
				}
				return err
			})
			if c := seen.count(); c != 2 {
				t.Errorf("%d CNPs reached the outside", c)
			}
		})
	}
}

// reconfigure gives the running proxy another filter.
func reconfigure(t *testing.T, b *bed.Bed, proxy string) error {
	t.Helper()
	for _, text := range edited(t, "proxy.pncd.yaml", "accept_from: [10.255.0.0/24, \"fd00:255::/64\"]\n", proxy) {
		if err := os.WriteFile(b.ConfigPath("proxy.pncd.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.Proxy.Control.Reload(testContext(t), &pncv1.ReloadRequest{})
	return err
}

// nftRules lists what is in the proxy's kernel, without counts.
func nftRules(t *testing.T, b *bed.Bed) string {
	t.Helper()
	out, err := b.Exec(testContext(t), bed.Router, "nft", "-s", "-a", "list", "ruleset")
	if err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	return string(out)
}

// After kill -9 the tables stay in force and the next start takes them over as they are; after a stop nothing is
// left.
func TestTheBorderFilterLivesThroughAKillAndGoesWithAStop(t *testing.T) {
	b := upBed(t, edited(t, "proxy.pncd.yaml", "accept_from: [10.255.0.0/24, \"fd00:255::/64\"]\n", userFilter+nftFilter))
	before := nftRules(t, b)
	if !strings.Contains(before, "table netdev pncd") || !strings.Contains(before, "table inet pncd") {
		t.Fatalf("not programmed:\n%s", before)
	}
	pncd := b.Programs(bed.Proxy)
	pncd[0].Kill()
	<-pncd[0].Done()
	if now := nftRules(t, b); now != before {
		t.Fatalf("after the kill:\n%s", now)
	}
	spoof(t, b, bed.Sender, "10.1.0.2", 255, []byte("nobody listens"), 3)
	again, err := b.Start(testContext(t), bed.Proxy, lab.Proc{Name: "again", Argv: []string{pncdBinary(t), "--config", "/etc/pncd/pncd.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, b, "pncd answers and translates", func(ctx context.Context) error {
		s, err := b.Proxy.Status(ctx)
		if err == nil && !s.GetEnabled() {
			err = fmt.Errorf("not enabled yet")
		}
		return err
	})
	if now := nftRules(t, b); now != before {
		t.Errorf("not taken over, but:\n%s\nbefore:\n%s", now, before)
	}
	spoof(t, b, bed.Sender, "10.1.0.2", 255, []byte("from outside"), 2)
	wait(t, b, "what came since the start", func(ctx context.Context) error {
		if n, err := outcome(ctx, b.Proxy, pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN); err != nil || n != 2 {
			return fmt.Errorf("%d not of our domain, want 2: %v", n, err)
		}
		return nil
	})
	if _, err := b.Exec(testContext(t), bed.Router, "nft", "flush", "ruleset"); err != nil {
		t.Fatal(err)
	}
	wait(t, b, "it is put back", func(ctx context.Context) error {
		r, err := b.Proxy.Control.GetBoundary(ctx, &pncv1.GetBoundaryRequest{})
		if err == nil && (r.GetMended() == 0 || !strings.Contains(r.GetRuleset(), "table inet pncd")) {
			err = fmt.Errorf("mended %d times:\n%s", r.GetMended(), r.GetRuleset())
		}
		return err
	})
	changes, err := b.Proxy.Records.ListHostChanges(testContext(t), &pncv1.ListHostChangesRequest{})
	if err != nil || len(changes.GetChanges()) < 2 || changes.GetChanges()[0].GetName() != "netdev pncd" || changes.GetChanges()[1].GetChange() != "removed" {
		t.Errorf("what is kept of it: %v, %v", changes, err)
	}
	if s, err := b.Proxy.Status(testContext(t)); err != nil || len(s.GetObjects()) < 2 || s.GetObjects()[1].GetName() != "inet pncd" || s.GetObjects()[1].GetError() != "" {
		t.Errorf("objects: %v, %v", s.GetObjects(), err)
	}
	if err := reconfigure(t, b, userFilter); err != nil || strings.TrimSpace(nftRules(t, b)) != "" {
		t.Errorf("without the section: %v\n%s", err, nftRules(t, b))
	}
	if err := reconfigure(t, b, userFilter+nftFilter+"  ports: [1021, 7777]\n"); err != nil || !strings.Contains(nftRules(t, b), "7777") {
		t.Errorf("with another port: %v\n%s", err, nftRules(t, b))
	}
	before = nftRules(t, b)
	if err := reconfigure(t, b, userFilter+nftFilter+"  ports: [1022]\n"); err == nil || !strings.Contains(err.Error(), "boundary.ports") || nftRules(t, b) != before {
		t.Errorf("a bad one: %v\n%s", err, nftRules(t, b))
	}
	if err := again.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if left := nftRules(t, b); strings.TrimSpace(left) != "" {
		t.Errorf("left after the stop:\n%s", left)
	}
}
