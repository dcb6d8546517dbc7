package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
	"pncd/dataplane/translate"
)

// recordOneIn is how many decisions a record stands for while the program is measured.
const recordOneIn = 64

// TranslateKernel measures the translator in the kernel on the wire of translate-user: CNPs that arrive at the other end,
// a second, while a thread on each of two processors sends notifications as frames. Baseline: a program that sends each
// notification back as it is (XDP_TX), the two taking turns. translate-kernel-cpu is what the program takes for one, by the
// kernel's own statistics, beside the processor time of translate-user for one. It needs root.
func TranslateKernel() ([]Result, error) {
	const turns, turn = 7, 700 * time.Millisecond
	w, err := newKernelWire()
	if err != nil {
		return nil, fmt.Errorf("translate-kernel: %w", err)
	}
	defer w.close()
	var kernel, echo, user []float64
	for i := range turns + 1 {
		e, err := w.flooded(turn, w.echoes)
		if err != nil {
			return nil, fmt.Errorf("translate-kernel: echo: %w", err)
		}
		k, err := w.flooded(turn, w.translates)
		if err != nil {
			return nil, fmt.Errorf("translate-kernel: %w", err)
		}
		u, err := w.run(turn, w.translate)
		if err != nil {
			return nil, fmt.Errorf("translate-kernel: user space: %w", err)
		}
		if i == 0 {
			continue // to warm up
		}
		echo, kernel, user = append(echo, e), append(kernel, k), append(user, 1e9/u.perCore())
	}
	cpu, err := w.programTime(turn)
	if err != nil {
		return nil, fmt.Errorf("translate-kernel: %w", err)
	}
	return []Result{
		{Name: "translate-kernel", Value: median(kernel), Unit: "CNPs/s", Baseline: median(echo),
			Note: fmt.Sprintf("IPv4, %d connections, one decision in %d recorded, two threads send; baseline: XDP_TX", translateFlows, recordOneIn)},
		{Name: "translate-kernel-cpu", Value: cpu, Unit: "ns", Baseline: median(user),
			Note: "the program's time for a notification; baseline: processor time of translate-user for one"},
	}, nil
}

// TranslateLatency measures the time from sending a notification until its CNP is read from the wire, one at a time, by the
// translator in user space and by the one in the kernel. Baseline: a program that sends each notification back (XDP_TX).
func TranslateLatency() ([]Result, error) {
	w, err := newKernelWire()
	if err != nil {
		return nil, fmt.Errorf("translate-latency: %w", err)
	}
	defer w.close()
	echo, err := w.latencies(w.echoes)
	if err != nil {
		return nil, fmt.Errorf("translate-latency: echo: %w", err)
	}
	var out []Result
	for _, side := range []struct {
		name  string
		begin func() (func() error, error)
	}{
		{"user", func() (func() error, error) { _, stop, err := w.serve(w.translate); return stop, err }},
		{"kernel", w.translates},
	} {
		d, err := w.latencies(side.begin)
		if err != nil {
			return nil, fmt.Errorf("translate-latency: %s: %w", side.name, err)
		}
		for _, percent := range []int{50, 99} {
			out = append(out, Result{
				Name: fmt.Sprintf("translate-latency-%s-p%d", side.name, percent), Value: d.share(percent), Unit: "us", Baseline: echo.share(percent),
				Note: fmt.Sprintf("%d notifications, one at a time; baseline: XDP_TX", len(d.us)),
			})
		}
	}
	return out, nil
}

// kernelWire is a translateWire whose notifications are there as frames.
type kernelWire struct {
	*translateWire
	frames   [][]byte
	toSender [2]*taptest.Injector
	passing  func() error // takes the program off the node's interface
}

func newKernelWire() (_ *kernelWire, err error) {
	tw, err := newTranslateWire()
	if err != nil {
		return nil, err
	}
	w := &kernelWire{translateWire: tw}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	near, err := w.node.MAC("n0")
	if err != nil {
		return w, err
	}
	far, err := w.proxy.MAC("p0")
	if err != nil {
		return w, err
	}
	for _, p := range w.packets {
		f := append(slices.Concat(far, near), 0x08, 0x00)
		f = append(f, p...)
		ip := f[14:34]
		ip[10], ip[11] = 0, 0 // the kernel's, with raw sockets
		binary.BigEndian.PutUint16(ip[10:], headerSum(ip))
		w.frames = append(w.frames, f)
	}
	for i := range w.toSender {
		if w.toSender[i], err = taptest.NewInjector(w.node, "n0"); err != nil {
			return w, err
		}
	}
	// Without forwarding the kernel tells the program no way, and with it what is sent back would go round.
	if err = errors.Join(setForwarding(w.proxy, "1"), setForwarding(w.node, "0")); err != nil {
		return w, err
	}
	// veth drops what comes back by XDP_TX where the other end has no program.
	w.passing, err = attachXDP(w.node, "n0", asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}) // XDP_PASS
	return w, err
}

func setForwarding(ns *taptest.NS, to string) error {
	return ns.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte(to), 0) })
}

func (w *kernelWire) close() {
	if w.passing != nil {
		_ = w.passing()
	}
	for _, in := range w.toSender {
		if in != nil {
			_ = in.Close()
		}
	}
	w.translateWire.close()
}

// headerSum is the checksum of an IPv4 header in which it is zero.
func headerSum(h []byte) uint16 {
	var sum uint32
	for i := 0; i < len(h); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return ^uint16(sum)
}

// translates puts the translator in the kernel on the proxy's interface, with all answers.
func (w *kernelWire) translates() (stop func() error, err error) {
	k, err := translate.Open(translate.Config{MaxAnswers: translateFlows})
	if err != nil {
		return nil, err
	}
	fail := func(err error) (func() error, error) { return nil, errors.Join(err, k.Close()) }
	if err := k.SetPolicy(translate.Policy{
		OwnIPv4: translateProxy, Port: translatePort, MinTTL: 255,
		AcceptFrom: []netip.Prefix{netip.PrefixFrom(translateNode, 24).Masked()},
		Served:     []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
		PerSecond:  1e9, TotalPerSecond: 1e9, TotalBurst: 1e6, RecordOneIn: recordOneIn,
	}); err != nil {
		return fail(err)
	}
	for i := range translateFlows {
		sender, receiver, destQP, sourceQP := translateFlow(i)
		if err := k.Put(translate.Flow{Sender: sender, Receiver: receiver, DestQP: destQP}, translate.Answer{
			CNP:   roce.CNP{Src: receiver, Dst: sender, TOS: roce.DefaultCNPTOS, DestQP: sourceQP},
			Until: time.Now().Add(time.Hour), Version: 1,
		}); err != nil {
			return fail(err)
		}
	}
	if err := w.proxy.Do(func() error { _, err := k.Attach("p0", true); return err }); err != nil {
		return fail(err)
	}
	if err := k.SetEnabled(true); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var tasks errgroup.Group
	tasks.Go(func() error { return k.Run(ctx, func(*translate.Event) {}) })
	return func() error {
		cancel()
		return errors.Join(tasks.Wait(), k.Close())
	}, nil
}

// echoes puts a program there that sends every packet back as it is, with the MAC addresses the other way round.
func (w *kernelWire) echoes() (stop func() error, err error) {
	return attachXDP(w.proxy, "p0", asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
		asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, 14),
		asm.JGT.Reg(asm.R4, asm.R3, "short"),
		asm.LoadMem(asm.R4, asm.R2, 0, asm.Word),
		asm.LoadMem(asm.R5, asm.R2, 4, asm.Half),
		asm.LoadMem(asm.R6, asm.R2, 6, asm.Word),
		asm.LoadMem(asm.R7, asm.R2, 10, asm.Half),
		asm.StoreMem(asm.R2, 0, asm.R6, asm.Word),
		asm.StoreMem(asm.R2, 4, asm.R7, asm.Half),
		asm.StoreMem(asm.R2, 6, asm.R4, asm.Word),
		asm.StoreMem(asm.R2, 10, asm.R5, asm.Half),
		asm.Mov.Imm(asm.R0, 3), // XDP_TX
		asm.Return(),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("short"), // XDP_DROP
		asm.Return(),
	})
}

// attachXDP puts a program on an interface, in its driver.
func attachXDP(ns *taptest.NS, name string, program asm.Instructions) (detach func() error, err error) {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Apache-2.0", Instructions: program})
	if err != nil {
		return nil, err
	}
	var l link.Link
	err = ns.Do(func() error {
		ifc, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		l, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: ifc.Index, Flags: link.XDPDriverMode})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, prog.Close())
	}
	return func() error { return errors.Join(l.Close(), prog.Close()) }, nil
}

// flooded is how many packets a second come back while two threads send.
func (w *kernelWire) flooded(d time.Duration, begin func() (func() error, error)) (rate float64, err error) {
	stop, err := begin()
	if err != nil {
		return 0, err
	}
	before, err := w.arrived()
	if err != nil {
		return 0, errors.Join(err, stop())
	}
	start := time.Now()
	var senders errgroup.Group
	for i, in := range w.toSender {
		senders.Go(func() error {
			unpin, err := pinTo(i)
			if err != nil {
				return err
			}
			defer unpin()
			const batch = 64
			// Far from each other, so that the two don't meet in a connection.
			for at := i * len(w.frames) / len(w.toSender); time.Since(start) < d; at = (at + batch) % len(w.frames) {
				if err := in.Send(w.frames[at : at+batch]...); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = senders.Wait()
	took := time.Since(start)
	after, aerr := w.arrived()
	if err = errors.Join(err, aerr, stop()); err != nil {
		return 0, err
	}
	if after == before {
		return 0, errors.New("nothing came back")
	}
	return float64(after-before) / took.Seconds(), nil
}

// arrived is how many packets have come to the sender of notifications.
func (w *kernelWire) arrived() (n uint64, err error) {
	err = w.node.Do(func() error {
		l, err := netlink.LinkByName("n0")
		if err == nil {
			n = l.Attrs().Statistics.RxPackets
		}
		return err
	})
	return n, err
}

// programTime is how long the translator's program takes for a packet, in nanoseconds.
func (w *kernelWire) programTime(d time.Duration) (float64, error) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return 0, err
	}
	defer func() { _ = stats.Close() }()
	var ns float64
	_, err = w.flooded(d, func() (func() error, error) {
		stop, err := w.translates()
		if err != nil {
			return nil, err
		}
		return func() error {
			var err error
			ns, err = runTime(translate.ProgramName)
			return errors.Join(err, stop())
		}, nil
	})
	return ns, err
}

// runTime is the mean time of a run of the newest program of a name.
func runTime(name string) (ns float64, err error) {
	err = fmt.Errorf("no program %q", name)
	for id := ebpf.ProgramID(0); ; {
		next, nerr := ebpf.ProgramGetNextID(id)
		if nerr != nil {
			return ns, err
		}
		id = next
		p, perr := ebpf.NewProgramFromID(id)
		if perr != nil {
			continue // it went meanwhile
		}
		info, ierr := p.Info()
		s, serr := p.Stats()
		_ = p.Close()
		if ierr == nil && serr == nil && info.Name == name && s.RunCount > 0 {
			ns, err = float64(s.Runtime.Nanoseconds())/float64(s.RunCount), nil
		}
	}
}

// latencies are the times of notifications sent one after the other.
func (w *kernelWire) latencies(begin func() (func() error, error)) (out *latencies, err error) {
	const count, warm = 5000, 500
	stop, err := begin()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	fd := -1
	if err := w.node.Do(func() (err error) { fd, err = listenRaw("n0"); return err }); err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	out = &latencies{}
	buf := make([]byte, 256)
	for i := range count + warm {
		start := time.Now()
		if err := w.toSender[0].Send(w.frames[i%len(w.frames)]); err != nil {
			return nil, err
		}
		if _, err := unix.Read(fd, buf); err != nil {
			return nil, fmt.Errorf("no answer to notification %d: %w", i, err)
		}
		if i >= warm {
			out.add(time.Since(start))
		}
	}
	return out, nil
}

// listenRaw opens a socket that reads the IPv4 packets that come in by an interface.
func listenRaw(name string) (int, error) {
	ifc, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	const ipv4 = unix.ETH_P_IP<<8&0xFF00 | unix.ETH_P_IP>>8 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, ipv4)
	if err != nil {
		return -1, err
	}
	err = errors.Join(
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ipv4, Ifindex: ifc.Index}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}),
	)
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
