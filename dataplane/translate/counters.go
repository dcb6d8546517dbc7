package translate

import "fmt"

// Reason is why a notification went to user space, as package doc has them.
type Reason uint8

// The reasons; the numbers are those of translate.c.
const (
	UpDisabled Reason = iota
	UpChecksum
	UpFormat
	UpAnswer
	UpRoute
	UpRing
	UpFrame
	UpUnattended
	reasons
)

var reasonNames = [reasons]string{"disabled", "checksum", "format", "no-answer", "no-route", "no-record", "no-room", "unattended"}

// String returns the reason's name in lower case.
func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Reasons lists all of them.
func Reasons() []Reason {
	out := make([]Reason, reasons)
	for i := range out {
		out[i] = Reason(i)
	}
	return out
}

// Counters are counts since Open, of all interfaces together.
type Counters struct {
	Outcomes [64]uint64      // by Outcome
	Up       [reasons]uint64 // notifications that went to user space, by Reason
	Lost     uint64          // events that were to be and had no room in the ring buffer
}

// Counters sums the counts of all processors. Each of them is exact; while packets pass, they are not of one moment.
func (t *Translator) Counters() (Counters, error) {
	var all []translateCounters
	if err := t.maps.Counts.Lookup(uint32(0), &all); err != nil {
		return Counters{}, fmt.Errorf("kernel translator: counters: %w", err)
	}
	var sum Counters
	for i := range all {
		c := &all[i]
		for o := range sum.Outcomes {
			sum.Outcomes[o] += c.Outcomes[o]
		}
		for r := range sum.Up {
			sum.Up[r] += c.Up[r]
		}
		sum.Lost += c.Lost
	}
	return sum, nil
}
