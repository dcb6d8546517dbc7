package api

import (
	"net/netip"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

// routeToMessage turns a route of a snapshot into its message.
func routeToMessage(s *pnc.Snapshot, r *pnc.Route) *pncv1.CapabilityRoute {
	reach, known := s.RouteReach(r)
	return evidence.RouteToProto(r, known && r.Proxy.IsValid() && reach.Reachable && !reach.Self)
}

// eventToMessage turns an event of the history into its message. Reachability is not part of history.
func eventToMessage(e *pnc.Event) *pncv1.CapabilityEvent {
	return &pncv1.CapabilityEvent{
		At:     stamp(e.At),
		Kind:   eventToProto[e.Kind],
		Route:  evidence.RouteToProto(&e.Route, false),
		Reason: disregardToProto[e.Reason],
		Detail: e.Detail,
	}
}

// stamp leaves a time that is not known absent instead of showing the year 1.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
