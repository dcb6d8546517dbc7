package api

import (
	"context"
	"io"
	"testing"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

// FuzzRequests gives the unary calls that check their input any request that the protobuf decoder takes:
// none may panic or fail as an internal error.
func FuzzRequests(f *testing.F) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	rec, err := evidence.NewRecorder(evidence.Config{Capacity: 4})
	if err != nil {
		f.Fatal(err)
	}
	s := New(Backends{Table: pnc.New(pnc.Config{}), Records: rec}, Options{Log: log})
	f.Cleanup(s.grpc.Stop)
	caps, flows, records := capabilityService{srv: s}, flowService{srv: s}, recordService{srv: s}

	seed := func(call byte, m proto.Message) {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(call, b)
	}
	qp := uint32(0x18b)
	seed(0, &pncv1.ListCapabilitiesRequest{Prefix: "192.0.2.0/24", Limit: 5, IncludeWithoutProxy: true})
	seed(1, &pncv1.ResolveRequest{Sender: "2001:db8::1", Context: "blue"})
	seed(2, &pncv1.AdvertiseRequest{Prefix: "2001:db8::/32", Proxy: "2001:db8::1", NextHop: "2001:db8::2"})
	seed(3, &pncv1.WithdrawRequest{Prefix: "::/0"})
	seed(4, &pncv1.ListFlowsRequest{Sender: "::ffff:192.0.2.1", States: []pncv1.FlowState{1, 2}})
	seed(5, &pncv1.GetFlowRequest{Sender: "192.0.2.1", Receiver: "192.0.2.2", DestinationQp: qp})
	seed(6, &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{DestinationQp: &qp, Outcomes: []pncv1.Outcome{1, 40}}})

	f.Fuzz(func(t *testing.T, call byte, body []byte) {
		ctx := context.Background()
		var err error
		decode := func(m proto.Message) bool { return proto.Unmarshal(body, m) == nil }
		switch call % 7 {
		case 0:
			if m := new(pncv1.ListCapabilitiesRequest); decode(m) {
				_, err = caps.ListCapabilities(ctx, m)
			}
		case 1:
			if m := new(pncv1.ResolveRequest); decode(m) {
				_, err = caps.Resolve(ctx, m)
			}
		case 2:
			if m := new(pncv1.AdvertiseRequest); decode(m) {
				_, err = caps.Advertise(ctx, m)
			}
		case 3:
			if m := new(pncv1.WithdrawRequest); decode(m) {
				_, err = caps.Withdraw(ctx, m)
			}
		case 4:
			if m := new(pncv1.ListFlowsRequest); decode(m) {
				_, err = flows.ListFlows(ctx, m)
			}
		case 5:
			if m := new(pncv1.GetFlowRequest); decode(m) {
				_, err = flows.GetFlow(ctx, m)
			}
		case 6:
			if m := new(pncv1.ListRecordsRequest); decode(m) {
				_, err = records.ListRecords(ctx, m)
			}
		}
		switch code := status.Code(toStatus(err)); code {
		case codes.OK, codes.InvalidArgument, codes.FailedPrecondition:
		default:
			t.Errorf("code = %v: %v", code, err)
		}
	})
}
