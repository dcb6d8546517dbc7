package ctl

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pncv1 "pncd/api/pnc/v1"
)

func (a *app) isisCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "isis", Short: "Show the IS-IS system: neighbors, interface, database, spf", RunE: needSubcommand}
	cmd.AddCommand(
		view(a, "neighbors", "Show the IS-IS neighbours", a.isis, a.isisNeighbors),
		view(a, "interface", "Show the IS-IS circuits", a.isis, a.isisCircuits),
		view(a, "spf", "Show the levels: database, SPF, prefixes learned", a.isis, a.isisLevels),
		a.isisDatabase(),
	)
	return cmd
}

func (a *app) isis(ctx context.Context) (*pncv1.GetIsisResponse, error) {
	return ask(ctx, a, pncv1.NewIsisServiceClient, pncv1.IsisServiceClient.GetIsis, &pncv1.GetIsisRequest{})
}

// orID is the host name, or the system ID of one that says none.
func orID(name, id string) string {
	if name != "" {
		return name
	}
	return id
}

func levels(n uint32) string { return [...]string{"", "1", "2", "1-2"}[n&3] }

func (a *app) isisNeighbors(w io.Writer, r *pncv1.GetIsisResponse) error {
	g := newGrid(w, "NEIGHBOR", "SYSTEM-ID", "INTERFACE", "LEVEL", "STATE", "SINCE", "HOLD", "MAC", "ADDRESSES")
	for _, c := range r.GetCircuits() {
		for _, n := range c.GetNeighbors() {
			g.row(orID(n.GetHostname(), n.GetSystemId()), n.GetSystemId(), c.GetInterface(), levels(n.GetLevels()), n.GetState(),
				a.age(n.GetSince()), a.left(n.GetExpires()), n.GetMac(), strings.Join(n.GetAddresses(), " "))
		}
	}
	return g.flush()
}

func (a *app) isisCircuits(w io.Writer, r *pncv1.GetIsisResponse) error {
	g := newGrid(w, "INTERFACE", "TYPE", "LEVEL", "STATE", "MTU", "NEIGHBORS-UP", "DESIGNATED", "REFUSED", "DETAIL")
	for _, c := range r.GetCircuits() {
		state, up := "down", 0
		if c.GetUp() {
			state = "up"
		}
		for _, n := range c.GetNeighbors() {
			if n.GetState() == "up" {
				up++
			}
		}
		var designated []string
		for _, level := range slices.Sorted(maps.Keys(c.GetDesignated())) {
			designated = append(designated, fmt.Sprintf("%d:%s", level, c.GetDesignated()[level]))
		}
		g.row(c.GetInterface(), linkType(c.GetLan()), levels(c.GetLevels()), state, number(c.GetMtu()), number(up), strings.Join(designated, " "), nonzero(c.GetRefused()), c.GetDetail())
	}
	return g.flush()
}

func (a *app) isisLevels(w io.Writer, r *pncv1.GetIsisResponse) error {
	g := newGrid(w, "LEVEL", "LSPS", "SYSTEMS", "REACHABLE", "PREFIXES", "MARKED", "SPF-RUNS", "LAST", "COUNTERS", "ERROR")
	for _, l := range r.GetLevels() {
		g.row(number(l.GetLevel()), number(l.GetLsps()), number(l.GetSystems()), number(l.GetReachable()), number(l.GetPrefixes()), number(l.GetMarked()),
			number(l.GetSpfRuns()), a.age(l.GetSpfRan()), nonzero(l.GetCounters()), l.GetError())
	}
	if err := g.flush(); err != nil {
		return err
	}
	return block(w, [2]string{"\nSystem", r.GetSystemId() + " " + r.GetHostname()}, [2]string{"Areas", strings.Join(r.GetAreas(), " ")},
		[2]string{"Dropped PDUs", nonzero(r.GetDropped())})
}

func (a *app) isisDatabase() *cobra.Command {
	req := &pncv1.ListLspsRequest{}
	var level int
	cmd := &cobra.Command{
		Use: "database [SYSTEM]", Short: "Show the link state database; SYSTEM is a host name or system ID", Args: atMostOne,
		RunE: a.run(func(ctx context.Context, args []string) error {
			if level < 0 || level > 2 {
				return usagef("--level: %d is neither 1 nor 2", level)
			}
			req.Level = uint32(level)
			if len(args) == 1 {
				req.System = args[0]
			}
			res, err := ask(ctx, a, pncv1.NewIsisServiceClient, pncv1.IsisServiceClient.ListLsps, req)
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				if req.GetDetail() {
					return lspBlocks(w, res.GetLsps())
				}
				return lspTable(w, res.GetLsps())
			})
		}),
	}
	cmd.Flags().BoolVar(&req.Detail, "detail", false, "what the LSPs hold, too")
	cmd.Flags().IntVar(&level, "level", 0, "1 or 2; both without")
	return cmd
}

// lspName is the LSP ID with the host name in place of the system ID.
func lspName(l *pncv1.IsisLsp) string {
	if l.GetHostname() == "" {
		return l.GetId()
	}
	return l.GetHostname() + l.GetId()[len("1921.6800.1001"):]
}

// lspBits are the bits of an LSP as letters.
func lspBits(l *pncv1.IsisLsp) string {
	return those(word{l.GetOverload(), "OL"}, word{l.GetAttached(), "ATT"}, word{l.GetOwn(), "own"}, word{!l.GetReachable(), "unreachable"}, word{l.GetLifetime() == 0, "purged"})
}

func lspTable(w io.Writer, list []*pncv1.IsisLsp) error {
	g := newGrid(w, "LEVEL", "LSP", "SEQUENCE", "CHECKSUM", "LIFETIME", "LENGTH", "FLAGS")
	for _, l := range list {
		g.row(number(l.GetLevel()), lspName(l), fmt.Sprintf("0x%08x", l.GetSequence()), fmt.Sprintf("0x%04x", l.GetChecksum()), number(l.GetLifetime()), number(l.GetLength()), lspBits(l))
	}
	return g.flush()
}

func lspBlocks(w io.Writer, list []*pncv1.IsisLsp) error {
	return writeEntries(w, list, func(l *pncv1.IsisLsp) string {
		return fmt.Sprintf("%s  level %d  sequence 0x%08x  checksum 0x%04x  lifetime %d  %s", lspName(l), l.GetLevel(), l.GetSequence(), l.GetChecksum(), l.GetLifetime(), lspBits(l))
	}, func(l *pncv1.IsisLsp) []string {
		lines := l.GetLines()
		for _, p := range l.GetPrefixes() {
			lines = append(lines, prefixLine(p))
		}
		return lines
	})
}

// prefixLine shows the P flag first: that is what the database is looked at for.
func prefixLine(p *pncv1.IsisPrefix) string {
	line := fmt.Sprintf("prefix %s  metric %d", p.GetPrefix(), p.GetMetric())
	if p.GetTopology() != 0 {
		line += fmt.Sprintf("  topology %d", p.GetTopology())
	}
	if p.GetDown() {
		line += "  down"
	}
	if p.GetP() {
		line += "  P"
	}
	if len(p.GetSourceRouterIds()) > 0 {
		line += "  source router " + strings.Join(p.GetSourceRouterIds(), " ")
	}
	if p.GetFlags() != "" {
		line += "  flags 0x" + p.GetFlags()
	}
	if len(p.GetOtherSubTlvs()) > 0 {
		line += fmt.Sprintf("  other sub-TLVs %v", p.GetOtherSubTlvs())
	}
	return line
}
