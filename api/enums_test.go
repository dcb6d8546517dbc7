package api

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

// domainEnum is one of pnc's enums.
type domainEnum interface {
	comparable
	String() string
}

// holdTotal checks that m maps each of all to a value of its own, that it maps nothing else, that each
// value of the protobuf's enum except UNSPECIFIED is hit, and that both sides use the same name.
func holdTotal[D domainEnum, P protoreflect.Enum](t *testing.T, prefix string, all []D, m map[D]P) {
	t.Helper()
	var zero P
	values := zero.Descriptor().Values()
	hit := make(map[protoreflect.EnumNumber]D)
	for _, d := range all {
		p, ok := m[d]
		if !ok {
			t.Errorf("%s is not mapped", d)
			continue
		}
		if p.Number() == 0 {
			t.Errorf("%s is mapped to the unspecified value", d)
		}
		if other, twice := hit[p.Number()]; twice {
			t.Errorf("%s and %s are both mapped to %v", d, other, p.Number())
		}
		hit[p.Number()] = d
		v := values.ByNumber(p.Number())
		if v == nil {
			t.Errorf("%s is mapped to %d, which the protobuf does not define", d, p.Number())
			continue
		}
		name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix)), "_", "-")
		if name != d.String() {
			t.Errorf("%s is mapped to %s: the names differ", d, v.Name())
		}
	}
	if len(m) != len(all) {
		t.Errorf("the map has %d values, the domain %d", len(m), len(all))
	}
	for i := range values.Len() {
		v := values.Get(i)
		if _, ok := hit[v.Number()]; !ok && v.Number() != 0 {
			t.Errorf("nothing is mapped to %s", v.Name())
		}
	}
}

func TestEnumMapsAreTotal(t *testing.T) {
	t.Run("Source", func(t *testing.T) {
		m := make(map[pnc.Source]pncv1.Source)
		for _, s := range pnc.Sources() {
			m[s] = evidence.RouteToProto(&pnc.Route{Source: s}, false).Source
		}
		holdTotal(t, "SOURCE_", pnc.Sources(), m)
	})
	t.Run("Reason", func(t *testing.T) { holdTotal(t, "RESOLVE_REASON_", pnc.Reasons(), reasonToProto) })
	t.Run("DisregardReason", func(t *testing.T) {
		holdTotal(t, "DISREGARD_REASON_", pnc.DisregardReasons(), disregardToProto)
	})
	t.Run("DisregardReason of a route", func(t *testing.T) {
		m := make(map[pnc.DisregardReason]pncv1.DisregardReason)
		for _, r := range pnc.DisregardReasons() {
			m[r] = evidence.RouteToProto(&pnc.Route{Disregarded: r}, false).Disregarded
		}
		holdTotal(t, "DISREGARD_REASON_", pnc.DisregardReasons(), m)
	})
	t.Run("NotUsed", func(t *testing.T) { holdTotal(t, "NOT_USED_REASON_", pnc.NotUsedReasons(), notUsedToProto) })
	t.Run("EventKind", func(t *testing.T) { holdTotal(t, "CAPABILITY_EVENT_KIND_", pnc.EventKinds(), eventToProto) })
}
