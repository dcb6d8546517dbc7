package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
)

// ospfArgs are the flags that all commands for OSPF have.
type ospfArgs struct{ v2, v3 bool }

// oneVersion: without both flags, or with neither, every version is meant.
var oneVersion = flagRule{names: []string{"v2", "v3"}}

func (o *ospfArgs) version() uint32 {
	switch {
	case o.v2:
		return 2
	case o.v3:
		return 3
	}
	return 0
}

func (a *app) ospfCommand() *cobra.Command {
	o := &ospfArgs{}
	cmd := &cobra.Command{Use: "ospf", Short: "Show the OSPF routers: neighbors, interface, database, spf", RunE: needSubcommand}
	cmd.PersistentFlags().BoolVar(&o.v2, "v2", false, "OSPFv2 alone")
	cmd.PersistentFlags().BoolVar(&o.v3, "v3", false, "OSPFv3 alone")
	get := func(ctx context.Context) (*pncv1.GetOspfResponse, error) { return a.ospf(ctx, o) }
	cmd.AddCommand(
		view(a, "neighbors", "Show the OSPF neighbours", get, a.ospfNeighbors, oneVersion),
		view(a, "interface", "Show the OSPF links", get, a.ospfLinks, oneVersion),
		view(a, "spf", "Show the areas: database, SPF, prefixes learned", get, a.ospfAreas, oneVersion),
		a.ospfDatabase(o),
	)
	return cmd
}

func (a *app) ospf(ctx context.Context, o *ospfArgs) (*pncv1.GetOspfResponse, error) {
	return ask(ctx, a, pncv1.NewOspfServiceClient, pncv1.OspfServiceClient.GetOspf, &pncv1.GetOspfRequest{Version: o.version()})
}

func ospfVersion(n uint32) string { return fmt.Sprintf("v%d", n) }

func (a *app) ospfNeighbors(w io.Writer, r *pncv1.GetOspfResponse) error {
	g := newGrid(w, "OSPF", "NEIGHBOR", "PRI", "STATE", "SINCE", "DEAD", "ADDRESS", "INTERFACE", "AREA", "RXMT", "REQUEST", "DROPPED", "HELPED")
	for _, router := range r.GetRouters() {
		for _, l := range router.GetLinks() {
			for _, n := range l.GetNeighbors() {
				g.row(ospfVersion(router.GetVersion()), n.GetRouterId(), number(n.GetPriority()), n.GetState()+"/"+ospfRole(l, n), a.age(n.GetSince()), a.left(n.GetExpires()),
					n.GetAddress(), l.GetInterface(), l.GetArea(), number(n.GetRetransmissions()), number(n.GetRequests()), nonzero(n.GetDropped()), a.left(n.GetHelpedUntil()))
			}
		}
	}
	return g.flush()
}

// ospfRole is what a neighbour is on its network, as routers show it.
func ospfRole(l *pncv1.OspfLink, n *pncv1.OspfNeighbor) string {
	is := func(id string) bool { return id != "" && (id == n.GetAddress() || id == n.GetRouterId()) }
	switch {
	case !l.GetBroadcast():
		return "-"
	case is(n.GetDesignated()):
		return "dr"
	case is(n.GetBackup()):
		return "backup"
	}
	return "dr-other"
}

func (a *app) ospfLinks(w io.Writer, r *pncv1.GetOspfResponse) error {
	g := newGrid(w, "OSPF", "INTERFACE", "AREA", "TYPE", "STATE", "MTU", "ADDRESS", "FULL", "DR", "BACKUP", "REFUSED", "DETAIL")
	for _, router := range r.GetRouters() {
		for _, l := range router.GetLinks() {
			full := 0
			for _, n := range l.GetNeighbors() {
				if n.GetState() == "full" {
					full++
				}
			}
			g.row(ospfVersion(router.GetVersion()), l.GetInterface(), l.GetArea(), linkType(l.GetBroadcast()), l.GetState(), number(l.GetMtu()), l.GetAddress(),
				fmt.Sprintf("%d/%d", full, len(l.GetNeighbors())), l.GetDesignated(), l.GetBackup(), nonzero(l.GetRefused()), l.GetDetail())
		}
	}
	return g.flush()
}

func (a *app) ospfAreas(w io.Writer, r *pncv1.GetOspfResponse) error {
	g := newGrid(w, "OSPF", "AREA", "TYPE", "LSAS", "ROUTERS", "REACHABLE", "PREFIXES", "MARKED", "SPF-RUNS", "LAST", "UNREADABLE", "ERROR")
	area := func(version string, x *pncv1.OspfArea) {
		g.row(version, x.GetId(), x.GetType(), number(x.GetLsas()), number(x.GetRouters()), number(x.GetReachable()), number(x.GetPrefixes()), number(x.GetMarked()),
			number(x.GetSpfRuns()), a.age(x.GetSpfRan()), number(x.GetUnreadable()), x.GetError())
	}
	for _, router := range r.GetRouters() {
		for _, x := range router.GetAreas() {
			area(ospfVersion(router.GetVersion()), x)
		}
	}
	for _, x := range r.GetLearner().GetAreas() {
		area("api", x)
	}
	if err := g.flush(); err != nil {
		return err
	}
	for _, router := range r.GetRouters() {
		if err := block(w, [2]string{"\nOSPF" + ospfVersion(router.GetVersion()) + " router", router.GetRouterId()}, [2]string{"External LSAs", numberOr(router.GetExternalLsas())},
			[2]string{"Not marked", notMarked(router)}, [2]string{"Dropped packets", nonzero(router.GetDropped())}, [2]string{"LSAs", nonzero(router.GetCounters())}); err != nil {
			return err
		}
	}
	if l := r.GetLearner(); l != nil {
		return block(w, [2]string{"\nOSPF API", l.GetAddress()}, [2]string{"State", l.GetState()}, [2]string{"Detail", l.GetDetail()}, [2]string{"Router", l.GetRouterId()},
			[2]string{"Believed", fmt.Sprint(l.GetBelieved())}, [2]string{"Connections", number(l.GetConnections())}, [2]string{"Dropped messages", nonzero(l.GetDropped())})
	}
	return nil
}

// notMarked says how many senders are not marked, and why.
func notMarked(r *pncv1.OspfRouter) string {
	if r.GetNotMarked() == 0 {
		return ""
	}
	family := map[uint32]string{2: "IPv4", 3: "IPv6"}[r.GetVersion()]
	return plural(r.GetNotMarked(), "sender") + ": the proxy's address is not of " + family
}

func (a *app) ospfDatabase(o *ospfArgs) *cobra.Command {
	req := &pncv1.ListLsasRequest{}
	cmd := &cobra.Command{
		Use: "database [ROUTER]", Short: "Show the link state databases; ROUTER is the advertising router's ID", Args: atMostOne,
		RunE: a.run(func(ctx context.Context, args []string) error {
			req.Version = o.version()
			if len(args) == 1 {
				req.Router = args[0]
			}
			res, err := ask(ctx, a, pncv1.NewOspfServiceClient, pncv1.OspfServiceClient.ListLsas, req)
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				if req.GetDetail() {
					return lsaBlocks(w, res.GetLsas())
				}
				return lsaTable(w, res.GetLsas())
			})
		}, oneVersion),
	}
	cmd.Flags().BoolVar(&req.Detail, "detail", false, "what the LSAs hold, too")
	cmd.Flags().StringVar(&req.Area, "area", "", "of this area: a dotted quad or a number")
	cmd.Flags().StringVar(&req.Type, "type", "", "of this type: a name, as in extended-prefix, or a number")
	offer := func(list func(*cobra.Command) []string) cobra.CompletionFunc {
		return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return list(cmd), cobra.ShellCompDirectiveNoFileComp
		}
	}
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(api.LsaTypeNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("area", offer(func(cmd *cobra.Command) []string { return a.lsaValues(cmd, o, (*pncv1.OspfLsa).GetArea) }))
	cmd.ValidArgsFunction = offer(func(cmd *cobra.Command) []string { return a.lsaValues(cmd, o, (*pncv1.OspfLsa).GetRouter) })
	return cmd
}

// lsaValues lists what a field of the LSAs has; nothing when pncd does not answer.
func (a *app) lsaValues(cmd *cobra.Command, o *ospfArgs, field func(*pncv1.OspfLsa) string) (out []string) {
	a.timeout = min(a.timeout, completionTimeout)
	res, err := ask(cmd.Context(), a, pncv1.NewOspfServiceClient, pncv1.OspfServiceClient.ListLsas, &pncv1.ListLsasRequest{Version: o.version()})
	if err != nil {
		return nil
	}
	seen := map[string]bool{"": true}
	for _, l := range res.GetLsas() {
		if v := field(l); !seen[v] {
			seen[v], out = true, append(out, v)
		}
	}
	return out
}

// lsaPlace is the database that an LSA is in.
func lsaPlace(l *pncv1.OspfLsa) string {
	switch l.GetScope() {
	case "area":
		return l.GetArea()
	case "link":
		return l.GetInterface()
	}
	return "domain"
}

func lsaBits(l *pncv1.OspfLsa) string {
	return those(word{l.GetOwn(), "own"}, word{!l.GetReachable(), "unreachable"}, word{l.GetAge() >= 3600, "flushed"})
}

func lsaTable(w io.Writer, list []*pncv1.OspfLsa) error {
	g := newGrid(w, "OSPF", "DATABASE", "TYPE", "ID", "ROUTER", "SEQUENCE", "CHECKSUM", "AGE", "LENGTH", "FLAGS")
	for _, l := range list {
		g.row(ospfVersion(l.GetVersion()), lsaPlace(l), l.GetTypeName(), l.GetId(), l.GetRouter(), fmt.Sprintf("0x%08x", l.GetSequence()), fmt.Sprintf("0x%04x", l.GetChecksum()),
			number(l.GetAge()), number(l.GetLength()), lsaBits(l))
	}
	return g.flush()
}

func lsaBlocks(w io.Writer, list []*pncv1.OspfLsa) error {
	return writeEntries(w, list, func(l *pncv1.OspfLsa) string {
		return strings.TrimRight(fmt.Sprintf("%s %s %s  router %s  OSPF%s  sequence 0x%08x  checksum 0x%04x  age %d  %s", lsaPlace(l), l.GetTypeName(), l.GetId(), l.GetRouter(), ospfVersion(l.GetVersion()),
			l.GetSequence(), l.GetChecksum(), l.GetAge(), lsaBits(l)), " ")
	}, func(l *pncv1.OspfLsa) []string {
		lines := l.GetLines()
		for _, p := range l.GetPrefixes() {
			lines = append(lines, ospfPrefixLine(p))
		}
		return lines
	})
}

// ospfPrefixLine shows the P flag first behind the prefix: that is what the database is looked at for.
func ospfPrefixLine(p *pncv1.OspfPrefix) string {
	line := "prefix " + p.GetPrefix()
	if p.GetP() {
		line += "  P"
	}
	if p.GetSourceAddress() != "" {
		line += "  source address " + p.GetSourceAddress()
	}
	if p.GetSourceRouterId() != "" {
		line += "  source router " + p.GetSourceRouterId()
	}
	if p.GetRouteType() != "" {
		line += "  route " + p.GetRouteType()
	}
	if p.GetMetric() != 0 {
		line += fmt.Sprintf("  metric %d", p.GetMetric())
	}
	if p.GetOptions() != 0 {
		line += fmt.Sprintf("  options 0x%02x", p.GetOptions())
	}
	if p.GetFlags() != "" {
		line += "  flags 0x" + p.GetFlags()
	}
	if len(p.GetOtherSubTlvs()) > 0 {
		line += fmt.Sprintf("  other sub-TLVs %v", p.GetOtherSubTlvs())
	}
	return line
}
