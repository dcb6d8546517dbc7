package ctl

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	pncv1 "pncd/api/pnc/v1"
)

func (a *app) flowsCommand() *cobra.Command {
	var req pncv1.ListFlowsRequest
	var states []string
	var vpn string
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "flows [SENDER RECEIVER QP]",
		Short: "Show the Source-QP map: all flows, or one by its sender, receiver and destination QP",
		Long: "Show the Source-QP map: all flows, or one by its sender, receiver and destination QP.\n" +
			"A QP is decimal or 0x hexadecimal, and is shown in hexadecimal.\n\nExit status 1 when the flow was never seen.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 3 {
				return usagef("flows takes SENDER RECEIVER QP, or nothing; got %d arguments", len(args))
			}
			return nil
		},
		RunE: a.run(func(ctx context.Context, args []string) error {
			if len(args) == 3 {
				return a.oneFlow(ctx, args, vpn)
			}
			if cmd.Flags().Changed("context") {
				req.Context = &vpn
			}
			var err error
			if req.Sender, err = parseAddr("--sender", req.Sender); err != nil {
				return err
			}
			if req.Receiver, err = parseAddr("--receiver", req.Receiver); err != nil {
				return err
			}
			for _, s := range states {
				st, err := parseEnum[pncv1.FlowState]("--state", s)
				if err != nil {
					return err
				}
				req.States = append(req.States, st)
			}
			res, err := ask(ctx, a, pncv1.NewFlowServiceClient, pncv1.FlowServiceClient.ListFlows, &req)
			if err != nil {
				return err
			}
			if err := a.show(res, func(w io.Writer) error { return a.flowTable(w, res.GetFlows()) }); err != nil {
				return err
			}
			a.truncated(res.GetTruncated())
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&req.Sender, "sender", "", "only flows of this sender")
	f.StringVar(&req.Receiver, "receiver", "", "only flows to this receiver")
	f.StringVar(&vpn, "context", "", "the context (VPN), \"\" for the default one; without arguments all when left out")
	f.StringSliceVar(&states, "state", nil, "only flows in these states")
	f.Uint32Var(&req.Limit, "limit", 0, "at most this many rows (default 10000)")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(enumNames(pncv1.FlowState(0)), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) oneFlow(ctx context.Context, args []string, vpn string) error {
	req := pncv1.GetFlowRequest{Context: vpn}
	var err error
	if req.Sender, err = parseAddr("SENDER", args[0]); err != nil {
		return err
	}
	if req.Receiver, err = parseAddr("RECEIVER", args[1]); err != nil {
		return err
	}
	if req.DestinationQp, err = parseQP("QP", args[2]); err != nil {
		return err
	}
	res, err := ask(ctx, a, pncv1.NewFlowServiceClient, pncv1.FlowServiceClient.GetFlow, &req)
	if err != nil {
		return err
	}
	return a.show(res, func(w io.Writer) error { return a.flowBlock(w, res.GetFlow()) })
}

func (a *app) flowTable(w io.Writer, flows []*pncv1.Flow) error {
	head := []string{"SENDER", "RECEIVER", "DEST-QP", "SOURCE-QP", "STATE", "BY", "VOTES", "LAST-SEEN", "VERSION", "DETAIL"}
	contexts := slices.ContainsFunc(flows, func(f *pncv1.Flow) bool { return f.GetContext() != "" })
	if contexts {
		head = append([]string{"CONTEXT"}, head...)
	}
	g := newGrid(w, head...)
	for _, f := range flows {
		var row []string
		if contexts {
			row = append(row, f.GetContext())
		}
		g.row(append(row, f.GetSender(), f.GetReceiver(), qp(f.GetDestinationQp()), qp(f.GetSourceQp()), enum(f.GetState()), enum(f.GetSource()),
			numberOr(f.GetVotes()), a.age(f.GetLastSeen()), number(f.GetVersion()), f.GetDetail())...)
	}
	return g.flush()
}

func (a *app) flowBlock(w io.Writer, f *pncv1.Flow) error {
	source := qp(f.GetSourceQp())
	if source == "" {
		source = "not known"
	}
	ago := func(age string) string {
		if age == "" {
			return ""
		}
		return age + " ago"
	}
	pkey := ""
	if k := f.GetPKey(); k != 0 {
		pkey = fmt.Sprintf("0x%04x", k)
	}
	return block(w,
		[2]string{"Context", f.GetContext()},
		[2]string{"Sender", f.GetSender()},
		[2]string{"Receiver", f.GetReceiver()},
		[2]string{"Destination QP", qp(f.GetDestinationQp())},
		[2]string{"Source QP", source},
		[2]string{"State", enum(f.GetState())},
		[2]string{"Detail", f.GetDetail()},
		[2]string{"Learned by", enum(f.GetSource())},
		[2]string{"Votes", numberOr(f.GetVotes())},
		[2]string{"UDP source port", numberOr(f.GetUdpSourcePort())},
		[2]string{"P_Key", pkey},
		[2]string{"Seen forward", yesNo(f.GetSeenForward())},
		[2]string{"Seen reverse", yesNo(f.GetSeenReverse())},
		[2]string{"Learned", ago(a.age(f.GetLearnedAt()))},
		[2]string{"Changed", ago(a.age(f.GetChangedAt()))},
		[2]string{"Last seen", ago(a.age(f.GetLastSeen()))},
		[2]string{"Version", number(f.GetVersion())},
	)
}
