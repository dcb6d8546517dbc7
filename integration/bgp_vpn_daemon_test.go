package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pncd/integration/bed"
	"pncd/internal/ctl"
)

// vpnFiles put the lab's sender prefix into two VPNs as well, each with a proxy of its own.
func vpnFiles(t *testing.T) map[string]string {
	t.Helper()
	const families = "      families: [ipv4-unicast, vpnv4-unicast]\n      connect_retry: 1s\n"
	files := edited(t, "proxy.pncd.yaml",
		"enabled: true\n", `enabled: true
contexts:
  - {name: blue, rd: "10.255.0.11:1", export: ["65000:9100"], label: implicit-null}
  - {name: red, rd: "10.255.0.11:2", export: ["65000:9200"], label: implicit-null}
`,
		"      connect_retry: 1s\n", families,
		"  accept_from:", `    - {prefix: 10.1.0.0/24, context: blue, next_hop: 10.255.0.1}
    - {prefix: 10.1.0.0/24, context: red, proxy: "fd00:255::11", next_hop: 10.255.0.1}
  accept_from:`)
	for name, text := range edited(t, "congestion.pncd.yaml",
		"enabled: true\n", `enabled: true
contexts:
  - {name: blue, import: ["65000:9100"]}
  - {name: red, import: ["65000:9200"]}
static:
  - {prefix: 203.0.113.0/24, proxy: 10.255.0.11, context: red}
`,
		"      connect_retry: 1s\n", families) {
		files[name] = text
	}
	for name, text := range edited(t, "reflector.frr.conf", " address-family ipv6 unicast\n",
		" address-family ipv4 vpn\n  neighbor V4 activate\n  neighbor V4 route-reflector-client\n exit-address-family\n address-family ipv6 unicast\n") {
		files[name] = text
	}
	return files
}

// pncctl runs the command line against the pncd of a node.
func pncctl(t *testing.T, l interface{ RunDir(node string) string }, node string, args ...string) (status int, text string) {
	t.Helper()
	var out strings.Builder
	status = ctl.Main(testContext(t), ctl.Env{
		Args: args, Stdout: &out, Stderr: &out, Now: time.Now,
		Getenv: func(k string) string {
			if k == "PNCCTL_ADDRESS" {
				return "unix://" + filepath.Join(l.RunDir(node), "pncd", "pncd.sock")
			}
			return ""
		},
	})
	return status, out.String()
}

func TestVPNContextsFromTheConfigurationToTheCommandLine(t *testing.T) {
	b := upBed(t, vpnFiles(t))
	sender := bed.PlanFor(4).Sender.String()
	expect := func(status int, want string, node string, args ...string) {
		t.Helper()
		wait(t, b, fmt.Sprintf("pncctl %v: %d, %q", args, status, want), func(context.Context) error {
			got, text := pncctl(t, b, node, args...)
			for _, w := range strings.Split(want, "|") {
				if got != status || !strings.Contains(text, w) {
					return fmt.Errorf("status %d, no %q in:\n%s", got, w, text)
				}
			}
			return nil
		})
	}
	expect(0, "10.255.0.11|in context blue|route distinguisher 10.255.0.11:1|rd=10.255.0.11:1", bed.Congestion, "resolve", sender, "--context", "blue")
	expect(0, "fd00:255::11|in context red|rd=10.255.0.11:2", bed.Congestion, "resolve", sender, "--context", "red")
	expect(0, "10.255.0.11", bed.Congestion, "resolve", sender)
	expect(0, "the static route 203.0.113.0/24", bed.Congestion, "resolve", "203.0.113.9", "--context", "red")
	expect(1, "No route in context blue", bed.Congestion, "resolve", "203.0.113.9", "--context", "blue")
	expect(1, "Context green is not configured", bed.Congestion, "resolve", sender, "--context", "green")
	expect(0, "10.1.0.0/24|10.255.0.11|rd=10.255.0.11:1", bed.Congestion, "capabilities", "--context", "blue")
	expect(0, "Originated by this node|10.1.0.0/24|fd00:255::11", bed.Proxy, "capabilities", "--context", "red")
	expect(0, "vpnv4-unicast", bed.Congestion, "neighbors", "10.255.0.2", "--detail")
	if _, text := pncctl(t, b, bed.Congestion, "capabilities", "--context", "blue"); strings.Contains(text, "fd00:255::11") || strings.Contains(text, "203.0.113.0") {
		t.Errorf("context blue shows what belongs to red:\n%s", text)
	}

	// Contexts are reloaded without touching the sessions: a new one imports what arrived before.
	path := b.ConfigPath("congestion.pncd.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next := strings.Replace(string(text), "  - {name: red, ", "  - {name: green, import: [\"65000:9100\"]}\n  - {name: red, ", 1)
	if err := os.WriteFile(path, []byte(next), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, text := pncctl(t, b, bed.Congestion, "reload"); status != 0 || !strings.Contains(text, "contexts[green]") {
		t.Fatalf("reload: %d, %s", status, text)
	}
	expect(0, "10.255.0.11|in context green", bed.Congestion, "resolve", sender, "--context", "green")

	// A context's policy holds in it alone, and for what arrived before.
	next = strings.Replace(next, "  - {name: green, ", "  - {name: green, accept_proxies: [10.99.0.0/16], ", 1)
	if err := os.WriteFile(path, []byte(next), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, text := pncctl(t, b, bed.Congestion, "reload"); status != 0 || !strings.Contains(text, "contexts[green].accept_proxies") {
		t.Fatalf("reload: %d, %s", status, text)
	}
	expect(1, "context green", bed.Congestion, "resolve", sender, "--context", "green")
	expect(0, "proxy-not-accepted|10.255.0.11", bed.Congestion, "capabilities", "--rejected", "--context", "green")
	expect(0, "10.255.0.11|in context blue", bed.Congestion, "resolve", sender, "--context", "blue")
	if status, text := pncctl(t, b, bed.Proxy, "disable"); status != 0 {
		t.Fatalf("disable: %s", text)
	}
	for _, context := range []string{"blue", "green"} {
		expect(1, "No route in context "+context, bed.Congestion, "resolve", sender, "--context", context)
	}
}
