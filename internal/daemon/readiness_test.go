package daemon

import (
	"context"
	"errors"
	"testing"

	pncv1 "pncd/api/pnc/v1"
)

// withPart runs a part beside those of the configuration, so that a test can make it fail.
func (r *running) withPart(name string) *fakePart {
	p := newFakePart()
	spec := p.spec(name, name)
	r.control.Lock()
	defer r.control.Unlock()
	r.units.mu.Lock()
	defer r.units.mu.Unlock()
	r.units.units[name] = r.units.start(spec, p)
	return p
}

func (p *fakePart) breakDown(err error) {
	p.openErr.Store(&err)
	p.fail <- err
}

func TestCapabilityFollowsReadinessOnRequestOnly(t *testing.T) {
	gone := errors.New("interface is gone")
	for _, tc := range []struct {
		name, edit, part string
		withdrawn        bool
	}{
		{"on request", "taps: [lo]\n  advertise: when-ready", "tap:fake", true},
		{"not by default", "taps: [lo]", "tap:fake", false},
		{"a detector is not the proxy's", "taps: [lo]\n  advertise: when-ready", "detector:fake", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := start(t, template)
			if _, err := r.edit("taps: [lo]", tc.edit); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Enable(context.Background()); err != nil {
				t.Fatal(err)
			}
			part := r.withPart(tc.part)
			r.followReadiness()
			if !r.originating.Load() {
				t.Fatal("withdrawn while everything runs")
			}
			part.breakDown(gone)
			eventually(t, "the part has failed", func() bool {
				ready := true
				for _, u := range r.units.statuses() {
					ready = ready && (u.name != tc.part || u.state == unitRunning)
				}
				return !ready
			})
			eventually(t, "the clock looks", func() bool { r.followReadiness(); return r.originating.Load() != tc.withdrawn })
			m := r.heldBack(&pncv1.Advertisement{InactiveReason: "disabled; more"})
			if held := m.GetInactiveReason() == "the proxy is not ready; more"; held != tc.withdrawn {
				t.Errorf("the reason shown is %q", m.GetInactiveReason())
			}
			part.openErr.Store(nil)
			eventually(t, "it is announced again", func() bool { r.followReadiness(); return r.originating.Load() })
			if _, err := r.Disable(context.Background()); err != nil || r.originating.Load() {
				t.Errorf("disabled: originating %v, %v", r.originating.Load(), err)
			}
			r.followReadiness()
			if r.originating.Load() {
				t.Error("announced while disabled")
			}
		})
	}
}
