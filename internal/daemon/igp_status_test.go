package daemon

import (
	"maps"
	"testing"

	"pncd/igp/isis/adjacency"
)

func TestNeighboursOfAnIGPAreCountedByState(t *testing.T) {
	if got := byState(adjacency.Up, []string{"up", "initializing", "up"}); !maps.Equal(got, map[string]uint64{"down": 0, "initializing": 1, "up": 2}) {
		t.Errorf("%v", got)
	}
	r := start(t, template+"isis: {net: 49.0001.0000.0000.0009.00}\nospfv2: {router_id: 192.0.2.9}\nospfv3: {router_id: 192.0.2.9}\n")
	states := map[string]int{}
	for _, c := range (exported{r.Daemon}).Snapshot().Counters {
		if c.Name == "neighbors" && c.Gauge && len(c.Labels) == 1 && c.Labels[0].Name == "state" && c.Value == 0 {
			states[c.Part]++
		}
	}
	if !maps.Equal(states, map[string]int{"isis": 3, "ospfv2": 7, "ospfv3": 7}) {
		t.Errorf("states without a neighbour: %v", states)
	}
}
