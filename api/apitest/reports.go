package apitest

import (
	"sync"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
)

// Reports is an api.Reports in memory: the flows of eth2 are known, and what a report names is sent.
type Reports struct {
	mu      sync.Mutex
	got     []api.Report
	refused int
	fail    error
	absent  bool
}

// Fail makes Report do so with err; nil ends it.
func (r *Reports) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

// SetConfigured says whether the source is configured, as it is at first.
func (r *Reports) SetConfigured(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.absent = !is
}

// Got returns the reports, and how many were refused before.
func (r *Reports) Got() ([]api.Report, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got, r.refused
}

// Configured implements api.Reports.
func (r *Reports) Configured() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.absent {
		return api.Precondition(api.ReasonNotConfigured, "the configuration has no congestion_node.detect.api")
	}
	return nil
}

// Refused implements api.Reports.
func (r *Reports) Refused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused++
}

// Report implements api.Reports.
func (r *Reports) Report(rep *api.Report) ([]*pncv1.ReportedEvent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.fail != nil:
		return nil, r.fail
	case rep.Flow != nil:
		r.got = append(r.got, *rep)
		return []*pncv1.ReportedEvent{{Flow: rep.Flow.Proto(), Outcome: pncv1.Outcome_OUTCOME_SENT}}, nil
	case rep.Interface != "eth2":
		return nil, api.Invalid("flow", "is required: the flows of %s are not known here", rep.Interface)
	}
	r.got = append(r.got, *rep)
	if rep.Queue == "0" {
		return []*pncv1.ReportedEvent{{Outcome: pncv1.Outcome_OUTCOME_FLOW_UNKNOWN}}, nil
	}
	return []*pncv1.ReportedEvent{
		{Flow: &pncv1.ReportedFlow{Sender: "198.51.100.10", Receiver: "203.0.113.10", SourcePort: 0xC123, DestinationQp: 0x18b}, Outcome: pncv1.Outcome_OUTCOME_SENT},
		{Flow: &pncv1.ReportedFlow{Sender: "198.51.100.11", Receiver: "203.0.113.10", SourcePort: 0xC124, DestinationQp: 0x18c, Context: "blue"}, Outcome: pncv1.Outcome_OUTCOME_PACED},
	}, nil
}
