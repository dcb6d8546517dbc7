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
		o, err := MapObject(*m.to)
		if err != nil {
			continue // it is being closed
		}
		if t.dir != "" {
			o.Detail += ", pinned at " + m.path
		}
		out = append(out, o)
	}
	return out
}

// MapObject is a map.
func MapObject(m *ebpf.Map) (Object, error) {
	info, err := m.Info()
	if err != nil {
		return Object{}, err
	}
	unit := "entries"
	if info.Type == ebpf.RingBuf {
		unit = "octets"
	}
	id, _ := info.ID() // known since Linux 4.13
	return Object{Name: info.Name, Detail: fmt.Sprintf("id %d, %v, %d %s", id, info.Type, info.MaxEntries, unit)}, nil
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
