package ctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/timestamppb"

	pncv1 "pncd/api/pnc/v1"
)

// recordFlags are the flags that choose records.
type recordFlags struct {
	sender, receiver, qp string
	context              string
	outcomes             []string
	since, until         string
	set                  *pflag.FlagSet
}

func (r *recordFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	r.set = f
	f.StringVar(&r.sender, "sender", "", "only records about this sender")
	f.StringVar(&r.receiver, "receiver", "", "only records about this receiver")
	f.StringVar(&r.qp, "qp", "", "only records about this destination QP, decimal or 0x hexadecimal")
	f.StringVar(&r.context, "context", "", "only records about flows of this context (VPN), \"\" for the default one; all when left out")
	f.StringSliceVar(&r.outcomes, "outcome", nil, "only these outcomes, as in map-miss; proxy/paced for one part only")
	f.StringVar(&r.since, "since", "", "only records from then on: how long ago (10m), or a time (RFC 3339)")
	f.StringVar(&r.until, "until", "", "only records before then: how long ago, or a time; what follows ends at that time")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(outcomeNames(), cobra.ShellCompDirectiveNoFileComp))
}

func (a *app) recordFilter(r *recordFlags) (*pncv1.RecordFilter, error) {
	var f pncv1.RecordFilter
	if r.set.Changed("context") {
		f.Context = &r.context
	}
	var err error
	if f.Sender, err = parseAddr("--sender", r.sender); err != nil {
		return nil, err
	}
	if f.Receiver, err = parseAddr("--receiver", r.receiver); err != nil {
		return nil, err
	}
	if r.qp != "" {
		n, err := parseQP("--qp", r.qp)
		if err != nil {
			return nil, err
		}
		f.DestinationQp = &n
	}
	if f.Outcomes, err = parseOutcomes("--outcome", r.outcomes); err != nil {
		return nil, err
	}
	for _, t := range []struct {
		flag, text string
		to         **timestamppb.Timestamp
	}{{"--since", r.since, &f.Since}, {"--until", r.until, &f.Until}} {
		if t.text == "" {
			continue
		}
		at, err := parseTime(t.flag, t.text, a.env.Now())
		if err != nil {
			return nil, err
		}
		*t.to = timestamppb.New(at)
	}
	return &f, nil
}

func (a *app) recordsCommand() *cobra.Command {
	var flags recordFlags
	var limit, count uint32
	var follow bool
	cmd := &cobra.Command{
		Use:   "records",
		Short: "Show the evidence: what became of each congestion event and notification, and why",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			filter, err := a.recordFilter(&flags)
			if err != nil {
				return err
			}
			if follow {
				return a.watchRecords(ctx, filter, true, count)
			}
			if count > 0 {
				return usagef("--count needs --follow beside it; --limit bounds a listing")
			}
			req := &pncv1.ListRecordsRequest{Filter: filter, Limit: limit}
			res, err := ask(ctx, a, pncv1.NewRecordServiceClient, pncv1.RecordServiceClient.ListRecords, req)
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				g := newGrid(w, recordHeader...)
				for _, r := range res.GetRecords() {
					g.row(recordRow(r)...)
				}
				a.truncated(limit == 0 && res.GetTruncated()) // who gives a limit wants the newest
				return g.flush()
			})
		}, flagRule{names: []string{"follow", "limit"}}),
	}
	flags.register(cmd)
	cmd.Flags().Uint32Var(&limit, "limit", 0, "at most this many of the newest (default 1000)")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show what is kept, then each new record as it is made")
	cmd.Flags().Uint32Var(&count, "count", 0, "with --follow: end after so many records (default: never)")
	cmd.AddCommand(a.hostChangesCommand())
	return cmd
}

// recordHeader is the header of a table of records. PEER is the proxy at a congestion node, and the
// congestion node at a proxy; QPs are the destination QP of the data and of the CNP.
var recordHeader = []string{"TIME", "SEQ", "PART", "OUTCOME", "SENDER", "RECEIVER", "DEST-QP", "PEER", "EVENT", "SOURCE-QP", "DETAIL"}

func recordRow(r *pncv1.Record) []string {
	part, name := outcome(r.GetOutcome())
	k := r.GetFlow()
	row := []string{clock(r.GetAt()), number(r.GetSequence()), part, name, k.GetSender(), k.GetReceiver(), qp(k.GetDestinationQp())}
	var detail []string
	add := func(format string, args ...any) { detail = append(detail, fmt.Sprintf(format, args...)) }
	if k.GetContext() != "" {
		add("context %s", k.GetContext())
	}
	if k != nil && k.NrpSelectorId != nil {
		add("nrp %d", k.GetNrpSelectorId())
	}
	switch {
	case r.GetCongestion() != nil:
		c := r.GetCongestion()
		row = append(row, c.GetProxy(), numberOr(c.GetEvent().GetPort()), "")
		if rt := c.GetRoute(); rt != nil {
			add("%s route %s", enum(rt.GetSource()), rt.GetPrefix())
		}
		switch {
		case c.GetCeCount() > 0:
			add("%d CE by %s", c.GetCeCount(), c.GetSource())
		case c.GetSource() != "":
			add("by %s", c.GetSource())
		}
		if n := c.GetQueueDepth(); n > 0 {
			add("%s in the queue", plural(n, depthNoun(c.GetQueueDepthUnit())))
		}
	case r.GetTranslation() != nil:
		t := r.GetTranslation()
		row = append(row, t.GetCongestionNode(), numberOr(t.GetEvent().GetPort()), qp(t.GetSourceQp()))
		if e := t.GetEntry(); e != nil {
			by := ""
			if e.GetSource() != pncv1.FlowSource_FLOW_SOURCE_UNSPECIFIED {
				by = " by " + enum(e.GetSource())
			}
			add("entry %s%s, version %d", enum(e.GetState()), by, e.GetVersion())
		}
		if t.GetReceipt() > 0 {
			add("receipt %d (port %d)", t.GetReceipt(), t.GetReceiptPort())
		}
		if t.GetLatency() != nil {
			add("after %s", t.GetLatency().AsDuration())
		}
		if t.GetGap() > 0 {
			add("%s missing before it", plural(t.GetGap(), "notification"))
		}
	default:
		row = append(row, "", "", "")
	}
	if r.GetError() != "" {
		add("%s", r.GetError())
	}
	return append(row, strings.Join(detail, "; "))
}

// depthNoun is what the depth of a queue counts, one of it.
func depthNoun(u pncv1.QueueDepthUnit) string {
	switch u {
	case pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_UNSPECIFIED:
		return "octet"
	case pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_PACKETS:
		return "packet"
	case pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_CELLS:
		return "cell"
	}
	return "unit"
}

func (a *app) countersCommand() *cobra.Command {
	var part string
	var nonzero bool
	cmd := &cobra.Command{
		Use:   "counters",
		Short: "Show the exact counters since pncd started",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			res, err := ask(ctx, a, pncv1.NewRecordServiceClient, pncv1.RecordServiceClient.ListCounters, &pncv1.ListCountersRequest{})
			if err != nil {
				return err
			}
			if part != "" {
				if !slices.Contains(counterParts(res), part) {
					return fmt.Errorf("this node counts nothing for a part %q: its configuration has no such part, or there is none; 'pncctl counters' shows those that there are", part)
				}
			}
			var kept []*pncv1.Counter
			for _, c := range res.GetCounters() {
				if (part == "" || c.GetPart() == part) && (!nonzero || c.GetValue() > 0) {
					kept = append(kept, c)
				}
			}
			res.Counters = kept
			return a.show(res, func(w io.Writer) error {
				g := newGrid(w, "PART", "COUNTER", "VALUE", "MEANING")
				for _, c := range kept {
					g.row(c.GetPart(), c.GetName(), number(c.GetValue()), c.GetHelp())
				}
				return g.flush()
			})
		}),
	}
	cmd.Flags().StringVar(&part, "part", "", "only counters of this part, as in proxy")
	_ = cmd.RegisterFlagCompletionFunc("part", a.completeParts)
	cmd.Flags().BoolVar(&nonzero, "nonzero", false, "only counters that are not zero")
	return cmd
}

// counterParts lists the parts that counters belong to, sorted.
func counterParts(res *pncv1.ListCountersResponse) []string {
	var parts []string
	for _, c := range res.GetCounters() {
		parts = append(parts, c.GetPart())
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// completeParts offers the parts that pncd counts, and nothing when it does not answer.
func (a *app) completeParts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.timeout = min(a.timeout, completionTimeout)
	res, err := ask(cmd.Context(), a, pncv1.NewRecordServiceClient, pncv1.RecordServiceClient.ListCounters, &pncv1.ListCountersRequest{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return counterParts(res), cobra.ShellCompDirectiveNoFileComp
}
