package bgp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/bgp/engine"
	"pncd/pnc"
)

// tagged is peer1's announcement of a prefix with a PNC and communities.
func tagged(t *testing.T, p string, cs ...string) engine.Event {
	t.Helper()
	path := engine.Path{Prefix: prefix(p), PeerID: peer1, NextHop: addr("198.51.100.1"), LocalPref: 100,
		HasNHC: true, NHCFlags: 0xc0, NHC: unhex(t, head4+pnc7)}
	for _, c := range cs {
		path.Communities = append(path.Communities, community(c))
	}
	return engine.Event{Kind: engine.EventPath, Peer: peer1, Family: IPv4Unicast, Path: path}
}

func community(s string) Community {
	c, err := ParseCommunity(s)
	if err != nil {
		panic(err)
	}
	return c
}

func TestANeighboursPolicyDecidesWhatIsTakenAndBelieved(t *testing.T) {
	for name, tt := range map[string]struct {
		in      inbound
		with    []string // communities of the announcement
		taken   bool
		reason  pnc.DisregardReason
		refused uint64
	}{
		"without a policy":              {inbound{}, nil, true, pnc.DisregardNone, 0},
		"permitted":                     {inbound{prefixes: PrefixList{{Prefix: pfx}}}, nil, true, pnc.DisregardNone, 0},
		"denied by a rule":              {inbound{prefixes: PrefixList{{Prefix: pfx, Deny: true}, {Prefix: prefix("0.0.0.0/0"), LE: 32}}}, nil, false, 0, 1},
		"denied by the end of the list": {inbound{prefixes: PrefixList{{Prefix: prefix("10.0.0.0/8")}}}, nil, false, 0, 1},
		"one of the communities":        {inbound{communities: []Community{community("1:2"), community("1:2:3")}}, []string{"9:9", "1:2:3"}, true, pnc.DisregardNone, 0},
		"another community":             {inbound{communities: []Community{community("1:2")}}, []string{"2:1"}, true, pnc.DisregardCommunityMissing, 0},
		"no community":                  {inbound{communities: []Community{community("1:2")}}, nil, true, pnc.DisregardCommunityMissing, 0},
		"its own accepted proxies":      {inbound{proxies: []netip.Prefix{prefix("192.0.2.7/32")}}, nil, true, pnc.DisregardNone, 0},
		"proxy not accepted from it":    {inbound{proxies: []netip.Prefix{prefix("192.0.2.8/32")}}, nil, true, pnc.DisregardProxyNotAccepted, 0},
		"the border of the domain":      {inbound{border: true}, nil, true, pnc.DisregardEBGPNotAllowed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t)
			tb.r.peers[peer1].in = tt.in
			tb.apply(tagged(t, pfx.String(), tt.with...))
			if len(tb.routes) > 1 || (len(tb.routes) == 1) != tt.taken {
				t.Fatalf("routes %+v", tb.routes)
			}
			for _, r := range tb.routes {
				if r.Disregarded != tt.reason || r.Proxy != addr("192.0.2.7") {
					t.Errorf("%+v", r)
				}
			}
			p := tb.r.peers[peer1]
			if p.refused != tt.refused || p.believed > p.paths || (tt.reason != 0) != (len(tb.events) == 1) {
				t.Errorf("refused %d, events %+v", p.refused, tb.events)
			}
		})
	}
}

func TestTheAcceptedProxiesOfANeighbourStandInPlaceOfThoseOfAll(t *testing.T) {
	tb := newTable(t)
	tb.r.policy.accept = []netip.Prefix{prefix("192.0.2.8/32")}
	tb.r.peers[peer1].in.proxies = []netip.Prefix{prefix("192.0.2.7/32")}
	tb.apply(tagged(t, pfx.String()))
	for _, r := range tb.routes {
		if !r.Believed() {
			t.Errorf("%+v", r)
		}
	}
}

func TestAPolicyThatDeniesNowTakesTheRouteBack(t *testing.T) {
	tb := newTable(t)
	tb.apply(tagged(t, pfx.String()))
	tb.r.peers[peer1].in.prefixes = PrefixList{{Prefix: pfx, Deny: true}}
	tb.apply(tagged(t, pfx.String())) // the engine reports it again
	if len(tb.routes) != 0 || tb.r.peers[peer1].believed != 0 {
		t.Errorf("%+v", tb.routes)
	}
}

func TestCommunitiesAreAddedToThoseOfTheRouter(t *testing.T) {
	tags := []Community{community("65000:1"), community("65000:2"), community("65000:1:2")}
	for name, tt := range map[string]struct {
		mode         Mode
		router       []string
		small, large string
	}{
		"our own route":               {ModeOriginate, nil, "c00808fde80001fde80002", "c0200c0000fde80000000100000002"},
		"a router's path without":     {ModePath, []string{routerOrigin}, "c00808fde80001fde80002", "c0200c0000fde80000000100000002"},
		"one is there already":        {ModeInline, []string{routerOrigin, routerComms2, routerLarge}, "e00808fde80001fde80002", "c0200c0000fde80000000100000002"},
		"others of the router's stay": {ModePrefer, []string{routerOrigin, "c0 08 04 fde80007"}, "c0080cfde80007fde80001fde80002", "c0200c0000fde80000000100000002"},
	} {
		t.Run(name, func(t *testing.T) {
			from := routerPeer
			if tt.mode == ModeOriginate {
				from = netip.Addr{}
			}
			d := newDesk(t, modeConfig(tt.mode, from))
			d.o.tags = tags
			d.o.setEnabled(true)
			if tt.router != nil {
				d.hear(routerPeer, nil, tt.router...)
			}
			a := d.one()
			if attribute(a, attrCommunities) != tt.small || attribute(a, attrLarge) != tt.large {
				t.Errorf("communities %s, large %s", attribute(a, attrCommunities), attribute(a, attrLarge))
			}
			if !slices.IsSortedFunc(a.Attributes, byType) {
				t.Errorf("attributes not in order of type: %x", a.Attributes)
			}
		})
	}
	d := newDesk(t, modeConfig(ModeInline, routerPeer))
	d.o.tags = tags
	d.hear(routerPeer, nil, routerOrigin)
	if a := d.one(); attribute(a, attrCommunities) != "" {
		t.Errorf("without a PNC the router's path is left as it is: %+v", a)
	}
}

func TestAWrongPolicyNamesTheNeighbour(t *testing.T) {
	yes := true
	for want, edit := range map[string]func(*Config){
		"import prefixes":  func(c *Config) { c.Neighbors[0].ImportPrefixes = PrefixList{{Prefix: pfx, LE: 8}} },
		"export prefixes":  func(c *Config) { c.Neighbors[0].ExportPrefixes = PrefixList{{}} },
		"accepted proxies": func(c *Config) { c.Neighbors[0].AcceptProxies = []netip.Prefix{{}} },
		"is IBGP":          func(c *Config) { c.Neighbors[0].Border = true },
		"border of the": func(c *Config) {
			c.Neighbors[1].PeerAS, c.Neighbors[1].Border, c.Neighbors[1].SendNHC = 65009, true, &yes
		},
		"at most 255 octets": func(c *Config) { c.Neighbors[0].Shutdown = strings.Repeat("x", 256) },
		"must be UTF-8":      func(c *Config) { c.Neighbors[0].Shutdown = "\xff" },
	} {
		c := sound()
		edit(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "neighbor ") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestAPolicyChangesWithoutTouchingTheSessionAndAShutdownSaysWhy(t *testing.T) {
	r := run(t, sound())
	next := sound()
	next.Neighbors[0].ImportPrefixes = PrefixList{{Prefix: pfx}}
	before := r.f.log()
	if err := r.Reconfigure(next); err != nil {
		t.Fatal(err)
	}
	if got := r.f.log(); slices.ContainsFunc(got[len(before):], func(s string) bool { return strings.HasPrefix(s, "remove") || strings.HasPrefix(s, "add") }) {
		t.Errorf("a session was touched: %v", got)
	}
	before = r.f.log()
	next.Neighbors[0].Shutdown = "maintenance"
	if err := r.Reconfigure(next); err != nil {
		t.Fatal(err)
	}
	a := next.Neighbors[0].Address.String()
	if got, want := r.f.log()[len(before):], []string{"shutdown " + a + ": maintenance", "remove " + a, "add " + a}; !slices.Equal(got, want) {
		t.Errorf("asked %v, want %v", got, want)
	}
	if _, wanted := r.Sessions(); wanted != len(next.Neighbors)-1 {
		t.Errorf("%d sessions are wanted", wanted)
	}
}
