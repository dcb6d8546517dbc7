package daemon

import (
	"context"
	"fmt"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/config"
	"pncd/internal/version"
)

// Status implements api.Node.
func (d *Daemon) Status(context.Context) (*pncv1.GetStatusResponse, error) {
	cfg := d.config.Load()
	snapshot := d.table.Snapshot()
	_, capabilities := snapshot.Len()
	ready, reasons := d.Ready()
	out := &pncv1.GetStatusResponse{
		Node: d.node, Boot: d.boot, Version: version.Get().String(), StartedAt: stamp(d.started),
		Enabled: d.Enabled(), EnabledByConfig: cfg.Enabled, Starting: d.isStarting(),
		CongestionNode: cfg.CongestionNode != nil, Proxy: cfg.Proxy != nil,
		Ready: ready, NotReadyReasons: reasons, Parts: append(d.partList(), d.stationParts()...),
		CapabilityRoutes: uint64(capabilities), CapabilityVersion: snapshot.Version(),
		ConfigAppliedAt: stamp(time.Unix(0, d.appliedAt.Load())), ConfigPath: d.path, Objects: d.objects(),
	}
	if cfg.Proxy != nil {
		out.Advertise, out.Senders = cfg.Proxy.Advertise, d.senderStatus()
	}
	if flows := d.parts.Load().flows; flows != nil {
		known, total := flows.Len()
		out.FlowsKnown, out.FlowsTotal, out.FlowVersion = uint64(known), uint64(total), flows.Version()
	}
	return out, nil
}

// isStarting says whether the mechanism is off because pncd has not come to switching it on.
func (d *Daemon) isStarting() bool { return d.starting.Load() && !d.Enabled() }

// Ready says whether the node can do its part now, and if not, why.
func (d *Daemon) Ready() (bool, []string) {
	var reasons []string
	cfg := d.config.Load()
	switch {
	case cfg.CongestionNode == nil && cfg.Proxy == nil:
		reasons = append(reasons, "neither congestion_node nor proxy is configured")
	case d.isStarting():
		reasons = append(reasons, "pncd is starting")
	case !d.Enabled():
		reasons = append(reasons, "the mechanism is disabled")
	}
	for _, p := range d.partList() {
		if p.GetState() == pncv1.PartState_PART_STATE_FAILED || p.GetState() == pncv1.PartState_PART_STATE_STARTING {
			reasons = append(reasons, p.GetName()+": "+p.GetDetail())
		}
	}
	return len(reasons) == 0, reasons
}

// partList tells what each part is doing: the services, and the units that the configuration names.
func (d *Daemon) partList() []*pncv1.Part {
	cfg := d.config.Load()
	out := []*pncv1.Part{
		{Name: "api", State: pncv1.PartState_PART_STATE_READY, Detail: cfg.API.Listen},
		d.bgpPart(),
		d.isisPart(),
		d.boundaryPart(),
	}
	out = append(out, d.ospfParts()...)
	if d.ospfapi != nil {
		out = append(out, d.ospfapiStatus())
	}
	if cfg.Proxy != nil && cfg.Proxy.Translate == config.TranslateUser {
		out = append(out, &pncv1.Part{Name: "translate", State: pncv1.PartState_PART_STATE_READY, Detail: "user: as proxy.translate says"})
	}
	off := pncv1.Part{State: pncv1.PartState_PART_STATE_DISABLED, Detail: "the mechanism is disabled"}
	if d.isStarting() {
		off.State, off.Detail = pncv1.PartState_PART_STATE_STARTING, "pncd is starting"
	}
	running := d.units.byName()
	for _, spec := range d.specs(cfg, d.parts.Load()) {
		p := &pncv1.Part{Name: spec.name, State: off.GetState(), Detail: off.GetDetail()}
		if s, ok := running[spec.name]; ok {
			p.State, p.Detail = pncv1.PartState_PART_STATE_READY, ""
			if s.detail != nil {
				p.Detail = s.detail()
			}
			if spec.detail != nil {
				p.Detail = spec.detail()
			}
			err := s.err
			if s.state == unitRunning && spec.health != nil {
				err = spec.health()
			}
			if err != nil {
				p.State, p.Detail = pncv1.PartState_PART_STATE_FAILED, err.Error()
			}
		}
		out = append(out, p)
	}
	return out
}

func (d *Daemon) isisPart() *pncv1.Part {
	if d.isis == nil {
		return &pncv1.Part{Name: "isis", State: pncv1.PartState_PART_STATE_OFF, Detail: "not configured"}
	}
	return igpStatusPart("isis", "circuit", d.isis.summary)
}

func (d *Daemon) bgpPart() *pncv1.Part {
	p := &pncv1.Part{Name: "bgp", State: pncv1.PartState_PART_STATE_OFF, Detail: "not configured"}
	if d.speaker == nil {
		return p
	}
	up, all := d.speaker.Sessions()
	p.State, p.Detail = pncv1.PartState_PART_STATE_READY, fmt.Sprintf("%d of %d neighbours established", up, all)
	if up == 0 && all > 0 {
		p.State = pncv1.PartState_PART_STATE_STARTING
	}
	return p
}
