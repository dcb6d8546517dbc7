package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"pncd/dataplane/detect"
	"pncd/dataplane/detect/tcx"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
)

// detectPatience is how long an event may take before the benchmark fails.
const detectPatience = 5 * time.Second

// DetectEvent measures how long it takes from sending a CE-marked packet by a link until the event of the eBPF detector is
// handed over: its passage and the notifier's call lie between the two. Each packet is of a flow of its own, so
// that the gate holds none back, and the reader sleeps before each. Baseline: a datagram over loopback from sending until a process
// that waits for it has it. The packet ring is measured beside, which hands a block over after a millisecond. It needs root.
func DetectEvent() (results []Result, err error) {
	const turns = 1000
	a, err := taptest.New()
	if err != nil {
		return nil, fmt.Errorf("detect-event: %w", err)
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := taptest.New()
	if err != nil {
		return nil, fmt.Errorf("detect-event: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := taptest.Veth(a, "n0", b, "p0"); err != nil {
		return nil, fmt.Errorf("detect-event: %w", err)
	}
	in, err := taptest.NewInjector(a, "n0")
	if err != nil {
		return nil, fmt.Errorf("detect-event: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	frames := make([][]byte, turns)
	for i := range frames {
		ip, err := roce.AppendPacket(nil, &roce.PacketSpec{
			Src: netip.MustParseAddr("10.0.1.1"), Dst: netip.MustParseAddr("10.0.2.2"), TOS: 0x6B, SrcPort: 50000, IPID: 1,
			BTH: roce.BTH{Opcode: roce.Opcode(roce.OpWriteOnly), PKey: 0xFFFF, DestQP: uint32(i)}, Body: make([]byte, 1024),
		})
		if err != nil {
			return nil, err
		}
		frames[i] = taptest.Ethernet(ip)
	}
	program, ring, udp := &latencies{}, &latencies{}, &latencies{}
	for i, f := range []func() error{
		func() error { return program.by(a, in, frames, openProgram) },
		func() error { return udp.byUDP(turns) },
		func() error { return ring.by(a, in, frames[:turns/5], openRing) },
	} {
		if err := f(); err != nil {
			return nil, fmt.Errorf("detect-event: step %d: %w", i, err)
		}
	}
	return []Result{
		{Name: "detect-event-p50", Value: program.share(50), Unit: "us", Baseline: udp.share(50), Note: "from sending the packet; baseline: a UDP datagram over loopback to a waiting process"},
		{Name: "detect-event-p99", Value: program.share(99), Unit: "us", Baseline: udp.share(99), Note: "the same"},
		{Name: "detect-event-ring-p50", Value: ring.share(50), Unit: "us", Baseline: udp.share(50), Note: "the packet ring, detect.mode: ring"},
	}, nil
}

// eventSource is a detector of either kind.
type eventSource interface {
	Run(context.Context, func(detect.Event)) error
	Close() error
}

func openProgram() (eventSource, error) { return tcx.Open(tcx.Config{Interface: "n0", CE: true}) }

func openRing() (eventSource, error) { return detect.OpenCE(detect.Config{Interface: "n0"}) }

// latencies are times, in microseconds.
type latencies struct{ us []float64 }

func (l *latencies) add(d time.Duration) { l.us = append(l.us, float64(d.Nanoseconds())/1e3) }

// share is the time that so many percent don't exceed.
func (l *latencies) share(percent int) float64 {
	slices.Sort(l.us)
	return l.us[min(len(l.us)-1, len(l.us)*percent/100)]
}

// by sends the frames one by one past a detector.
func (l *latencies) by(ns *taptest.NS, in *taptest.Injector, frames [][]byte, open func() (eventSource, error)) (err error) {
	var d eventSource
	if err := ns.Do(func() (err error) { d, err = open(); return err }); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	handed, done := make(chan time.Time, len(frames)), make(chan error, 1)
	go func() { done <- d.Run(ctx, func(detect.Event) { handed <- time.Now() }) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-done, d.Close())
	}()
	for _, f := range frames {
		time.Sleep(time.Millisecond) // the reader sleeps, as it does between events
		begin := time.Now()
		if err := in.Send(f); err != nil {
			return err
		}
		select {
		case at := <-handed:
			l.add(at.Sub(begin))
		case <-time.After(detectPatience):
			return errors.New("no event")
		}
	}
	return nil
}

// byUDP sends datagrams one by one.
func (l *latencies) byUDP(turns int) (err error) {
	to, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	handed, done := make(chan time.Time, turns), make(chan struct{})
	go func() {
		defer close(done)
		var buf [64]byte
		for {
			if _, _, err := to.ReadFromUDPAddrPort(buf[:]); err != nil {
				return // closed
			}
			handed <- time.Now()
		}
	}()
	defer func() {
		err = errors.Join(err, to.Close())
		<-done
	}()
	from, err := net.DialUDP("udp4", nil, to.LocalAddr().(*net.UDPAddr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	for range turns {
		time.Sleep(time.Millisecond)
		begin := time.Now()
		if _, err := from.Write(make([]byte, 16)); err != nil {
			return err
		}
		select {
		case at := <-handed:
			l.add(at.Sub(begin))
		case <-time.After(detectPatience):
			return errors.New("a datagram was lost")
		}
	}
	return nil
}
