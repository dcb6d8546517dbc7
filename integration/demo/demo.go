package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sirupsen/logrus"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// Options of a demonstration.
type Options struct {
	Family   int    // 4 or 6
	PCAP     string // replay this capture; generated traffic when empty
	Swap     bool   // with PCAP: the other captured host plays the sender
	KeepLogs bool
	Patience time.Duration // longest wait for a step
	Pncd     string        // path of pncd; looked for when empty
	StateDir string        // of the lab; the default when empty
	Unique   bool          // a lab name of its own, to run beside another
	Out      io.Writer
	Log      logrus.FieldLogger
}

// demo is one run.
type demo struct {
	opt  Options
	plan bed.Plan
	bed  *bed.Bed
	say  *timeline
	seen *observer

	capture *labtraffic.Capture // of Options.PCAP
	pair    labtraffic.Pair     // in it
	closes  bool                // it has a DREQ
}

// Run runs the demonstration and takes everything down. It returns nil only when all was seen.
func Run(ctx context.Context, opt Options) (err error) {
	if opt.Patience <= 0 {
		opt.Patience = 20 * time.Second
	}
	d := &demo{opt: opt, plan: bed.PlanFor(opt.Family), say: newTimeline(opt.Out)}
	if opt.PCAP != "" { // before anything is built for it
		if d.capture, err = labtraffic.ReadCapture(opt.PCAP, opt.Swap); err != nil {
			return err
		}
		if d.pair, d.closes, err = d.capture.Pair(); err != nil {
			return fmt.Errorf("capture %s: %w", opt.PCAP, err)
		}
	}
	d.say.title("pncd: a congested router's event becomes the right CNP at the sender (IPv%d)", d.plan.Family)
	d.say.plain("  sender %v - proxy %v (FRR + pncd) - route reflector %v (FRR)", d.plan.Sender, d.plan.Proxy, d.plan.Reflector)
	d.say.plain("  - congestion node %v (pncd) - receiver %v", d.plan.Congestion, d.plan.Receiver)
	d.bed, err = bed.Up(ctx, bed.Options{
		Pncd: opt.Pncd, RemoveDir: !opt.KeepLogs, StateDir: opt.StateDir, Unique: opt.Unique, Log: opt.Log,
	})
	if err != nil {
		return d.interrupted(ctx, err)
	}
	defer func() {
		d.say.flush()
		dir := d.bed.Dir()
		err = errors.Join(err, d.bed.Down())
		if opt.KeepLogs {
			d.say.plain("logs: %s", dir)
		}
	}()
	if err := d.acts(ctx); err != nil {
		return d.interrupted(ctx, err)
	}
	return nil
}

// interrupted shortens what an interrupt makes of errors.
func (d *demo) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted; everything is taken down")
	}
	return err
}

func (d *demo) acts(ctx context.Context) error {
	version, err := d.bed.FRRVersion(ctx)
	if err != nil {
		return err
	}
	d.say.at(time.Now(), "lab is up: %d nodes, FRR %s on proxy router and reflector", len(d.bed.Topology.Nodes), version)
	if err := d.route(ctx); err != nil {
		return err
	}
	d.say.flush()
	// Everything that watches ends before the lab goes down.
	d.seen, err = observe(ctx, d.bed)
	if err != nil {
		return err
	}
	defer d.seen.stop()
	traffic, err := d.startTraffic(ctx)
	if err != nil {
		return err
	}
	err = d.actOne(ctx, traffic)
	if err == nil {
		err = d.closing(ctx, traffic)
	}
	if terr := traffic.stop(); err == nil {
		err = terr
	}
	if err != nil {
		return err
	}
	if err := d.actTwo(ctx); err != nil {
		return err
	}
	d.say.title("All of it was seen. Everything is taken down.")
	return nil
}

// route waits until the congestion node finds the proxy through BGP.
func (d *demo) route(ctx context.Context) error {
	var r *pncv1.ResolveResponse
	err := d.bed.Wait(ctx, d.opt.Patience, func(ctx context.Context) error {
		var err error
		r, err = d.bed.Congestion.Capabilities.Resolve(ctx, &pncv1.ResolveRequest{Sender: d.plan.Sender.String()})
		if err == nil && r.GetReason() != pncv1.ResolveReason_RESOLVE_REASON_FOUND {
			err = fmt.Errorf("%v: %s", r.GetReason(), r.GetExplanation())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the congestion node finds no proxy for %v: %w", d.plan.Sender, err)
	}
	route := r.GetRoute()
	d.say.at(route.GetChangedAt().AsTime(), "congestion node learned by BGP from %s: %s next hop %s, PNC proxy %s%s",
		route.GetPeer(), route.GetPrefix(), route.GetNextHop(), route.GetProxy(), flag(route.GetPartial(), ", Partial set by a router on the way"))
	switch {
	case route.GetSource() != pncv1.Source_SOURCE_BGP:
		return fmt.Errorf("the route's source is %v, not BGP", route.GetSource())
	case r.GetProxy() != d.plan.Proxy.String():
		return fmt.Errorf("the proxy found is %s, not %v", r.GetProxy(), d.plan.Proxy)
	case route.GetPeer() != d.plan.Reflector.String():
		return fmt.Errorf("the route came from %s, not through the route reflector %v", route.GetPeer(), d.plan.Reflector)
	}
	return nil
}

func flag(on bool, text string) string {
	if on {
		return text
	}
	return ""
}

// traffic is what runs between sender and receiver.
type traffic struct {
	pair  labtraffic.Pair // the truth
	held  bool            // ends with DREQ and DREP
	close func()
	stop  func() error
}

func (d *demo) startTraffic(ctx context.Context) (*traffic, error) {
	sender, receiver := d.bed.Host(bed.Sender, d.plan.Sender), d.bed.Host(bed.Receiver, d.plan.Receiver)
	var run func(context.Context) error
	t := &traffic{}
	if c := d.capture; c != nil {
		t.pair, t.held = d.pair, d.closes
		r, err := labtraffic.NewReplay(labtraffic.ReplayConfig{Capture: c, Local: sender, Peer: receiver, Loop: true, HoldClose: true})
		if err != nil {
			return nil, err
		}
		run, t.close = r.Run, r.Close
		d.say.at(time.Now(), "replaying %s: %v as the sender, %v as the receiver, in a loop", d.opt.PCAP, c.Local, c.Peer)
	} else {
		g, err := labtraffic.NewGenerator(labtraffic.GeneratorConfig{
			Local: sender, Peer: receiver, Rate: 500,
			Flows: labtraffic.FlowConfig{CM: true, LocalQPN: 0x0001A7, PeerQPN: 0x002C4E, Packets: 2, Seed: uint64(time.Now().UnixNano())},
		})
		if err != nil {
			return nil, err
		}
		t.pair, t.held = g.Pairs()[0], true
		run, t.close = g.Run, g.Close
		d.say.at(time.Now(), "traffic starts: connection management, then RDMA WRITE, 0x%x to 0x%x", t.pair.LocalQPN, t.pair.PeerQPN)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() { done <- run(ctx) }()
	t.stop = func() error {
		cancel()
		return <-done
	}
	return t, nil
}
