package daemon

import (
	"testing"

	"pncd/bgp"
	"pncd/bgp/engine"
	"pncd/bgp/guard"
)

func TestNeighborTellsWhatWasMalformedByEveryKind(t *testing.T) {
	m := neighborMessage(&bgp.NeighborStatus{PeerStatus: engine.PeerStatus{
		Findings: map[guard.Kind]uint64{guard.WrongFlags: 3}, Faults: 2,
	}})
	if len(m.GetMalformed()) != len(guard.Kinds()) || m.GetMalformed()["wrong-flags"] != 3 || m.GetMalformed()["overrun"] != 0 || m.GetFaults() != 2 {
		t.Errorf("%v, faults %d", m.GetMalformed(), m.GetFaults())
	}
}
