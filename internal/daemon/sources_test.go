package daemon

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pncd/dataplane/host"
	"pncd/internal/telemetry"
)

func TestServedPrefixesFollowTheKernelsRoutes(t *testing.T) {
	r := start(t, strings.Replace(template, "senders: [{prefix: 198.51.100.0/24}]", "sender_sources: [{table: 4242, within: [203.0.113.0/24]}]", 1))
	select {
	case <-r.routes.Ready(): // from here on the kernel, which has no such table, says nothing by itself
	case <-time.After(10 * time.Second):
		t.Fatal("the routes weren't read within 10 s")
	}
	source := host.RouteSource{Table: 4242}
	inside, outside := netip.MustParsePrefix("203.0.113.128/25"), netip.MustParsePrefix("198.51.100.0/24")
	served := func() []netip.Prefix {
		cfg, _ := r.withSources(r.Daemon.config.Load())
		return translatorSettings(cfg.Proxy).ServedPrefixes
	}
	if got := served(); len(got) != 0 {
		t.Fatalf("without a route, %v is served", got)
	}
	r.routesChanged(map[host.RouteSource][]netip.Prefix{source: {inside, outside}})
	if got := served(); !slices.Equal(got, []netip.Prefix{inside}) {
		t.Errorf("served %v", got)
	}
	if _, sources := r.exportedAdvertisements(); !slices.Equal(sources, []telemetry.SenderSource{{Name: "table 4242", Prefixes: 1}}) {
		t.Errorf("exported %v", sources)
	}
	r.routesChanged(map[host.RouteSource][]netip.Prefix{source: nil})
	if got := served(); len(got) != 0 {
		t.Errorf("withdrawn, and %v is served", got)
	}
}
