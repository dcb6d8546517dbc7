package api

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	pncv1 "pncd/api/pnc/v1"
)

// Reports takes what switch agents report.
type Reports interface {
	// Configured fails with Precondition when the configuration does not have the source.
	Configured() error
	// Report takes one report to what became of it, an event at least. Errors: Invalid for an interface that flows can't be named
	// of, TooMany above the rate, Precondition with ReasonDisabled while the mechanism is off, or as Configured.
	Report(r *Report) ([]*pncv1.ReportedEvent, error)
	// Refused counts a report that broke a rule before Report was asked.
	Refused()
}

// Report is a checked ReportCongestionRequest.
type Report struct {
	Interface, Queue string
	Depth            uint64
	DepthUnit        pncv1.QueueDepthUnit
	CECount          uint64
	Flow             *ReportedFlow // nil: the top flows of the interface
}

// ReportedFlow is a flow that a report names.
type ReportedFlow struct {
	Context          string
	Sender, Receiver netip.Addr
	SrcPort          uint16
	DestQP           uint32
}

const (
	maxAgentInterface = 64 // octets of an interface's name on another device
	maxAgentQueue     = 32
)

type congestionService struct {
	pncv1.UnimplementedCongestionServiceServer
	srv *Server
}

// ReportCongestion takes reports until the agent ends the stream, or the server stops.
func (s congestionService) ReportCongestion(stream grpc.BidiStreamingServer[pncv1.ReportCongestionRequest, pncv1.ReportCongestionResponse]) error {
	reports := s.srv.backends.Reports
	if reports == nil {
		return Precondition(ReasonNotConfigured, "this node takes no reports")
	}
	if err := reports.Configured(); err != nil {
		return err
	}
	free, err := s.srv.watcher()
	if err != nil {
		return err
	}
	defer free()
	ctx := stream.Context()
	next := receive(ctx, stream.Recv)
	for number := uint64(1); ; number++ {
		req, err := next()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		res, err := answer(reports, req)
		if err != nil {
			return err
		}
		res.Number = number
		if err := stream.Send(res); err != nil {
			return err
		}
	}
}

// receive reads a stream that does not end with ctx: gRPC's ends when the handler has returned.
func receive[T any](ctx context.Context, recv func() (T, error)) (next func() (T, error)) {
	type got struct {
		m   T
		err error
	}
	c := make(chan got)
	go func() {
		for {
			m, err := recv()
			select {
			case c <- got{m, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return func() (T, error) {
		select {
		case g := <-c:
			return g.m, g.err
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// answer takes one report. An error ends the stream: the source is not configured any more, or something broke.
func answer(reports Reports, req *pncv1.ReportCongestionRequest) (*pncv1.ReportCongestionResponse, error) {
	r, err := report(req)
	var events []*pncv1.ReportedEvent
	if err != nil {
		reports.Refused()
	} else {
		events, err = reports.Report(r)
	}
	if err == nil {
		return &pncv1.ReportCongestionResponse{Events: events}, nil
	}
	var own *Error
	if !errors.As(err, &own) {
		return nil, err
	}
	res := &pncv1.ReportCongestionResponse{Field: own.Field, Rule: own.Msg}
	switch {
	case own.Code == codes.InvalidArgument:
		res.Refusal = pncv1.ReportRefusal_REPORT_REFUSAL_INVALID
	case own.Code == codes.ResourceExhausted:
		res.Refusal = pncv1.ReportRefusal_REPORT_REFUSAL_RATE_LIMITED
	case own.Reason == ReasonDisabled:
		res.Refusal = pncv1.ReportRefusal_REPORT_REFUSAL_DISABLED
	default:
		return nil, err
	}
	return res, nil
}

// report checks a report.
func report(req *pncv1.ReportCongestionRequest) (*Report, error) {
	r := &Report{
		Interface: req.GetInterface(), Queue: req.GetQueue(), Depth: req.GetQueueDepth(), DepthUnit: req.GetQueueDepthUnit(), CECount: req.GetCeCount(),
	}
	if r.Interface == "" {
		return nil, Invalid("interface", "is required")
	}
	if err := agentName("interface", r.Interface, maxAgentInterface); err != nil {
		return nil, err
	}
	if err := agentName("queue", r.Queue, maxAgentQueue); err != nil {
		return nil, err
	}
	if r.DepthUnit != 0 {
		if err := enumKnown("queue_depth_unit", r.DepthUnit); err != nil {
			return nil, err
		}
	}
	f := req.GetFlow()
	if f == nil {
		if r.CECount != 0 {
			return nil, Invalid("ce_count", "only with a flow: of a queue it is not known whose packets were marked")
		}
		return r, nil
	}
	var err error
	r.Flow, err = reportedFlow(f)
	return r, err
}

// agentName checks a name that an agent gave.
func agentName(field, s string, most int) error {
	if len(s) > most {
		return Invalid(field, "is longer than %d octets", most)
	}
	if strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return Invalid(field, "%q has other characters than printable ASCII without spaces", s)
	}
	return nil
}

func reportedFlow(f *pncv1.ReportedFlow) (*ReportedFlow, error) {
	out := &ReportedFlow{Context: f.GetContext(), DestQP: f.GetDestinationQp()}
	var err error
	if out.Sender, err = address("flow.sender", f.GetSender()); err != nil {
		return nil, err
	}
	if out.Receiver, err = address("flow.receiver", f.GetReceiver()); err != nil {
		return nil, err
	}
	if out.Sender.Is4() != out.Receiver.Is4() {
		return nil, Invalid("flow.receiver", "%s is not of the sender's address family", out.Receiver)
	}
	port := f.GetSourcePort()
	if port > 0xFFFF {
		return nil, Invalid("flow.source_port", "%d is no UDP port", port)
	}
	out.SrcPort = uint16(port)
	if err := queuePair("flow.destination_qp", out.DestQP); err != nil {
		return nil, err
	}
	if err := contextName("flow.context", out.Context); err != nil {
		return nil, err
	}
	if out.Context != "" && port == 0 {
		return nil, Invalid("flow.source_port", "is required in a context: the notification's format 2 names the flow by it, and no QP")
	}
	return out, nil
}

// Proto is the flow as the API shows it.
func (f *ReportedFlow) Proto() *pncv1.ReportedFlow {
	return &pncv1.ReportedFlow{
		Sender: f.Sender.String(), Receiver: f.Receiver.String(), SourcePort: uint32(f.SrcPort), DestinationQp: f.DestQP, Context: f.Context,
	}
}
