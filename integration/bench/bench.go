// Package bench holds what the benchmark programme shares: one JSON object a line, with the value as
// a ratio to a baseline measured in the same run.
package bench

import (
	"encoding/json"
	"io"
	"sync"
)

// Result is one line of `make bench`.
type Result struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Baseline float64 `json:"baseline"` // the baseline's value in the same unit; 0 when there is none
	Ratio    float64 `json:"ratio"`    // value / baseline; 0 when there is no baseline
	Allocs   float64 `json:"allocs"`   // heap allocations per operation
	Note     string  `json:"note,omitempty"`
}

// Scenario is one benchmark: it measures its baseline and itself in the same run.
type Scenario struct {
	Name string
	Run  func() ([]Result, error)
}

var mu sync.Mutex

// Print writes r as one line of JSON, the ratio filled in.
func Print(w io.Writer, r Result) error {
	mu.Lock()
	defer mu.Unlock()
	if r.Ratio == 0 && r.Baseline != 0 {
		r.Ratio = r.Value / r.Baseline
	}
	return json.NewEncoder(w).Encode(r)
}
