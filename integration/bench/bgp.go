package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"pncd/bgp/engine/enginetest"
)

// bgpRounds is how often each side is measured; the two take turns.
const bgpRounds = 3

// learned is what one side needed to learn a table.
type learned struct {
	spent
	heap, peak uint64
}

func took(s spent) float64 { return s.took.Seconds() }
func cpu(s spent) float64  { return s.cpu.Seconds() }

// bgpPrefixes is how many prefixes a table has: want, or what PNCD_BENCH_PREFIXES says, for a quick look.
func bgpPrefixes(want int) (int, error) {
	text := os.Getenv("PNCD_BENCH_PREFIXES")
	if text == "" {
		return want, nil
	}
	n, err := strconv.Atoi(text)
	if err == nil && n < 1000 {
		err = errors.New("must be at least 1000")
	}
	if err != nil {
		return 0, fmt.Errorf("PNCD_BENCH_PREFIXES %q: %w", text, err)
	}
	return n, nil
}

// BGPLearn1M measures how long a speaker takes to learn 1 M IPv4 prefixes with PNC, one set of attributes
// for all, and how much memory it needs: from the first octet after the session is established until
// every prefix resolves. Baseline: GoBGP as it comes, with a watch of the best paths whose callback
// counts, until it has counted them all.
//
// Each is a process of its own; the neighbour is in this one, over loopback, and sends prepared UPDATEs.
// The time is the quickest of the rounds on each side, as other work on the machine can only add to it;
// memory is the median.
func BGPLearn1M() ([]Result, error) {
	n, err := bgpPrefixes(1_000_000)
	if err != nil {
		return nil, err
	}
	prefixes, senders := internetPrefixes(n)
	attrs, err := bgpAttributes(0)
	if err != nil {
		return nil, err
	}
	updates := enginetest.AppendUpdates(nil, attrs, prefixes...)
	return learn("bgp-learn-1m", "one set of attributes", n, senders[n-1], updates)
}

// BGPLearn1MDistinct is BGPLearn1M with other attributes for each prefix (MED, and one of 64 proxies), so
// that each has an UPDATE of its own.
func BGPLearn1MDistinct() ([]Result, error) {
	n, err := bgpPrefixes(1_000_000)
	if err != nil {
		return nil, err
	}
	prefixes, senders := internetPrefixes(n)
	var updates []byte
	for i := range prefixes {
		attrs, err := bgpAttributes(i)
		if err != nil {
			return nil, err
		}
		attrs.MED = uint32(i)
		updates = enginetest.AppendUpdates(updates, attrs, prefixes[i])
	}
	return learn("bgp-learn-1m-distinct", "attributes of its own for each", n, senders[n-1], updates)
}

// learn has both sides learn the updates.
func learn(name, what string, n int, last netip.Addr, updates []byte) ([]Result, error) {
	ours, bare, err := turns(func(s *bgpSession) (l learned, err error) {
		if l.spent, err = s.learn(name, n, last, updates); err != nil {
			return l, err
		}
		m, err := s.memory(name)
		l.heap, l.peak = m.Heap, m.Peak
		return l, err
	})
	if err != nil {
		return nil, err
	}
	elapsed := func(l learned) float64 { return took(l.spent) }
	processor := func(l learned) float64 { return cpu(l.spent) }
	peak := func(l learned) float64 { return float64(l.peak) / (1 << 20) }
	heap := func(l learned) float64 { return float64(l.heap) / (1 << 20) }
	return []Result{
		{
			Name: name, Value: least(ours, elapsed), Unit: "s", Baseline: least(bare, elapsed),
			Note: fmt.Sprintf("%d IPv4 prefixes with PNC, %s, from the established session until all resolve; baseline: GoBGP's best-path watch", n, what),
		},
		{
			Name: name + "-cpu", Value: least(ours, processor), Unit: "s", Baseline: least(bare, processor),
			Note: "processor time meanwhile, user and system, of all threads",
		},
		{
			Name: name + "-rss", Value: middle(ours, peak), Unit: "MiB", Baseline: middle(bare, peak),
			Note: "peak of the resident set (VmHWM)",
		},
		{
			Name: name + "-heap", Value: middle(ours, heap), Unit: "MiB", Baseline: middle(bare, heap),
			Note: "heap in use afterwards, after two collections",
		},
	}, nil
}

// BGPWithdraw100K measures how long it takes until 100,000 withdrawn prefixes resolve no more, of 1 M.
// Baseline: as for BGPLearn1M.
func BGPWithdraw100K() ([]Result, error) {
	all, err := bgpPrefixes(1_000_000)
	if err != nil {
		return nil, err
	}
	n := min(100_000, all/2)
	prefixes, senders := internetPrefixes(all)
	attrs, err := bgpAttributes(0)
	if err != nil {
		return nil, err
	}
	updates := enginetest.AppendUpdates(nil, attrs, prefixes...)
	withdrawals := enginetest.AppendWithdrawals(nil, prefixes[:n]...)
	ours, bare, err := turns(func(s *bgpSession) (spent, error) {
		if _, err := s.reach(all, senders[0], updates); err != nil {
			return spent{}, err
		}
		return s.reach(all-n, netip.Addr{}, withdrawals)
	})
	if err != nil {
		return nil, err
	}
	return []Result{
		{
			Name: "bgp-withdraw-100k", Value: least(ours, took), Unit: "s", Baseline: least(bare, took),
			Note: fmt.Sprintf("%d of %d prefixes, until the table is without them; baseline: GoBGP's best-path watch", n, all),
		},
		{
			Name: "bgp-withdraw-100k-cpu", Value: least(ours, cpu), Unit: "s", Baseline: least(bare, cpu),
			Note: "processor time meanwhile, user and system, of all threads",
		},
	}, nil
}

// BGPFlap measures how long it takes from an UPDATE that changes the PNC of a prefix, among 100,000, until
// Resolve gives the other proxy. Baseline: until the callback of GoBGP's best-path watch is called.
func BGPFlap() ([]Result, error) {
	const n, flaps = 100_000, 4000
	prefixes, senders := internetPrefixes(n)
	flapping := prefixes[slices.IndexFunc(prefixes, func(p netip.Prefix) bool { return p.IsSingleIP() })] // no other covers it closer
	var table []byte
	var updates [2][]byte
	for i := range updates { // both proxies stay in use, whichever the flapping prefix has
		attrs, err := bgpAttributes(i)
		if err != nil {
			return nil, err
		}
		table = enginetest.AppendUpdates(table, attrs, prefixes[i*n/2:(i+1)*n/2]...)
		updates[i] = enginetest.AppendUpdates(nil, attrs, flapping)
	}
	first := 0
	if slices.Index(prefixes, flapping) < n/2 {
		first = 1
	}
	ours, bare, err := turns(func(s *bgpSession) (all []time.Duration, err error) {
		if _, err = s.reach(n, senders[0], table); err != nil {
			return nil, err
		}
		for i := range flaps {
			t, err := s.until(bgpRequest{Sender: flapping.Addr()}, updates[(first+i)%2])
			if err != nil {
				return nil, err
			}
			all = append(all, t.took)
		}
		slices.Sort(all)
		return all, nil
	})
	if err != nil {
		return nil, err
	}
	var out []Result
	for _, p := range []int{50, 99} {
		at := func(all []time.Duration) float64 { return float64(all[len(all)*p/100].Nanoseconds()) / 1000 }
		out = append(out, Result{
			Name: fmt.Sprintf("bgp-flap-p%d", p), Value: least(ours, at), Unit: "us", Baseline: least(bare, at),
			Note: "an UPDATE with another PNC, among 100,000 prefixes, until Resolve gives the other proxy; baseline: until the callback of GoBGP's best-path watch",
		})
	}
	return out, nil
}

// turns measures both sides in turns.
func turns[T any](measure func(*bgpSession) (T, error)) (ours, bare []T, err error) {
	for round := range bgpRounds {
		for i := range 2 {
			isBare := (round+i)%2 == 0
			s, err := startBGP(isBare)
			if err != nil {
				return nil, nil, err
			}
			m, err := measure(s)
			s.stop()
			switch {
			case err != nil:
				return nil, nil, err
			case isBare:
				bare = append(bare, m)
			default:
				ours = append(ours, m)
			}
		}
	}
	return ours, bare, nil
}

// least is the least value of the rounds.
func least[T any](rounds []T, value func(T) float64) float64 {
	return slices.Min(values(rounds, value))
}

// middle is the median of the rounds.
func middle[T any](rounds []T, value func(T) float64) float64 { return median(values(rounds, value)) }

func values[T any](rounds []T, value func(T) float64) []float64 {
	out := make([]float64, len(rounds))
	for i, r := range rounds {
		out[i] = value(r)
	}
	return out
}
