package demo

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// observer collects what the two pncd record and what arrives at the sender.
type observer struct {
	group  errgroup.Group
	cancel context.CancelFunc

	mu          sync.Mutex
	congestion  []*pncv1.Record
	translation []*pncv1.Record
	cnps        []labtraffic.SeenCNP
}

// event is one congestion event followed to the sender.
type event struct {
	congestion, translation *pncv1.Record
	cnp                     labtraffic.SeenCNP
}

// observe starts watching; stop must be called.
func observe(ctx context.Context, b *bed.Bed) (*observer, error) {
	o := &observer{}
	ctx, o.cancel = context.WithCancel(ctx)
	if err := o.start(ctx, b); err != nil {
		o.stop()
		return nil, err
	}
	return o, nil
}

func (o *observer) start(ctx context.Context, b *bed.Bed) error {
	w, err := b.WatchCNPs(bed.Sender)
	if err != nil {
		return err
	}
	o.group.Go(func() error {
		return w.Watch(ctx, func(c labtraffic.SeenCNP) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.cnps = append(o.cnps, c)
			return nil
		})
	})
	for _, n := range []*bed.Node{b.Congestion, b.Proxy} {
		to := &o.congestion
		if n == b.Proxy {
			to = &o.translation
		}
		stream, err := n.Records.WatchRecords(ctx, &pncv1.WatchRecordsRequest{IncludeHistory: true})
		if err != nil {
			return fmt.Errorf("watch the records of %s: %w", n.Name, err)
		}
		o.group.Go(func() error {
			for {
				r, err := stream.Recv()
				if err != nil {
					return nil // the end of ctx, or of the node: what is missing is found by those who wait for it
				}
				o.mu.Lock()
				*to = append(*to, r.GetRecord())
				o.mu.Unlock()
			}
		})
	}
	return nil
}

// stop ends the watchers and waits for them.
func (o *observer) stop() {
	o.cancel()
	_ = o.group.Wait() // what they could not see is missed by those who waited for it
}

// joined are the events of a Destination QP that can be followed to a CNP: by event number from the
// congestion node to the proxy, by receipt port from the proxy to the sender. Both repeat after 16,384,
// far more than a demonstration sends.
func (o *observer) joined(qp uint32) []event {
	o.mu.Lock()
	defer o.mu.Unlock()
	byEvent := map[uint32]*pncv1.Record{}
	for _, r := range o.congestion {
		if r.GetOutcome() == pncv1.Outcome_OUTCOME_SENT && r.GetFlow().GetDestinationQp() == qp {
			byEvent[r.GetCongestion().GetEvent().GetPort()] = r
		}
	}
	byReceipt := map[uint32]labtraffic.SeenCNP{}
	for _, c := range o.cnps {
		byReceipt[uint32(c.ReceiptPort)] = c
	}
	var all []event
	for _, r := range o.translation {
		if r.GetOutcome() != pncv1.Outcome_OUTCOME_PROXY_TRANSLATED || r.GetFlow().GetDestinationQp() != qp {
			continue
		}
		c, ok := byEvent[r.GetTranslation().GetEvent().GetPort()]
		if !ok {
			continue
		}
		if cnp, ok := byReceipt[r.GetTranslation().GetReceiptPort()]; ok {
			all = append(all, event{c, r, cnp})
		}
	}
	return all
}

// silent is a notification about a Destination QP that became no CNP: both ends' records.
func (o *observer) silent(qp uint32) (sent, got *pncv1.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.translation {
		if r.GetFlow().GetDestinationQp() != qp || r.GetOutcome() == pncv1.Outcome_OUTCOME_PROXY_TRANSLATED {
			continue
		}
		for _, c := range o.congestion {
			if c.GetOutcome() == pncv1.Outcome_OUTCOME_SENT && c.GetFlow().GetDestinationQp() == qp &&
				c.GetCongestion().GetEvent().GetPort() == r.GetTranslation().GetEvent().GetPort() {
				return c, r
			}
		}
	}
	return nil, nil
}

// count counts the proxy's records about a Destination QP.
func (o *observer) count(qp uint32) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, r := range o.translation {
		if r.GetFlow().GetDestinationQp() == qp {
			n++
		}
	}
	return n
}

// cnpsTo counts the CNPs to a QP of the sender; to any when zero.
func (o *observer) cnpsTo(qp uint32) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, c := range o.cnps {
		if qp == 0 || c.DestinationQP == qp {
			n++
		}
	}
	return n
}

// summary says what was seen, for the error of a step that did not come.
func (o *observer) summary() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	by := map[pncv1.Outcome]int{}
	for _, r := range o.congestion {
		by[r.GetOutcome()]++
	}
	for _, r := range o.translation {
		by[r.GetOutcome()]++
	}
	return fmt.Sprintf("records by outcome %v, %d CNPs at the sender", by, len(o.cnps))
}
