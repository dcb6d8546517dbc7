package kernel

import (
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// Object is something of a tap in the kernel, for people.
type Object struct {
	Name   string // as bpftool and tc show it
	Detail string // its ids, where it is attached, and where it is pinned
}

// Objects lists the maps.
func (t *Tap) Objects() (out []Object) {
	for _, m := range t.pinned() {
		if *m.to == nil {
			continue
		}
		info, err := (*m.to).Info()
		if err != nil {
			continue // it is being closed
		}
		id, _ := info.ID()
		o := Object{Name: info.Name, Detail: fmt.Sprintf("id %d, %v, %d entries", id, info.Type, info.MaxEntries)}
		if info.Type == ebpf.RingBuf {
			o.Detail = fmt.Sprintf("id %d, %v, %d octets", id, info.Type, info.MaxEntries)
		}
		if t.dir != "" {
			o.Detail += ", pinned at " + m.path
		}
		out = append(out, o)
	}
	return out
}

// Object is the program on the interface.
func (a *Attachment) Object() (Object, error) {
	o := Object{Name: "learn_xdp"}
	if a.t.mode == TCX || a.t.mode == Clsact {
		o.Name = "learn_tcx"
	}
	switch h := a.hook.(type) {
	case *linkHook:
		info, err := h.Info()
		if err != nil {
			return o, fmt.Errorf("kernel tap: %s: link: %w", a.name, err)
		}
		o.Detail = fmt.Sprintf("id %d, %v of %s by link %d", info.Program, a.t.mode, a.name, info.ID)
		if a.t.dir != "" {
			o.Detail += ", pinned at " + filepath.Join(a.t.dir, linkPin(a.ifIndex, a.slot))
		}
	case *filterHook:
		o.Detail = fmt.Sprintf("id %d, %v ingress of %s by filter %s, handle %#x", h.progID, a.t.mode, a.name, filterName, h.filter.Handle)
	}
	return o, nil
}
