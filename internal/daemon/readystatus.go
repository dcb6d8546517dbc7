package daemon

import (
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/telemetry"
	"pncd/pnc"
	"pncd/proxyagent/readiness"
)

// The functions here show readiness: in the log, the history, the API and the metrics.

// tellReadiness logs a change and, unless all is announced always, keeps it in the history. The caller
// holds senders.mu.
func (d *Daemon) tellReadiness(now time.Time, c *readiness.Change, always bool) {
	log := d.log.WithFields(logrus.Fields{"prefix": c.Prefix.String(), "state": c.State.String()})
	if c.Context != "" {
		log = log.WithField("context", c.Context)
	}
	if why := failuresText(c.Failed); why != "" {
		log = log.WithField("lacks", why)
	}
	kind := pnc.EventUnknown
	switch {
	case c.State == readiness.Off || c.From == readiness.Off && always:
		return // the switch has its own line
	case always && c.Ready:
		log.Info("the proxy is ready for the prefix")
	case always:
		log.Warn("the proxy is not ready for the prefix, which is announced all the same (proxy.advertise: always)")
	case c.Withdrawn():
		log.Warn("the proxy is not ready for the prefix: its capability is withdrawn")
		kind = pnc.EventHeldBack
	case c.State == readiness.Losing:
		log.Warnf("the proxy is not ready for the prefix: its capability is withdrawn in %s unless that changes", left(now, c.Until))
	case c.State == readiness.Announced && c.From == readiness.Losing:
		log.Info("the proxy is ready for the prefix again, and its capability stays")
	case c.State == readiness.Announced:
		log.Info("the proxy is ready for the prefix: its capability is announced")
		kind = pnc.EventAnnounced
	case c.State == readiness.Suppressed:
		log.Warnf("the proxy is ready for the prefix, which came and went: its capability is held back for %s", left(now, c.Until))
		kind = pnc.EventHeldBack
	case c.State == readiness.Waiting:
		log.Infof("the proxy is ready for the prefix: its capability is announced in %s", left(now, c.Until))
	default:
		log.Info("the proxy is not ready for the prefix: its capability is held back")
		if c.From == readiness.Off {
			kind = pnc.EventHeldBack
		}
	}
	if kind != pnc.EventUnknown {
		d.table.Own(now, pnc.Event{
			Kind: kind, Detail: heldText(now, &c.Status),
			Route: pnc.Route{Context: c.Context, Prefix: c.Prefix, Source: pnc.SourceBGP, Proxy: d.senders.own[c.Key]},
		})
	}
}

func left(now, until time.Time) time.Duration { return until.Sub(now).Round(time.Second) }

// failuresText puts what is wrong in one line.
func failuresText(list []readiness.Failure) string {
	words := make([]string, len(list))
	for i, f := range list {
		words[i] = f.Reason.String()
		if f.Detail != "" {
			words[i] += ": " + f.Detail
		}
	}
	return strings.Join(words, "; ")
}

// heldText says why a prefix is held back; empty when it is not.
func heldText(now time.Time, st *readiness.Status) string {
	switch st.State {
	case readiness.Held:
		return "not ready: " + failuresText(st.Failed)
	case readiness.Waiting:
		return fmt.Sprintf("ready, and announced in %s", left(now, st.Until))
	case readiness.Suppressed:
		return fmt.Sprintf("damped for %s: penalty %.0f", left(now, st.Until), st.Penalty)
	}
	return ""
}

// heldBack corrects what the speaker says of an advertisement: it knows that it is held back, not why.
func (d *Daemon) heldBack(m *pncv1.Advertisement, k readiness.Key) *pncv1.Advertisement {
	rest, held := strings.CutPrefix(m.GetInactiveReason(), "not ready")
	if !held {
		return m
	}
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	if st, ok := d.senders.book.Get(k); ok {
		if why := heldText(d.now(), &st); why != "" {
			m.InactiveReason = why + rest
		}
	}
	return m
}

// senderStatus shows the readiness of every prefix. States and reasons have the numbers of the protobuf's,
// which a test holds.
func (d *Daemon) senderStatus() []*pncv1.SenderReadiness {
	s := d.senders
	s.mu.Lock()
	list := s.book.Status()
	s.mu.Unlock()
	out := make([]*pncv1.SenderReadiness, len(list))
	for i := range list {
		st := &list[i]
		out[i] = &pncv1.SenderReadiness{
			Context: st.Context, Prefix: st.Prefix.String(), State: pncv1.ReadinessState(st.State), Ready: st.Ready,
			Since: stamp(st.Since), Until: stamp(st.Until), Penalty: uint32(st.Penalty),
		}
		for _, f := range st.Failed {
			out[i].Failures = append(out[i].Failures, &pncv1.ReadinessFailure{Reason: pncv1.ReadinessReason(f.Reason), Detail: f.Detail})
		}
		if t, ok := d.traffic(st.Key); ok {
			out[i].SeenFrom, out[i].SeenTowards = stamp(t.From), stamp(t.Towards)
		}
	}
	return out
}

// exportedSenders shows it to the metrics' exporter.
func (d *Daemon) exportedSenders() (out []telemetry.Sender) {
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	for _, st := range d.senders.book.Status() {
		out = append(out, telemetry.Sender{
			Context: st.Context, Prefix: st.Prefix.String(), Ready: st.Ready, Announced: st.State.Announced(), State: st.State.String(),
		})
	}
	return out
}

func (d *Daemon) readinessCounts() []count {
	d.senders.mu.Lock()
	c := d.senders.book.Counters()
	d.senders.mu.Unlock()
	out := []count{
		{part: "readiness", name: "announced", value: c.Announced, help: "Times that the capability of a sender prefix was announced."},
		{part: "readiness", name: "suppressed", value: c.Suppressed, help: "Times that damping held back the capability of a sender prefix that was ready."},
	}
	for _, r := range readiness.Reasons() {
		label := [2]string{"reason", r.String()}
		out = append(out,
			count{"readiness", "lost", "Times that a sender prefix was no longer ready, by what it lacked first.", c.Lost[r], label},
			count{"readiness", "withdrawn", "Times that the capability of a sender prefix was withdrawn for want of readiness, by what it lacked first.", c.Withdrawn[r], label})
	}
	return out
}
