package boundary

import "github.com/google/nftables"

// Counts are packets by counter name, since this Filter began. They only grow, also when the kernel's begin
// anew.
type Counts map[string]uint64

type counterKey struct {
	family nftables.TableFamily
	name   string
}

// tally turns the kernel's counters, which may be older or younger than we are, into Counts.
type tally struct {
	total Counts
	last  map[counterKey]uint64
	begun map[nftables.TableFamily]bool // what is in the table is ours to count
}

func newTally() tally {
	return tally{total: Counts{}, last: map[counterKey]uint64{}, begun: map[nftables.TableFamily]bool{}}
}

// adopt takes tables of another run as they are: what they counted before isn't ours.
func (t *tally) adopt(have Ruleset) {
	for i := range have {
		if t.begun[have[i].Family] {
			continue
		}
		t.begun[have[i].Family] = true
		for _, c := range have[i].Counters {
			t.last[counterKey{have[i].Family, c.Name}] = c.Packets
		}
	}
}

// add counts what came since the last time. A counter that went back began anew.
func (t *tally) add(have Ruleset) {
	for i := range have {
		for _, c := range have[i].Counters {
			key := counterKey{have[i].Family, c.Name}
			if c.Packets < t.last[key] {
				t.last[key] = 0
			}
			t.total[c.Name] += c.Packets - t.last[key]
			t.last[key] = c.Packets
		}
	}
}

// programmed notes the counters that began at zero.
func (t *tally) programmed(want, have Ruleset) {
	for i := range want {
		family := want[i].Family
		t.begun[family] = true
		old := have.table(family)
		for _, c := range want[i].Counters {
			if old == nil || !old.counts(c.Name) {
				t.last[counterKey{family, c.Name}] = 0
			}
		}
	}
}
