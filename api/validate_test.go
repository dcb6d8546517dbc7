package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
)

func TestBadRequestsNameFieldAndRule(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	late, early := timestamppb.New(time.Unix(200, 0)), timestamppb.New(time.Unix(100, 0))
	qp := uint32(1 << 24)
	long := strings.Repeat("x", 256)
	resolve := func(r *pncv1.ResolveRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.caps.Resolve(ctx, r); return err }
	}
	list := func(r *pncv1.ListCapabilitiesRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.caps.ListCapabilities(ctx, r); return err }
	}
	advertise := func(r *pncv1.AdvertiseRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.caps.Advertise(ctx, r); return err }
	}
	flows := func(r *pncv1.ListFlowsRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.flows.ListFlows(ctx, r); return err }
	}
	flow := func(r *pncv1.GetFlowRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.flows.GetFlow(ctx, r); return err }
	}
	nrp := func(m ...*pncv1.NrpMapping) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := pncv1.NewNrpServiceClient(c.conn).SetNrpMappings(ctx, &pncv1.SetNrpMappingsRequest{Mappings: m})
			return err
		}
	}
	records := func(f *pncv1.RecordFilter) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := c.recs.ListRecords(ctx, &pncv1.ListRecordsRequest{Filter: f})
			return err
		}
	}
	tests := []struct {
		name, field, rule string
		call              func(context.Context) error
	}{
		{"no NRP mappings", "mappings", "1 to 10000", nrp()},
		{"NRP without a receiver", "mappings[1].receiver", "go together", nrp(&pncv1.NrpMapping{}, &pncv1.NrpMapping{Sender: "192.0.2.1"})},
		{"NRP of two families", "mappings[0].receiver", "family", nrp(&pncv1.NrpMapping{Sender: "192.0.2.1", Receiver: "2001:db8::1"})},
		{"NRP of a name", "mappings[0].sender", "not an IP address", nrp(&pncv1.NrpMapping{Sender: "host"})},
		{"NRP with a large QP", "mappings[0].source_qp", "24 bits", nrp(&pncv1.NrpMapping{SourceQp: qp})},
		{"NRP in a long context", "mappings[0].context", "longer", nrp(&pncv1.NrpMapping{Context: long})},
		{"flow in a long context", "context", "longer", flow(&pncv1.GetFlowRequest{Sender: "192.0.2.1", Receiver: "192.0.2.2", Context: long})},
		{"resolve nothing", "sender", "required", resolve(&pncv1.ResolveRequest{})},
		{"resolve a name", "sender", "not an IP address", resolve(&pncv1.ResolveRequest{Sender: "host"})},
		{"resolve a prefix", "sender", "not an IP address", resolve(&pncv1.ResolveRequest{Sender: "192.0.2.0/24"})},
		{"resolve multicast", "sender", "unicast", resolve(&pncv1.ResolveRequest{Sender: "224.0.0.1"})},
		{"resolve broadcast", "sender", "unicast", resolve(&pncv1.ResolveRequest{Sender: "255.255.255.255"})},
		{"resolve unspecified", "sender", "unicast", resolve(&pncv1.ResolveRequest{Sender: "::"})},
		{"resolve with a zone", "sender", "zone", resolve(&pncv1.ResolveRequest{Sender: "fe80::1%eth0"})},
		{"resolve in a long context", "context", "longer", resolve(&pncv1.ResolveRequest{Sender: "192.0.2.1", Context: long})},
		{"list with host bits", "prefix", "192.0.2.0/24", list(&pncv1.ListCapabilitiesRequest{Prefix: "192.0.2.1/24"})},
		{"list without length", "prefix", "not a prefix", list(&pncv1.ListCapabilitiesRequest{Prefix: "192.0.2.1"})},
		{"list mapped prefix", "prefix", "IPv4-mapped", list(&pncv1.ListCapabilitiesRequest{Prefix: "::ffff:192.0.2.0/120"})},
		{"list too many", "limit", "more than 100000", list(&pncv1.ListCapabilitiesRequest{Limit: 100_001})},
		{"advertise nothing", "prefix", "required", advertise(&pncv1.AdvertiseRequest{})},
		{"advertise for a moment", "lease", "not between 1s and", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", NextHop: "192.0.2.1", Lease: durationpb.New(time.Millisecond)})},
		{"advertise for the past", "lease", "not between 1s and", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", NextHop: "192.0.2.1", Lease: durationpb.New(-time.Hour)})},
		{"advertise for ever", "lease", "not between 1s and", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", NextHop: "192.0.2.1", Lease: durationpb.New(366 * 24 * time.Hour)})},
		{"advertise for no time", "lease", "no valid duration", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", NextHop: "192.0.2.1", Lease: &durationpb.Duration{Seconds: 1, Nanos: -1}})},
		{"advertise unknown mode", "mode", "no value", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", Mode: 99})},
		{"advertise bad proxy", "proxy", "not an IP address", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", Proxy: "x"})},
		{"advertise link-local proxy", "proxy", "link-local", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", Proxy: "fe80::1"})},
		{"advertise loopback proxy", "proxy", "loopback", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", Proxy: "127.0.0.1"})},
		{"advertise without next hop", "next_hop", "required with mode originate", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24"})},
		{"advertise bad next hop", "next_hop", "unicast", advertise(&pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", NextHop: "0.0.0.0"})},
		{"withdraw nothing", "prefix", "required", func(ctx context.Context) error {
			_, err := c.caps.Withdraw(ctx, &pncv1.WithdrawRequest{})
			return err
		}},
		{"flows of a name", "sender", "not an IP address", flows(&pncv1.ListFlowsRequest{Sender: "x"})},
		{"flows to a name", "receiver", "not an IP address", flows(&pncv1.ListFlowsRequest{Receiver: "x"})},
		{"flows unspecified state", "states", "unspecified", flows(&pncv1.ListFlowsRequest{States: []pncv1.FlowState{0}})},
		{"flows unknown state", "states", "no value", flows(&pncv1.ListFlowsRequest{States: []pncv1.FlowState{77}})},
		{"flows too many", "limit", "more than", flows(&pncv1.ListFlowsRequest{Limit: 1 << 31})},
		{"flow without sender", "sender", "required", flow(&pncv1.GetFlowRequest{Receiver: "192.0.2.1"})},
		{"flow without receiver", "receiver", "required", flow(&pncv1.GetFlowRequest{Sender: "192.0.2.1"})},
		{"flow of two families", "receiver", "family", flow(&pncv1.GetFlowRequest{Sender: "192.0.2.1", Receiver: "2001:db8::1"})},
		{"flow with a wide QP", "destination_qp", "24 bits", flow(&pncv1.GetFlowRequest{Sender: "192.0.2.1", Receiver: "192.0.2.2", DestinationQp: qp})},
		{"watch flows of a name", "sender", "not an IP address", func(ctx context.Context) error {
			s, err := c.flows.WatchFlows(ctx, &pncv1.WatchFlowsRequest{Sender: "x"})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		}},
		{"records of a name", "filter.sender", "not an IP address", records(&pncv1.RecordFilter{Sender: "x"})},
		{"records to a name", "filter.receiver", "not an IP address", records(&pncv1.RecordFilter{Receiver: "x"})},
		{"records with a wide QP", "filter.destination_qp", "24 bits", records(&pncv1.RecordFilter{DestinationQp: &qp})},
		{"records of a long context", "filter.context", "longer than", records(&pncv1.RecordFilter{Context: &long})},
		{"records of no outcome", "filter.outcomes", "unspecified", records(&pncv1.RecordFilter{Outcomes: []pncv1.Outcome{0}})},
		{"records of an unknown outcome", "filter.outcomes", "no value", records(&pncv1.RecordFilter{Outcomes: []pncv1.Outcome{63}})},
		{"records since a bad time", "filter.since", "valid", records(&pncv1.RecordFilter{Since: &timestamppb.Timestamp{Nanos: -1}})},
		{"records until a bad time", "filter.until", "valid", records(&pncv1.RecordFilter{Until: &timestamppb.Timestamp{Nanos: -1}})},
		{"records of no time", "filter.until", "not after", records(&pncv1.RecordFilter{Since: late, Until: early})},
		{"watch records of a name", "filter.sender", "not an IP address", func(ctx context.Context) error {
			s, err := c.recs.WatchRecords(ctx, &pncv1.WatchRecordsRequest{Filter: &pncv1.RecordFilter{Sender: "x"}})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		}},
		{"neighbours of a name", "address", "not an IP address", func(ctx context.Context) error {
			_, err := c.node.ListNeighbors(ctx, &pncv1.ListNeighborsRequest{Address: "x"})
			return err
		}},
		{"no log level", "level", "required", func(ctx context.Context) error {
			_, err := c.node.SetLogLevel(ctx, &pncv1.SetLogLevelRequest{})
			return err
		}},
		{"long log level", "level", "no log level", func(ctx context.Context) error {
			_, err := c.node.SetLogLevel(ctx, &pncv1.SetLogLevelRequest{Level: long})
			return err
		}},
		{"unknown log level", "level", "no log level", func(ctx context.Context) error {
			_, err := c.node.SetLogLevel(ctx, &pncv1.SetLogLevelRequest{Level: "loud"})
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.call(deadline(t))
			wantCode(t, err, codes.InvalidArgument, tt.field)
			if err == nil || !strings.Contains(err.Error(), tt.rule) {
				t.Errorf("error = %v, want the rule %q in it", err, tt.rule)
			}
		})
	}
}
