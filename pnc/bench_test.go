package pnc

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/gaissmai/bart"
)

// internetPrefixes draws n different IPv4 prefixes with lengths as in the global table, and one
// address in each, shuffled.
func internetPrefixes(n int) ([]netip.Prefix, []netip.Addr) {
	r := rand.New(rand.NewPCG(1, 2))
	lengths := []int{24, 24, 24, 24, 24, 24, 23, 22, 22, 21, 20, 19, 18, 16, 28, 32}
	seen := make(map[netip.Prefix]bool, n)
	prefixes := make([]netip.Prefix, 0, n)
	senders := make([]netip.Addr, 0, n)
	for len(prefixes) < n {
		a := netip.AddrFrom4([4]byte{byte(1 + r.IntN(223)), byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256))})
		p := netip.PrefixFrom(a, lengths[r.IntN(len(lengths))]).Masked()
		if !seen[p] {
			seen[p] = true
			prefixes = append(prefixes, p)
			senders = append(senders, a)
		}
	}
	r.Shuffle(n, func(i, j int) { senders[i], senders[j] = senders[j], senders[i] })
	return prefixes, senders
}

func bulkRoutes(prefixes []netip.Prefix) []Update {
	us := make([]Update, len(prefixes))
	for i, p := range prefixes {
		us[i].Route = Route{
			Prefix: p, Source: SourceBGP, Best: true, Peer: "192.0.2.254",
			Proxy: netip.AddrFrom4([4]byte{198, 51, 100, byte(i%64 + 1)}),
		}
	}
	return us
}

func BenchmarkResolve1M(b *testing.B) {
	prefixes, senders := internetPrefixes(1_000_000)
	tb := New(Config{})
	tb.Apply(t0, bulkRoutes(prefixes)...)
	reachAll(tb)
	s := tb.Snapshot()
	b.Run("resolve", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if s.Resolve("", senders[i%len(senders)], uint64(i)).Reason != ReasonFound {
				b.Fatal("not found")
			}
		}
	})
	plain := new(bart.Table[*Route])
	for _, p := range prefixes {
		plain.Insert(p, &Route{})
	}
	b.Run("bart", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if r, ok := plain.Lookup(senders[i%len(senders)]); !ok || r == nil {
				b.Fatal("not found")
			}
		}
	})
}

func BenchmarkResolveShared(b *testing.B) {
	tb := tableWith(Config{Share: ShareHash}, equalProxies(8)...)
	s := tb.Snapshot()
	sender := addr("10.1.0.1")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Resolve("", sender, uint64(i))
	}
}

// BenchmarkApply1M fills a table with 1 M routes in random order, in batches.
func BenchmarkApply1M(b *testing.B) {
	prefixes, _ := internetPrefixes(1_000_000)
	updates := bulkRoutes(prefixes)
	for _, size := range []int{1000, 10_000, 1_000_000} {
		b.Run("batch="+strconv.Itoa(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tb := New(Config{})
				for batch := range slices.Chunk(updates, size) {
					tb.Apply(t0, batch...)
				}
			}
		})
	}
}

// BenchmarkApplyOne changes one of 1 M routes at a time.
func BenchmarkApplyOne(b *testing.B) {
	prefixes, _ := internetPrefixes(1_000_000)
	updates := bulkRoutes(prefixes)
	tb := New(Config{})
	tb.Apply(t0, updates...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		u := updates[i%len(updates)]
		u.Route.Metric = uint32(i + 1)
		tb.Apply(t0, u)
	}
}

// BenchmarkSetReachability turns one proxy of 1 M routes off and on.
func BenchmarkSetReachability(b *testing.B) {
	prefixes, _ := internetPrefixes(1_000_000)
	tb := New(Config{})
	tb.Apply(t0, bulkRoutes(prefixes)...)
	reachAll(tb)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tb.SetReachability(t0, map[netip.Addr]Reach{addr("198.51.100.1"): {Reachable: i%2 == 0}})
	}
}
