package boundary

import (
	"fmt"
	"maps"
	"strings"
)

// Status says what a Filter is doing.
type Status struct {
	On     bool     // a policy is in force
	Family Family   // of the hooks at the borders
	Lacks  []string // what the kernel can't do, in words
	Absent []string // interfaces of the policy that don't exist; their rules follow when they appear
	Tables []string // those that are to be in the kernel, as nft names them: inet pncd
	Err    error    // why the kernel isn't what it should be
	Mended uint64   // times that somebody else's change was undone
}

// Status returns what the last look at the kernel found.
func (f *Filter) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := Status{On: f.policy != nil, Absent: f.absent, Err: f.err, Mended: f.mended}
	if f.policy != nil {
		out.Family, _ = f.policy.borderFamily(f.has) // Apply has checked it
		out.Lacks = f.policy.lacks(f.has)
		for _, family := range families {
			if f.owned[int(family)] {
				out.Tables = append(out.Tables, tableName(family))
			}
		}
	}
	return out
}

// String describes it in one line.
func (s Status) String() string {
	if !s.On {
		return "not configured"
	}
	parts := append([]string{fmt.Sprintf("table %s at the borders by family %s", TableName, s.Family)}, s.Lacks...)
	if len(s.Absent) > 0 {
		parts = append(parts, "no such interface: "+strings.Join(s.Absent, ", "))
	}
	if s.Mended > 0 {
		parts = append(parts, fmt.Sprintf("put back %d times", s.Mended))
	}
	return strings.Join(parts, "; ")
}

// Counts reads the kernel's counters and returns them as they are since this Filter began.
func (f *Filter) Counts() (Counts, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.policy == nil {
		return maps.Clone(f.counts.total), nil
	}
	have, err := f.kernel.read()
	if err == nil {
		f.counts.add(have)
	}
	return maps.Clone(f.counts.total), err
}

// Ruleset reads our tables from the kernel.
func (f *Filter) Ruleset() (Ruleset, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kernel.read()
}
