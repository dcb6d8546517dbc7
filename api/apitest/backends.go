package apitest

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
)

// Node is an api.Node in memory. Fields may be set before the server starts, and by methods later.
type Node struct {
	mu        sync.Mutex
	on        bool
	level     string
	status    *pncv1.GetStatusResponse
	neighbors []*pncv1.Neighbor
	counters  []*pncv1.Counter
	yaml      string
	changes   []string
	fail      error
	panics    any
}

// Fail makes every call that can fail do so with err; nil ends it.
func (n *Node) Fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

// Panic makes Status panic with v; nil ends it.
func (n *Node) Panic(v any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.panics = v
}

// SetConfig sets what Config returns.
func (n *Node) SetConfig(yaml string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.yaml = yaml
}

// SetChanges sets what Reload returns.
func (n *Node) SetChanges(lines ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes = lines
}

// Enabled implements api.Node.
func (n *Node) Enabled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.on
}

// Status implements api.Node.
func (n *Node) Status(context.Context) (*pncv1.GetStatusResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.panics != nil {
		panic(n.panics)
	}
	st := proto.Clone(n.status).(*pncv1.GetStatusResponse)
	st.Enabled = n.on
	return st, n.fail
}

func (n *Node) switchTo(on bool) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail != nil {
		return false, n.fail
	}
	was := n.on
	n.on = on
	return was, nil
}

// Enable implements api.Node.
func (n *Node) Enable(context.Context) (bool, error) { return n.switchTo(true) }

// Disable implements api.Node.
func (n *Node) Disable(context.Context) (bool, error) { return n.switchTo(false) }

// Reload implements api.Node.
func (n *Node) Reload(context.Context) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changes, n.fail
}

// Config implements api.Node.
func (n *Node) Config(context.Context) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.yaml, n.fail
}

// RefreshNeighbor is api.Node's: an established neighbour's families.
func (n *Node) RefreshNeighbor(_ context.Context, addr netip.Addr, _, _ bool) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, nb := range n.neighbors {
		switch {
		case nb.GetAddress() != addr.String():
		case nb.GetState() != "established":
			return nil, api.Precondition(api.ReasonNotRunning, "the session with %s is not established", addr)
		default:
			return nb.GetFamilies(), nil
		}
	}
	return nil, api.NotFound("%s is not a configured neighbour", addr)
}

// Neighbors implements api.Node.
func (n *Node) Neighbors(context.Context) ([]*pncv1.Neighbor, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.neighbors, n.fail
}

// Boundary implements api.Node.
func (n *Node) Boundary(context.Context) (*pncv1.GetBoundaryResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &pncv1.GetBoundaryResponse{
		Configured: true, Family: "netdev", Packets: map[string]uint64{"border_in": 3}, Mended: 1,
		Lacks: []string{"no limit in total: CONFIG_NFT_LIMIT is needed"}, AbsentInterfaces: []string{"ext1"},
		Ruleset: "table netdev pncd {\n\tcounter border_in {\n\t\tpackets 3 bytes 132\n\t}\n}\n",
	}, n.fail
}

// SetLogLevel implements api.Node.
func (n *Node) SetLogLevel(level string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains([]string{"error", "warning", "info", "debug"}, level) {
		return "", api.Invalid("level", "%q is no log level", level)
	}
	previous := n.level
	n.level = level
	return previous, nil
}

// Counters implements api.Node.
func (n *Node) Counters() []*pncv1.Counter {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counters
}

// Advertiser is an api.Advertiser in memory.
type Advertiser struct {
	mu   sync.Mutex
	list []*pncv1.Advertisement
}

// Advertise implements api.Advertiser.
func (a *Advertiser) Advertise(_ context.Context, ad api.Advertise) (*pncv1.Advertisement, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &pncv1.Advertisement{Context: ad.Context, Prefix: ad.Prefix.String(), Mode: ad.Mode, Proxy: "192.0.2.1", Active: true}
	if ad.Proxy.IsValid() {
		m.Proxy = ad.Proxy.String()
	}
	if ad.NextHop.IsValid() {
		m.NextHop = ad.NextHop.String()
	}
	if ad.Lease > 0 {
		m.ExpiresAt = timestamppb.New(Now.Add(ad.Lease))
	}
	a.list = append(a.list, m)
	return m, nil
}

// Withdraw implements api.Advertiser.
func (a *Advertiser) Withdraw(_ context.Context, vpn string, p netip.Prefix) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, m := range a.list {
		switch {
		case m.GetPrefix() != p.String(), m.GetContext() != vpn:
		case m.GetConfigured():
			return api.Precondition(api.ReasonConfigured, "%s is originated by configuration", p)
		default:
			a.list = slices.Delete(a.list, i, i+1)
			return nil
		}
	}
	return api.NotFound("%s was not advertised through the API", p)
}

// Advertisements implements api.Advertiser.
func (a *Advertiser) Advertisements() []*pncv1.Advertisement {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

// Flows is an api.Flows in memory.
type Flows struct {
	mu      sync.Mutex
	list    []*pncv1.Flow
	watches map[*flowWatch]struct{}
}

// Set replaces the flows.
func (f *Flows) Set(list []*pncv1.Flow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = list
}

// Change tells the watchers of a change. What a watcher has no room for is dropped and counted.
func (f *Flows) Change(fl *pncv1.Flow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watches {
		select {
		case w.c <- flowChange{fl, w.missed}:
			w.missed = 0
		default:
			w.missed++
		}
	}
}

// Watchers is the number of watches that are open.
func (f *Flows) Watchers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watches)
}

// End ends all watches, as when the map is taken away.
func (f *Flows) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watches {
		delete(f.watches, w)
		close(w.c)
	}
}

// RangeFlows implements api.Flows.
func (f *Flows) RangeFlows(_ context.Context, filter api.FlowFilter, yield func(*pncv1.Flow) bool) (uint64, error) {
	f.mu.Lock()
	list := slices.Clone(f.list)
	f.mu.Unlock()
	for _, fl := range list {
		sender, receiver := netip.MustParseAddr(fl.GetSender()), netip.MustParseAddr(fl.GetReceiver())
		if filter.Match(fl.GetContext(), sender, receiver, fl.GetState()) && !yield(fl) {
			break
		}
	}
	return 42, nil
}

// GetFlow implements api.Flows.
func (f *Flows) GetFlow(_ context.Context, vpn string, sender, receiver netip.Addr, qp uint32) (*pncv1.Flow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fl := range f.list {
		if fl.GetContext() == vpn && fl.GetSender() == sender.String() && fl.GetReceiver() == receiver.String() && fl.GetDestinationQp() == qp {
			return fl, nil
		}
	}
	return nil, api.NotFound("no traffic of the flow %s > %s to QP %#x was seen", sender, receiver, qp)
}

// WatchFlows implements api.Flows.
func (f *Flows) WatchFlows(buffer int) (api.Stream[*pncv1.Flow], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &flowWatch{owner: f, c: make(chan flowChange, buffer)}
	if f.watches == nil {
		f.watches = make(map[*flowWatch]struct{})
	}
	f.watches[w] = struct{}{}
	return w, nil
}

type flowChange struct {
	flow    *pncv1.Flow
	dropped uint64
}

type flowWatch struct {
	owner  *Flows
	c      chan flowChange
	missed uint64
}

// Next implements api.Stream.
func (w *flowWatch) Next(ctx context.Context) (*pncv1.Flow, uint64, error) {
	select {
	case c, ok := <-w.c:
		if !ok {
			return nil, 0, io.EOF
		}
		return c.flow, c.dropped, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// Close implements api.Stream.
func (w *flowWatch) Close() {
	w.owner.mu.Lock()
	defer w.owner.mu.Unlock()
	delete(w.owner.watches, w)
}
