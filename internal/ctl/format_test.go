package ctl

import (
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

func TestAgesShowTheirTwoLargestUnits(t *testing.T) {
	for in, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m00s", 3*time.Minute + 12*time.Second: "3m12s",
		time.Hour: "1h00m", 2*time.Hour + 5*time.Minute + 59*time.Second: "2h05m", 24 * time.Hour: "1d00h", 100*24*time.Hour + 4*time.Hour: "100d04h",
	} {
		if got := span(in); got != want {
			t.Errorf("span(%v) = %q, want %q", in, got, want)
		}
	}
}

func TestCellsCannotBreakATable(t *testing.T) {
	for in, want := range map[string]string{"": "-", "a\tb\nc": "a b c", "  x  ": "x", "\x1b[31mred": "[31mred", "ümlaut": "ümlaut"} {
		if got := cell(in); got != want {
			t.Errorf("cell(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestEnumsShowWithoutTheirPrefix(t *testing.T) {
	for got, want := range map[string]string{
		enum(pncv1.Source_SOURCE_BGP):                                 "bgp",
		enum(pncv1.Source_SOURCE_UNSPECIFIED):                         "",
		enum(pncv1.ResolveReason_RESOLVE_REASON_NO_PROXY):             "no-proxy",
		enum(pncv1.FlowSource_FLOW_SOURCE_DETH):                       "deth",
		enum(pncv1.FlowState(99)):                                     "99",
		enum(pncv1.OriginationMode_ORIGINATION_MODE_ORIGINATE):        "originate",
		enum(pncv1.CapabilityEventKind_CAPABILITY_EVENT_KIND_LEARNED): "learned",
	} {
		if got != want {
			t.Errorf("enum = %q, want %q", got, want)
		}
	}
}

func TestOutcomesShowThePartThatCountsThem(t *testing.T) {
	for _, tt := range []struct {
		o          pncv1.Outcome
		part, name string
	}{
		{pncv1.Outcome_OUTCOME_PROXY_UNREACHABLE, "congestion-node", "proxy-unreachable"},
		{pncv1.Outcome_OUTCOME_PROXY_PACED, "proxy", "paced"},
		{pncv1.Outcome_OUTCOME_PACED, "congestion-node", "paced"},
		{pncv1.Outcome(63), "", "63"},
	} {
		if part, name := outcome(tt.o); part != tt.part || name != tt.name {
			t.Errorf("outcome(%v) = %q, %q, want %q, %q", tt.o, part, name, tt.part, tt.name)
		}
	}
}

func TestOutcomeNamesChooseBothPartsUnlessOneIsNamed(t *testing.T) {
	both, err := parseOutcomes("--outcome", []string{"paced"})
	if err != nil || len(both) != 2 {
		t.Errorf("paced = %v, %v, want two", both, err)
	}
	one, err := parseOutcomes("--outcome", []string{"proxy/paced"})
	if err != nil || len(one) != 1 || one[0] != pncv1.Outcome_OUTCOME_PROXY_PACED {
		t.Errorf("proxy/paced = %v, %v, want the proxy's", one, err)
	}
}

func TestQueuePairNumbersAreDecimalOrHexadecimal(t *testing.T) {
	for in, want := range map[string]uint32{"0x18b": 0x18b, "0X18B": 0x18b, "395": 0x18b, "0": 0, "0xffffff": 0xffffff} {
		if got, err := parseQP("QP", in); err != nil || got != want {
			t.Errorf("parseQP(%q) = %#x, %v, want %#x", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "0x", "16777216", "0b1", "0o7", "1_000", "-1", "+1", "18b"} {
		if got, err := parseQP("QP", in); err == nil {
			t.Errorf("parseQP(%q) = %#x, want an error", in, got)
		}
	}
}

func TestTimesAreAgoOrAbsolute(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"10m": now.Add(-10 * time.Minute), "0s": now, "2026-03-01T11:00:00Z": now.Add(-time.Hour), "2026-03-01T12:00:00+01:00": now.Add(-time.Hour),
	} {
		if got, err := parseTime("--since", in, now); err != nil || !got.Equal(want) {
			t.Errorf("parseTime(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
}

func TestFlagsOfARoute(t *testing.T) {
	for want, r := range map[string]*pncv1.CapabilityRoute{
		"":               {},
		"override":       {Override: true},
		"best,path-id=7": {Source: pncv1.Source_SOURCE_BGP, Best: true, PathId: 7},
		"level=2":        {Source: pncv1.Source_SOURCE_ISIS, PathId: 2},
		"area=10.0.0.1":  {Source: pncv1.Source_SOURCE_OSPF, PathId: 10<<24 + 1},
	} {
		if got := routeFlags(r); got != want {
			t.Errorf("flags %q, want %q", got, want)
		}
	}
}
