package api

import (
	"context"
	"net/netip"
	"testing"

	pncv1 "pncd/api/pnc/v1"
)

// manyFlows is a map of so many flows, made on the fly.
type manyFlows int

func (n manyFlows) RangeFlows(_ context.Context, _ FlowFilter, yield func(*pncv1.Flow) bool) (uint64, error) {
	for i := range int(n) {
		h := uint32(i) * 2654435761 // spread, so that the order is not sorted already
		sender := netip.AddrFrom4([4]byte{10, byte(h >> 16), byte(h >> 8), byte(h)})
		if !yield(&pncv1.Flow{Sender: sender.String(), Receiver: "203.0.113.1", DestinationQp: h & maxQP}) {
			break
		}
	}
	return 1, nil
}

func (manyFlows) GetFlow(context.Context, string, netip.Addr, netip.Addr, uint32) (*pncv1.Flow, error) {
	return nil, NotFound("none")
}

func (manyFlows) WatchFlows(int) (Stream[*pncv1.Flow], error) { return nil, NotFound("none") }

// BenchmarkListFlows lists the first 10,000 of 100,000 flows.
func BenchmarkListFlows(b *testing.B) {
	f := flowService{srv: &Server{backends: Backends{Flows: manyFlows(100_000)}}}
	b.ReportAllocs()
	for b.Loop() {
		res, err := f.ListFlows(context.Background(), &pncv1.ListFlowsRequest{})
		if err != nil || len(res.GetFlows()) != defaultRows || !res.GetTruncated() {
			b.Fatalf("%d flows, %v", len(res.GetFlows()), err)
		}
	}
}
