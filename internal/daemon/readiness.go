package daemon

import (
	"strings"

	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/config"
)

// followReadiness withdraws the capability while the proxy can't translate and announces it again
// afterwards, where the configuration asks for that. It runs once a second, which also keeps a part that
// fails again and again from shaking the routes faster.
func (d *Daemon) followReadiness() {
	if !d.control.TryLock() {
		return // the switch or the configuration is changing: look again afterwards
	}
	defer d.control.Unlock()
	if d.stopping || !d.enabled.Load() {
		return
	}
	failed := ""
	if p := d.config.Load().Proxy; p != nil && p.Advertise == config.AdvertiseWhenReady {
		failed = d.failedOfProxy()
	}
	on := failed == ""
	if on == d.originating.Load() {
		return
	}
	if err := d.originate(on); err != nil {
		d.log.WithError(err).Error("the capability does not follow readiness yet; trying again")
		return
	}
	if on {
		d.log.Info("the proxy is ready: its capabilities are announced again")
	} else {
		d.log.WithField("failed", failed).Warn("the proxy is not ready: its capabilities are withdrawn")
	}
}

// failedOfProxy names a part without which the proxy can't translate and that has failed.
func (d *Daemon) failedOfProxy() string {
	for _, u := range d.units.statuses() {
		if u.state == unitFailed && !strings.HasPrefix(u.name, roleDetector+":") {
			return u.name
		}
	}
	return ""
}

// heldBack corrects what the speaker says of an advertisement: to it, held back and disabled are the same.
func (d *Daemon) heldBack(m *pncv1.Advertisement) *pncv1.Advertisement {
	if rest, off := strings.CutPrefix(m.GetInactiveReason(), "disabled"); off && d.enabled.Load() && !d.originating.Load() {
		m.InactiveReason = "the proxy is not ready" + rest
	}
	return m
}
