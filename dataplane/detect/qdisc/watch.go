package qdisc

// Congestion is what one look at a link's queueing disciplines found.
type Congestion struct {
	Marks uint64 // packets that they marked CE since the look before
	Depth uint32 // octets in the deepest of them
}

// watch decides from one look after another whether the link's queue is congested. It does no I/O.
type watch struct {
	backlog uint32 // so many octets are congestion; 0: marks alone are
	marks   map[key]uint32
}

// key names a discipline of a link: one of another kind in its place is another.
type key struct {
	kind           string
	handle, parent uint32
}

// step takes what all disciplines of the link count now. The first look at one gives no marks: who knows since when it
// counts.
func (w *watch) step(all []Stats) (c Congestion, congested bool) {
	now := make(map[key]uint32, len(all))
	for i := range all {
		s := &all[i]
		c.Depth = max(c.Depth, s.Backlog)
		if !s.CountsMarks {
			continue
		}
		k := key{s.Kind, s.Handle, s.Parent}
		now[k] = s.Marks
		// Half the range or more is a step back: it was replaced by one of the same kind and handle.
		if was, seen := w.marks[k]; seen && s.Marks-was < 1<<31 {
			c.Marks += uint64(s.Marks - was)
		}
	}
	w.marks = now
	return c, c.Marks > 0 || w.backlog > 0 && c.Depth >= w.backlog
}
