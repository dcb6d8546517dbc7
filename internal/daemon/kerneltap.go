package daemon

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
	"pncd/proxyagent/flowmap"
)

// kernelTap is the learner's unit where an eBPF program taps: it feeds what the program hands up to the Source-QP
// map, and tells the program what the map wants to be shown of each flow.
type kernelTap struct {
	feeder
	l      *learner
	key    string
	tap    *kernel.Tap
	pins   *kernel.Pins
	o      flowmap.Observation
	p      roce.Packet
	before flowmap.Progress
	due    []flowmap.Telling
	handed [8]atomic.Uint64 // packets that the map was shown, by transport

	live atomic.Uint64 // flows, when they were counted last

	// Guarded by the learner's lock.
	adopted  bool // what there was is taken over: before, a sweep would take it for what the map has forgotten
	sweptAt  time.Time
	attached map[*kernel.Attachment]struct{}
}

// toldAtOnce is how many tellings are asked of the map at once.
const toldAtOnce = 64

// sampleInterval is how often the program hands up a packet of a flow that needs no watching. That the flow lives, the map
// asks the program when it must know; this is for the rules that look at a sample.
const sampleInterval = 30 * time.Second

// openKernel loads the program; the taps attach it.
func (l *learner) openKernel(s tapSettings) (runner, error) {
	if s.err != nil {
		return nil, s.err
	}
	pins := l.pins.take(s.mode)
	t, err := kernel.Open(kernel.Config{
		Mode: s.mode, MaxFlows: s.flows, RingSize: ringOctets(s.ringMiB), Interval: sampleInterval, Tunnels: s.tunnels, Pins: pins,
	})
	if err != nil {
		l.pins.leave(pins)
		return nil, fmt.Errorf("%w (proxy.tap, tap_flows and tap_ring say what is needed)", err)
	}
	for _, v := range pins.Replaced() {
		l.log.WithField("version", v).Info("another version's program was attached, with maps of another layout or size; it was removed, and its pairs are learned anew")
	}
	k := &kernelTap{l: l, key: s.learnerKey(), tap: t, pins: pins, due: make([]flowmap.Telling, 0, toldAtOnce)}
	k.o.Packet, k.attached = &k.p, map[*kernel.Attachment]struct{}{}
	l.mu.Lock()
	l.kernels[k.key] = k
	l.mu.Unlock()
	return k, nil
}

// ringOctets is the size of the ring buffer: the kernel wants a power of two.
func ringOctets(mib int) int { return 1 << (20 + bits.Len(uint(mib-1))) }

// Begin implements beginner.
func (k *kernelTap) Begin() {
	k.l.flows.SetTap(k)
	k.l.take(&k.feeder)
}

// Run implements runner.
func (k *kernelTap) Run(ctx context.Context) error {
	if err := k.adopt(); err != nil {
		return err
	}
	k.l.mu.Lock()
	k.adopted = true
	k.l.mu.Unlock()
	return k.tap.Run(ctx, func(e *kernel.Event) {
		if k.l.feeds(&k.feeder, e.At) {
			k.observe(e)
		}
	}, k.tell)
}

// Close implements runner; what it has counted stays with the learner.
func (k *kernelTap) Close() error {
	k.l.mu.Lock()
	c, err := k.counters()
	c.live = 0 // its flows go with it
	k.l.past.add(&c)
	if k.l.kernels[k.key] == k {
		delete(k.l.kernels, k.key)
	}
	k.l.mu.Unlock()
	err = errors.Join(err, k.tap.Close())
	k.l.pins.leave(k.pins)
	return err
}

// adopt takes over what a process that was killed had learned, as far as the program has followed it since.
func (k *kernelTap) adopt() error {
	all, err := k.tap.Settle()
	yes, lostMADs := k.tap.TakenOver()
	if err != nil || !yes {
		return err
	}
	var entries []flowmap.Entry
	if err := k.tap.Pairs(func(id kernel.Key, p kernel.Pair) {
		f := flowOf(&id)
		entries = append(entries, flowmap.Entry{
			Key: f.Key, VLAN: f.VLAN, SrcPort: f.SrcPort, SourceQP: p.SourceQP, Source: flowmap.Source(p.Source), State: flowmap.StateConfirmed,
			PKey: p.PKey, Votes: p.Votes, LearnedAt: p.LearnedAt,
		})
	}); err != nil {
		return err
	}
	now := k.l.now()
	n := k.l.flows.Adopt(entries, func(yield func(flowmap.FlowID, flowmap.Progress) bool) {
		err = k.tap.Each(func(id kernel.Key, f kernel.Flow) bool {
			p := progressOf(&f.Progress)
			p.Transport = f.Transport
			return yield(flowOf(&id), p)
		})
	}, now)
	if err != nil {
		return err
	}
	if !all || lostMADs {
		k.l.missed() // what came by a new interface, or closed a connection, was not seen
		k.dropPairs()
	}
	k.sweep(now) // what was followed, and can't be adopted, is watched
	k.l.log.WithFields(logrus.Fields{"entries": n, "kept": len(entries)}).Info("took over what the program has followed since an earlier run")
	return nil
}

// dropPairs forgets what is kept for a next process.
func (k *kernelTap) dropPairs() {
	_ = k.tap.DropPairs() // of one that is closed nothing is kept
}

// observe shows the map one packet.
func (k *kernelTap) observe(e *kernel.Event) {
	p := &k.p
	if err := roce.AllTunnels.ParseThrough(e.Data, p); err != nil { // of them, the program hands up what is configured
		return // the program's parser takes what ours takes; a test of it holds that
	}
	if e.HasVLAN {
		p.VLAN = e.VLAN()
	}
	k.handed[p.BTH.Opcode.Transport()].Add(1)
	k.o.IfIndex, k.o.At, k.o.Before = e.IfIndex, e.At, nil
	if e.Reason != kernel.ReasonMAD {
		k.before = progressOf(&e.Before)
		k.before.Sight, k.before.Foreign = flowmap.Sight(e.State()), e.Reason == kernel.ReasonIdentity
		k.o.Before = &k.before
	}
	k.l.flows.Observe(&k.o)
	k.tell()
}

// tell tells the program what the map wants to be shown, as long as it is the one that feeds it: tellings are for that one.
func (k *kernelTap) tell() {
	if k.l.feeding.Load() != &k.feeder {
		return
	}
	for {
		k.due = k.l.flows.Due(k.due[:0], k.l.now())
		if len(k.due) == 0 {
			return
		}
		for i := range k.due {
			if err := k.tellOne(&k.due[i]); err != nil && !errors.Is(err, kernel.ErrNoFlow) {
				k.l.untold.Add(1)
			}
		}
	}
}

// tellOne sets what is shown of a flow. A flow is Followed only while what is kept of it is true: a next process
// believes that. Where that can't be had the flow stays as it is, and its next packet brings up what it wants again.
func (k *kernelTap) tellOne(d *flowmap.Telling) error {
	id := flowKey(&d.Flow)
	if d.Sight != flowmap.Followed {
		return errors.Join(k.tap.SetState(id, kernel.State(d.Sight)), k.tap.DropPair(id))
	}
	var err error
	switch e, _ := k.l.flows.Get(d.Flow.Key, k.l.now()); {
	case e.Known() && e.Source != flowmap.SourceDETH: // UD packets say it themselves
		err = k.tap.KeepPair(id, kernel.Pair{SourceQP: e.SourceQP, Votes: e.Votes, LearnedAt: e.LearnedAt, PKey: e.PKey, Source: uint8(e.Source)})
	default:
		err = k.tap.DropPair(id)
	}
	if err != nil {
		return err
	}
	return k.tap.SetState(id, kernel.Followed)
}

func flowKey(f *flowmap.FlowID) kernel.Key {
	return kernel.Key{Src: f.Sender, Dst: f.Receiver, DestQP: f.DestQP, SrcPort: f.SrcPort, VLAN: f.VLAN}
}

// Progress implements flowmap.Tap.
func (k *kernelTap) Progress(id flowmap.FlowID) (flowmap.Progress, bool) {
	f, err := k.tap.Lookup(flowKey(&id))
	if err != nil {
		return flowmap.Progress{}, false
	}
	return progressOf(&f.Progress), true
}

func progressOf(b *kernel.Progress) flowmap.Progress {
	return flowmap.Progress{
		Sight: flowmap.Sight(b.State), LastSeen: b.LastSeen, Skipped: b.Skipped, ReqHigh: b.ReqHigh, RespHigh: b.RespHigh, MSN: b.MSN,
		ReadLen: b.ReadLen, HasReq: b.HasReq, HasResp: b.HasResp, HasMSN: b.HasMSN,
	}
}

// programCounts are what the programs counted beyond single interfaces.
type programCounts struct {
	kernel.Counters
	unseen [8]uint64 // packets that the map was not shown, by transport
	live   uint64    // flows, when they were counted last
}

func (n *programCounts) add(o *programCounts) {
	n.Counters.Add(&o.Counters)
	for i := range n.unseen {
		n.unseen[i] += o.unseen[i]
	}
	n.live += o.live
}

// into adds what the map was not shown to what it has counted.
func (n *programCounts) into(c *flowmap.Counters) {
	for _, x := range n.unseen {
		c.Packets += x
	}
	c.CNP += n.unseen[roce.TransportCNP]
	c.UnsupportedDC += n.unseen[roce.TransportRD]
	c.UnsupportedXRC += n.unseen[roce.TransportXRC]
	c.UnsupportedVendor += n.unseen[roce.TransportVendor1] + n.unseen[roce.TransportVendor2]
	c.UnsupportedRoCEv1 += n.RoCEv1
}

// programCounts sums what all programs of this run have counted.
func (l *learner) programCounts() programCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.past
	for _, k := range l.kernels {
		if c, err := k.counters(); err == nil {
			sum.add(&c)
		}
	}
	return sum
}

// counters reads the program's counts.
func (k *kernelTap) counters() (programCounts, error) {
	c, err := k.tap.Counters()
	if err != nil {
		return programCounts{}, err
	}
	out := programCounts{Counters: c, live: k.live.Load()}
	for i := range c.Transport {
		if seen := k.handed[i].Load(); seen < c.Transport[i] {
			out.unseen[i] = c.Transport[i] - seen
		}
	}
	return out, nil
}

// sweeps in Config.AgeAfter of the map, so that what the program does not show ages by less than one of them too early.
const (
	sweepsPerAge = 10
	sweepMost    = 30 * time.Second
)

// sweep looks through the flows of each program now and then: it tells the map which live, counts them, and lets the
// program show again what the map has forgotten.
func (l *learner) sweep(age time.Duration) {
	every := min(max(age/sweepsPerAge, time.Second), sweepMost)
	now := l.now()
	l.mu.Lock()
	due := make([]*kernelTap, 0, len(l.kernels))
	for _, k := range l.kernels {
		if k.adopted && now.Sub(k.sweptAt) >= every {
			k.sweptAt = now
			due = append(due, k)
		}
	}
	l.mu.Unlock()
	for _, k := range due {
		k.sweep(now)
	}
}

func (k *kernelTap) sweep(now time.Time) {
	var live uint64
	err := k.tap.Each(func(id kernel.Key, f kernel.Flow) bool {
		live++
		flow := flowOf(&id)
		k.l.flows.Seen(flow, progressOf(&f.Progress))
		if f.State == kernel.Followed {
			if _, v := k.l.flows.Lookup(flow.Key, now); v == flowmap.Miss {
				_ = k.tap.SetState(id, kernel.Watched) // one that is gone needs nothing
			}
		}
		return true
	})
	if err == nil { // else it is being closed
		k.live.Store(live)
	}
}

func flowOf(k *kernel.Key) flowmap.FlowID {
	return flowmap.FlowID{Key: flowmap.Key{Sender: k.Src, Receiver: k.Dst, DestQP: k.DestQP}, VLAN: k.VLAN, SrcPort: k.SrcPort}
}

// programTap is the program on one interface.
type programTap struct {
	k        *kernelTap
	attached *kernel.Attachment
	closing  func()
}

func (l *learner) openProgramTap(iface string, s tapSettings, book *ringBook) (runner, error) {
	l.mu.Lock()
	k := l.kernels[s.learnerKey()]
	l.mu.Unlock()
	if k == nil {
		return nil, errors.New("the learner's program is not loaded")
	}
	a, err := k.tap.Attach(iface)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	k.attached[a] = struct{}{}
	l.mu.Unlock()
	closing := book.opened(iface, roleLearner, func() ringStats {
		c, downs, err := a.Counters()
		if err != nil {
			return ringStats{}
		}
		return ringStats{Packets: c.Packets, Shown: c.Told(), Drops: c.Lost, Downs: downs}
	})
	return &programTap{k, a, closing}, nil
}

// Run implements runner.
func (t *programTap) Run(ctx context.Context) error {
	err := t.attached.Run(ctx)
	if !errors.Is(err, kernel.ErrDetached) {
		return err
	}
	if t.k.l.replaced(t) {
		<-ctx.Done() // another attachment would take the place of its successor
		return nil
	}
	o, _ := t.attached.Object()
	t.k.l.detached(o.Name, t.attached.Interface())
	return err
}

// replaced says whether a program of another tap of ours is on the interface too: while a reload moves from one to the other, the
// new one's filter (clsact) takes the place of the old one's.
func (l *learner) replaced(t *programTap) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.kernels {
		for a := range k.attached {
			if k != t.k && a.IfIndex() == t.attached.IfIndex() {
				return true
			}
		}
	}
	return false
}

// Close implements runner.
func (t *programTap) Close() error {
	t.closing()
	t.k.l.mu.Lock()
	delete(t.k.attached, t.attached)
	t.k.l.mu.Unlock()
	return t.attached.Close()
}
