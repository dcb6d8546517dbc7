package bgp

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/bgp/engine"
	"pncd/bgp/nhc"
	"pncd/pnc"
)

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, prefix(s))
	}
	return out
}

// The originator of a route is ORIGINATOR_ID; without one, and over EBGP, the neighbour.
func TestReceiverBelievesOnlyAcceptedOriginators(t *testing.T) {
	reflected := func(p *engine.Path) { p.OriginatorID = addr("192.0.2.50") }
	none := func(*engine.Path) {}
	for name, tt := range map[string]struct {
		general, neighbour []string
		ebgp               bool
		edit               func(*engine.Path)
		believed           bool
	}{
		"no list":                              {nil, nil, false, reflected, true},
		"the neighbour itself":                 {[]string{"192.0.2.1/32"}, nil, false, none, true},
		"another neighbour":                    {[]string{"192.0.2.2/32"}, nil, false, none, false},
		"the originator of what it reflects":   {[]string{"192.0.2.50/32"}, nil, false, reflected, true},
		"the reflector is not the originator":  {[]string{"192.0.2.1/32"}, nil, false, reflected, false},
		"the neighbour's list in place of all": {[]string{"10.0.0.0/8"}, []string{"192.0.2.48/29"}, false, reflected, true},
		"outside of the neighbour's list":      {[]string{"192.0.2.0/24"}, []string{"10.0.0.0/8"}, false, reflected, false},
		"EBGP says another originator":         {[]string{"192.0.2.50/32"}, nil, true, reflected, false},
		"EBGP, the neighbour itself":           {[]string{"192.0.2.1/32"}, nil, true, reflected, true},
		"an identifier that isn't known":       {[]string{"192.0.2.0/24"}, nil, false, func(p *engine.Path) { p.PeerID = netip.Addr{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t)
			tb.r.policy.from = prefixes(tt.general...)
			tb.r.peers[peer1].in.from, tb.r.peers[peer1].ebgp = prefixes(tt.neighbour...), tt.ebgp
			tb.apply(pathEvent(t, peer1, 0, tt.edit))
			r := tb.get(peer1, 0)
			if r == nil {
				t.Fatal("the route must stay")
			}
			if r.Believed() != tt.believed || !tt.believed && r.Disregarded != pnc.DisregardOriginatorNotAccepted {
				t.Errorf("%+v", r)
			}
			if !tt.believed && (len(tb.events) != 1 || tb.events[0].Detail == "" || tb.r.total[pnc.DisregardOriginatorNotAccepted] != 1) {
				t.Errorf("events %+v, counted %v", tb.events, tb.r.total)
			}
		})
	}
}

// What a context asks for is asked beside what the neighbour's policy asks for.
func TestAContextsPolicyDecidesWhatGoesInAndIsBelieved(t *testing.T) {
	type lists struct {
		contexts, neighbour, general inbound
	}
	proxies := func(s string) inbound { return inbound{proxies: prefixes(s)} }
	from := func(s string) inbound { return inbound{from: prefixes(s)} }
	const in, out = "192.0.2.0/29", "10.0.0.0/8"
	for name, tt := range map[string]struct {
		lists  lists
		taken  bool
		reason pnc.DisregardReason
	}{
		"none":                                 {lists{}, true, 0},
		"proxies: the context's":               {lists{contexts: proxies(in)}, true, 0},
		"proxies: not the context's":           {lists{contexts: proxies(out)}, true, pnc.DisregardProxyNotAccepted},
		"proxies: the context's, not all's":    {lists{contexts: proxies(in), general: proxies(out)}, true, 0},
		"proxies: the context's, not peer's":   {lists{contexts: proxies(in), neighbour: proxies(out)}, true, pnc.DisregardProxyNotAccepted},
		"proxies: the peer's, not context's":   {lists{contexts: proxies(out), neighbour: proxies(in)}, true, pnc.DisregardProxyNotAccepted},
		"proxies: all's, where nobody has any": {lists{general: proxies(out)}, true, pnc.DisregardProxyNotAccepted},
		"originators: the context's":           {lists{contexts: from(in)}, true, 0},
		"originators: not the context's":       {lists{contexts: from(out), general: from(in)}, true, pnc.DisregardOriginatorNotAccepted},
		"a community that is there":            {lists{contexts: inbound{communities: []Community{community("1:2")}}}, true, 0},
		"a community that is missing":          {lists{contexts: inbound{communities: []Community{community("1:3")}}}, true, pnc.DisregardCommunityMissing},
		"both ask, one is missing":             {lists{contexts: inbound{communities: []Community{community("1:2")}}, neighbour: inbound{communities: []Community{community("1:3")}}}, true, pnc.DisregardCommunityMissing},
		"a prefix that is permitted":           {lists{contexts: inbound{prefixes: PrefixList{{Prefix: pfx}}}}, true, 0},
		"a prefix that is denied":              {lists{contexts: inbound{prefixes: PrefixList{{Prefix: pfx, Deny: true}}}}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tb := newVPNTable(t)
			blue := importing(t, "blue", "65000:100")
			c := tt.lists.contexts
			blue.ImportPrefixes, blue.RequireCommunities, blue.AcceptProxies, blue.AcceptFrom = c.prefixes, c.communities, c.proxies, c.from
			out, _ := tb.r.importing([]ContextConfig{blue, importing(t, "red", "65000:100")})
			tb.take(out)
			tb.r.policy.accept, tb.r.policy.from = tt.lists.general.proxies, tt.lists.general.from
			tb.r.peers[peer1].in = tt.lists.neighbour
			tb.apply(vpnEvent(t, "65000:1", "65000:100", func(ev *engine.Event) { ev.Path.Communities = []Community{community("1:2")} }))
			if got := tb.in("blue") != ""; got != tt.taken {
				t.Fatalf("taken %v, want %v: %+v", got, tt.taken, tb.routes)
			}
			if !tt.taken && (tb.r.peers[peer1].refused != 1 || tb.in("red") != "65000:1+") {
				t.Errorf("refused %d; red has %q", tb.r.peers[peer1].refused, tb.in("red"))
			}
			for id, r := range tb.routes {
				if id.Context == "blue" && (r.Disregarded != tt.reason || r.Believed() != (tt.reason == 0)) {
					t.Errorf("%+v", r)
				}
			}
			// Applied again to what is there, as when bgp's own lists change, the answer is the same.
			before := tb.in("blue")
			again := tb.r.policy
			again.accept, again.from = slices.Clone(again.accept), slices.Clone(again.from)
			if tb.take(tb.r.rejudge(again)); tb.in("blue") != before {
				t.Errorf("judged again: %q, before %q", tb.in("blue"), before)
			}
		})
	}
}

func TestAContextsPolicyDecidesWhatIsAnnouncedInside(t *testing.T) {
	cfg := soundVPN(t)
	cfg.Communities = []Community{community("65000:1")}
	cfg.Contexts[0].Communities = []Community{community("65000:2"), community("65000:1:2")}
	cfg.Contexts[0].ExportPrefixes = PrefixList{{Prefix: prefix("2001:db8::/32"), LE: 48}}
	c, err := cfg.complete()
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	d.o = newOriginator(c)
	d.o.setEnabled(true)
	announce := d.plan().announce
	if len(announce) != 1 || announce[0].Prefix != prefix("2001:db8:7::/48") {
		t.Fatalf("%+v", announce)
	}
	a := announce[0]
	if attribute(a, attrCommunities) != "c00808fde80001fde80002" || attribute(a, attrLarge) != "c0200c0000fde80000000100000002" ||
		!strings.HasPrefix(attribute(a, nhc.AttributeType), "c0271c") {
		t.Errorf("attributes %s", hexes(a.Attributes))
	}
	for k, why := range d.o.status {
		if held := k.Prefix.Addr().Is4(); held != (why == inactivePolicy) {
			t.Errorf("%s: %q", k, why)
		}
	}
	// A list that doesn't permit it any more withdraws.
	cfg.Contexts = slices.Clone(cfg.Contexts)
	cfg.Contexts[0].ExportPrefixes = PrefixList{{Prefix: prefix("2001:db8::/32"), LE: 48, Deny: true}}
	if c, err = cfg.complete(); err != nil {
		t.Fatal(err)
	}
	d.o.configure(c)
	if c := d.plan(); len(c.announce) != 0 || len(c.withdraw) != 1 || c.withdraw[0] != a.Prefix {
		t.Errorf("%+v", c)
	}
}

func hexes(attrs []engine.RawAttribute) (out []string) {
	for _, a := range attrs {
		out = append(out, hex.EncodeToString(a))
	}
	return out
}

func TestAWrongContextPolicyNamesTheContext(t *testing.T) {
	for want, edit := range map[string]func(*Config){
		"context blue: import prefixes":      func(c *Config) { c.Contexts[0].ImportPrefixes = PrefixList{{Prefix: pfx, LE: 8}} },
		"context blue: export prefixes":      func(c *Config) { c.Contexts[0].ExportPrefixes = PrefixList{{}} },
		"context blue: accepted proxies":     func(c *Config) { c.Contexts[0].AcceptProxies = []netip.Prefix{{}} },
		"context blue: accepted originators": func(c *Config) { c.Contexts[0].AcceptFrom = prefixes("2001:db8::/32") },
		"BGP: accepted originators":          func(c *Config) { c.AcceptFrom = prefixes("2001:db8::/32") },
		"neighbor 192.0.2.2: accepted orig":  func(c *Config) { c.Neighbors[0].AcceptFrom = prefixes("2001:db8::/32") },
	} {
		c := soundVPN(t)
		edit(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
