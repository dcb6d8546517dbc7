package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	pncv1 "pncd/api/pnc/v1"
)

func (a *app) watchCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "watch",
		Short: "Follow changes as they happen, until interrupted",
		Args:  cobra.ArbitraryArgs,
		RunE:  needSubcommand,

		SuggestionsMinimumDistance: 2,
	}
	group.AddCommand(a.watchCapabilitiesCommand(), a.watchFlowsCommand(), a.watchRecordsCommand())
	return group
}

const (
	countHelp   = "end after so many changes (default: never)"
	historyHelp = "show what is kept first"
)

func (a *app) watchCapabilitiesCommand() *cobra.Command {
	var history bool
	var count uint32
	cmd := &cobra.Command{
		Use:   "capabilities",
		Short: "Follow capability routes: learned, changed, withdrawn, disregarded; and our own as readiness goes",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			f := newFollower(a, count, column{"TIME", 24}, column{"EVENT", 11}, column{"PREFIX", 20}, column{"SOURCE", 6}, column{"PROXY", 15}, column{"PEER", 15}, column{"DETAIL", 0})
			return follow(ctx, f, pncv1.NewCapabilityServiceClient, pncv1.CapabilityServiceClient.WatchCapabilities,
				&pncv1.WatchCapabilitiesRequest{IncludeHistory: history},
				func(res *pncv1.WatchCapabilitiesResponse) (uint64, []string) {
					e := res.GetEvent()
					r := e.GetRoute()
					detail := []string{enum(e.GetReason()), e.GetDetail()}
					if e.GetReason() == 0 { // the reason is one of the flags
						detail = append(detail, routeFlags(r))
					}
					return res.GetDropped(), []string{clock(e.GetAt()), enum(e.GetKind()), r.GetPrefix(), enum(r.GetSource()), r.GetProxy(), r.GetPeer(), join(detail)}
				})
		}),
	}
	cmd.Flags().BoolVar(&history, "history", false, historyHelp)
	cmd.Flags().Uint32Var(&count, "count", 0, countHelp)
	return cmd
}

func (a *app) watchFlowsCommand() *cobra.Command {
	var req pncv1.WatchFlowsRequest
	var count uint32
	cmd := &cobra.Command{
		Use:   "flows",
		Short: "Follow the entries of the Source-QP map",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			var err error
			if req.Sender, err = parseAddr("--sender", req.Sender); err != nil {
				return err
			}
			f := newFollower(a, count, column{"TIME", 24}, column{"SENDER", 15}, column{"RECEIVER", 15}, column{"DEST-QP", 9}, column{"SOURCE-QP", 9}, column{"STATE", 12}, column{"BY", 4}, column{"DETAIL", 0})
			return follow(ctx, f, pncv1.NewFlowServiceClient, pncv1.FlowServiceClient.WatchFlows, &req,
				func(res *pncv1.WatchFlowsResponse) (uint64, []string) {
					fl := res.GetFlow()
					return res.GetDropped(), []string{clock(fl.GetChangedAt()), fl.GetSender(), fl.GetReceiver(), qp(fl.GetDestinationQp()), qp(fl.GetSourceQp()), enum(fl.GetState()), enum(fl.GetSource()), fl.GetDetail()}
				})
		}),
	}
	cmd.Flags().StringVar(&req.Sender, "sender", "", "only flows of this sender")
	cmd.Flags().Uint32Var(&count, "count", 0, countHelp)
	return cmd
}

func (a *app) watchRecordsCommand() *cobra.Command {
	var flags recordFlags
	var history bool
	var count uint32
	cmd := &cobra.Command{
		Use:   "records",
		Short: "Follow the evidence",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			filter, err := a.recordFilter(&flags)
			if err != nil {
				return err
			}
			return a.watchRecords(ctx, filter, history, count)
		}),
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&history, "history", false, historyHelp)
	cmd.Flags().Uint32Var(&count, "count", 0, countHelp)
	return cmd
}

func (a *app) watchRecords(ctx context.Context, filter *pncv1.RecordFilter, history bool, count uint32) error {
	if filter.GetUntil() != nil {
		left := filter.GetUntil().AsTime().Sub(a.env.Now())
		if left <= 0 {
			return usagef("--until: the time has passed, so there is nothing to follow; 'pncctl records --until' lists what was before it")
		}
		// A timer and no deadline: a server that sees the deadline first would end the stream with an error.
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(left, cancel).Stop()
	}
	widths := []int{24, 6, 15, 19, 15, 15, 9, 15, 5, 9, 0}
	columns := make([]column, len(recordHeader))
	for i, name := range recordHeader {
		columns[i] = column{name, widths[i]}
	}
	return follow(ctx, newFollower(a, count, columns...), pncv1.NewRecordServiceClient, pncv1.RecordServiceClient.WatchRecords,
		&pncv1.WatchRecordsRequest{Filter: filter, IncludeHistory: history},
		func(res *pncv1.WatchRecordsResponse) (uint64, []string) {
			return res.GetDropped(), recordRow(res.GetRecord())
		})
}

// column is a column of a table whose rows are not known beforehand: a wider cell moves those after it.
type column struct {
	name  string
	width int
}

// follower prints changes as they come.
type follower struct {
	app     *app
	count   uint32 // ends after so many; zero never
	columns []column
	printed uint32
}

func newFollower(a *app, count uint32, columns ...column) *follower {
	return &follower{app: a, count: count, columns: columns}
}

// follow prints a stream until ctx ends (no error), count is reached (no error), or the stream fails.
func follow[S, Q any, M any, P interface {
	*M
	proto.Message
}](ctx context.Context, f *follower, service func(grpc.ClientConnInterface) S, method func(S, context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[M], error), req Q, row func(P) (dropped uint64, cells []string)) error {
	c, err := f.app.connect()
	if err != nil {
		return err
	}
	streamCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := method(service(c.conn), streamCtx, req)
	if err != nil {
		return err
	}
	for f.count == 0 || f.printed < f.count {
		m, err := stream.Recv()
		switch {
		case ctx.Err() != nil, errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		dropped, cells := row(P(m))
		if dropped > 0 {
			fmt.Fprintf(f.app.env.Stderr, "pncctl: %s missing here: pncctl reads too slowly\n", plural(dropped, "change"))
		}
		if err := f.print(P(m), cells); err != nil {
			return err
		}
		f.printed++
	}
	return nil
}

func (f *follower) print(m proto.Message, cells []string) error {
	var out string
	switch f.app.output {
	case outputJSON:
		line, err := compactJSON(m)
		if err != nil {
			return err
		}
		out = string(line) + "\n"
	case outputYAML:
		line, err := compactJSON(m)
		if err == nil {
			line, err = yaml.JSONToYAML(line)
		}
		if err != nil {
			return err
		}
		out = "---\n" + string(line)
	default:
		if f.printed == 0 {
			names := make([]string, len(f.columns))
			for i, c := range f.columns {
				names[i] = c.name
			}
			out = f.line(names)
		}
		out += f.line(cells)
	}
	_, err := io.WriteString(f.app.env.Stdout, out)
	return err
}

func (f *follower) line(cells []string) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		fmt.Fprintf(&b, "%-*s", f.columns[i].width, cell(c))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

func join(words []string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, "; ")
}
