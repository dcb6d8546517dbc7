package evidence

import (
	"strings"
	"testing"

	pncv1 "pncd/api/pnc/v1"
)

// The lists of 06-evidence: which outcomes each part has, by name.
var wantNames = map[Part]string{
	PartCongestionNode: "sent disabled no-proxy context-unknown default-route-refused proxy-unreachable " +
		"self-proxy paced sampled-out rate-limited send-error detector-overflow detector-gate-full flow-unknown",
	PartProxy: "translated disabled malformed bad-checksum not-our-domain ttl-too-low not-rocev2 " +
		"unsupported-transport not-our-prefix map-miss map-undecided map-contradicted map-aged nrp-unknown " +
		"vpn-unknown paced rate-limited loop send-error receive-overflow shutdown",
}

func TestOutcomesArePartitionedIntoTheTwoParts(t *testing.T) {
	total := 0
	for part, want := range wantNames {
		var names []string
		for _, o := range Outcomes(part) {
			names = append(names, Name(o))
			if PartOf(o) != part {
				t.Errorf("%v is listed for %v and belongs to %v", o, part, PartOf(o))
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%v:\n got %s\nwant %s", part, got, want)
		}
		total += len(names)
	}
	// All but the unspecified one.
	if n := pncv1.Outcome(0).Descriptor().Values().Len() - 1; total != n {
		t.Errorf("the parts have %d outcomes, the enum %d", total, n)
	}
}

func TestEveryOutcomeHasHelpAndAUniqueName(t *testing.T) {
	values := pncv1.Outcome(0).Descriptor().Values()
	seen := map[string]bool{}
	for i := range values.Len() {
		o := Outcome(values.Get(i).Number())
		if o >= maxOutcomes {
			t.Fatalf("%v does not fit a set of %d", o, maxOutcomes)
		}
		if h := Help(o); !strings.HasSuffix(h, ".") || len(h) < 10 {
			t.Errorf("%v: help %q is no sentence", o, h)
		}
		key := PartOf(o).String() + " " + Name(o)
		if seen[key] {
			t.Errorf("%v: the name %q is taken", o, key)
		}
		seen[key] = true
	}
}

func TestUnlistedNumbersBelongToNoPart(t *testing.T) {
	for _, o := range []Outcome{-1, 0, 15, 31, 53, 63, 64, 1 << 30} {
		if PartOf(o) != PartNone || Name(o) != "unspecified" {
			t.Errorf("%d: part %v, name %q", o, PartOf(o), Name(o))
		}
	}
	if Help(64) != "" || Help(-1) != "" {
		t.Error("help for a number that the enum does not have")
	}
}

func TestUnlistedOutcomesShowAsUnspecified(t *testing.T) {
	var c Counters
	for _, o := range []Outcome{0, 15, 64, -5} {
		c.Count(o, 1)
	}
	if got := c.Outcome(pncv1.Outcome_OUTCOME_UNSPECIFIED); got != 4 {
		t.Errorf("unspecified counts %d, want 4", got)
	}
	if c.Sum(PartCongestionNode)+c.Sum(PartProxy)+c.Sum(PartNone) != 0 {
		t.Error("they count for a part")
	}
}

func TestSnapshotHasEveryCounterOnce(t *testing.T) {
	var c Counters
	c.Received(PartProxy, 3)
	c.Count(pncv1.Outcome_OUTCOME_PROXY_MAP_MISS, 2)
	c.Count(pncv1.Outcome_OUTCOME_PROXY_TRANSLATED, 1)
	values := map[string]uint64{}
	for _, n := range c.Snapshot() {
		p := n.ToProto()
		key := p.GetPart() + "/" + p.GetName()
		if _, again := values[key]; again || p.GetHelp() == "" {
			t.Errorf("%s: there twice, or without help", key)
		}
		values[key] = p.GetValue()
	}
	if len(values) != 2+14+21 {
		t.Errorf("%d counters, want 37", len(values))
	}
	if values["proxy/received"] != 3 || values["proxy/map-miss"] != 2 || values["proxy/translated"] != 1 {
		t.Errorf("values %v", values)
	}
}
