package daemon

import (
	"fmt"
	"sync"

	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/evidence"
)

// lostEvents is how many of the events that the kernel lost are among the outcomes already, by interface.
type lostEvents struct {
	mu      sync.Mutex
	counted map[string]ringStats
}

// countDetectors reads what the kernel lost into the outcomes, one record for all of a kind and an interface.
func (d *Daemon) countDetectors() {
	l := &d.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counted == nil {
		l.counted = map[string]ringStats{}
	}
	for _, r := range d.rings.list() {
		if r.Role != roleDetector {
			continue
		}
		was := l.counted[r.Interface]
		l.counted[r.Interface] = r
		d.countLost(r.Interface, pncv1.Outcome_OUTCOME_DETECTOR_OVERFLOW, r.Drops-was.Drops)
		d.countLost(r.Interface, pncv1.Outcome_OUTCOME_DETECTOR_GATE_FULL, r.GateFull-was.GateFull)
	}
}

func (d *Daemon) countLost(iface string, o evidence.Outcome, n uint64) {
	if n == 0 {
		return
	}
	d.recorder.Received(evidence.PartCongestionNode, n)
	d.recorder.Count(o, n)
	d.recorder.Offer(&evidence.Record{
		At: d.now(), Outcome: o, Err: fmt.Sprintf("%d events were lost", n), Congestion: evidence.Congestion{Source: "detector " + iface},
	})
}
