package bench

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/gaissmai/bart"

	"pncd/pnc"
)

// Resolve1M measures how long it takes to find the proxy of a sender among 1 M prefixes, and to fill
// that table in one batch.
//
// The senders are random addresses, one inside each prefix, in random order, so that neither side
// profits from caches. Baseline of resolve-1m: bart's own Lookup over the same prefixes and senders,
// in the same run, the two taking turns; each value is the median of the turns.
func Resolve1M() ([]Result, error) {
	const (
		n     = 1_000_000
		turns = 16
		part  = n / 8 // look-ups a turn
	)
	prefixes, senders := internetPrefixes(n)

	table := pnc.New(pnc.Config{})
	updates := make([]pnc.Update, n)
	for i, p := range prefixes {
		updates[i].Route = pnc.Route{
			Prefix: p, Source: pnc.SourceBGP, Best: true, Peer: "192.0.2.254",
			Proxy: netip.AddrFrom4([4]byte{198, 51, 100, byte(i%64 + 1)}),
		}
	}
	begin := time.Now()
	table.Apply(begin, updates...)
	fill := time.Since(begin)
	reach := map[netip.Addr]pnc.Reach{}
	for _, p := range table.Proxies() {
		reach[p] = pnc.Reach{Reachable: true}
	}
	table.SetReachability(begin, reach)

	plain := new(bart.Table[*pnc.Route])
	for i, p := range prefixes {
		plain.Insert(p, &updates[i].Route)
	}

	snapshot := table.Snapshot()
	var found, matched int
	var allocs uint64
	ours := func(senders []netip.Addr) {
		for i, s := range senders {
			if snapshot.Resolve("", s, uint64(i)).Reason == pnc.ReasonFound {
				found++
			}
		}
	}
	theirs := func(senders []netip.Addr) {
		for _, s := range senders {
			if r, ok := plain.Lookup(s); ok && r != nil { // the answer is looked at, as above
				matched++
			}
		}
	}
	var resolve, lookup []float64
	var before, after runtime.MemStats
	runtime.GC()
	for turn := range turns {
		from := turn * part % n
		some := senders[from : from+part]
		runtime.ReadMemStats(&before)
		// Who goes second finds the senders in the cache, so they take turns at that too.
		if turn%2 == 0 {
			resolve = append(resolve, perSender(ours, some))
			lookup = append(lookup, perSender(theirs, some))
		} else {
			lookup = append(lookup, perSender(theirs, some))
			resolve = append(resolve, perSender(ours, some))
		}
		runtime.ReadMemStats(&after)
		allocs += after.Mallocs - before.Mallocs
	}
	if found != turns*part || matched != turns*part {
		return nil, errors.New("resolve-1m: not every sender was found")
	}
	return []Result{
		{
			Name: "resolve-1m", Value: median(resolve), Unit: "ns", Baseline: median(lookup),
			Allocs: float64(allocs / (turns * part)),
			Note:   "1 M IPv4 prefixes, random senders; baseline: bart's Lookup, same run",
		},
		{Name: "apply-1m", Value: fill.Seconds(), Unit: "s", Note: "1 M routes in one batch into an empty table"},
	}, nil
}

// perSender runs f and gives the time for each sender, ns.
func perSender(f func([]netip.Addr), senders []netip.Addr) float64 {
	begin := time.Now()
	f(senders)
	return float64(time.Since(begin).Nanoseconds()) / float64(len(senders))
}

// internetPrefixes draws n different IPv4 prefixes with lengths as in the global table, and one
// address inside each, shuffled.
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

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
