package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	pncv1 "pncd/api/pnc/v1"
)

func (a *app) nrpCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "nrp", Short: "Show and change what NRP Selector IDs stand for: list, set, delete", RunE: needSubcommand}
	cmd.AddCommand(a.nrpListCommand(), a.nrpSetCommand(), a.nrpDeleteCommand())
	return cmd
}

func (a *app) nrpListCommand() *cobra.Command {
	var limit uint32
	cmd := &cobra.Command{
		Use:   "list [ID]",
		Short: "List what NRP Selector IDs stand for: a context (VPN), or a Source QP of one flow",
		Args:  atMostOne,
		RunE: a.run(func(ctx context.Context, args []string) error {
			req := &pncv1.ListNrpMappingsRequest{Limit: limit}
			if len(args) == 1 {
				id, err := parseNRP(args[0])
				if err != nil {
					return err
				}
				req.NrpSelectorId = &id
			}
			res, err := ask(ctx, a, pncv1.NewNrpServiceClient, pncv1.NrpServiceClient.ListNrpMappings, req)
			if err != nil {
				return err
			}
			if err := a.show(res, func(w io.Writer) error { return a.nrpTable(w, res.GetMappings()) }); err != nil {
				return err
			}
			a.truncated(res.GetTruncated())
			return nil
		}),
	}
	cmd.Flags().Uint32Var(&limit, "limit", 0, "at most this many rows (default 10000)")
	return cmd
}

// nrpFlow are the flags that name the flow of a mapping to a Source QP.
type nrpFlow struct{ sender, receiver string }

func (n *nrpFlow) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.sender, "sender", "", "the sender of the data, with --receiver")
	cmd.Flags().StringVar(&n.receiver, "receiver", "", "the receiver of the data, with --sender")
}

// read checks the arguments that name a mapping.
func (n *nrpFlow) read(arg string) (id uint32, sender, receiver string, err error) {
	if id, err = parseNRP(arg); err != nil {
		return 0, "", "", err
	}
	if sender, err = parseAddr("--sender", n.sender); err != nil {
		return 0, "", "", err
	}
	if receiver, err = parseAddr("--receiver", n.receiver); err != nil {
		return 0, "", "", err
	}
	if (sender == "") != (receiver == "") {
		return 0, "", "", usagef("--sender and --receiver go together")
	}
	return id, sender, receiver, nil
}

func (a *app) nrpSetCommand() *cobra.Command {
	var flow nrpFlow
	var vpn, sourceQP string
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Map an NRP Selector ID to a context (VPN), or for one flow to a Source QP",
		Long: "Map an NRP Selector ID to a context (VPN), or with --sender, --receiver and --source-qp to the Source QP of that flow.\n" +
			"It lasts until it is deleted or pncd stops; what the configuration maps can't be changed here.",
		Args: needs("ID"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			m := &pncv1.NrpMapping{Context: vpn}
			var err error
			if m.NrpSelectorId, m.Sender, m.Receiver, err = flow.read(args[0]); err != nil {
				return err
			}
			if (m.Sender != "") != (sourceQP != "") {
				return usagef("--source-qp goes together with --sender and --receiver")
			}
			if sourceQP != "" {
				if m.SourceQp, err = parseQP("--source-qp", sourceQP); err != nil {
					return err
				}
			} else if vpn == "" {
				return usagef("give --context, or --sender, --receiver and --source-qp")
			}
			res, err := ask(ctx, a, pncv1.NewNrpServiceClient, pncv1.NrpServiceClient.SetNrpMappings,
				&pncv1.SetNrpMappingsRequest{Mappings: []*pncv1.NrpMapping{m}})
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error { return a.nrpTable(w, res.GetMappings()) })
		}),
	}
	flow.register(cmd)
	cmd.Flags().StringVar(&vpn, "context", "", "the context (VPN); with --source-qp the default one when left out")
	cmd.Flags().StringVar(&sourceQP, "source-qp", "", "the sender's own QP, decimal or 0x hexadecimal")
	return cmd
}

func (a *app) nrpDeleteCommand() *cobra.Command {
	var flow nrpFlow
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "Delete what 'nrp set' mapped",
		Args:  needs("ID"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			var req pncv1.DeleteNrpMappingRequest
			var err error
			if req.NrpSelectorId, req.Sender, req.Receiver, err = flow.read(args[0]); err != nil {
				return err
			}
			res, err := ask(ctx, a, pncv1.NewNrpServiceClient, pncv1.NrpServiceClient.DeleteNrpMapping, &req)
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "nrp %d deleted\n", req.GetNrpSelectorId())
				return err
			})
		}),
	}
	flow.register(cmd)
	return cmd
}

func (a *app) nrpTable(w io.Writer, list []*pncv1.NrpMapping) error {
	g := newGrid(w, "NRP", "SENDER", "RECEIVER", "SOURCE-QP", "CONTEXT", "BY", "AGE", "VERSION")
	for _, m := range list {
		by := "api"
		if m.GetConfigured() {
			by = "config"
		}
		g.row(number(m.GetNrpSelectorId()), m.GetSender(), m.GetReceiver(), qp(m.GetSourceQp()), m.GetContext(), by, a.age(m.GetChangedAt()), number(m.GetVersion()))
	}
	return g.flush()
}
