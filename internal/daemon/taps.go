package daemon

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
	"pncd/internal/config"
)

// tapChoice is how the learner's taps see traffic, and why.
type tapChoice struct {
	program bool        // an eBPF program; else packet rings
	mode    kernel.Mode // of the program
	why     string      // for an operator
	err     error       // what was asked for can't be had
}

var modeByName = map[string]kernel.Mode{config.TapTCX: kernel.TCX, config.TapClsact: kernel.Clsact, config.TapXDP: kernel.XDP}

// chooseTap says what a configured proxy.tap comes to on this kernel. All taps are of one kind: the order of what
// they see is known only so.
func chooseTap(want string, probe func() kernel.Support) tapChoice {
	switch want {
	case config.TapRing:
		return tapChoice{why: "proxy.tap asks for it"}
	case config.TapAuto:
		s := probe()
		mode, ok, why := s.Choose()
		return tapChoice{program: ok, mode: mode, why: why}
	}
	c := tapChoice{program: true, mode: modeByName[want], why: "proxy.tap asks for it"}
	if err := probe().Of(c.mode); err != nil {
		c.err = fmt.Errorf("%s can't be had: %w: choose auto or ring, or mend the cause", want, err)
	}
	return c
}

// checkTap lists changes for which a second program would have to stand beside the first: an interface has room for
// one XDP program.
func checkTap(old, next *config.Proxy) (keys []string) {
	if old == nil || next == nil || old.Tap != config.TapXDP || next.Tap != config.TapXDP {
		return nil
	}
	if old.TapRing != next.TapRing {
		keys = append(keys, fmt.Sprintf("proxy.tap_ring: %d -> %d with xdp", old.TapRing, next.TapRing))
	}
	if old.TapFlows != next.TapFlows {
		keys = append(keys, fmt.Sprintf("proxy.tap_flows: %d -> %d with xdp", old.TapFlows, next.TapFlows))
	}
	if old, next := tunnelsOf(old), tunnelsOf(next); old != next {
		keys = append(keys, fmt.Sprintf("proxy.tap_tunnels: %s -> %s with xdp", old, next))
	}
	return keys
}

// tunnelsOf are the outer headers that the taps look behind.
func tunnelsOf(p *config.Proxy) (out roce.Tunnels) {
	for _, name := range p.TapTunnels {
		t, _ := roce.ParseTunnel(name) // the configuration was checked
		out |= t
	}
	return out
}

// String names the kind, and why it is.
func (c tapChoice) String() string { return c.kind() + ": " + c.why }

func (c tapChoice) kind() string {
	if c.program {
		return c.mode.String()
	}
	return config.TapRing
}

// tapSettings are what a learner's unit needs anew when they change.
type tapSettings struct {
	tapChoice
	ringMiB, flows int
	tunnels        roce.Tunnels
}

func (d *Daemon) tapSettings(p *config.Proxy, l *learner) tapSettings {
	return tapSettings{l.choice(p.Tap), p.TapRing, p.TapFlows, tunnelsOf(p)}
}

// learnerKey is the key of the learner's own unit: one that reads rings needs nothing anew, whatever their size.
func (s *tapSettings) learnerKey() string {
	if !s.program {
		return "learner"
	}
	return fmt.Sprintf("learner:%v:%d:%d:%s", s.mode, s.ringMiB, s.flows, s.tunnels)
}

func (s *tapSettings) tapKey(iface string) string {
	if !s.program {
		return fmt.Sprintf("tap:%s:%d:%s", iface, s.ringMiB, s.tunnels)
	}
	return "tap:" + iface + ":" + s.learnerKey()
}

// detail tells an operator how a tap sees traffic, why, and behind which outer headers.
func (s *tapSettings) detail() string {
	if s.tunnels == 0 {
		return s.String()
	}
	return s.String() + ", behind " + strings.ReplaceAll(s.tunnels.String(), ",", ", ")
}

// ringsRead is what a learner does with packet rings.
const ringsRead = "reads the taps' packet rings"

// detail tells an operator where the program keeps what it knows.
func (l *learner) detail(s *tapSettings) func() string {
	if !s.program {
		return func() string { return ringsRead }
	}
	return l.pins.String
}

// objects lists what the learner has in the kernel.
func (l *learner) objects() (out []*pncv1.HostObject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(l.kernels)) {
		k := l.kernels[key]
		for _, o := range k.tap.Objects() {
			out = append(out, &pncv1.HostObject{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_BPF_MAP, Name: o.Name, Detail: o.Detail})
		}
		for _, a := range slices.SortedFunc(maps.Keys(k.attached), func(a, b *kernel.Attachment) int { return a.IfIndex() - b.IfIndex() }) {
			o := &pncv1.HostObject{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_BPF_PROGRAM}
			object, err := a.Object()
			if err == nil {
				err = a.Check()
			}
			if o.Name, o.Detail = object.Name, object.Detail; err != nil {
				o.Error = err.Error()
			}
			out = append(out, o)
		}
	}
	return out
}
