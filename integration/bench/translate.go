package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"pncd/dataplane/emit"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
	"pncd/proxyagent/notifier"
	"pncd/proxyagent/translator"
)

const (
	translateFlows = 4096 // connections; so many that none is paced
	translatePort  = message.PortFormat1
)

var (
	translateNode  = netip.MustParseAddr("203.0.113.1") // the congestion node; on no interface, so what goes there is dropped unanswered
	translateNear  = netip.MustParseAddr("10.9.0.1")
	translateProxy = netip.MustParseAddr("10.9.0.2")
)

// TranslateUser measures translation from socket to wire: notifications come in over a veth pair and their
// CNPs leave by it, with a Source-QP map that learned 4,096 connections by CM, and a record of each. The
// unit is notifications a second and core: those translated, per second of CPU time that the process
// used beside the thread that sends the notifications. Baseline: a UDP echo by the same socket code, the
// sides taking turns; each value is the median of the turns. A third side sends by the packet socket
// (proxy.emit: packet). It needs root.
func TranslateUser() ([]Result, error) {
	const turns, turn = 7, 700 * time.Millisecond
	w, err := newTranslateWire()
	if err != nil {
		return nil, fmt.Errorf("translate-user: %w", err)
	}
	defer w.close()

	var translate, packet, echo, wall []float64
	var last translateTurn
	for i := range turns + 1 {
		e, err := w.run(turn, w.echo)
		if err != nil {
			return nil, fmt.Errorf("translate-user: echo: %w", err)
		}
		t, err := w.run(turn, w.translate)
		if err != nil {
			return nil, fmt.Errorf("translate-user: %w", err)
		}
		p, err := w.run(turn, w.translateByFrames)
		if err != nil {
			return nil, fmt.Errorf("translate-user: packet: %w", err)
		}
		if i == 0 {
			continue // to warm up
		}
		packet = append(packet, p.perCore())
		echo = append(echo, e.perCore())
		translate = append(translate, t.perCore())
		wall = append(wall, float64(t.answered)/t.took.Seconds())
		last = t
	}
	note := fmt.Sprintf("IPv4, %d connections, on the clock %.0f/s while another thread sends; in the last turn %d of %d answered, the rest for want of queue",
		translateFlows, median(wall), last.answered, last.sent)
	return []Result{{
		Name: "translate-user", Value: median(translate), Unit: "notifications/s/core", Baseline: median(echo),
		Allocs: float64(last.mallocs) / float64(last.answered), Note: note,
	}, {
		Name: "translate-user-packet", Value: median(packet), Unit: "notifications/s/core", Baseline: median(translate),
		Note: "the same with proxy.emit: packet; baseline: raw",
	}}, nil
}

// translateWire is a congestion node and a proxy, two namespaces and a veth pair.
type translateWire struct {
	node, proxy *taptest.NS
	source      *emit.Sender // in the node
	sender      *emit.Sender // in the proxy
	frames      *emit.FrameSender
	packets     [][]byte // notifications
	flows       *flowmap.Map
}

func newTranslateWire() (w *translateWire, err error) {
	w = &translateWire{flows: flowmap.New(flowmap.Config{})}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	for _, step := range []func() error{
		func() (err error) { w.node, err = taptest.New(); return },
		func() (err error) { w.proxy, err = taptest.New(); return },
		func() error { return taptest.Veth(w.node, "n0", w.proxy, "p0") },
		func() error { return w.node.Addr("n0", netip.PrefixFrom(translateNear, 24)) },
		func() error { return w.proxy.Addr("p0", netip.PrefixFrom(translateProxy, 24)) },
		func() error { return neighbors(w.node, "n0", translateNear, w.proxy, "p0", translateProxy) },
		func() error { return w.proxy.Route(netip.MustParsePrefix("0.0.0.0/0"), "p0", translateNear) },
		func() error {
			return w.node.Do(func() (err error) { w.source, err = emit.Open(emit.Config{}); return })
		},
		func() error {
			return w.proxy.Do(func() (err error) { w.sender, err = emit.Open(emit.Config{}); return })
		},
		func() (err error) { w.frames, err = openFrames(w.proxy, "p0", w.node, "n0"); return },
		w.learn,
		w.build,
	} {
		if err := step(); err != nil {
			return w, err
		}
	}
	return w, nil
}

func neighbors(a *taptest.NS, nameA string, addrA netip.Addr, b *taptest.NS, nameB string, addrB netip.Addr) error {
	macA, err := a.MAC(nameA)
	if err != nil {
		return err
	}
	macB, err := b.MAC(nameB)
	if err != nil {
		return err
	}
	return errors.Join(a.Neighbor(nameA, addrB, macB), b.Neighbor(nameB, addrA, macA))
}

func (w *translateWire) close() {
	for _, s := range []*emit.Sender{w.source, w.sender} {
		if s != nil {
			_ = s.Close()
		}
	}
	if w.frames != nil {
		_ = w.frames.Close()
	}
	for _, n := range []*taptest.NS{w.node, w.proxy} {
		if n != nil {
			_ = n.Close()
		}
	}
}

// translateFlow is connection i: its ends, the QP at the receiver and the one at the sender.
func translateFlow(i int) (sender, receiver netip.Addr, destQP, sourceQP uint32) {
	host := byte(i % 64)
	return netip.AddrFrom4([4]byte{198, 51, 100, host}), netip.AddrFrom4([4]byte{192, 0, 2, host}),
		uint32(0x100 + i), uint32(0x10000 + i)
}

// learn shows the map the CM exchange of each connection.
func (w *translateWire) learn() error {
	now := time.Now()
	show := func(from, to netip.Addr, cm roce.CM) error {
		mad := roce.MAD{
			BaseVersion: 1, Class: 7, ClassVersion: 2, Method: 3, TransactionID: cm.TransactionID, AttrID: uint16(cm.Kind),
			DETH: roce.DETH{QKey: roce.GSIQKey, SrcQP: roce.QP1}, CM: cm,
		}
		body, err := mad.Append(nil)
		if err != nil {
			return err
		}
		w.flows.Observe(&flowmap.Observation{At: now, Packet: &roce.Packet{
			Src: from, Dst: to, TTL: 64, SrcPort: 50000, Body: body,
			BTH: roce.BTH{Opcode: roce.OpcodeUDSendOnly, PKey: roce.DefaultPKey, DestQP: roce.QP1},
		}})
		return nil
	}
	for i := range translateFlows {
		sender, receiver, destQP, sourceQP := translateFlow(i)
		id, peer := uint32(i+1), uint32(i+1+translateFlows)
		req := roce.CM{Kind: roce.CMREQ, TransactionID: uint64(id), LocalCommID: id, LocalQPN: sourceQP, PKey: roce.DefaultPKey,
			PathMTU: 3, LocalGID: sender.As16(), RemoteGID: receiver.As16()}
		rep := roce.CM{Kind: roce.CMREP, TransactionID: uint64(id), LocalCommID: peer, RemoteCommID: id, LocalQPN: destQP}
		rtu := roce.CM{Kind: roce.CMRTU, TransactionID: uint64(id), LocalCommID: id, RemoteCommID: peer}
		if err := errors.Join(show(sender, receiver, req), show(receiver, sender, rep), show(sender, receiver, rtu)); err != nil {
			return err
		}
	}
	if known, _ := w.flows.Len(); known < translateFlows {
		return fmt.Errorf("%d of %d connections learned", known, translateFlows)
	}
	return nil
}

// packetKeeper is a Sender that keeps the packets.
type packetKeeper struct{ packets [][]byte }

func (k *packetKeeper) Send(packets [][]byte) (int, error) {
	for _, p := range packets {
		k.packets = append(k.packets, append([]byte(nil), p...))
	}
	return len(packets), nil
}

// build lets the notifier build a notification for each connection.
func (w *translateWire) build() error {
	rec, err := evidence.NewRecorder(evidence.Config{Capacity: 1})
	if err != nil {
		return err
	}
	var keep packetKeeper
	n, err := notifier.New(notifier.Config{SourceIPv4: translateNode, Port: translatePort, TotalBurst: translateFlows}, notifier.Deps{
		Resolver: notifier.ResolverFunc(func(string, netip.Addr, uint64) pnc.Resolution {
			return pnc.Resolution{Reason: pnc.ReasonFound, Proxy: translateProxy}
		}),
		Sender: &keep, Recorder: rec, Random: func() uint64 { return 0 },
	})
	if err != nil {
		return err
	}
	n.SetEnabled(true)
	now := time.Now()
	for i := range translateFlows {
		sender, receiver, destQP, _ := translateFlow(i)
		n.Handle(&notifier.Event{Sender: sender, Receiver: receiver, SrcPort: 50000, DstPort: roce.UDPPort, Proto: 17, DestQP: destQP}, now)
	}
	if len(keep.packets) != translateFlows {
		return fmt.Errorf("%d of %d notifications built", len(keep.packets), translateFlows)
	}
	w.packets = keep.packets
	return nil
}

// translateTurn is what one turn did.
type translateTurn struct {
	sent, answered uint64
	took           time.Duration
	cpu            time.Duration // of the process without the sending thread
	mallocs        uint64
}

func (t *translateTurn) perCore() float64 { return float64(t.answered) / t.cpu.Seconds() }

// answerer makes a handler of datagrams, and tells how many it has answered on the wire.
type answerer func() (h translator.Handler, answered func() uint64, err error)

// run sends for d to a handler behind a Listener.
func (w *translateWire) run(d time.Duration, answer answerer) (t translateTurn, err error) {
	answered, stop, err := w.serve(answer)
	if err != nil {
		return t, err
	}
	mallocs := mallocCount()
	before := cpuTime(unix.RUSAGE_SELF)
	start := time.Now()
	sending := onOwnThread(w.flood, d)
	t.took = time.Since(start)
	t.answered = answered()
	t.cpu = cpuTime(unix.RUSAGE_SELF) - before - sending.cpu
	t.mallocs = mallocCount() - mallocs
	t.sent = sending.sent

	err = errors.Join(sending.err, stop())
	if err == nil && t.answered == 0 {
		err = errors.New("nothing was answered")
	}
	return t, err
}

// serve runs a handler behind a Listener until stop is called.
func (w *translateWire) serve(answer answerer) (answered func() uint64, stop func() error, err error) {
	h, answered, err := answer()
	if err != nil {
		return nil, nil, err
	}
	var l *translator.Listener
	err = w.proxy.Do(func() (err error) {
		l, err = translator.Listen(translator.ListenConfig{Address: netip.AddrPortFrom(netip.IPv4Unspecified(), translatePort)})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var tasks errgroup.Group
	tasks.Go(func() error { return translator.Serve(ctx, h, l) })
	return answered, func() error {
		cancel()
		return errors.Join(tasks.Wait(), l.Close())
	}, nil
}

type flooding struct {
	sent uint64
	cpu  time.Duration
	err  error
}

// onOwnThread runs fn on a thread of its own, so that its CPU time can be told apart, and waits for it.
func onOwnThread(fn func(time.Duration) (uint64, error), d time.Duration) flooding {
	done := make(chan flooding)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		before := cpuTime(unix.RUSAGE_THREAD)
		sent, err := fn(d)
		done <- flooding{sent, cpuTime(unix.RUSAGE_THREAD) - before, err}
	}()
	return <-done
}

// flood sends notifications as fast as it can.
func (w *translateWire) flood(d time.Duration) (sent uint64, err error) {
	const batch = 64
	for start, i := time.Now(), 0; time.Since(start) < d; i = (i + batch) % len(w.packets) {
		n, err := w.source.Send(w.packets[i : i+batch])
		sent += uint64(n)
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func cpuTime(who int) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// translate answers notifications as the daemon does, by its defaults.
func (w *translateWire) translate() (translator.Handler, func() uint64, error) {
	return w.translateBy(w.sender)
}

// translateByFrames does so with proxy.emit: packet.
func (w *translateWire) translateByFrames() (translator.Handler, func() uint64, error) {
	return w.translateBy(w.frames)
}

func (w *translateWire) translateBy(sender translator.Sender) (translator.Handler, func() uint64, error) {
	rec, err := evidence.NewRecorder(evidence.Config{})
	if err != nil {
		return nil, nil, err
	}
	t, err := translator.New(translator.Config{
		AcceptFrom:     []netip.Prefix{netip.PrefixFrom(translateNode, 24).Masked()},
		ServedPrefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
		MinTTL:         255, TotalPerSecond: 1e9, TotalBurst: 1e6,
	}, translator.Deps{
		FlowMap: w.flows, Local: translator.LocalFunc(func(a netip.Addr) bool { return a == translateProxy }),
		Sender: sender, Recorder: rec, Now: time.Now,
	})
	if err != nil {
		return nil, nil, err
	}
	t.SetEnabled(true)
	return t, func() uint64 { return t.Stats().Receipts }, nil
}

// echo answers each datagram with its payload, from the same sockets.
func (w *translateWire) echo() (translator.Handler, func() uint64, error) {
	e := &echoHandler{sender: w.sender}
	return e, e.answered.Load, nil
}
