package daemon

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"pncd/igp"
	"pncd/internal/config"
	"pncd/pnc"
)

// One proxy is known by BGP and by what both IGPs bring to the table, one of them at two levels and the other in two
// areas. In the order of the configuration each is used until its last route is gone, and from the first one on when it
// is back.
func TestFallBackInTheConfiguredOrder(t *testing.T) {
	prefix, proxy := netip.MustParsePrefix("10.1.0.0/24"), netip.MustParseAddr("192.0.2.1")
	for _, tc := range []struct{ preference, want string }{
		{"", "bgp isis ospf"},
		{"resolve: {preference: [static, isis, ospf, bgp]}", "isis ospf bgp"},
		{"resolve: {preference: [ospf, static, bgp, isis]}", "ospf bgp isis"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			cfg, err := config.Parse([]byte(tc.preference + `
isis: {net: 49.0001.1921.6800.1001.00, level: level-1-2, circuits: [{interface: isis0}]}
ospfv2: {router_id: 192.0.2.9, links: [{interface: ospf0}]}
`))
			if err != nil {
				t.Fatal(err)
			}
			log := logrus.New()
			log.SetLevel(logrus.PanicLevel)
			d, err := New(cfg, "", log)
			if err != nil {
				t.Fatal(err)
			}
			igps := map[string]func([]igp.Learned){"isis": d.learned(isisProtocol), "ospf": d.learned(ospfv2Protocol)}
			learned := func(source string, place uint32, gone bool) igp.Learned {
				l := igp.Learned{Prefix: prefix, P: true, Proxy: proxy, Originator: "a", Cost: 10 * place, Gone: gone}
				if source == "isis" {
					l.Level = uint8(place)
				} else {
					l.Area = place
				}
				return l
			}
			answer := func() string {
				r := d.table.Resolve("", prefix.Addr().Next(), 0)
				if r.Reason != pnc.ReasonFound {
					return r.Reason.String()
				}
				return r.Route.Source().String()
			}
			// set brings one of the two routes of a source, or takes it away; BGP has one path.
			set := func(source string, place uint32, gone bool) {
				if source == "bgp" {
					d.table.Apply(d.now(), pnc.Update{Withdraw: gone, Route: pnc.Route{
						Prefix: prefix, Source: pnc.SourceBGP, Proxy: proxy, Peer: "192.0.2.254", Best: true, PathID: place}})
					return
				}
				igps[source]([]igp.Learned{learned(source, place, gone)})
			}
			order := strings.Fields(tc.want)
			for _, source := range order {
				set(source, 1, false)
				set(source, 2, false)
			}
			d.table.SetReachability(d.now(), map[netip.Addr]pnc.Reach{proxy: {Reachable: true}})
			expect := func(step, want string) {
				t.Helper()
				if got := answer(); got != want {
					t.Fatalf("%s: by %s, want %s", step, got, want)
				}
			}
			expect("all", order[0])
			for i, source := range order[:2] {
				set(source, 1, true)
				expect("one of two routes of "+source+" is gone", source)
				set(source, 2, true)
				expect(source+" is gone", order[i+1])
			}
			for i := 1; i >= 0; i-- {
				set(order[i], 2, false)
				expect(order[i]+" is back", order[i])
			}
			for _, source := range order {
				set(source, 1, true)
				set(source, 2, true)
			}
			expect("all are gone", "no-route")
			if routes, _ := d.table.Snapshot().Len(); routes != 0 {
				t.Errorf("%d routes are left", routes)
			}
		})
	}
}
