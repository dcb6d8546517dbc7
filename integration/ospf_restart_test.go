package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The first life of pa marks two prefixes of each family, the second one of each. MinLSArrival of the routers is the
// default of the RFC, the sequence numbers of the keys go on.
func TestOSPFRestartAndStop(t *testing.T) {
	l := upOSPF(t, ospfChain{
		left: ospfFRRKeys, right: ospfBIRDKeys, routers: []string{"frr", "bird"}, extra: " timers lsa min-arrival 1000\n",
		senders: []string{"10.7.0.0/24", "10.1.0.0/24", "2001:db8:7::/48", "2001:db8:1::/48"},
	})
	pa, _ := ospfChain{left: ospfFRRKeys}.leaves()
	peers := []string{"r1", "r2", "pb"}
	l.bothFamilies()
	l.resolves("10.7.0.2", igpProxy)
	l.marks(pa.id(), 2, peers...)
	before := l.sequences("r2", pa.id())

	l.kill("pa", "pncd")
	l.write("pa.yaml", pa.conf(ospfSenders(ospfTwoSenders...)))
	pncd := l.startAgain("pa")
	l.full("pa")
	l.marks(pa.id(), 1, peers...)
	l.bothFamilies()
	l.resolves("10.7.0.2", "RESOLVE_REASON_NO_ROUTE")
	l.resolves("2001:db8:7::2", "RESOLVE_REASON_NO_ROUTE")
	for key, n := range l.sequences("r2", pa.id()) {
		// A mark that says what it said before is the same instance.
		if old := before[key]; n < old || n == old && strings.Contains(key, " 0001 ") {
			t.Errorf("%s has sequence number %#x after %#x", key, n, old)
		}
	}

	begin := time.Now()
	if err := pncd.Stop(); err != nil {
		t.Errorf("pncd's end: %v", err)
	}
	t.Logf("figure: a clean stop took %s", time.Since(begin).Round(time.Millisecond))
	l.marks(pa.id(), 0, "r1", "r2", "pb")
	l.answers("10.1.0.2", "RESOLVE_REASON_NO_ROUTE")
	l.answers("2001:db8:1::2", "RESOLVE_REASON_NO_ROUTE")
	l.gone(pa.id(), peers...)
}

// full waits for the adjacencies of a leaf that was started again: what others learned of it before is still there.
func (l *ospfLab) full(node string) {
	l.t.Helper()
	l.eventually("the adjacencies of "+node+" are back", func() string {
		routers, err := l.ospfNow(node)
		if err != nil {
			return err.Error()
		}
		for _, r := range routers {
			if n := r.GetLinks()[0].GetNeighbors(); len(n) != 1 || n[0].GetState() != "full" {
				return fmt.Sprint(n)
			}
		}
		return ""
	})
}

// sequences are the sequence numbers of a router's LSAs of area scope that live, as a node has them.
func (l *ospfLab) sequences(node, router string) map[string]uint32 {
	l.t.Helper()
	out := map[string]uint32{}
	for _, a := range l.lsas(node, router) {
		if a.age < 3600 {
			out[fmt.Sprintf("OSPFv%d %s %s", a.version, a.typ, a.id)] = a.sequence
		}
	}
	return out
}

// gone waits until these nodes have nothing of a router that is believed any more. FRR keeps what was flushed for a
// minute, at MaxAge.
func (l *ospfLab) gone(router string, nodes ...string) {
	l.t.Helper()
	for _, node := range nodes {
		l.eventually(node+" has forgotten "+router, func() string {
			for _, a := range l.lsas(node, router) {
				if a.age < 3600 {
					return fmt.Sprintf("%+v", a)
				}
			}
			return ""
		})
	}
}
