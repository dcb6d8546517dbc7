package api

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
)

type capabilityService struct {
	pncv1.UnimplementedCapabilityServiceServer
	srv *Server
}

func (c capabilityService) table() (Table, error) {
	if t := c.srv.backends.Table; t != nil {
		return t, nil
	}
	return nil, Precondition(ReasonNotConfigured, "this node keeps no capability table")
}

func (c capabilityService) advertiser() (Advertiser, error) {
	if a := c.srv.backends.Advertiser; a != nil {
		return a, nil
	}
	return nil, Precondition(ReasonNotConfigured, "BGP is not configured: nothing can be advertised")
}

// ListCapabilities lists routes, or rejected capabilities.
func (c capabilityService) ListCapabilities(ctx context.Context, req *pncv1.ListCapabilitiesRequest) (*pncv1.ListCapabilitiesResponse, error) {
	if err := contextName("context", req.GetContext()); err != nil {
		return nil, err
	}
	covered, err := optionalPrefix("prefix", req.GetPrefix())
	if err != nil {
		return nil, err
	}
	limit, err := rows("limit", req.GetLimit(), defaultRows)
	if err != nil {
		return nil, err
	}
	table, err := c.table()
	if err != nil {
		return nil, err
	}
	snap := table.Snapshot()
	res := &pncv1.ListCapabilitiesResponse{Version: snap.Version()}
	if req.GetRejected() {
		res.Rejected, res.Truncated = rejected(table.Rejected(), req.GetContext(), covered, limit)
		return res, nil
	}
	if !slices.Contains(snap.Contexts(), req.GetContext()) {
		return nil, Invalid("context", "%q is not configured", req.GetContext())
	}
	f := pnc.Filter{Context: req.GetContext(), Prefix: covered, All: req.GetIncludeWithoutProxy()}
	for r := range snap.Routes(f) {
		if len(res.Routes) == limit {
			res.Truncated = true
			break
		}
		if len(res.Routes)%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		res.Routes = append(res.Routes, routeToMessage(snap, r))
	}
	if a := c.srv.backends.Advertiser; a != nil {
		for _, adv := range a.Advertisements() {
			if adv.GetContext() != req.GetContext() {
				continue
			}
			if p, err := netip.ParsePrefix(adv.GetPrefix()); covered.IsValid() && (err != nil || !p.Overlaps(covered)) {
				continue
			}
			res.Advertisements = append(res.Advertisements, adv)
		}
	}
	return res, nil
}

// rejected gives the newest events that match, oldest first.
func rejected(events []pnc.Event, context string, covered netip.Prefix, limit int) (out []*pncv1.CapabilityEvent, truncated bool) {
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		if e.Route.Context != context || covered.IsValid() && !e.Route.Prefix.Overlaps(covered) {
			continue
		}
		if len(out) == limit {
			truncated = true
			break
		}
		out = append(out, eventToMessage(e))
	}
	slices.Reverse(out)
	return out, truncated
}

// WatchCapabilities streams changes.
func (c capabilityService) WatchCapabilities(req *pncv1.WatchCapabilitiesRequest, stream grpc.ServerStreamingServer[pncv1.WatchCapabilitiesResponse]) error {
	table, err := c.table()
	if err != nil {
		return err
	}
	open := func() (Stream[pnc.Event], error) {
		return &tableFeed{table.Watch(c.srv.opts.WatchBuffer, req.GetIncludeHistory())}, nil
	}
	return watch(c.srv, stream.Context(), open, func(e pnc.Event, dropped uint64) (bool, error) {
		return true, stream.Send(&pncv1.WatchCapabilitiesResponse{Event: eventToMessage(&e), Dropped: dropped})
	})
}

// configured refuses the name of a context that is not configured, if one is given. What is kept of one that was
// configured can be asked for all the same: this is for answers without rows.
func (s *Server) configured(field string, name *string) error {
	t := s.backends.Table
	if name == nil || t == nil || slices.Contains(t.Snapshot().Contexts(), *name) {
		return nil
	}
	return Invalid(field, "%q is not configured", *name)
}

// Resolve answers which proxy serves a sender.
func (c capabilityService) Resolve(_ context.Context, req *pncv1.ResolveRequest) (*pncv1.ResolveResponse, error) {
	if err := contextName("context", req.GetContext()); err != nil {
		return nil, err
	}
	sender, err := address("sender", req.GetSender())
	if err != nil {
		return nil, err
	}
	table, err := c.table()
	if err != nil {
		return nil, err
	}
	snap := table.Snapshot()
	r := snap.Resolve(req.GetContext(), sender, 0)
	res := &pncv1.ResolveResponse{Reason: reasonToProto[r.Reason]}
	if r.Reason == pnc.ReasonFound {
		res.Proxy = addrText(r.Proxy)
	}
	var age time.Duration
	if r.Route != nil {
		used := r.Route.Route()
		res.Route = routeToMessage(snap, &used)
		age = max(0, r.Route.Age(c.srv.opts.Now()))
		res.Age = durationpb.New(age)
	}
	candidates := snap.Candidates(req.GetContext(), sender)
	for _, other := range candidates {
		if r.Route == nil || other.ID() != r.Route.ID() {
			m := routeToMessage(snap, other)
			m.NotUsed = notUsedToProto[snap.NotUsed(other, r)]
			res.Candidates = append(res.Candidates, m)
		}
	}
	res.Explanation = explain(req.GetContext(), sender, r, age) + among(snap, candidates, r)
	if shared := snap.Shared(req.GetContext(), sender); shared != nil {
		// The request names no flow: the proxy above is one flow's.
		res.Explanation += fmt.Sprintf(" Its flows are spread over %d equal proxies, each flow to one of %s.", len(shared), joinAddrs(shared))
	}
	return res, nil
}

// staleness says that a route outlives the session that it came by.
func staleness(r *pnc.Route) string {
	switch {
	case r.Stale && r.LongLived:
		return fmt.Sprintf(", kept beyond the restart time of %s (long-lived graceful restart)", r.Peer)
	case r.Stale:
		return fmt.Sprintf(", kept through a graceful restart of %s", r.Peer)
	case r.LongLived:
		return ", which a speaker before keeps beyond a restart time (LLGR_STALE)"
	}
	return ""
}

// explain is one sentence about a resolution.
func explain(context string, sender netip.Addr, r pnc.Resolution, age time.Duration) string {
	where := ""
	if context != "" {
		where = fmt.Sprintf(" in context %s", context)
	}
	if r.Reason == pnc.ReasonContextUnknown {
		return fmt.Sprintf("Context %s is not configured.", context)
	}
	if r.Route == nil {
		return fmt.Sprintf("No route%s matches %s.", where, sender)
	}
	used := r.Route.Route()
	route := describe(&used, age)
	switch r.Reason {
	case pnc.ReasonFound:
		return fmt.Sprintf("Notifications about %s%s go to %s by %s%s.", sender, where, r.Proxy, route, staleness(&used))
	case pnc.ReasonNoProxy:
		if d := used.Disregarded; d != pnc.DisregardNone {
			return fmt.Sprintf("The longest match for %s%s is %s, whose capability is disregarded: %s.", sender, where, route, d)
		}
		return fmt.Sprintf("The longest match for %s%s is %s, which carries no Proxy Node Capability.", sender, where, route)
	case pnc.ReasonDefaultRouteRefused:
		return fmt.Sprintf("Only %s matches %s%s, and the configuration does not allow resolving through a default route.", route, sender, where)
	case pnc.ReasonProxyUnreachable:
		return fmt.Sprintf("The proxy %s for %s%s by %s has no route in the kernel.", used.Proxy, sender, where, route)
	case pnc.ReasonSelfProxy:
		return fmt.Sprintf("The proxy %s for %s%s by %s is this node itself.", used.Proxy, sender, where, route)
	}
	return fmt.Sprintf("No proxy for %s%s: %s.", sender, where, r.Reason)
}

// among says why the route used was chosen among those of several sources: which come before it and can't be used,
// and which come after it.
func among(snap *pnc.Snapshot, candidates []*pnc.Route, r pnc.Resolution) string {
	if r.Reason != pnc.ReasonFound {
		return ""
	}
	used := r.Route.Route()
	var passed, after []string
	add := func(list []string, s string) []string {
		if slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	for _, c := range candidates {
		switch why := snap.NotUsed(c, r); {
		case c.Source == used.Source:
		case why == pnc.NotUsedPreference:
			after = add(after, c.Source.String())
		case snap.Before(c.Source, used.Source):
			passed = add(passed, fmt.Sprintf("%s (%s)", c.Source, why))
		}
	}
	text := ""
	if len(passed) > 0 {
		text += fmt.Sprintf(" Preferred, but not usable: %s.", strings.Join(passed, ", "))
	}
	if len(after) > 0 {
		text += fmt.Sprintf(" By resolve.preference %s comes before %s.", used.Source, strings.Join(after, " and "))
	}
	return text
}

func joinAddrs(list []netip.Addr) string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.String()
	}
	return strings.Join(out, ", ")
}

func describe(r *pnc.Route, age time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the %s route %s", r.Source, r.Prefix)
	if r.Peer != "" {
		fmt.Fprintf(&b, " from %s", r.Peer)
	}
	if r.RD != "" {
		fmt.Fprintf(&b, " with route distinguisher %s", r.RD)
	}
	if !r.ChangedAt.IsZero() {
		fmt.Fprintf(&b, " (unchanged for %s)", age.Round(time.Second))
	}
	return b.String()
}

// Advertise originates the PNC for a prefix.
func (c capabilityService) Advertise(ctx context.Context, req *pncv1.AdvertiseRequest) (*pncv1.AdvertiseResponse, error) {
	var a Advertise
	var err error
	if a.Prefix, err = prefix("prefix", req.GetPrefix()); err != nil {
		return nil, err
	}
	if err := contextName("context", req.GetContext()); err != nil {
		return nil, err
	}
	a.Context, a.Mode = req.GetContext(), req.GetMode()
	if a.Mode == pncv1.OriginationMode_ORIGINATION_MODE_UNSPECIFIED {
		a.Mode = pncv1.OriginationMode_ORIGINATION_MODE_ORIGINATE
	}
	if err := enumKnown("mode", a.Mode); err != nil {
		return nil, err
	}
	if a.Proxy, err = optionalAddress("proxy", req.GetProxy()); err != nil {
		return nil, err
	}
	if a.Proxy.IsValid() {
		if err := pnc.CheckProxy(a.Proxy); err != nil {
			return nil, Invalid("proxy", "%v", err)
		}
	}
	if a.NextHop, err = optionalAddress("next_hop", req.GetNextHop()); err != nil {
		return nil, err
	}
	if !a.NextHop.IsValid() && a.Mode == pncv1.OriginationMode_ORIGINATION_MODE_ORIGINATE {
		return nil, Invalid("next_hop", "required with mode originate: where traffic to the prefix goes, normally the router's loopback")
	}
	if a.NextHop.IsValid() && a.Mode != pncv1.OriginationMode_ORIGINATION_MODE_ORIGINATE {
		return nil, Invalid("next_hop", "only mode originate takes one; the other modes keep the router's next hop")
	}
	if a.From, err = optionalAddress("from", req.GetFrom()); err != nil {
		return nil, err
	}
	if a.From.IsValid() && a.Mode == pncv1.OriginationMode_ORIGINATION_MODE_ORIGINATE {
		return nil, Invalid("from", "mode originate follows no neighbour's announcement")
	}
	if a.Lease, err = lease("lease", req.GetLease()); err != nil {
		return nil, err
	}
	adv, err := c.advertiser()
	if err != nil {
		return nil, err
	}
	if !c.srv.backends.Node.Enabled() {
		return nil, Precondition(ReasonDisabled, "the mechanism is disabled: enable it first")
	}
	got, err := adv.Advertise(ctx, a)
	if err != nil {
		return nil, err
	}
	return &pncv1.AdvertiseResponse{Advertisement: got}, nil
}

// Withdraw takes back what Advertise originated. It also works while the mechanism is disabled, so that
// a prefix does not come back when it is enabled.
func (c capabilityService) Withdraw(ctx context.Context, req *pncv1.WithdrawRequest) (*pncv1.WithdrawResponse, error) {
	p, err := prefix("prefix", req.GetPrefix())
	if err != nil {
		return nil, err
	}
	if err := contextName("context", req.GetContext()); err != nil {
		return nil, err
	}
	adv, err := c.advertiser()
	if err != nil {
		return nil, err
	}
	if err := adv.Withdraw(ctx, req.GetContext(), p); err != nil {
		return nil, err
	}
	return &pncv1.WithdrawResponse{}, nil
}
