package integration

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
)

// A changed file touches only the session that changed: a policy touches none and holds at once, a timer begins
// its session anew.
func TestBGPReloadTouchesOnlyTheSessionThatChanged(t *testing.T) {
	b := upBed(t, nil)
	sender := netip.MustParseAddr("10.1.0.2")
	waitResolve(t, b, sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
	// sessions waits until both are up, with the hold time wanted of the IPv4 one, and says since when.
	sessions := func(holdTime uint32) (v4, v6 time.Time) {
		t.Helper()
		wait(t, b, fmt.Sprintf("both sessions, a hold time of %d s", holdTime), func(ctx context.Context) error {
			r, err := b.Congestion.Control.ListNeighbors(ctx, &pncv1.ListNeighborsRequest{})
			if err != nil {
				return err
			}
			for _, n := range r.GetNeighbors() {
				first := n.GetAddress() == "10.255.0.2"
				if n.GetState() != "established" || first && n.GetHoldTime() != holdTime {
					return fmt.Errorf("%v", n)
				}
				if first {
					v4 = n.GetSince().AsTime()
				} else {
					v6 = n.GetSince().AsTime()
				}
			}
			return nil
		})
		return v4, v6
	}
	path := b.ConfigPath("congestion.pncd.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(old, new string) {
		t.Helper()
		next := strings.Replace(string(text), old, new, 1)
		if next == string(text) && new != old {
			t.Fatalf("%q isn't in the configuration", old)
		}
		if err := os.WriteFile(path, []byte(next), 0o644); err != nil {
			t.Fatal(err)
		}
		if status, out := pncctl(t, b, bed.Congestion, "reload"); status != 0 || strings.Contains(out, "nothing changed") {
			t.Fatalf("reload: %d, %s", status, out)
		}
	}
	v4, v6 := sessions(90)
	untouched := func(what string) {
		t.Helper()
		if now4, now6 := sessions(90); now4 != v4 || now6 != v6 {
			t.Errorf("%s: sessions since %v and %v, before %v and %v", what, now4, now6, v4, v6)
		}
	}
	for what, policy := range map[string]string{
		"proxies of another domain":     "accept_proxies: [10.99.0.0/16]",
		"originators of another domain": "accept_from: [10.99.0.0/16]",
	} {
		reload("  port: -1\n", "  port: -1\n  "+policy+"\n")
		waitResolve(t, b, sender, pncv1.ResolveReason_RESOLVE_REASON_NO_PROXY)
		untouched(what)
		reload("", "") // as it was
		waitResolve(t, b, sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
		untouched("without " + what)
	}
	reload("local_address: 10.255.0.3\n", "local_address: 10.255.0.3\n      hold_time: 30s\n")
	if now4, now6 := sessions(30); now4 == v4 || now6 != v6 {
		t.Errorf("hold_time: sessions since %v and %v, before %v and %v", now4, now6, v4, v6)
	}
	waitResolve(t, b, sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
}
