package evidence

import (
	"net/netip"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
)

// toProto converts all but the node's name and boot.
func (rec *Record) toProto() *pncv1.Record {
	p := &pncv1.Record{
		Sequence: rec.Sequence,
		At:       timestamp(rec.At),
		Outcome:  rec.Outcome,
		Error:    rec.Err,
	}
	if rec.Flow.Sender.IsValid() {
		p.Flow = rec.Flow.toProto()
	}
	switch PartOf(rec.Outcome) {
	case PartCongestionNode:
		p.Detail = &pncv1.Record_Congestion{Congestion: rec.congestionToProto()}
	case PartProxy:
		p.Detail = &pncv1.Record_Translation{Translation: rec.translationToProto()}
	}
	return p
}

func (f *Flow) toProto() *pncv1.FlowKey {
	k := &pncv1.FlowKey{
		Sender: addrString(f.Sender), Receiver: addrString(f.Receiver),
		SourcePort: uint32(f.SrcPort), DestinationPort: uint32(f.DstPort), Protocol: uint32(f.Proto),
		DestinationQp: f.DestQP, Context: f.Context,
	}
	if f.HasNRP {
		k.NrpSelectorId = &f.NRP
	}
	return k
}

func (rec *Record) congestionToProto() *pncv1.CongestionRecord {
	c := &rec.Congestion
	p := &pncv1.CongestionRecord{Source: c.Source, CeCount: c.CECount, QueueDepth: c.QueueDepth, QueueDepthUnit: c.DepthUnit, Proxy: addrString(c.Proxy)}
	if c.Route != nil {
		// A proxy is resolved only while it can be reached.
		route := c.Route.Route()
		p.Route = RouteToProto(&route, c.Proxy.IsValid() && c.Proxy == route.Proxy)
	}
	if c.Event.Port != 0 {
		p.Event = &pncv1.EventNumber{Port: uint32(c.Event.Port), Count: c.Event.Count}
	}
	return p
}

func (rec *Record) translationToProto() *pncv1.TranslationRecord {
	t := &rec.Translation
	p := &pncv1.TranslationRecord{
		CongestionNode: addrString(t.Node),
		Gap:            t.Gap,
		SourceQp:       t.SourceQP,
		NrpVersion:     t.NRPVersion,
		Receipt:        t.Receipt,
		ReceiptPort:    uint32(t.ReceiptPort),
	}
	if t.EventPort != 0 {
		p.Event = &pncv1.EventNumber{Port: uint32(t.EventPort)}
	}
	if t.Latency > 0 {
		p.Latency = durationpb.New(t.Latency)
	}
	if t.Entry.State != pncv1.FlowState_FLOW_STATE_UNSPECIFIED {
		p.Entry = t.Entry.toProto(&rec.Flow)
	}
	return p
}

func (e *MapEntry) toProto(f *Flow) *pncv1.Flow {
	return &pncv1.Flow{
		Sender: addrString(f.Sender), Receiver: addrString(f.Receiver),
		DestinationQp: f.DestQP, Context: f.Context,
		SourceQp: e.SourceQP, State: e.State, Source: e.Source, PKey: uint32(e.PKey),
		Version: e.Version, Votes: e.Votes, SeenForward: e.Forward, SeenReverse: e.Reverse,
		LearnedAt: timestamp(e.LearnedAt), ChangedAt: timestamp(e.ChangedAt), LastSeen: timestamp(e.LastSeen),
		Detail: e.Detail, UdpSourcePort: uint32(e.UDPSourcePort),
	}
}

// RouteToProto is a route of the capability table as the API gives it; reachable says whether the
// kernel has a route to its proxy that is not this node.
func RouteToProto(r *pnc.Route, reachable bool) *pncv1.CapabilityRoute {
	pathID := r.PathID
	if r.Source == pnc.SourceStatic {
		pathID = 0 // the table's own number, no add-path identifier
	}
	return &pncv1.CapabilityRoute{
		Context: r.Context, Prefix: r.Prefix.String(), Source: sourceToProto(r.Source),
		Proxy: addrString(r.Proxy), NextHop: addrString(r.NextHop),
		Originator: r.Originator, Peer: r.Peer, PathId: pathID,
		Best: r.Best, Stale: r.Stale, Partial: r.Partial, Metric: r.Metric,
		Version: r.Version, ChangedAt: timestamp(r.ChangedAt),
		Disregarded: disregardToProto(r.Disregarded), ProxyReachable: reachable, Override: r.Override,
		RouteDistinguisher: r.RD, LongLived: r.LongLived,
	}
}

func sourceToProto(s pnc.Source) pncv1.Source {
	switch s {
	case pnc.SourceStatic:
		return pncv1.Source_SOURCE_STATIC
	case pnc.SourceBGP:
		return pncv1.Source_SOURCE_BGP
	case pnc.SourceISIS:
		return pncv1.Source_SOURCE_ISIS
	case pnc.SourceOSPF:
		return pncv1.Source_SOURCE_OSPF
	default:
		return pncv1.Source_SOURCE_UNSPECIFIED
	}
}

func disregardToProto(r pnc.DisregardReason) pncv1.DisregardReason {
	switch r {
	case pnc.DisregardNextHopMismatch:
		return pncv1.DisregardReason_DISREGARD_REASON_NEXT_HOP_MISMATCH
	case pnc.DisregardMalformedAttribute:
		return pncv1.DisregardReason_DISREGARD_REASON_MALFORMED_ATTRIBUTE
	case pnc.DisregardMalformedTLV:
		return pncv1.DisregardReason_DISREGARD_REASON_MALFORMED_TLV
	case pnc.DisregardUnknownLength:
		return pncv1.DisregardReason_DISREGARD_REASON_UNKNOWN_LENGTH
	case pnc.DisregardEBGPNotAllowed:
		return pncv1.DisregardReason_DISREGARD_REASON_EBGP_NOT_ALLOWED
	case pnc.DisregardProxyNotAccepted:
		return pncv1.DisregardReason_DISREGARD_REASON_PROXY_NOT_ACCEPTED
	case pnc.DisregardDuplicatePNC:
		return pncv1.DisregardReason_DISREGARD_REASON_DUPLICATE_PNC
	case pnc.DisregardInvalidProxyAddress:
		return pncv1.DisregardReason_DISREGARD_REASON_INVALID_PROXY_ADDRESS
	case pnc.DisregardCommunityMissing:
		return pncv1.DisregardReason_DISREGARD_REASON_COMMUNITY_MISSING
	case pnc.DisregardOriginatorNotAccepted:
		return pncv1.DisregardReason_DISREGARD_REASON_ORIGINATOR_NOT_ACCEPTED
	default:
		return pncv1.DisregardReason_DISREGARD_REASON_UNSPECIFIED
	}
}

func addrString(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
