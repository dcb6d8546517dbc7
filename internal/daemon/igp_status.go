package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

// statusTimeout bounds how long metrics and the list of parts wait for a speaker.
const statusTimeout = time.Second

// igpSummary is what the list of parts says of an IGP.
type igpSummary struct {
	up    int // neighbours
	used  int // links
	links int
	notes []string // why links are not used, and so on
}

// igpStatusPart tells how an IGP does.
func igpStatusPart(name, link string, read func(context.Context) (igpSummary, error)) *pncv1.Part {
	p := &pncv1.Part{Name: name}
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	s, err := read(ctx)
	if err != nil {
		p.State, p.Detail = pncv1.PartState_PART_STATE_FAILED, err.Error()
		return p
	}
	p.State = pncv1.PartState_PART_STATE_READY
	if s.up == 0 && s.links > 0 {
		p.State = pncv1.PartState_PART_STATE_STARTING
	}
	p.Detail = strings.Join(append([]string{fmt.Sprintf("%d neighbours up on %d of %d %ss", s.up, s.used, s.links, link)}, s.notes...), "; ")
	return p
}

const helpNeighbors = "Neighbours on all interfaces now, by the state of the adjacency."

// byState counts neighbours by state. All states are there, so that a query for one that nobody is in gives 0 and not
// nothing.
func byState[S interface {
	~uint8
	fmt.Stringer
}](last S, states []string) map[string]uint64 {
	out := map[string]uint64{}
	for s := S(0); s <= last; s++ {
		out[s.String()] = 0
	}
	for _, s := range states {
		out[s]++
	}
	return out
}

// labelled are the counters of a part that one label tells apart.
func labelled(part, name, help, label string, values map[string]uint64) (out []count) {
	for value, n := range values {
		out = append(out, count{part, name, help, n, [2]string{label, value}})
	}
	return out
}

// sum adds up counters by name.
func sum(list ...map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for _, counters := range list {
		for name, n := range counters {
			out[name] += n
		}
	}
	return out
}
