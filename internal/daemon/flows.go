package daemon

import (
	"context"
	"io"
	"net/netip"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/flowmap"
)

// flowsBackend answers the API about the Source-QP map of the running configuration: a node that is no
// proxy has none.
type flowsBackend struct{ d *Daemon }

func (b flowsBackend) flows() (*flowmap.Map, error) {
	if flows := b.d.parts.Load().flows; flows != nil {
		return flows, nil
	}
	return nil, errNoProxy()
}

func errNoProxy() error {
	return api.Precondition(api.ReasonNotConfigured, "this node is not a proxy: the configuration has no proxy section")
}

// RangeFlows implements api.Flows.
func (b flowsBackend) RangeFlows(ctx context.Context, f api.FlowFilter, yield func(*pncv1.Flow) bool) (uint64, error) {
	flows, err := b.flows()
	if err != nil {
		return 0, err
	}
	version := flows.Version()
	flows.Range(b.d.now(), func(e flowmap.Entry) bool {
		if ctx.Err() != nil {
			return false
		}
		context := b.d.contexts.name(e.Key.Context)
		if !f.Match(context, e.Key.Sender, e.Key.Receiver, pncv1.FlowState(e.State)) {
			return true
		}
		return yield(flowMessage(&e, context))
	})
	return version, ctx.Err()
}

// GetFlow implements api.Flows.
func (b flowsBackend) GetFlow(_ context.Context, vpn string, sender, receiver netip.Addr, destQP uint32) (*pncv1.Flow, error) {
	flows, err := b.flows()
	if err != nil {
		return nil, err
	}
	id, ok := b.d.contexts.number(vpn)
	if !ok {
		return nil, api.NotFound("no traffic of a context %q was seen", vpn)
	}
	e, ok := flows.Get(flowmap.Key{Context: id, Sender: sender, Receiver: receiver, DestQP: destQP}, b.d.now())
	if !ok {
		return nil, api.NotFound("no traffic of the flow %s > %s to QP %#x was seen", sender, receiver, destQP)
	}
	return flowMessage(&e, vpn), nil
}

// WatchFlows implements api.Flows.
func (b flowsBackend) WatchFlows(buffer int) (api.Stream[*pncv1.Flow], error) {
	p := b.d.parts.Load()
	if p.flows == nil {
		return nil, errNoProxy()
	}
	return &flowStream{p.flows.Watch(buffer), p.noFlows, b.d.contexts}, nil
}

type flowStream struct {
	watch    *flowmap.Watch
	gone     <-chan struct{} // closed when the map is no longer in use
	contexts *contextBook
}

// Next implements api.Stream.
func (s *flowStream) Next(ctx context.Context) (*pncv1.Flow, uint64, error) {
	select {
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	case <-s.gone:
		return nil, 0, io.EOF
	case c, ok := <-s.watch.C():
		if !ok {
			return nil, 0, io.EOF
		}
		return flowMessage(&c.Entry, s.contexts.name(c.Entry.Key.Context)), c.Dropped, nil
	}
}

// Close implements api.Stream.
func (s *flowStream) Close() { s.watch.Close() }

// flowMessage gives an entry as the API shows it. The map's states and sources have the numbers of the
// protobuf's, which a test holds.
func flowMessage(e *flowmap.Entry, context string) *pncv1.Flow {
	return &pncv1.Flow{
		Context:       context,
		Sender:        e.Key.Sender.String(),
		Receiver:      e.Key.Receiver.String(),
		DestinationQp: e.Key.DestQP,
		SourceQp:      e.SourceQP,
		State:         pncv1.FlowState(e.State),
		Source:        pncv1.FlowSource(e.Source),
		PKey:          uint32(e.PKey),
		Version:       e.Version,
		Votes:         e.Votes,
		SeenForward:   e.SeenForward,
		SeenReverse:   e.SeenReverse,
		LearnedAt:     stamp(e.LearnedAt),
		ChangedAt:     stamp(e.ChangedAt),
		LastSeen:      stamp(e.LastSeen),
		Detail:        e.Detail,
		UdpSourcePort: uint32(e.SrcPort),
	}
}

// stamp leaves a zero time out.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
