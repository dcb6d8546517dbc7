package api_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"pncd/api"
	"pncd/api/apitest"
	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/testwait"
)

type reportStream = grpc.BidiStreamingClient[pncv1.ReportCongestionRequest, pncv1.ReportCongestionResponse]

func reportTo(t *testing.T, c *clients) reportStream {
	t.Helper()
	s, err := pncv1.NewCongestionServiceClient(c.conn).ReportCongestion(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tell sends a report and reads the answer.
func tell(t *testing.T, s reportStream, r *pncv1.ReportCongestionRequest) *pncv1.ReportCongestionResponse {
	t.Helper()
	if err := s.Send(r); err != nil {
		t.Fatal(err)
	}
	res, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func flowReport(change func(*pncv1.ReportCongestionRequest)) *pncv1.ReportCongestionRequest {
	r := &pncv1.ReportCongestionRequest{Interface: "Ethernet12", Flow: &pncv1.ReportedFlow{
		Sender: "198.51.100.10", Receiver: "203.0.113.10", SourcePort: 0xC123, DestinationQp: 0x18b}}
	if change != nil {
		change(r)
	}
	return r
}

func TestReportsAreAnsweredInOrder(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	s := reportTo(t, c)
	all := []*pncv1.ReportCongestionRequest{
		flowReport(func(r *pncv1.ReportCongestionRequest) {
			r.Queue, r.QueueDepth, r.QueueDepthUnit, r.CeCount = "UC3", 77, pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_CELLS, 5
			r.Flow.Sender = "::ffff:198.51.100.10"
		}),
		{Interface: "eth2"},
		{Interface: "eth3"},
		{Interface: "eth2", Queue: "0"},
		flowReport(func(r *pncv1.ReportCongestionRequest) { r.Flow.Context = "blue" }),
	}
	for _, r := range all {
		if err := s.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var got []*pncv1.ReportCongestionResponse
	for {
		res, err := s.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if res.GetNumber() != uint64(len(got)+1) {
			t.Errorf("answer %d has number %d", len(got), res.GetNumber())
		}
		got = append(got, res)
	}
	if len(got) != len(all) {
		t.Fatalf("%d answers", len(got))
	}
	if e := got[0].GetEvents(); len(e) != 1 || e[0].GetFlow().GetSender() != "198.51.100.10" || e[0].GetOutcome() != pncv1.Outcome_OUTCOME_SENT {
		t.Errorf("%v", got[0])
	}
	if e := got[1].GetEvents(); len(e) != 2 || got[1].GetRefusal() != 0 {
		t.Errorf("%v", got[1])
	}
	if got[2].GetRefusal() != pncv1.ReportRefusal_REPORT_REFUSAL_INVALID || got[2].GetField() != "flow" || got[2].GetEvents() != nil {
		t.Errorf("%v", got[2])
	}
	if e := got[3].GetEvents(); len(e) != 1 || e[0].GetFlow() != nil || e[0].GetOutcome() != pncv1.Outcome_OUTCOME_FLOW_UNKNOWN {
		t.Errorf("%v", got[3])
	}
	taken, refused := b.Reports.Got()
	if len(taken) != 4 || refused != 0 {
		t.Fatalf("%+v, %d refused", taken, refused)
	}
	first := taken[0]
	first.Flow = nil
	if first != (api.Report{Interface: "Ethernet12", Queue: "UC3", Depth: 77, DepthUnit: pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_CELLS, CECount: 5}) {
		t.Errorf("%+v", first)
	}
	if f := taken[3].Flow; f.Context != "blue" || f.SrcPort != 0xC123 || f.DestQP != 0x18b {
		t.Errorf("%+v", f)
	}
}

func TestRefusedReportsNameFieldAndRuleAndTheStreamGoesOn(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	s := reportTo(t, c)
	type request = pncv1.ReportCongestionRequest
	for _, tt := range []struct {
		r           *request
		field, rule string
	}{
		{&request{}, "interface", "is required"},
		{&request{Interface: strings.Repeat("x", 65)}, "interface", "longer than 64 octets"},
		{&request{Interface: "eth 2"}, "interface", "printable ASCII"},
		{&request{Interface: "eth2", Queue: "a\nb"}, "queue", "printable ASCII"},
		{&request{Interface: "eth2", Queue: strings.Repeat("x", 33)}, "queue", "longer than 32 octets"},
		{&request{Interface: "eth2", QueueDepthUnit: 9}, "queue_depth_unit", "9 is no value of"},
		{&request{Interface: "eth2", CeCount: 1}, "ce_count", "only with a flow"},
		{flowReport(func(r *request) { r.Flow.Sender = "" }), "flow.sender", "is required"},
		{flowReport(func(r *request) { r.Flow.Sender = "x" }), "flow.sender", "is not an IP address"},
		{flowReport(func(r *request) { r.Flow.Receiver = "224.0.0.1" }), "flow.receiver", "is not a unicast address"},
		{flowReport(func(r *request) { r.Flow.Receiver = "2001:db8::1" }), "flow.receiver", "is not of the sender's address family"},
		{flowReport(func(r *request) { r.Flow.SourcePort = 65536 }), "flow.source_port", "65536 is no UDP port"},
		{flowReport(func(r *request) { r.Flow.DestinationQp = 1 << 24 }), "flow.destination_qp", "does not fit in 24 bits"},
		{flowReport(func(r *request) { r.Flow.Context = strings.Repeat("x", 256) }), "flow.context", "longer than 255 octets"},
		{flowReport(func(r *request) { r.Flow.Context, r.Flow.SourcePort = "blue", 0 }), "flow.source_port", "is required in a context"},
	} {
		res := tell(t, s, tt.r)
		if res.GetRefusal() != pncv1.ReportRefusal_REPORT_REFUSAL_INVALID || res.GetField() != tt.field || !strings.Contains(res.GetRule(), tt.rule) || res.GetEvents() != nil {
			t.Errorf("%v: %v, want %s: %s", tt.r, res, tt.field, tt.rule)
		}
	}
	if taken, refused := b.Reports.Got(); len(taken) != 0 || refused != 15 {
		t.Errorf("%+v, %d refused", taken, refused)
	}
	for err, want := range map[error]pncv1.ReportRefusal{
		api.TooMany("too fast"):                              pncv1.ReportRefusal_REPORT_REFUSAL_RATE_LIMITED,
		api.Precondition(api.ReasonDisabled, "disabled"):     pncv1.ReportRefusal_REPORT_REFUSAL_DISABLED,
		api.Invalid("interface", "is not what it should be"): pncv1.ReportRefusal_REPORT_REFUSAL_INVALID,
	} {
		b.Reports.Fail(err)
		if res := tell(t, s, flowReport(nil)); res.GetRefusal() != want || res.GetRule() == "" {
			t.Errorf("%v: %v", err, res)
		}
	}
	b.Reports.Fail(nil)
	if res := tell(t, s, flowReport(nil)); res.GetRefusal() != 0 || res.GetNumber() != 19 {
		t.Errorf("%v", res)
	}
	b.Reports.Fail(api.Precondition(api.ReasonNotConfigured, "not any more"))
	if err := s.Send(flowReport(nil)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Recv()
	wantCode(t, err, codes.FailedPrecondition, api.ReasonNotConfigured)
}

func TestReportsNeedTheirSource(t *testing.T) {
	b, _, c := sample(t, api.Options{MaxWatchers: 1})
	open := reportTo(t, c)
	tell(t, open, flowReport(nil))
	_, err := reportTo(t, c).Recv()
	wantCode(t, err, codes.ResourceExhausted, api.ReasonTooMany)
	b.Reports.SetConfigured(false)
	_, err = reportTo(t, c).Recv()
	wantCode(t, err, codes.FailedPrecondition, api.ReasonNotConfigured)
}

// An agent that has nothing to report holds up neither the stop nor a place for ever.
func TestReportStreamsEndWhenTheServerStops(t *testing.T) {
	b := apitest.New(t)
	socket := apitest.SocketDir(t) + "/s"
	l, err := api.ListenConfig{Address: socket}.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	srv := api.New(b.API(), api.Options{Log: log, StopTimeout: time.Hour})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	c := dial(t, "unix:"+socket)
	s := reportTo(t, c)
	tell(t, s, flowReport(nil))
	testwait.Until(t, "the stream to be open", func() bool { return srv.Stats().Streams == 1 })
	stop()
	_, err = s.Recv()
	wantCode(t, err, codes.Unavailable, api.ReasonStopping)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the stream held up the stop")
	}
}
