package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	pncv1 "pncd/api/pnc/v1"
)

// depthUnits are the values of --depth-unit.
var depthUnits = map[string]pncv1.QueueDepthUnit{
	"octets":  pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_UNSPECIFIED,
	"packets": pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_PACKETS,
	"cells":   pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_CELLS,
}

// reportFlags are the flags of a report.
type reportFlags struct {
	queue, depthUnit     string
	depth, ce            uint32
	sender, receiver, qp string
	port                 uint32
	vpn                  string
}

func (a *app) reportCommand() *cobra.Command {
	var f reportFlags
	units := []string{"octets", "packets", "cells"}
	cmd := &cobra.Command{
		Use:   "report INTERFACE",
		Short: "Report a congested queue or flow, as the agent of a switch does",
		Long: "Report a congested queue or flow, as the agent of a switch does, and show what became of it.\n" +
			"Without a flow pncd names those with most traffic that leave by the interface. It takes reports with the\n" +
			"section congestion_node.detect.api in its configuration, while the mechanism is enabled.",
		Args: needs("INTERFACE"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			req, err := f.request(args[0], units)
			if err != nil {
				return err
			}
			res, err := a.sendReport(ctx, req)
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				g := newGrid(w, "SENDER", "RECEIVER", "PORT", "DEST-QP", "CONTEXT", "OUTCOME")
				for _, e := range res.GetEvents() {
					fl := e.GetFlow()
					_, name := outcome(e.GetOutcome())
					g.row(fl.GetSender(), fl.GetReceiver(), numberOr(fl.GetSourcePort()), qp(fl.GetDestinationQp()), fl.GetContext(), name)
				}
				return g.flush()
			})
		}, flagRule{names: []string{"sender", "receiver", "qp"}, together: true}),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.queue, "queue", "", "the queue of the interface")
	fl.Uint32Var(&f.depth, "depth", 0, "how much is in the queue")
	fl.StringVar(&f.depthUnit, "depth-unit", units[0], "what --depth counts: octets, packets or cells")
	fl.Uint32Var(&f.ce, "ce", 0, "CE-marked packets of the flow that the report stands for")
	fl.StringVar(&f.sender, "sender", "", "the congested flow: the sender of the data, with --receiver and --qp")
	fl.StringVar(&f.receiver, "receiver", "", "the receiver of the data")
	fl.StringVar(&f.qp, "qp", "", "the Destination QP of the data, decimal or 0x hexadecimal")
	fl.Uint32Var(&f.port, "port", 0, "the UDP source port of the data; needed with --context")
	fl.StringVar(&f.vpn, "context", "", "the context (VPN) of the flow (default the default one)")
	_ = cmd.RegisterFlagCompletionFunc("depth-unit", cobra.FixedCompletions(units, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *reportFlags) request(iface string, units []string) (*pncv1.ReportCongestionRequest, error) {
	if err := oneOf("--depth-unit", f.depthUnit, units); err != nil {
		return nil, err
	}
	req := &pncv1.ReportCongestionRequest{
		Interface: iface, Queue: f.queue, QueueDepth: uint64(f.depth), QueueDepthUnit: depthUnits[f.depthUnit], CeCount: uint64(f.ce),
	}
	if f.sender == "" {
		if f.port != 0 || f.vpn != "" {
			return nil, usagef("--port and --context are of a flow: give --sender, --receiver and --qp")
		}
		return req, nil
	}
	flow := &pncv1.ReportedFlow{SourcePort: f.port, Context: f.vpn}
	var err error
	if flow.Sender, err = parseAddr("--sender", f.sender); err != nil {
		return nil, err
	}
	if flow.Receiver, err = parseAddr("--receiver", f.receiver); err != nil {
		return nil, err
	}
	if flow.DestinationQp, err = parseQP("--qp", f.qp); err != nil {
		return nil, err
	}
	req.Flow = flow
	return req, nil
}

// sendReport sends one report. A refusal is an error.
func (a *app) sendReport(ctx context.Context, req *pncv1.ReportCongestionRequest) (*pncv1.ReportCongestionResponse, error) {
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	stream, err := pncv1.NewCongestionServiceClient(c.conn).ReportCongestion(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(req); err != nil && !errors.Is(err, io.EOF) { // EOF: Recv says why
		return nil, err
	}
	res, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	_ = stream.CloseSend() // the answer is there; the stream ends with ctx in any case
	switch res.GetRefusal() {
	case pncv1.ReportRefusal_REPORT_REFUSAL_UNSPECIFIED:
		return res, nil
	case pncv1.ReportRefusal_REPORT_REFUSAL_INVALID:
		return nil, usagef("%s: %s", res.GetField(), res.GetRule())
	case pncv1.ReportRefusal_REPORT_REFUSAL_DISABLED:
		return nil, fmt.Errorf("%s ('pncctl enable')", res.GetRule())
	}
	return nil, fmt.Errorf("refused (%s): %s", enum(res.GetRefusal()), res.GetRule())
}
