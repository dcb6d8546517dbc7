package evidence

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
)

func TestCongestionRecordAsProto(t *testing.T) {
	proxy := netip.MustParseAddr("203.0.113.9")
	rec := Record{
		Sequence: 7, At: start, Outcome: pncv1.Outcome_OUTCOME_SENT,
		Flow: Flow{Context: "red", Sender: sender, Receiver: receiver, SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: 9},
		Congestion: Congestion{
			Source: "ce eth1", CECount: 4, Proxy: proxy,
			Route: pnc.NewEntry(pnc.Route{
				Context: "red", Prefix: netip.MustParsePrefix("198.51.100.0/24"), Source: pnc.SourceBGP,
				Proxy: proxy, NextHop: netip.MustParseAddr("203.0.113.1"), Originator: "10.0.0.1", Peer: "10.0.0.2",
				PathID: 3, Best: true, Stale: true, LongLived: true, Partial: true, Metric: 20, Version: 11, ChangedAt: start.Add(-time.Minute),
			}),
			Event: EventNumber{Port: 49999, Count: 12},
		},
	}
	want := &pncv1.Record{
		Sequence: 7, At: timestamppb.New(start), Node: "r1", Boot: "b1", Outcome: pncv1.Outcome_OUTCOME_SENT,
		Flow: &pncv1.FlowKey{Sender: "198.51.100.2", Receiver: "192.0.2.1", SourcePort: 50000, DestinationPort: 4791,
			Protocol: 17, DestinationQp: 9, Context: "red"},
		Detail: &pncv1.Record_Congestion{Congestion: &pncv1.CongestionRecord{
			Source: "ce eth1", CeCount: 4, Proxy: "203.0.113.9",
			Route: &pncv1.CapabilityRoute{Context: "red", Prefix: "198.51.100.0/24", Source: pncv1.Source_SOURCE_BGP,
				Proxy: "203.0.113.9", NextHop: "203.0.113.1", Originator: "10.0.0.1", Peer: "10.0.0.2", PathId: 3,
				Best: true, Stale: true, LongLived: true, Partial: true, Metric: 20, Version: 11,
				ChangedAt: timestamppb.New(start.Add(-time.Minute)), ProxyReachable: true},
			Event: &pncv1.EventNumber{Port: 49999, Count: 12},
		}},
	}
	if got := newRecorder(t, 1).ToProto(&rec); !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestTranslationRecordAsProto(t *testing.T) {
	rec := Record{
		Sequence: 8, At: start, Outcome: pncv1.Outcome_OUTCOME_PROXY_TRANSLATED,
		Flow: Flow{Sender: sender, Receiver: receiver, SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: 9},
		Translation: Translation{
			Node: netip.MustParseAddr("2001:db8::1"), EventPort: 49999, Gap: 2,
			Entry: MapEntry{State: pncv1.FlowState_FLOW_STATE_CONFIRMED, Source: pncv1.FlowSource_FLOW_SOURCE_CM,
				SourceQP: 0x18d, PKey: 0xffff, Version: 5, Votes: 6, Forward: true, Reverse: true,
				LearnedAt: start.Add(-3), ChangedAt: start.Add(-2), LastSeen: start.Add(-1), UDPSourcePort: 50000, Detail: "rtu"},
			SourceQP: 0x18d, Receipt: 77, ReceiptPort: 49229, Latency: 30 * time.Microsecond,
		},
	}
	want := &pncv1.Record{
		Sequence: 8, At: timestamppb.New(start), Node: "r1", Boot: "b1", Outcome: pncv1.Outcome_OUTCOME_PROXY_TRANSLATED,
		Flow: &pncv1.FlowKey{Sender: "198.51.100.2", Receiver: "192.0.2.1", SourcePort: 50000, DestinationPort: 4791,
			Protocol: 17, DestinationQp: 9},
		Detail: &pncv1.Record_Translation{Translation: &pncv1.TranslationRecord{
			CongestionNode: "2001:db8::1", Event: &pncv1.EventNumber{Port: 49999}, Gap: 2,
			Entry: &pncv1.Flow{Sender: "198.51.100.2", Receiver: "192.0.2.1", DestinationQp: 9, SourceQp: 0x18d,
				State: pncv1.FlowState_FLOW_STATE_CONFIRMED, Source: pncv1.FlowSource_FLOW_SOURCE_CM, PKey: 0xffff, Version: 5,
				Votes: 6, SeenForward: true, SeenReverse: true, LearnedAt: timestamppb.New(start.Add(-3)),
				ChangedAt: timestamppb.New(start.Add(-2)), LastSeen: timestamppb.New(start.Add(-1)), UdpSourcePort: 50000, Detail: "rtu"},
			SourceQp: 0x18d, Receipt: 77, ReceiptPort: 49229, Latency: durationpb.New(30 * time.Microsecond),
		}},
	}
	if got := newRecorder(t, 1).ToProto(&rec); !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestWhatIsNotKnownIsAbsent(t *testing.T) {
	got := newRecorder(t, 1).ToProto(&Record{Outcome: pncv1.Outcome_OUTCOME_PROXY_MALFORMED, Err: "message: 3 octets"})
	tr := got.GetTranslation()
	if got.Flow != nil || got.At != nil || tr == nil || tr.Entry != nil || tr.Event != nil || tr.Latency != nil || tr.CongestionNode != "" {
		t.Errorf("got %v", got)
	}
	if got.Error != "message: 3 octets" {
		t.Errorf("error %q", got.Error)
	}
	got = newRecorder(t, 1).ToProto(&Record{Outcome: pncv1.Outcome_OUTCOME_PROXY_UNREACHABLE,
		Congestion: Congestion{Route: pnc.NewEntry(pnc.Route{Proxy: sender})}})
	c := got.GetCongestion()
	if c == nil || c.Proxy != "" || c.Event != nil || c.Route.ProxyReachable {
		t.Errorf("got %v", got)
	}
}

func TestEverySourceAndReasonHasItsProto(t *testing.T) {
	seen := map[int32]bool{0: true}
	for _, s := range pnc.Sources() {
		n := int32(sourceToProto(s))
		if seen[n] {
			t.Errorf("source %v: %d is unspecified or taken", s, n)
		}
		seen[n] = true
	}
	seen = map[int32]bool{0: true}
	for _, r := range pnc.DisregardReasons() {
		n := int32(disregardToProto(r))
		if seen[n] {
			t.Errorf("reason %v: %d is unspecified or taken", r, n)
		}
		seen[n] = true
	}
	if disregardToProto(pnc.DisregardNone) != 0 || sourceToProto(pnc.SourceUnknown) != 0 {
		t.Error("none and unknown must be unspecified")
	}
}

func TestFilterFromProtoNamesTheField(t *testing.T) {
	big := uint32(1 << 24)
	for field, p := range map[string]*pncv1.RecordFilter{
		"filter.sender":         {Sender: "198.51.100"},
		"filter.receiver":       {Receiver: "host"},
		"filter.destination_qp": {DestinationQp: &big},
		"filter.outcomes":       {Outcomes: []pncv1.Outcome{99}},
		"filter.since":          {Since: &timestamppb.Timestamp{Seconds: math.MaxInt64}},
		"filter.until":          {Until: &timestamppb.Timestamp{Nanos: -1}},
	} {
		if _, err := FilterFromProto(p); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

func TestFilterFromProtoTakesEveryField(t *testing.T) {
	qp := uint32(0)
	f, err := FilterFromProto(&pncv1.RecordFilter{
		Sender: "::ffff:198.51.100.2", Receiver: "2001:db8::1", DestinationQp: &qp,
		Outcomes: []pncv1.Outcome{miss}, Since: timestamppb.New(start), Until: timestamppb.New(start.Add(1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.Sender != sender || f.Receiver != netip.MustParseAddr("2001:db8::1") || !f.HasDestQP || f.DestQP != 0 ||
		!f.Outcomes.Has(miss) || f.Outcomes.Has(1) || !f.Since.Equal(start) || !f.Until.Equal(start.Add(1)) {
		t.Errorf("filter %+v", f)
	}
	if f, err := FilterFromProto(nil); err != nil || f != (Filter{}) {
		t.Errorf("nil gives %+v, %v", f, err)
	}
}

func TestStaticRouteAsProto(t *testing.T) {
	r := pnc.Route{
		Prefix: netip.MustParsePrefix("198.51.100.0/24"), Source: pnc.SourceStatic,
		Proxy: netip.MustParseAddr("203.0.113.9"), PathID: 1, Override: true,
	}
	if got := RouteToProto(&r, false); got.GetPathId() != 0 || !got.GetOverride() {
		t.Errorf("path identifier %d, override %v; a static route has no add-path identifier", got.GetPathId(), got.GetOverride())
	}
}

func TestVPNRouteAsProtoNamesItsVPN(t *testing.T) {
	r := pnc.Route{Context: "blue", Prefix: netip.MustParsePrefix("198.51.100.0/24"), Source: pnc.SourceBGP, RD: "65000:100"}
	if got := RouteToProto(&r, false); got.GetContext() != "blue" || got.GetRouteDistinguisher() != "65000:100" {
		t.Errorf("got %v", got)
	}
}
