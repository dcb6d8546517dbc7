package api_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"pncd/api"
	"pncd/api/apitest"
	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
)

func TestResolveGivesEveryReasonWithItsRoute(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	tests := []struct {
		context, sender string
		reason          pncv1.ResolveReason
		proxy, route    string
		explanation     string
		candidates      int
	}{
		{"", "198.51.100.10", pncv1.ResolveReason_RESOLVE_REASON_FOUND, "192.0.2.1", "198.51.100.0/24", "go to 192.0.2.1 by the bgp route 198.51.100.0/24 from 192.0.2.251 (unchanged for 3h0m0s)", 1},
		{"", "::ffff:198.51.100.10", pncv1.ResolveReason_RESOLVE_REASON_FOUND, "192.0.2.1", "198.51.100.0/24", "go to 192.0.2.1", 1},
		{"", "2001:db8:1::5", pncv1.ResolveReason_RESOLVE_REASON_FOUND, "2001:db8::1", "2001:db8:1::/48", "static route", 0},
		{"", "2001:db8:2::5", pncv1.ResolveReason_RESOLVE_REASON_NO_ROUTE, "", "", "No route matches", 0},
		{"", "198.51.100.200", pncv1.ResolveReason_RESOLVE_REASON_NO_PROXY, "", "198.51.100.128/25", "disregarded: next-hop-mismatch", 0},
		{"", "203.0.113.1", pncv1.ResolveReason_RESOLVE_REASON_NO_PROXY, "", "203.0.113.0/25", "carries no Proxy Node Capability", 0},
		{"", "203.0.113.130", pncv1.ResolveReason_RESOLVE_REASON_PROXY_UNREACHABLE, "", "203.0.113.128/26", "192.0.2.7", 0},
		{"", "203.0.113.200", pncv1.ResolveReason_RESOLVE_REASON_SELF_PROXY, "", "203.0.113.192/26", "this node itself", 0},
		{"", "8.8.8.8", pncv1.ResolveReason_RESOLVE_REASON_DEFAULT_ROUTE_REFUSED, "", "0.0.0.0/0", "default route", 0},
		{"red", "198.51.100.10", pncv1.ResolveReason_RESOLVE_REASON_CONTEXT_UNKNOWN, "", "", "Context red is not configured", 0},
		{"blue", "10.1.2.3", pncv1.ResolveReason_RESOLVE_REASON_FOUND, "192.0.2.1", "10.0.0.0/8", "in context blue", 0},
	}
	for _, tt := range tests {
		t.Run(tt.context+"/"+tt.sender, func(t *testing.T) {
			res, err := c.caps.Resolve(deadline(t), &pncv1.ResolveRequest{Context: tt.context, Sender: tt.sender})
			if err != nil {
				t.Fatal(err)
			}
			if res.GetReason() != tt.reason || res.GetProxy() != tt.proxy || res.GetRoute().GetPrefix() != tt.route {
				t.Errorf("Resolve() = %v, want %v, proxy %q, route %q", res, tt.reason, tt.proxy, tt.route)
			}
			if !strings.Contains(res.GetExplanation(), tt.explanation) {
				t.Errorf("explanation = %q, want %q in it", res.GetExplanation(), tt.explanation)
			}
			if len(res.GetCandidates()) != tt.candidates {
				t.Errorf("candidates = %v, want %d", res.GetCandidates(), tt.candidates)
			}
			if tt.route != "" && res.GetAge().AsDuration() != 3*time.Hour {
				t.Errorf("age = %v, want 3h", res.GetAge().AsDuration())
			}
		})
	}
}

func TestListCapabilitiesFiltersSortsAndLimits(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	tests := []struct {
		name      string
		req       *pncv1.ListCapabilitiesRequest
		want      []string // prefix and proxy
		truncated bool
		ads       int
	}{
		{"with a proxy", &pncv1.ListCapabilitiesRequest{}, []string{
			"0.0.0.0/0 192.0.2.1", "198.51.100.0/24 192.0.2.1", "198.51.100.0/24 192.0.2.2",
			"203.0.113.128/26 192.0.2.7", "203.0.113.192/26 192.0.2.8", "2001:db8:1::/48 2001:db8::1",
		}, false, 2},
		{"all", &pncv1.ListCapabilitiesRequest{IncludeWithoutProxy: true, Prefix: "203.0.113.0/24"}, []string{
			"0.0.0.0/0 192.0.2.1", "203.0.113.0/25 ", "203.0.113.128/26 192.0.2.7", "203.0.113.192/26 192.0.2.8",
		}, false, 0},
		{"limit", &pncv1.ListCapabilitiesRequest{Limit: 2}, []string{"0.0.0.0/0 192.0.2.1", "198.51.100.0/24 192.0.2.1"}, true, 2},
		{"limit not exceeded", &pncv1.ListCapabilitiesRequest{Context: "blue", Limit: 1}, []string{"10.0.0.0/8 192.0.2.1"}, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := c.caps.ListCapabilities(deadline(t), tt.req)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range res.GetRoutes() {
				got = append(got, r.GetPrefix()+" "+r.GetProxy())
			}
			if strings.Join(got, ", ") != strings.Join(tt.want, ", ") {
				t.Errorf("routes:\n got %q\nwant %q", got, tt.want)
			}
			if res.GetTruncated() != tt.truncated || len(res.GetAdvertisements()) != tt.ads {
				t.Errorf("truncated %v, %d advertisements, want %v, %d", res.GetTruncated(), len(res.GetAdvertisements()), tt.truncated, tt.ads)
			}
			if res.GetVersion() == 0 {
				t.Error("the table's version is missing")
			}
		})
	}
	_, err := c.caps.ListCapabilities(deadline(t), &pncv1.ListCapabilitiesRequest{Context: "red"})
	wantCode(t, err, codes.InvalidArgument, "context")
}

func TestListedRouteCarriesEveryField(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	res, err := c.caps.ListCapabilities(deadline(t), &pncv1.ListCapabilitiesRequest{Prefix: "198.51.100.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	r := res.GetRoutes()[1]
	if r.GetSource() != pncv1.Source_SOURCE_BGP || r.GetNextHop() != "192.0.2.254" || r.GetPeer() != "192.0.2.251" || r.GetOriginator() != "192.0.2.251" ||
		!r.GetBest() || !r.GetPartial() || r.GetStale() || !r.GetProxyReachable() || r.GetVersion() == 0 || !r.GetChangedAt().AsTime().Equal(apitest.Now.Add(-3*time.Hour)) {
		t.Errorf("route = %v", r)
	}
	if second := res.GetRoutes()[2]; !second.GetStale() || second.GetBest() {
		t.Errorf("second route = %v, want stale and not best", second)
	}
}

func TestRejectedCapabilitiesAreListedWithReasonAndDetail(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	later := pnc.Event{Route: pnc.Route{Prefix: netip.MustParsePrefix("192.0.2.0/28"), Source: pnc.SourceBGP}, Reason: pnc.DisregardMalformedTLV, Detail: "00"}
	b.Table.Disregard(apitest.Now, later)
	res, err := c.caps.ListCapabilities(deadline(t), &pncv1.ListCapabilitiesRequest{Rejected: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.GetRejected()) != 2 || len(res.GetRoutes()) != 0 {
		t.Fatalf("answer = %v, want 2 rejected and no routes", res)
	}
	e := res.GetRejected()[0]
	if e.GetReason() != pncv1.DisregardReason_DISREGARD_REASON_NEXT_HOP_MISMATCH || e.GetKind() != pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_DISREGARDED ||
		!strings.Contains(e.GetDetail(), "192.0.2.253") || e.GetRoute().GetPrefix() != "198.51.100.128/25" {
		t.Errorf("first rejected = %v, want the oldest", e)
	}
	res, err = c.caps.ListCapabilities(deadline(t), &pncv1.ListCapabilitiesRequest{Rejected: true, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.GetRejected()) != 1 || !res.GetTruncated() || res.GetRejected()[0].GetDetail() != "00" {
		t.Errorf("answer with limit 1 = %v, want the newest and truncated", res)
	}
}

func TestWatchCapabilitiesGivesHistoryThenChanges(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	stream, err := c.caps.WatchCapabilities(deadline(t), &pncv1.WatchCapabilitiesRequest{IncludeHistory: true})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if first.GetEvent().GetKind() != pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_LEARNED {
		t.Errorf("first event = %v, want a learned one of the history", first)
	}
	b.Table.Apply(apitest.Now, pnc.Update{Route: pnc.Route{Prefix: netip.MustParsePrefix("192.0.2.64/28"), Source: pnc.SourceStatic, Proxy: netip.MustParseAddr("192.0.2.1")}})
	for {
		res, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if res.GetEvent().GetRoute().GetPrefix() == "192.0.2.64/28" {
			break
		}
	}
}

func TestAdvertiseNeedsTheMechanismAndOnlyFittingArguments(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	ctx := deadline(t)
	res, err := c.caps.Advertise(ctx, &pncv1.AdvertiseRequest{Prefix: "192.0.2.128/28", Proxy: "192.0.2.3", NextHop: "192.0.2.4"})
	if err != nil {
		t.Fatal(err)
	}
	ad := res.GetAdvertisement()
	if ad.GetMode() != pncv1.OriginationMode_ORIGINATION_MODE_ORIGINATE || ad.GetProxy() != "192.0.2.3" || ad.GetNextHop() != "192.0.2.4" || ad.GetConfigured() {
		t.Errorf("advertisement = %v, want mode originate by default", ad)
	}
	_, err = c.caps.Advertise(ctx, &pncv1.AdvertiseRequest{Prefix: "192.0.2.128/28", NextHop: "192.0.2.4", Mode: pncv1.OriginationMode_ORIGINATION_MODE_INLINE})
	wantCode(t, err, codes.InvalidArgument, "next_hop")

	if _, err := c.node.Disable(ctx, &pncv1.DisableRequest{}); err != nil {
		t.Fatal(err)
	}
	_, err = c.caps.Advertise(ctx, &pncv1.AdvertiseRequest{Prefix: "192.0.2.144/28", NextHop: "192.0.2.4"})
	wantCode(t, err, codes.FailedPrecondition, api.ReasonDisabled)
	if n := len(b.Advertiser.Advertisements()); n != 3 {
		t.Errorf("%d advertisements, want the refused one not to have reached the backend", n)
	}

	// While disabled a withdrawal works, so that the prefix does not come back later.
	if _, err := c.caps.Withdraw(ctx, &pncv1.WithdrawRequest{Prefix: "192.0.2.128/28"}); err != nil {
		t.Errorf("Withdraw while disabled: %v", err)
	}
	_, err = c.caps.Withdraw(ctx, &pncv1.WithdrawRequest{Prefix: "192.0.2.128/28"})
	wantCode(t, err, codes.NotFound, api.ReasonNotFound)
	_, err = c.caps.Withdraw(ctx, &pncv1.WithdrawRequest{Prefix: "198.51.100.0/24"})
	wantCode(t, err, codes.FailedPrecondition, api.ReasonConfigured)
}

func TestResolveSaysWhenFlowsAreShared(t *testing.T) {
	b := apitest.New(t)
	b.Table = pnc.New(pnc.Config{Share: pnc.ShareHash})
	prefix := netip.MustParsePrefix("198.51.100.0/24")
	reach := map[netip.Addr]pnc.Reach{}
	for i, proxy := range []string{"192.0.2.1", "192.0.2.2"} {
		a := netip.MustParseAddr(proxy)
		b.Table.Apply(apitest.Now, pnc.Update{Route: pnc.Route{Prefix: prefix, Source: pnc.SourceStatic, Proxy: a, PathID: uint32(i)}})
		reach[a] = pnc.Reach{Reachable: true}
	}
	b.Table.SetReachability(apitest.Now, reach)
	socket, _ := b.Serve(t, api.Options{})
	res, err := dial(t, "unix:"+socket).caps.Resolve(deadline(t), &pncv1.ResolveRequest{Sender: "198.51.100.9"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "each flow to one of 192.0.2.1, 192.0.2.2."; !strings.Contains(res.GetExplanation(), want) {
		t.Errorf("explanation %q, want %q in it", res.GetExplanation(), want)
	}
}

// The answer names the route used, and why not each of the others, whichever source they are of.
func TestResolveSaysWhyThisSource(t *testing.T) {
	b := apitest.New(t)
	prefix, proxy, dead := netip.MustParsePrefix("198.51.100.0/24"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.9")
	set := func(cfg pnc.Config, routes ...pnc.Route) {
		b.Table = pnc.New(cfg)
		for _, r := range routes {
			r.Prefix, r.Best = prefix, true
			b.Table.Apply(apitest.Now, pnc.Update{Route: r})
		}
		b.Table.SetReachability(apitest.Now, map[netip.Addr]pnc.Reach{proxy: {Reachable: true}})
	}
	bgp, isis, ospf := pnc.Route{Source: pnc.SourceBGP, Proxy: proxy}, pnc.Route{Source: pnc.SourceISIS, Proxy: proxy}, pnc.Route{Source: pnc.SourceOSPF, Proxy: proxy}
	unreachable, none := pnc.Route{Source: pnc.SourceBGP, Proxy: dead}, pnc.Route{Source: pnc.SourceBGP}
	for _, tt := range []struct {
		name   string
		cfg    pnc.Config
		routes []pnc.Route
		source string
		text   string   // the explanation ends so
		others []string // why not
	}{
		{"all three", pnc.Config{}, []pnc.Route{ospf, isis, bgp}, "bgp", " By resolve.preference bgp comes before isis and ospf.", []string{"isis preference", "ospf preference"}},
		{"two", pnc.Config{}, []pnc.Route{ospf, isis}, "isis", " By resolve.preference isis comes before ospf.", []string{"ospf preference"}},
		{"one", pnc.Config{}, []pnc.Route{ospf}, "ospf", "(unchanged for 0s).", nil},
		{"another preference", pnc.Config{Preference: []pnc.Source{pnc.SourceOSPF}}, []pnc.Route{ospf, isis, bgp}, "ospf", " By resolve.preference ospf comes before bgp and isis.", []string{"bgp preference", "isis preference"}},
		{"the preferred one can't be reached", pnc.Config{}, []pnc.Route{ospf, isis, unreachable}, "isis",
			" Preferred, but not usable: bgp (proxy-unreachable). By resolve.preference isis comes before ospf.", []string{"bgp proxy-unreachable", "ospf preference"}},
		{"the preferred one has no PNC", pnc.Config{}, []pnc.Route{ospf, none}, "ospf", " Preferred, but not usable: bgp (no-proxy).", []string{"bgp no-proxy"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set(tt.cfg, tt.routes...)
			socket, _ := b.Serve(t, api.Options{})
			res, err := dial(t, "unix:"+socket).caps.Resolve(deadline(t), &pncv1.ResolveRequest{Sender: "198.51.100.9"})
			if err != nil {
				t.Fatal(err)
			}
			word := func(prefix, name string) string {
				return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "_", "-")
			}
			if s := word("SOURCE_", res.GetRoute().GetSource().String()); s != tt.source || !strings.HasSuffix(res.GetExplanation(), tt.text) {
				t.Errorf("by %s: %s\nwant %s: ...%s", s, res.GetExplanation(), tt.source, tt.text)
			}
			if res.GetRoute().GetNotUsed() != 0 {
				t.Errorf("the route used is not used: %v", res.GetRoute().GetNotUsed())
			}
			var others []string
			for _, c := range res.GetCandidates() {
				others = append(others, word("SOURCE_", c.GetSource().String())+" "+word("NOT_USED_REASON_", c.GetNotUsed().String()))
			}
			if !slices.Equal(others, tt.others) {
				t.Errorf("others: %v, want %v", others, tt.others)
			}
		})
	}
}
