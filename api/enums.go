package api

import (
	"pncd/pnc"

	pncv1 "pncd/api/pnc/v1"
)

// The domain's enums are of its own, so that it depends on no wire format; here each is mapped to the
// protobuf's, one to one. Sources and whole routes are mapped by evidence.RouteToProto, which records use
// too. TestEnumMapsAreTotal holds for all of them that no value of either side is left out.
var (
	reasonToProto = map[pnc.Reason]pncv1.ResolveReason{
		pnc.ReasonFound:               pncv1.ResolveReason_RESOLVE_REASON_FOUND,
		pnc.ReasonNoRoute:             pncv1.ResolveReason_RESOLVE_REASON_NO_ROUTE,
		pnc.ReasonNoProxy:             pncv1.ResolveReason_RESOLVE_REASON_NO_PROXY,
		pnc.ReasonDefaultRouteRefused: pncv1.ResolveReason_RESOLVE_REASON_DEFAULT_ROUTE_REFUSED,
		pnc.ReasonProxyUnreachable:    pncv1.ResolveReason_RESOLVE_REASON_PROXY_UNREACHABLE,
		pnc.ReasonSelfProxy:           pncv1.ResolveReason_RESOLVE_REASON_SELF_PROXY,
		pnc.ReasonContextUnknown:      pncv1.ResolveReason_RESOLVE_REASON_CONTEXT_UNKNOWN,
	}
	disregardToProto = map[pnc.DisregardReason]pncv1.DisregardReason{
		pnc.DisregardNextHopMismatch:       pncv1.DisregardReason_DISREGARD_REASON_NEXT_HOP_MISMATCH,
		pnc.DisregardMalformedAttribute:    pncv1.DisregardReason_DISREGARD_REASON_MALFORMED_ATTRIBUTE,
		pnc.DisregardMalformedTLV:          pncv1.DisregardReason_DISREGARD_REASON_MALFORMED_TLV,
		pnc.DisregardUnknownLength:         pncv1.DisregardReason_DISREGARD_REASON_UNKNOWN_LENGTH,
		pnc.DisregardEBGPNotAllowed:        pncv1.DisregardReason_DISREGARD_REASON_EBGP_NOT_ALLOWED,
		pnc.DisregardProxyNotAccepted:      pncv1.DisregardReason_DISREGARD_REASON_PROXY_NOT_ACCEPTED,
		pnc.DisregardDuplicatePNC:          pncv1.DisregardReason_DISREGARD_REASON_DUPLICATE_PNC,
		pnc.DisregardInvalidProxyAddress:   pncv1.DisregardReason_DISREGARD_REASON_INVALID_PROXY_ADDRESS,
		pnc.DisregardCommunityMissing:      pncv1.DisregardReason_DISREGARD_REASON_COMMUNITY_MISSING,
		pnc.DisregardOriginatorNotAccepted: pncv1.DisregardReason_DISREGARD_REASON_ORIGINATOR_NOT_ACCEPTED,
	}
	notUsedToProto = map[pnc.NotUsed]pncv1.NotUsedReason{
		pnc.NotUsedDefaultRoute:     pncv1.NotUsedReason_NOT_USED_REASON_DEFAULT_ROUTE_REFUSED,
		pnc.NotUsedNoProxy:          pncv1.NotUsedReason_NOT_USED_REASON_NO_PROXY,
		pnc.NotUsedNotBelieved:      pncv1.NotUsedReason_NOT_USED_REASON_NOT_BELIEVED,
		pnc.NotUsedSelfProxy:        pncv1.NotUsedReason_NOT_USED_REASON_SELF_PROXY,
		pnc.NotUsedProxyUnreachable: pncv1.NotUsedReason_NOT_USED_REASON_PROXY_UNREACHABLE,
		pnc.NotUsedPreference:       pncv1.NotUsedReason_NOT_USED_REASON_PREFERENCE,
		pnc.NotUsedLongLived:        pncv1.NotUsedReason_NOT_USED_REASON_LONG_LIVED,
		pnc.NotUsedNotBest:          pncv1.NotUsedReason_NOT_USED_REASON_NOT_BEST,
		pnc.NotUsedMetric:           pncv1.NotUsedReason_NOT_USED_REASON_METRIC,
		pnc.NotUsedTie:              pncv1.NotUsedReason_NOT_USED_REASON_TIE,
		pnc.NotUsedShared:           pncv1.NotUsedReason_NOT_USED_REASON_SHARED,
	}
	eventToProto = map[pnc.EventKind]pncv1.CapabilityEventKind{
		pnc.EventLearned:     pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_LEARNED,
		pnc.EventChanged:     pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_CHANGED,
		pnc.EventWithdrawn:   pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_WITHDRAWN,
		pnc.EventDisregarded: pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_DISREGARDED,
		pnc.EventAnnounced:   pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_ANNOUNCED,
		pnc.EventHeldBack:    pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_HELD_BACK,
	}
)
