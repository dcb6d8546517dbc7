package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/proxyagent/message"
)

// receipts are how long the CNPs of the records that came took from the reading of their notification, by receipt number.
type receipts struct {
	mu      sync.Mutex
	latency map[uint64]time.Duration
}

func watchReceipts(t *testing.T, b *bed.Bed) *receipts {
	t.Helper()
	r := &receipts{latency: map[uint64]time.Duration{}}
	inBackground(t, "watching records", func(ctx context.Context) error {
		stream, err := b.Proxy.Records.WatchRecords(ctx, &pncv1.WatchRecordsRequest{
			Filter: &pncv1.RecordFilter{Outcomes: []pncv1.Outcome{pncv1.Outcome_OUTCOME_PROXY_TRANSLATED}},
		})
		for err == nil {
			var got *pncv1.WatchRecordsResponse
			if got, err = stream.Recv(); err != nil {
				break
			}
			x := got.GetRecord().GetTranslation()
			r.mu.Lock()
			r.latency[x.GetReceipt()] = x.GetLatency().AsDuration()
			r.mu.Unlock()
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	return r
}

// pacedCNP is a CNP that came at a time. Its notification was read, and so the CNP decided, not after that and not before
// since, which is zero where its record did not come: a watcher may be too slow for all records.
type pacedCNP struct{ since, at time.Time }

// bySourceQP are the CNPs from one of those seen on. All CNPs of the proxy are seen, in the order of their receipts.
func (r *receipts) bySourceQP(t *testing.T, seen *cnps, from int) (qps map[uint32][]pacedCNP, known float64) {
	t.Helper()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	qps = map[uint32][]pacedCNP{}
	all := 0
	for i, c := range seen.seen[from:] {
		receipt := uint64(from + i + 1)
		if c.ReceiptPort != message.EventPort(receipt) {
			t.Fatalf("CNP %d carries receipt port %d, not %d", receipt, c.ReceiptPort, message.EventPort(receipt))
		}
		p := pacedCNP{at: c.At}
		if latency, ok := r.latency[receipt]; ok {
			p.since = c.At.Add(-latency)
			known++
		}
		all++
		qps[c.DestinationQP] = append(qps[c.DestinationQP], p)
	}
	return qps, known / float64(max(all, 1))
}

// apart says whether two CNPs can have been decided so far apart.
func apart(a, b pacedCNP, d time.Duration) bool { return a.since.IsZero() || b.at.Sub(a.since) >= d }

// checkWindows says whether the pacing window lies between any two CNPs of a Source QP.
func checkWindows(list []pacedCNP) error {
	for i := 1; i < len(list); i++ {
		if !apart(list[i-1], list[i], stormWindow) {
			return fmt.Errorf("two CNPs within %s", list[i].at.Sub(list[i-1].since))
		}
	}
	return nil
}

// checkSeconds holds the CNPs of a Source QP, for which notifications came without a pause until end, to its limit: as many as
// that allows, then none until the second is over, and then the next second's.
func checkSeconds(list []pacedCNP, end time.Time) error {
	for len(list) > stormPerQP {
		first, next := list[0], list[stormPerQP]
		if !apart(first, next, time.Second) {
			return fmt.Errorf("%d CNPs in %s", stormPerQP+1, next.at.Sub(first.at))
		}
		if d := next.at.Sub(first.at); d > time.Second+stormLate {
			return fmt.Errorf("a second of %d CNPs lasted %s", stormPerQP, d)
		}
		list = list[stormPerQP:]
	}
	if left := end.Sub(list[0].at); left > time.Second+stormLate || left > time.Second-stormLate && len(list) < stormPerQP {
		return fmt.Errorf("%d CNPs in the last %s", len(list), left)
	}
	return nil
}
