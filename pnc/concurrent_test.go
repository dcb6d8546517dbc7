package pnc

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
)

// Readers must see a batch as a whole, without a lock, while everything is written. Each batch moves
// one prefix and its covering one to the same proxy: a reader that sees two proxies saw half of it.
func TestReadersSeeWholeBatches(t *testing.T) {
	tb := New(Config{Contexts: []string{"red"}})
	proxies := []string{"198.51.100.1", "198.51.100.2", "2001:db8::3"}
	long, short := "10.1.0.0/16", "10.0.0.0/8"
	move := func(proxy string) {
		tb.Apply(t0, add(route(SourceBGP, long, proxy), route(SourceBGP, short, proxy),
			route(SourceBGP, long, proxy, context("red")))...)
		tb.SetReachability(t0, map[netip.Addr]Reach{addr(proxy): {Reachable: true}})
	}
	move(proxies[0])

	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for version := uint64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				s := tb.Snapshot()
				if s.Version() < version {
					t.Errorf("version %d after %d", s.Version(), version)
				}
				version = s.Version()
				a := s.Resolve("", addr("10.1.0.1"), 0).Route.Proxy()
				b := s.Resolve("", addr("10.2.0.1"), 0).Route.Proxy()
				c := s.Resolve("red", addr("10.1.0.1"), 0).Route.Proxy()
				if a != b || a != c {
					t.Errorf("one snapshot has %s, %s and %s", a, b, c)
					return
				}
				for r := range s.Routes(Filter{All: true}) {
					s.RouteReach(r)
				}
			}
		})
	}
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			w := tb.Watch(4, true)
			tb.History()
			tb.Rejected()
			tb.Counters()
			tb.Proxies()
			w.Close()
		}
	})
	w := world{rand.New(rand.NewPCG(7, 7))}
	for range 300 {
		move(proxies[w.IntN(len(proxies))])
		us := make([]Update, 20)
		for i := range us {
			us[i] = w.update()
			us[i].Route.Source = SourceOSPF
			us[i].Route.Override = false
			us[i].Route.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, byte(w.IntN(255))}), 24)
		}
		tb.Apply(t0, us...)
		tb.Disregard(t0, Event{Reason: DisregardMalformedTLV})
		if w.IntN(20) == 0 {
			tb.Reconfigure(t0, Config{Contexts: []string{"red"}, Share: Share(w.IntN(2))})
		}
		if w.IntN(20) == 0 {
			tb.SetStatic(t0, []Route{{Prefix: pfx("172.16.0.0/12"), Proxy: addr("198.51.100.9"), Override: w.IntN(2) == 0}})
		}
	}
	close(stop)
	readers.Wait()
}
