package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pncd/api"
	"pncd/bgp"
	"pncd/internal/config"
	"pncd/internal/telemetry"
)

// Enable implements api.Node: it opens everything that the mechanism needs, or nothing.
func (d *Daemon) Enable(context.Context) (bool, error) {
	d.control.Lock()
	defer d.control.Unlock()
	if d.stopping {
		return false, api.Stopping()
	}
	if d.enabled.Load() {
		return true, nil
	}
	if err := d.enable(); err != nil {
		return false, api.Precondition(api.ReasonCannotEnable, "the mechanism can't be enabled: %v", err)
	}
	return false, nil
}

func (d *Daemon) enable() error {
	cfg, p := d.config.Load(), d.parts.Load()
	if cfg.CongestionNode == nil && cfg.Proxy == nil {
		return errors.New("the configuration has neither a congestion_node nor a proxy section")
	}
	if err := checkHost(cfg, nil); err != nil {
		return err
	}
	p.decide(cfg)
	change, err := d.units.prepare(d.specs(cfg, p))
	if err != nil {
		return err
	}
	p.setEnabled(true)
	d.enabled.Store(true)
	change.commit()
	d.followReadiness() // before anything is announced
	if err := d.originate(true); err != nil {
		d.disable()
		return err
	}
	d.log.Info("the mechanism is enabled")
	return nil
}

// Disable implements api.Node: the capability is withdrawn before the sockets close, so that
// congestion nodes stop asking first.
func (d *Daemon) Disable(context.Context) (bool, error) {
	d.control.Lock()
	defer d.control.Unlock()
	if !d.enabled.Load() {
		return false, nil
	}
	d.disable()
	return true, nil
}

func (d *Daemon) disable() {
	if err := d.originate(false); err != nil {
		d.log.WithError(err).Error("withdrawing the capabilities failed; the sessions will try again")
	}
	d.parts.Load().setEnabled(false)
	d.enabled.Store(false)
	if change, err := d.units.prepare(nil); err == nil { // opens nothing, so it can't fail
		change.commit()
	}
	d.followReadiness()
	d.log.Info("the mechanism is disabled")
}

// originate switches what the speaker announces. The caller holds the control lock.
func (d *Daemon) originate(on bool) error {
	d.setMarking(on)
	if d.speaker != nil {
		return d.speaker.SetOriginating(on)
	}
	return nil
}

// needRestart lists the keys that are read only when pncd starts. (The speaker itself refuses a
// changed AS, router ID or port.)
var needRestart = []string{
	"node:", "log.format:", "api.", "telemetry.", "evidence.", "resolve.history:",
	"congestion_node.pace.flows:", "proxy.pace.qps:",
	"bgp.graceful_restart.enabled:", "bgp.graceful_restart.restart_time:", "bgp.graceful_restart.deferral_time:",
	"bgp.graceful_restart.state_file:", "bgp.gobgp_socket:",
}

// Reload implements api.Node. An error is logged too: a signal has nobody else to tell.
func (d *Daemon) Reload(context.Context) ([]string, error) {
	d.control.Lock()
	defer d.control.Unlock()
	if d.stopping {
		return nil, api.Stopping()
	}
	changes, err := d.reloadFile()
	if err != nil {
		d.log.WithError(err).Error("the changed configuration is refused; the running one stays")
		return nil, api.Invalid("configuration", "%v", err)
	}
	for _, c := range changes {
		d.log.WithField("change", c).Info("configuration")
	}
	d.warn(d.config.Load())
	d.log.WithField("changes", len(changes)).Info("the configuration file was read again")
	return changes, nil
}

func (d *Daemon) reloadFile() ([]string, error) {
	next, err := config.Load(d.path)
	if err != nil {
		return nil, err
	}
	old := d.config.Load()
	changes, err := config.Diff(old, next)
	if err != nil {
		return nil, err
	}
	return changes, d.reload(old, next, changes)
}

// reload applies next. Whatever can fail comes first: checks, opening what is new, the sessions. An
// error leaves everything as it was.
func (d *Daemon) reload(old, next *config.Config, changes []string) error {
	if err := checkRestart(old, next, changes); err != nil {
		return err
	}
	p, err := d.partsFor(next)
	if err != nil {
		return err
	}
	igps, err := d.igpChanges(next)
	if err != nil {
		return err
	}
	enable := d.enabled.Load()
	if old.Enabled != next.Enabled {
		enable = next.Enabled
	}
	if next.CongestionNode == nil && next.Proxy == nil {
		enable = false // switched on by hand, and no role is left to switch
	}
	var specs []unitSpec
	if enable {
		var before []need
		if d.enabled.Load() {
			before = hostNeeds(old)
		}
		if err := checkHost(next, before); err != nil {
			return err
		}
		p.decide(next)
		specs = d.specs(next, p)
	}
	units, err := d.units.prepare(specs)
	if err != nil {
		return err
	}
	undo, err := d.changeBoundary(old, next)
	if err != nil {
		units.abort()
		return err
	}
	d.gateBefore(next)
	if err := d.reconfigureBGP(next); err != nil {
		units.abort()
		undo()
		d.followReadiness() // by the old configuration
		return err
	}
	d.parts.Swap(p).replaced(p)
	effective, _ := d.withSources(next)
	if err := p.apply(effective, d.translation(effective).Contexts, d.now()); err != nil { // partsFor has checked it
		d.log.WithError(err).Error("applying settings failed")
	}
	d.table.Reconfigure(d.now(), tableSettings(next))
	d.table.SetStatic(d.now(), staticRoutes(next))
	d.routes.Follow(routeSources(next)...)
	d.tracker.SetAllowDefault(next.Resolve.ProxyViaDefaultRoute)
	if old.Log.Level != next.Log.Level {
		if _, err := telemetry.SetLevel(d.log, next.Log.Level); err != nil {
			d.log.WithError(err).Error("the log level was not changed") // the configuration's check holds it
		}
	}
	d.contexts.inForce(next)
	d.config.Store(next)
	d.appliedAt.Store(d.now().UnixNano())
	d.reconfigureIGPs(context.Background(), old, next, igps)
	d.switchTo(enable, p, units)
	return nil
}

// switchTo puts prepared units in force and the mechanism on or off, in the order of enable and disable.
func (d *Daemon) switchTo(enable bool, p *parts, units *change) {
	was := d.enabled.Load()
	if was && !enable {
		units.abort()
		d.disable()
		return
	}
	p.setEnabled(enable)
	d.enabled.Store(enable)
	units.commit()
	d.followReadiness()
	if enable && !was {
		if err := d.originate(true); err != nil {
			d.log.WithError(err).Error("announcing the capabilities failed; the sessions will try again")
		}
	}
}

func (d *Daemon) reconfigureBGP(next *config.Config) error {
	if d.speaker == nil {
		return nil
	}
	next, _ = d.withSources(next)
	settings, err := bgpSettings(next)
	if err != nil {
		return err
	}
	if settings, err = withOwn(settings); err != nil {
		return err
	}
	return d.speaker.Reconfigure(settings)
}

func checkRestart(old, next *config.Config, changes []string) error {
	var keys []string
	for _, c := range changes {
		for _, prefix := range needRestart {
			section := strings.HasPrefix(prefix, "congestion_node.") && (old.CongestionNode == nil || next.CongestionNode == nil) ||
				strings.HasPrefix(prefix, "proxy.") && (old.Proxy == nil || next.Proxy == nil)
			if strings.HasPrefix(c, prefix) && !section {
				keys = append(keys, c)
			}
		}
	}
	keys = append(keys, checkTap(old.Proxy, next.Proxy)...)
	if (old.BGP == nil) != (next.BGP == nil) {
		keys = append(keys, "bgp: added or removed as a whole")
	}
	keys = append(keys, checkISIS(old.ISIS, next.ISIS)...)
	keys = append(keys, checkOSPF("ospfv2", old.OSPFv2, next.OSPFv2)...)
	keys = append(keys, checkOSPF("ospfv3", old.OSPFv3, next.OSPFv3)...)
	keys = append(keys, checkOSPFAPI(old.OSPFAPI, next.OSPFAPI)...)
	if len(keys) > 0 {
		return fmt.Errorf("needs a restart of pncd: %s", strings.Join(keys, "; "))
	}
	return nil
}

// SetLogLevel implements api.Node.
func (d *Daemon) SetLogLevel(level string) (string, error) {
	previous, err := telemetry.SetLevel(d.log, level)
	if err != nil {
		return "", api.Invalid("level", "%v", err)
	}
	return previous, nil
}

// Config implements api.Node.
func (d *Daemon) Config(context.Context) (string, error) { return d.config.Load().Redacted() }

// Enabled implements api.Node.
func (d *Daemon) Enabled() bool { return d.enabled.Load() }

// bgpError gives the speaker's errors to a client of the API in its terms.
func bgpError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bgp.ErrDisabled):
		return api.Precondition(api.ReasonDisabled, "%v", err)
	case errors.Is(err, bgp.ErrNotRunning):
		return api.Precondition(api.ReasonNotRunning, "%v", err)
	case errors.Is(err, bgp.ErrConfigured):
		return api.Precondition(api.ReasonConfigured, "%v", err)
	case errors.Is(err, bgp.ErrNotAdvertised):
		return api.NotFound("%v", err)
	case errors.Is(err, bgp.ErrConfig):
		return api.Invalid("prefix", "%v", err)
	default:
		return err // not the request's fault
	}
}
