package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// cnps collects the CNPs that arrive at a host.
type cnps struct {
	mu   sync.Mutex
	seen []labtraffic.SeenCNP
}

func watchCNPs(t *testing.T, b *bed.Bed, node string) *cnps {
	t.Helper()
	w, err := b.WatchCNPs(node)
	if err != nil {
		t.Fatal(err)
	}
	c := &cnps{}
	inBackground(t, "watching CNPs at "+node, func(ctx context.Context) error {
		return w.Watch(ctx, func(s labtraffic.SeenCNP) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.seen = append(c.seen, s)
			return nil
		})
	})
	return c
}

func (c *cnps) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// all hold: from data's receiver to its sender, one of the wanted QPs, ICRC valid. It returns how many of
// the wanted QPs got one.
func (c *cnps) check(from, to netip.Addr, qps ...uint32) (got int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := map[uint32]bool{}
	for _, qp := range qps {
		want[qp] = true
	}
	hit := map[uint32]bool{}
	for _, s := range c.seen {
		switch {
		case !want[s.DestinationQP]:
			return 0, fmt.Errorf("a CNP names QP 0x%06x, which is none of 0x%06x", s.DestinationQP, qps)
		case !s.ICRCValid:
			return 0, errors.New("a CNP's ICRC is wrong")
		case s.From != from || s.To != to:
			return 0, fmt.Errorf("a CNP goes from %v to %v, not from %v to %v", s.From, s.To, from, to)
		}
		hit[s.DestinationQP] = true
	}
	return len(hit), nil
}

// inBackground runs fn until the test ends, and waits for it then.
func inBackground(t *testing.T, what string, fn func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fn(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// generate starts traffic from the sender to the receiver.
func generate(t *testing.T, b *bed.Bed, p bed.Plan, cfg labtraffic.GeneratorConfig) (*labtraffic.Generator, func()) {
	t.Helper()
	cfg.Local, cfg.Peer = b.Host(bed.Sender, p.Sender), b.Host(bed.Receiver, p.Receiver)
	g, err := labtraffic.NewGenerator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g, inBackground(t, "generating traffic", g.Run)
}

// replay starts a capture between the sender (its first host) and the receiver, in a loop.
func replay(t *testing.T, b *bed.Bed, p bed.Plan, path string) (*labtraffic.Replay, labtraffic.Pair) {
	t.Helper()
	c, err := labtraffic.ReadCapture(path, false)
	if err != nil {
		t.Fatal(err)
	}
	pair, _, perr := c.Pair()
	r, err := labtraffic.NewReplay(labtraffic.ReplayConfig{
		Capture: c, Loop: true, HoldClose: true,
		Local: b.Host(bed.Sender, p.Sender), Peer: b.Host(bed.Receiver, p.Receiver),
	})
	if err := errors.Join(err, perr); err != nil {
		t.Fatal(err)
	}
	inBackground(t, "replaying "+path, r.Run)
	return r, pair
}

// flow reads one entry of the proxy's map.
func flow(ctx context.Context, b *bed.Bed, sender, receiver netip.Addr, qp uint32) (*pncv1.Flow, error) {
	r, err := b.Proxy.Flows.GetFlow(ctx, &pncv1.GetFlowRequest{
		Sender: sender.String(), Receiver: receiver.String(), DestinationQp: qp,
	})
	return r.GetFlow(), err
}

// waitLearned waits until the proxy names the Source QP of a flow, which must be the truth.
func waitLearned(t *testing.T, b *bed.Bed, sender, receiver netip.Addr, qp, truth uint32) *pncv1.Flow {
	t.Helper()
	var f *pncv1.Flow
	wait(t, b, fmt.Sprintf("Source QP of %v to %v, Destination QP 0x%06x", sender, receiver, qp), func(ctx context.Context) error {
		var err error
		if f, err = flow(ctx, b, sender, receiver, qp); err != nil {
			return err
		}
		switch f.GetState() {
		case pncv1.FlowState_FLOW_STATE_LEARNED, pncv1.FlowState_FLOW_STATE_CONFIRMED:
			return nil
		}
		return fmt.Errorf("%v: %s", f.GetState(), f.GetDetail())
	})
	if f.GetSourceQp() != truth {
		t.Fatalf("%v to %v, Destination QP 0x%06x: Source QP 0x%06x, the truth is 0x%06x", sender, receiver, qp, f.GetSourceQp(), truth)
	}
	return f
}

// waitResolve waits until the congestion node's answer about a sender has a reason.
func waitResolve(t *testing.T, b *bed.Bed, sender netip.Addr, want pncv1.ResolveReason) *pncv1.ResolveResponse {
	t.Helper()
	var r *pncv1.ResolveResponse
	wait(t, b, fmt.Sprintf("resolve %v: %v", sender, want), func(ctx context.Context) error {
		var err error
		r, err = b.Congestion.Capabilities.Resolve(ctx, &pncv1.ResolveRequest{Sender: sender.String()})
		if err == nil && r.GetReason() != want {
			err = fmt.Errorf("the answer is %v: %s", r.GetReason(), r.GetExplanation())
		}
		return err
	})
	return r
}

// countNotifications installs a counter of notifications that leave the congestion node, and returns a
// reader of it: the wire's word, not the daemon's.
func countNotifications(t *testing.T, b *bed.Bed) func() uint64 {
	t.Helper()
	const rules = `nft -f - <<END
table netdev count {
  counter notifications { }
  chain egress {
    type filter hook egress device "eth1" priority 0
    udp dport 1021 counter name notifications
  }
}
END`
	if _, err := b.Exec(testContext(t), bed.Congestion, "sh", "-c", rules); err != nil {
		t.Fatal(err)
	}
	return func() uint64 {
		t.Helper()
		out, err := b.Exec(testContext(t), bed.Congestion, "nft", "-j", "list", "counter", "netdev", "count", "notifications")
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Nftables []struct {
				Counter *struct {
					Packets uint64 `json:"packets"`
				} `json:"counter"`
			} `json:"nftables"`
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("nft: %v: %s", err, out)
		}
		for _, o := range answer.Nftables {
			if o.Counter != nil {
				return o.Counter.Packets
			}
		}
		t.Fatalf("nft shows no counter: %s", out)
		return 0
	}
}

// outcomes counts a node's decisions about congestion events or notifications.
func outcome(ctx context.Context, n *bed.Node, o pncv1.Outcome) (uint64, error) {
	r, err := n.Records.ListCounters(ctx, &pncv1.ListCountersRequest{})
	if err != nil {
		return 0, err
	}
	name, part := outcomeName(o)
	for _, c := range r.GetCounters() {
		if c.GetName() == name && c.GetPart() == part {
			return c.GetValue(), nil
		}
	}
	return 0, fmt.Errorf("node %s has no counter %s of %s", n.Name, name, part)
}
