package ctl

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pncv1 "pncd/api/pnc/v1"
)

func (a *app) neighbors(ctx context.Context, address string) (*pncv1.ListNeighborsResponse, error) {
	return ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.ListNeighbors, &pncv1.ListNeighborsRequest{Address: address})
}

func (a *app) neighborsCommand() *cobra.Command {
	var detail bool
	cmd := &cobra.Command{
		Use:               "neighbors [ADDRESS]",
		Aliases:           []string{"neighbours"},
		Short:             "Show the BGP neighbours",
		Args:              atMostOne,
		ValidArgsFunction: a.completeNeighbors,
		RunE: a.run(func(ctx context.Context, args []string) error {
			only := ""
			if len(args) == 1 {
				only = args[0]
			}
			res, err := a.neighbors(ctx, only)
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				if detail {
					return a.neighborBlocks(w, res.GetNeighbors())
				}
				return a.neighborTable(w, res.GetNeighbors())
			})
		}),
	}
	cmd.Flags().BoolVar(&detail, "detail", false, "everything about each neighbour: last error, NHC counts by reason, session options")
	return cmd
}

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s: unexpected argument %q", cmd.CommandPath(), args[1])
	}
	return nil
}

func (a *app) neighborTable(w io.Writer, list []*pncv1.Neighbor) error {
	g := newGrid(w, "NEIGHBOR", "AS", "STATE", "SINCE", "RECEIVED", "ADVERTISED", "NHC", "PNC", "ESTABLISHED", "DESCRIPTION")
	for _, n := range list {
		g.row(n.GetAddress(), number(n.GetPeerAs()), n.GetState(), a.age(n.GetSince()), number(n.GetReceived()), number(n.GetAdvertised()),
			number(n.GetNhcReceived()), number(n.GetPncBelieved()), number(n.GetFlaps()), n.GetDescription())
	}
	return g.flush()
}

func (a *app) neighborBlocks(w io.Writer, list []*pncv1.Neighbor) error {
	for i, n := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := a.neighborBlock(w, n); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) neighborBlock(w io.Writer, n *pncv1.Neighbor) error {
	options := []string{}
	if r := n.GetRange(); r != "" {
		options = append(options, "dynamic, from "+r)
	}
	if n.GetPassive() {
		options = append(options, "passive")
	}
	if n.GetMd5() {
		options = append(options, "TCP MD5")
	}
	if n.GetTtlMin() > 0 {
		options = append(options, fmt.Sprintf("minimum TTL %d", n.GetTtlMin()))
	}
	state := n.GetState()
	if since := a.age(n.GetSince()); since != "" {
		state += " for " + since
	}
	if why := n.GetShutdown(); why != "" {
		state += ", shut down by configuration: " + why
	}
	paths := fmt.Sprintf("%d received, %d advertised", n.GetReceived(), n.GetAdvertised())
	if v := n.GetRefused(); v > 0 {
		paths += fmt.Sprintf(", %s refused by import_prefixes", plural(v, "announcement"))
	}
	var hold string
	if h := n.GetHoldTime(); h > 0 {
		hold = (time.Duration(h) * time.Second).String()
	}
	some := func(counts map[string]uint64) (list []string) {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if v := counts[name]; v > 0 {
				list = append(list, fmt.Sprintf("%s %d", name, v))
			}
		}
		return list
	}
	malformed := some(n.GetMalformed())
	if v := n.GetFaults(); v > 0 {
		malformed = append(malformed, fmt.Sprintf("%s ended the session", plural(v, "message")))
	}
	or := func(list []string) string {
		if len(list) == 0 {
			return "none"
		}
		return strings.Join(list, ", ")
	}
	connection := "none"
	if n.GetRemotePort() > 0 {
		connection = fmt.Sprintf("%s to %s", net.JoinHostPort(n.GetLocalAddress(), strconv.Itoa(int(n.GetLocalPort()))),
			net.JoinHostPort(n.GetAddress(), strconv.Itoa(int(n.GetRemotePort()))))
	}
	lastError := n.GetLastError()
	if lastError == "" {
		lastError = "none"
	}
	return block(w,
		[2]string{"Neighbor", n.GetAddress()},
		[2]string{"Description", n.GetDescription()},
		[2]string{"AS", fmt.Sprintf("%d (local %d)", n.GetPeerAs(), n.GetLocalAs())},
		[2]string{"State", state},
		[2]string{"Established", plural(n.GetFlaps(), "time")},
		[2]string{"Last error", lastError},
		[2]string{"Connection", connection},
		[2]string{"Router ID", n.GetRouterId()},
		[2]string{"Families", strings.Join(n.GetFamilies(), ", ")},
		[2]string{"Hold time", hold},
		[2]string{"Options", or(options)},
		[2]string{"Restart", a.restart(n)},
		[2]string{"Paths", paths},
		[2]string{"NHC", fmt.Sprintf("%d received, %d with a believed PNC", n.GetNhcReceived(), n.GetPncBelieved())},
		[2]string{"NHC disregarded", or(some(n.GetNhcDisregarded()))},
		[2]string{"Messages sent", or(some(n.GetMessagesSent()))},
		[2]string{"Messages received", or(some(n.GetMessagesReceived()))},
		[2]string{"Malformed", or(malformed)},
	)
}

// restart says what becomes of the neighbour's routes when it restarts, and what is kept now.
func (a *app) restart(n *pncv1.Neighbor) string {
	seconds := func(s uint32) string { return (time.Duration(s) * time.Second).String() }
	var parts []string
	if t := n.GetRestartTime(); t > 0 {
		parts = append(parts, "routes stay for "+seconds(t))
	}
	if t := n.GetLongLivedTime(); t > 0 {
		parts = append(parts, "then as the least preferred for "+seconds(t))
	}
	if v := n.GetStale(); v > 0 {
		parts = append(parts, fmt.Sprintf("%s until %s", plural(v, "stale path"), clock(n.GetStaleUntil())))
	}
	if len(parts) == 0 {
		return "routes leave with the session"
	}
	return strings.Join(parts, ", ")
}

// completionTimeout bounds how long a press of the tab key may take.
const completionTimeout = time.Second

// completeNeighbors offers the addresses of the neighbours, and nothing when pncd does not answer.
func (a *app) completeNeighbors(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.timeout = min(a.timeout, completionTimeout)
	res, err := a.neighbors(cmd.Context(), "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, n := range res.GetNeighbors() {
		out = append(out, cobra.CompletionWithDesc(n.GetAddress(), cell(n.GetDescription())))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
