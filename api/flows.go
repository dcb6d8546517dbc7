package api

import (
	"cmp"
	"container/heap"
	"context"
	"net/netip"
	"slices"

	"google.golang.org/grpc"

	pncv1 "pncd/api/pnc/v1"
)

type flowService struct {
	pncv1.UnimplementedFlowServiceServer
	srv *Server
}

func (f flowService) flows() (Flows, error) {
	if b := f.srv.backends.Flows; b != nil {
		return b, nil
	}
	return nil, Precondition(ReasonNotConfigured, "this node is not a proxy: it has no Source-QP map")
}

// ListFlows lists entries.
func (f flowService) ListFlows(ctx context.Context, req *pncv1.ListFlowsRequest) (*pncv1.ListFlowsResponse, error) {
	var filter FlowFilter
	var err error
	if filter.Sender, err = optionalAddress("sender", req.GetSender()); err != nil {
		return nil, err
	}
	if filter.Receiver, err = optionalAddress("receiver", req.GetReceiver()); err != nil {
		return nil, err
	}
	for _, st := range req.GetStates() {
		if err := enumKnown("states", st); err != nil {
			return nil, err
		}
	}
	filter.States, filter.Context = req.GetStates(), req.Context
	limit, err := rows("limit", req.GetLimit(), defaultRows)
	if err != nil {
		return nil, err
	}
	flows, err := f.flows()
	if err != nil {
		return nil, err
	}
	first := firstFlows{limit: limit}
	version, err := flows.RangeFlows(ctx, filter, func(fl *pncv1.Flow) bool {
		first.add(fl)
		return first.seen%1024 != 0 || ctx.Err() == nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && first.seen == 0 {
		err = f.srv.configured("context", req.Context)
	}
	if err != nil {
		return nil, err
	}
	return &pncv1.ListFlowsResponse{Flows: first.sorted(), Version: version, Truncated: first.seen > limit}, nil
}

// GetFlow gets one entry.
func (f flowService) GetFlow(ctx context.Context, req *pncv1.GetFlowRequest) (*pncv1.GetFlowResponse, error) {
	sender, err := address("sender", req.GetSender())
	if err != nil {
		return nil, err
	}
	receiver, err := address("receiver", req.GetReceiver())
	if err != nil {
		return nil, err
	}
	if sender.Is4() != receiver.Is4() {
		return nil, Invalid("receiver", "%s is not of the sender's address family", receiver)
	}
	if err := queuePair("destination_qp", req.GetDestinationQp()); err != nil {
		return nil, err
	}
	if err := contextName("context", req.GetContext()); err != nil {
		return nil, err
	}
	flows, err := f.flows()
	if err != nil {
		return nil, err
	}
	flow, err := flows.GetFlow(ctx, req.GetContext(), sender, receiver, req.GetDestinationQp())
	if err != nil {
		return nil, err
	}
	return &pncv1.GetFlowResponse{Flow: flow}, nil
}

// WatchFlows streams changes.
func (f flowService) WatchFlows(req *pncv1.WatchFlowsRequest, stream grpc.ServerStreamingServer[pncv1.WatchFlowsResponse]) error {
	sender, err := optionalAddress("sender", req.GetSender())
	if err != nil {
		return err
	}
	flows, err := f.flows()
	if err != nil {
		return err
	}
	want := addrText(sender)
	open := func() (Stream[*pncv1.Flow], error) { return flows.WatchFlows(f.srv.opts.WatchBuffer) }
	return watch(f.srv, stream.Context(), open, func(fl *pncv1.Flow, dropped uint64) (bool, error) {
		if want != "" && fl.GetSender() != want {
			return false, nil
		}
		return true, stream.Send(&pncv1.WatchFlowsResponse{Flow: fl, Dropped: dropped})
	})
}

// firstFlows keeps the first flows in order of a map of any size, in memory for the limit only: a heap
// with the last of those kept at its top.
type firstFlows struct {
	limit int
	seen  int
	heap  flowHeap
}

func (f *firstFlows) add(fl *pncv1.Flow) {
	f.seen++
	k := keyed{flow: fl}
	k.sender, _ = netip.ParseAddr(fl.GetSender())
	k.receiver, _ = netip.ParseAddr(fl.GetReceiver())
	switch {
	case len(f.heap) < f.limit:
		heap.Push(&f.heap, k)
	case k.compare(f.heap[0]) < 0:
		f.heap[0] = k
		heap.Fix(&f.heap, 0)
	}
}

func (f *firstFlows) sorted() []*pncv1.Flow {
	slices.SortFunc(f.heap, keyed.compare)
	out := make([]*pncv1.Flow, len(f.heap))
	for i, k := range f.heap {
		out[i] = k.flow
	}
	return out
}

type keyed struct {
	sender, receiver netip.Addr
	flow             *pncv1.Flow
}

// compare orders by sender, receiver, Destination QP as ListFlowsResponse says, then by context.
func (k keyed) compare(o keyed) int {
	return cmp.Or(
		k.sender.Compare(o.sender),
		k.receiver.Compare(o.receiver),
		cmp.Compare(k.flow.GetDestinationQp(), o.flow.GetDestinationQp()),
		cmp.Compare(k.flow.GetContext(), o.flow.GetContext()),
	)
}

type flowHeap []keyed

func (h flowHeap) Len() int           { return len(h) }
func (h flowHeap) Less(i, j int) bool { return h[i].compare(h[j]) > 0 }
func (h flowHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *flowHeap) Push(x any)        { *h = append(*h, x.(keyed)) }

// Pop satisfies heap.Interface; nothing here takes one out.
func (h *flowHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
