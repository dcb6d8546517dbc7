package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/detect"
	"pncd/dataplane/detect/tcx"
	"pncd/dataplane/host"
	tapkernel "pncd/dataplane/tap/kernel"
	"pncd/internal/config"
	"pncd/proxyagent/notifier"
)

// eventSource finds congested flows behind one link, by packet ring or eBPF.
type eventSource interface {
	Run(context.Context, func(detect.Event)) error
	Close() error
}

// detector hands the congestion events of one link to the notifier.
type detector struct {
	detectorSettings
	probe   func() tapkernel.Support
	choice  atomic.Pointer[detectorChoice] // how it sees congestion, and why so
	source  eventSource
	sources map[string]string // what an event's source is in a record
	objects []*pncv1.HostObject
	handle  func(*notifier.Event, time.Time)
	now     func() time.Time
	closing func()
}

// detectorSettings are what a detector needs anew when they change.
type detectorSettings struct {
	context string // that the link carries; empty: the default one
	iface   string
	// namespace is the network namespace that the link is in; empty: ours
	namespace string
	ce        bool // watch for packets that come marked
	mode      string
	gate      time.Duration
	flows     int
	queue     config.VirtualQueue // without an interface: there is none
}

// detectorsOf lists the detectors of a configuration.
func detectorsOf(c *config.Config) (out []detectorSettings) {
	n := c.CongestionNode
	for _, l := range c.DetectorLinks() {
		s := detectorSettings{
			context: l.Context, iface: l.Interface, namespace: l.Namespace, ce: l.CE,
			mode: n.Detect.Mode, gate: n.Detect.Gate.Duration, flows: n.Detect.Flows,
		}
		if l.Queue != nil {
			s.queue = *l.Queue
		}
		out = append(out, s)
	}
	return out
}

// key names the settings that matter: a packet ring has no gate.
func (s *detectorSettings) key() string {
	key := "detector:" + s.link()
	if s.ce {
		key += ":" + s.mode
	}
	if s.mode != config.DetectRing || s.hasQueue() {
		key += fmt.Sprintf(":%v:%d", s.gate, s.flows)
	}
	if s.hasQueue() {
		key += ":" + s.queue.String()
	}
	if s.namespace != "" {
		key += "@" + s.namespace
	}
	return key
}

// from is the key of the configuration that asks for it.
func (s *detectorSettings) from() string {
	switch {
	case s.context != "":
		return "congestion_node.contexts"
	case s.ce:
		return "congestion_node.interfaces"
	}
	return "congestion_node.detect.virtual_queues"
}

// link names the link and the context that it carries.
func (s *detectorSettings) link() string { return inContext(s.context, s.iface) }

func (s *detectorSettings) hasQueue() bool { return s.queue.Interface != "" }

// program is the configuration of the eBPF program.
func (s *detectorSettings) program() tcx.Config {
	c := tcx.Config{Interface: s.iface, CE: s.ce, Gate: s.gate, Flows: s.flows}
	if c.Gate == 0 {
		c.Gate = -1 // each packet
	}
	if s.hasQueue() {
		c.Queue = &tcx.Queue{
			Rate: uint64(s.queue.RateMbit) * 1e6, Kmin: uint32(s.queue.Kmin), Kmax: uint32(s.queue.Kmax), Pmax: float64(s.queue.Pmax) / 100,
		}
	}
	return c
}

// detectorChoice is how a link is watched, and why.
type detectorChoice struct {
	program bool // else a packet ring
	why     string
}

// String names the way, and why it is.
func (c detectorChoice) String() string {
	if c.program {
		return config.DetectTCX + ": " + c.why
	}
	return config.DetectRing + ": " + c.why
}

// choose says how a link is watched; probe is asked only where it matters. marks is the queueing discipline of the link that may mark packets behind the program; empty for none.
func (s *detectorSettings) choose(probe func() tapkernel.Support, marks string) detectorChoice {
	unseen := ""
	if marks != "" {
		unseen = fmt.Sprintf("; what its queueing discipline %s marks, behind the program, is not seen", marks)
	}
	switch {
	case s.hasQueue():
		return detectorChoice{true, "a virtual queue needs it" + unseen}
	case s.mode == config.DetectTCX:
		return detectorChoice{true, "congestion_node.detect.mode asks for it" + unseen}
	case s.mode == config.DetectRing:
		return detectorChoice{false, "congestion_node.detect.mode asks for it"}
	}
	support := probe()
	switch {
	case support.TCX != nil:
		return detectorChoice{false, support.TCX.Error()}
	case marks != "":
		return detectorChoice{false, fmt.Sprintf("its queueing discipline %s may mark packets, behind TCX", marks)}
	}
	return detectorChoice{true, "Linux " + support.Kernel + " has it"}
}

func openDetector(s detectorSettings, probe func() tapkernel.Support, n *notifier.Notifier, now func() time.Time, book *ringBook) (runner, error) {
	marks, err := host.MarkingQdisc("", s.iface)
	if err != nil {
		marks = "" // opening it says what is wrong with the interface
	}
	d := &detector{
		detectorSettings: s, probe: probe, now: now, sources: recordSources(s.link()),
		handle: func(ev *notifier.Event, now time.Time) { n.Handle(ev, now) },
	}
	choice := s.choose(probe, marks)
	d.choice.Store(&choice)
	var read func() ringStats
	if choice.program {
		t, err := tcx.Open(s.program())
		if err != nil {
			return nil, fmt.Errorf("%w (congestion_node.detect says what is needed)", err)
		}
		d.source, read = t, func() ringStats { return programStats(t) }
		d.objects = detectorObjects(t, s.namespace)
	} else {
		ce, err := detect.OpenCE(detect.Config{Interface: s.iface})
		if err != nil {
			return nil, err
		}
		d.source, read = ce, func() ringStats { return ceStats(ce) }
	}
	d.closing = book.opened(s.link(), roleDetector, read)
	return d, nil
}

// errQdiscChanged: the link is to be watched another way.
var errQdiscChanged = errors.New("the queueing discipline that may mark packets has changed")

// rechoose chooses again with the queueing discipline that may mark now. The error says that a detector of the other
// kind has to take over; where it is the same, it says what it does not see by now.
func (d *detector) rechoose(marks string) error {
	now := d.choose(d.probe, marks)
	if now.program != d.choice.Load().program {
		return fmt.Errorf("%w: %s", errQdiscChanged, now)
	}
	d.choice.Store(&now)
	return nil
}

// qdiscInterval is how often the queueing disciplines of a watched link are looked at.
const qdiscInterval = 2 * time.Second

// ceStats are the counts of a packet ring.
func ceStats(ce *detect.CE) ringStats {
	s := ce.Stats()
	return ringStats{
		Packets: s.Events + s.Ignored + s.Malformed, Drops: s.Drops, Freezes: s.Freezes, Downs: s.Downs,
		Ignored: s.Ignored, Malformed: s.Malformed, Events: s.Events,
	}
}

// programStats are the counts of an eBPF program.
func programStats(t *tcx.Detector) ringStats {
	c, _ := t.Counters() // with an error they are those of before
	return ringStats{
		Packets: c.CE.Packets() + c.Ignored + c.Refused + c.Queue.Packets(), Drops: c.CE.Lost + c.Queue.Lost,
		Ignored: c.Ignored, Malformed: c.Refused, Events: c.CE.Events, QueueEvents: c.Queue.Events,
		Gated: c.CE.Gated + c.Queue.Gated, GateFull: c.CE.GateFull + c.Queue.GateFull, GateForgotten: c.Forgotten, Marked: c.Queue.Packets(), MarkFailed: c.MarkFailed,
	}
}

// Run implements runner.
func (d *detector) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		d.watchQdisc(ctx, cancel)
	}()
	var ev notifier.Event
	err := d.source.Run(ctx, func(e detect.Event) { d.tell(&ev, &e) })
	if cause := context.Cause(ctx); err == nil && errors.Is(cause, errQdiscChanged) {
		err = cause
	}
	cancel(nil)
	<-watched
	return err
}

// tell hands an event to the notifier by way of ev. It does not allocate.
func (d *detector) tell(ev *notifier.Event, e *detect.Event) {
	*ev = notifier.Event{
		Context: d.context, Sender: e.Sender, Receiver: e.Receiver, SrcPort: e.SrcPort, DstPort: e.DstPort, Proto: e.Proto,
		DestQP: e.DestQP, CECount: e.CECount, QueueDepth: e.QueueDepth, Source: d.sources[e.Source], At: e.At,
	}
	d.handle(ev, d.now())
}

// recordSources names the sources of a link as records do.
func recordSources(link string) map[string]string {
	out := map[string]string{}
	for _, s := range []string{detect.SourceCE, detect.SourceVirtualQueue} {
		out[s] = s + " " + link
	}
	return out
}

// watchQdisc ends the detector when another way to watch the link is right.
func (d *detector) watchQdisc(ctx context.Context, end context.CancelCauseFunc) {
	for pause(ctx, qdiscInterval) {
		marks, err := host.MarkingQdisc(d.namespace, d.iface)
		if err != nil {
			continue // a link that is gone ends the source itself
		}
		if err := d.rechoose(marks); err != nil {
			end(err)
			return
		}
	}
}

// detectorObjects lists the program of a link; its maps go with it.
func detectorObjects(t *tcx.Detector, namespace string) []*pncv1.HostObject {
	o := &pncv1.HostObject{
		Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_BPF_PROGRAM, Name: tcx.ProgramName, Namespace: namespace, Detail: "TCX egress of " + t.Interface(),
	}
	if prog, link, err := t.IDs(); err != nil {
		o.Error = err.Error()
	} else {
		o.Detail += fmt.Sprintf(", program %d, link %d", prog, link)
	}
	return []*pncv1.HostObject{o}
}

// Objects implements owner.
func (d *detector) Objects() []*pncv1.HostObject { return d.objects }

// Detail implements detailer.
func (d *detector) Detail() string { return d.choice.Load().String() }

// Close implements runner.
func (d *detector) Close() error {
	err := d.source.Close() // its counts stay
	d.closing()
	return err
}
