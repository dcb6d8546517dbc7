package ctl

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	pncv1 "pncd/api/pnc/v1"
)

func (a *app) capabilitiesCommand() *cobra.Command {
	var req pncv1.ListCapabilitiesRequest
	cmd := &cobra.Command{
		Use:   "capabilities",
		Short: "Show which proxy serves which sender prefix, as routing tells it",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if _, err := parsePrefix("--prefix", req.Prefix); err != nil {
				return err
			}
			res, err := ask(ctx, a, pncv1.NewCapabilityServiceClient, pncv1.CapabilityServiceClient.ListCapabilities, &req)
			if err != nil {
				return err
			}
			var own map[string]bool
			if a.output == outputTable {
				own = a.ownProxies(ctx, res.GetRoutes())
			}
			if err := a.show(res, func(w io.Writer) error {
				if req.Rejected {
					return a.rejectedTable(w, res.GetRejected())
				}
				return a.capabilityTables(w, res, own)
			}); err != nil {
				return err
			}
			a.truncated(res.GetTruncated())
			return nil
		}, flagRule{names: []string{"all", "rejected"}}),
	}
	f := cmd.Flags()
	f.StringVar(&req.Context, "context", "", "the context (VPN); the default one when left out")
	f.StringVar(&req.Prefix, "prefix", "", "only routes that cover or are covered by this prefix")
	f.BoolVar(&req.IncludeWithoutProxy, "all", false, "routes without a proxy too")
	f.BoolVar(&req.Rejected, "rejected", false, "the history of capabilities that were not believed, and why")
	f.Uint32Var(&req.Limit, "limit", 0, "at most this many rows (default 10000)")
	return cmd
}

// truncated says on the error output that a listing goes on.
func (a *app) truncated(more bool) {
	if more {
		fmt.Fprintln(a.env.Stderr, "pncctl: more rows match than the limit; narrow the search or raise --limit")
	}
}

func (a *app) capabilityTables(w io.Writer, res *pncv1.ListCapabilitiesResponse, own map[string]bool) error {
	if err := a.routeTable(w, res.GetRoutes(), own); err != nil {
		return err
	}
	if len(res.GetAdvertisements()) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nOriginated by this node:")
	return a.advertisementTable(w, res.GetAdvertisements())
}

// mostOwnProxies bounds the calls of ownProxies; a node has an address or two for its proxy.
const mostOwnProxies = 16

// ownProxies finds the proxies that are the node itself, by address. A route says only that such a proxy
// can't be sent to; a resolution of one of its senders gives the reason.
func (a *app) ownProxies(ctx context.Context, routes []*pncv1.CapabilityRoute) map[string]bool {
	own, asked := make(map[string]bool), make(map[string]bool)
	for _, r := range routes {
		if r.GetProxy() == "" || r.GetProxyReachable() || asked[r.GetProxy()] || len(asked) == mostOwnProxies {
			continue
		}
		p, err := netip.ParsePrefix(r.GetPrefix())
		if err != nil {
			continue
		}
		asked[r.GetProxy()] = true
		res, err := ask(ctx, a, pncv1.NewCapabilityServiceClient, pncv1.CapabilityServiceClient.Resolve,
			&pncv1.ResolveRequest{Context: r.GetContext(), Sender: p.Addr().String()})
		if err == nil { // without an answer the table says less
			noteOwn(own, res)
		}
	}
	return own
}

func noteOwn(own map[string]bool, res *pncv1.ResolveResponse) {
	if p := res.GetRoute().GetProxy(); p != "" && res.GetReason() == pncv1.ResolveReason_RESOLVE_REASON_SELF_PROXY {
		own[p] = true
	}
}

// routeTable shows routes; own are the proxies known to be the node itself. Candidates of a resolution say why they are
// not used.
func (a *app) routeTable(w io.Writer, routes []*pncv1.CapabilityRoute, own map[string]bool) error {
	head := []string{"PREFIX", "SOURCE", "PROXY", "REACHABLE", "NEXT-HOP", "PEER", "ORIGINATOR", "AGE", "FLAGS"}
	candidates := slices.ContainsFunc(routes, func(r *pncv1.CapabilityRoute) bool { return r.GetNotUsed() != 0 })
	if candidates {
		head = append(head, "NOT-USED")
	}
	g := newGrid(w, head...)
	for _, r := range routes {
		reachable := ""
		switch {
		case own[r.GetProxy()]:
			reachable = "self"
		case r.GetProxy() != "":
			reachable = yesNo(r.GetProxyReachable())
		}
		row := []string{r.GetPrefix(), enum(r.GetSource()), r.GetProxy(), reachable, r.GetNextHop(), r.GetPeer(), r.GetOriginator(), a.age(r.GetChangedAt()), routeFlags(r)}
		if candidates {
			row = append(row, enum(r.GetNotUsed()))
		}
		g.row(row...)
	}
	return g.flush()
}

// routeFlags lists what is special about a route in a few words.
func routeFlags(r *pncv1.CapabilityRoute) string {
	flags := ""
	add := func(on bool, word string) {
		if on {
			flags += "," + word
		}
	}
	add(r.GetBest(), "best")
	add(r.GetStale(), "stale")
	add(r.GetLongLived(), "long-lived")
	add(r.GetPartial(), "partial")
	add(r.GetOverride(), "override")
	add(r.GetRouteDistinguisher() != "", "rd="+r.GetRouteDistinguisher())
	switch id := r.GetPathId(); r.GetSource() {
	case pncv1.Source_SOURCE_ISIS:
		add(id != 0, fmt.Sprintf("level=%d", id))
	case pncv1.Source_SOURCE_OSPF:
		add(id != 0, "area="+netip.AddrFrom4([4]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}).String())
	default:
		add(id != 0, fmt.Sprintf("path-id=%d", id))
	}
	add(r.GetDisregarded() != 0, enum(r.GetDisregarded()))
	if flags == "" {
		return ""
	}
	return flags[1:]
}

func (a *app) rejectedTable(w io.Writer, events []*pncv1.CapabilityEvent) error {
	g := newGrid(w, "TIME", "PREFIX", "PEER", "PROXY", "NEXT-HOP", "REASON", "DETAIL")
	for _, e := range events {
		r := e.GetRoute()
		g.row(clock(e.GetAt()), r.GetPrefix(), r.GetPeer(), r.GetProxy(), r.GetNextHop(), enum(e.GetReason()), e.GetDetail())
	}
	return g.flush()
}

func (a *app) advertisementTable(w io.Writer, list []*pncv1.Advertisement) error {
	g := newGrid(w, "PREFIX", "MODE", "PROXY", "NEXT-HOP", "ACTIVE", "FROM", "EXPIRES", "REASON")
	for _, ad := range list {
		from := "api"
		if ad.GetConfigured() {
			from = "config"
		}
		if f := ad.GetFollowedFrom(); f != "" {
			from = f
		}
		g.row(ad.GetPrefix(), enum(ad.GetMode()), ad.GetProxy(), ad.GetNextHop(), yesNo(ad.GetActive()), from, a.left(ad.GetExpiresAt()), ad.GetInactiveReason())
	}
	return g.flush()
}

func (a *app) resolveCommand() *cobra.Command {
	var req pncv1.ResolveRequest
	cmd := &cobra.Command{
		Use:   "resolve SENDER",
		Short: "Show which proxy a notification about a sender would go to, or why none",
		Long:  "Show which proxy a notification about a sender would go to, or why none.\n\nExit status 1 when there is no proxy.",
		Args:  needs("SENDER"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			var err error
			if req.Sender, err = parseAddr("SENDER", args[0]); err != nil {
				return err
			}
			res, err := ask(ctx, a, pncv1.NewCapabilityServiceClient, pncv1.CapabilityServiceClient.Resolve, &req)
			if err != nil {
				return err
			}
			if err := a.show(res, func(w io.Writer) error { return a.resolveTable(w, req.Sender, res) }); err != nil {
				return err
			}
			if res.GetReason() != pncv1.ResolveReason_RESOLVE_REASON_FOUND {
				return errNegative
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&req.Context, "context", "", "the context (VPN); the default one when left out")
	return cmd
}

func (a *app) resolveTable(w io.Writer, sender string, res *pncv1.ResolveResponse) error {
	proxy := res.GetProxy()
	if proxy == "" {
		proxy = "none"
	}
	if err := block(w,
		[2]string{"Sender", sender},
		[2]string{"Proxy", proxy},
		[2]string{"Reason", enum(res.GetReason())},
		[2]string{"Explanation", res.GetExplanation()},
	); err != nil {
		return err
	}
	own := make(map[string]bool)
	noteOwn(own, res)
	if r := res.GetRoute(); r != nil {
		fmt.Fprintln(w, "\nRoute:")
		if err := a.routeTable(w, []*pncv1.CapabilityRoute{r}, own); err != nil {
			return err
		}
	}
	if len(res.GetCandidates()) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nOther routes of this prefix:")
	return a.routeTable(w, res.GetCandidates(), own)
}

func (a *app) advertiseCommand() *cobra.Command {
	var mode string
	var lease time.Duration
	var req pncv1.AdvertiseRequest
	cmd := &cobra.Command{
		Use:   "advertise PREFIX",
		Short: "Originate the Proxy Node Capability for a sender prefix, until the next start",
		Long: "Originate the Proxy Node Capability for a sender prefix, until the next start.\n\n" +
			"With --lease it is withdrawn after that time. The same command again begins the lease anew.",
		Args: needs("PREFIX"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			var err error
			if req.Prefix, err = parsePrefix("PREFIX", args[0]); err != nil {
				return err
			}
			if req.Mode, err = parseEnum[pncv1.OriginationMode]("--mode", mode); err != nil {
				return err
			}
			if req.Proxy, err = parseAddr("--proxy", req.Proxy); err != nil {
				return err
			}
			if req.NextHop, err = parseAddr("--next-hop", req.NextHop); err != nil {
				return err
			}
			if req.From, err = parseAddr("--from", req.From); err != nil {
				return err
			}
			if lease != 0 {
				req.Lease = durationpb.New(lease)
			}
			res, err := ask(ctx, a, pncv1.NewCapabilityServiceClient, pncv1.CapabilityServiceClient.Advertise, &req)
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				return a.advertisementTable(w, []*pncv1.Advertisement{res.GetAdvertisement()})
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&mode, "mode", "originate", "originate, inline, path or prefer")
	f.StringVar(&req.Proxy, "proxy", "", "the proxy's address (default the configured one)")
	f.StringVar(&req.NextHop, "next-hop", "", "with mode originate, where traffic to the prefix goes: normally the router's loopback")
	f.StringVar(&req.From, "from", "", "with the other modes, the neighbour whose announcement is followed (default any)")
	f.StringVar(&req.Context, "context", "", "the context (VPN) to announce it in; the default one when left out")
	f.DurationVar(&lease, "lease", 0, "withdraw it after this time unless it is advertised again, as in 90s (default never)")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(enumNames(pncv1.OriginationMode(0)), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) withdrawCommand() *cobra.Command {
	var vpn string
	cmd := &cobra.Command{
		Use:   "withdraw PREFIX",
		Short: "Withdraw what 'advertise' originated",
		Args:  needs("PREFIX"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			p, err := parsePrefix("PREFIX", args[0])
			if err != nil {
				return err
			}
			res, err := ask(ctx, a, pncv1.NewCapabilityServiceClient, pncv1.CapabilityServiceClient.Withdraw, &pncv1.WithdrawRequest{Prefix: p, Context: vpn})
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				where := ""
				if vpn != "" {
					where = " in context " + vpn
				}
				_, err := fmt.Fprintln(w, p+" withdrawn"+where)
				return err
			})
		}),
	}
	cmd.Flags().StringVar(&vpn, "context", "", "the context (VPN) that it was advertised in; the default one when left out")
	return cmd
}
