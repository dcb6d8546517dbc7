package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/dataplane/tap/taptest"
)

// TapForwarding measures what taps cost a router: the rate at which a namespace forwards 122-octet frames
// from one veth pair to another, IPv4, with a packet ring on both of its interfaces that decodes what it sees.
// Baseline: the same chain without taps, in the same run. The second result is the share of the frames that the
// taps saw. It needs root.
func TapForwarding() ([]Result, error) {
	c, err := newChain(sendBatch)
	if err != nil {
		return nil, fmt.Errorf("tap-forwarding: %w", err)
	}
	defer c.close()
	results, err := c.compare("tap-forwarding", "tap-seen", c.forwardTapped)
	if err != nil {
		return nil, fmt.Errorf("tap-forwarding: %w", err)
	}
	return results, nil
}

// compare measures a chain's forwarding with a tap and without, the two taking turns, each first as often as the other;
// each value is the median of the turns. The ratio is the median of those of two turns next to each other: what a
// shared machine forwards changes by a fifth within seconds. Sending and forwarding, which follows from it without
// another thread, stay on one processor, as interrupts do in a router; the taps' readers run where the kernel puts
// them.
func (c *chain) compare(name, seenName string, tap func(time.Duration) (r turnResult, seen uint64, err error)) ([]Result, error) {
	const turns, turn = 35, 500 * time.Millisecond
	unpin, err := pinTo(0)
	if err != nil {
		return nil, err
	}
	defer unpin()
	if _, err := c.forward(turn); err != nil { // warm up
		return nil, err
	}
	var tapped, plain, ratios []float64
	var seen, arrived uint64
	bare := func() error {
		r, err := c.forward(turn)
		plain = append(plain, r.rate)
		return err
	}
	with := func() error {
		r, s, err := tap(turn)
		tapped = append(tapped, r.rate)
		seen, arrived = seen+s, arrived+r.arrived
		return err
	}
	for i := range turns {
		first, second := bare, with
		if i%2 == 1 {
			first, second = second, first
		}
		if err := errors.Join(first(), second()); err != nil {
			return nil, err
		}
		ratios = append(ratios, tapped[i]/plain[i])
	}
	note := fmt.Sprintf("%d-octet frames, IPv4, flows: %d; %d of %d frames seen", c.frameLen, len(c.frames), seen, arrived)
	return []Result{
		{Name: name, Value: median(tapped), Unit: "packets/s", Baseline: median(plain), Ratio: median(ratios), Note: note},
		{Name: seenName, Value: float64(seen), Unit: "packets", Baseline: float64(arrived), Note: "in the turns of " + name},
	}, nil
}

// chain is sender - router - receiver, three namespaces and two veth pairs.
type chain struct {
	spaces   []*taptest.NS
	router   *taptest.NS
	receiver *taptest.NS
	in       *taptest.Injector
	source   *frameSource // sends instead of in, unless nil
	frames   [][]byte
	next     int // frame to be sent
	message  int // packets of a flow's message
	again    int // how often the batch at next was sent, of message
	frameLen int
}

// sendBatch is how many frames one system call sends.
const sendBatch = 64

// newChain makes a chain whose sender has a number of flows, a multiple of sendBatch.
func newChain(flows int) (c *chain, err error) {
	c = &chain{message: 1}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for range 3 {
		ns, err := taptest.New()
		if err != nil {
			return c, err
		}
		c.spaces = append(c.spaces, ns)
		// Its router solicitations would be counted as frames that no tap saw. A kernel without IPv6 has none.
		if err := ns.Do(func() error {
			return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
		}); err != nil && !errors.Is(err, os.ErrNotExist) {
			return c, err
		}
	}
	sender := c.spaces[0]
	c.router, c.receiver = c.spaces[1], c.spaces[2]
	target := netip.MustParseAddr("10.2.0.2")
	for _, step := range []func() error{
		func() error { return taptest.Veth(sender, "s0", c.router, "r0") },
		func() error { return taptest.Veth(c.router, "r1", c.receiver, "d0") },
		func() error { return c.router.Addr("r0", netip.MustParsePrefix("10.1.0.1/24")) },
		func() error { return c.router.Addr("r1", netip.MustParsePrefix("10.2.0.1/24")) },
		func() error {
			// The receiver's own address is not on its interface: it drops what arrives without an answer.
			mac, err := c.receiver.MAC("d0")
			if err != nil {
				return err
			}
			return c.router.Neighbor("r1", target, mac)
		},
		func() error {
			return c.router.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
		},
		func() (err error) {
			c.in, err = taptest.NewInjector(sender, "s0")
			return err
		},
		func() error { return c.makeFrames(target, flows) },
	} {
		if err := step(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Flow i has UDP source port firstPort + i modulo firstPorts, and Destination QP firstQP + i.
const (
	firstPort, firstPorts = 49152, 16384
	firstQP               = 0x100
)

// makeFrames makes a frame of 122 octets for each flow.
func (c *chain) makeFrames(target netip.Addr, flows int) error {
	mac, err := c.router.MAC("r0")
	if err != nil {
		return err
	}
	for i := range flows {
		ip, err := roce.AppendPacket(nil, &roce.PacketSpec{
			Src: netip.MustParseAddr("10.1.0.2"), Dst: target, TOS: 2, IPID: 1, SrcPort: firstPort + uint16(i%firstPorts),
			BTH:  roce.BTH{Opcode: 0x0A, PKey: roce.DefaultPKey, DestQP: uint32(firstQP + i), AckReq: true},
			Body: make([]byte, 64),
		})
		if err != nil {
			return err
		}
		f := taptest.Ethernet(ip)
		copy(f, mac)
		c.frames = append(c.frames, f)
		c.frameLen = len(f)
	}
	return nil
}

func (c *chain) close() {
	if c.source != nil {
		c.source.close()
	}
	if c.in != nil {
		_ = c.in.Close()
	}
	for _, ns := range c.spaces {
		_ = ns.Close()
	}
}

// turnResult is what one turn moved.
type turnResult struct {
	rate    float64 // frames a second that reached the receiver
	arrived uint64  // frames that reached the router
}

// send sends the next batch, each frame with its flow's next PSN. The flows of a batch take turns until each has sent a message; then
// those of the next do.
func (c *chain) send() error {
	if c.source != nil {
		return c.source.send()
	}
	const psn = 14 + 20 + 8 + 8
	batch := c.frames[c.next : c.next+sendBatch]
	for _, f := range batch {
		binary.BigEndian.PutUint32(f[psn:], binary.BigEndian.Uint32(f[psn:])+1)
	}
	if c.again++; c.again == c.message {
		c.next, c.again = (c.next+sendBatch)%len(c.frames), 0
	}
	return c.in.Send(batch...)
}

// forward sends for d and measures what arrives.
func (c *chain) forward(d time.Duration) (turnResult, error) {
	in0, err := received(c.router, "r0")
	if err != nil {
		return turnResult{}, err
	}
	out0, err := received(c.receiver, "d0")
	if err != nil {
		return turnResult{}, err
	}
	begin := time.Now()
	for time.Since(begin) < d {
		if err := c.send(); err != nil {
			return turnResult{}, err
		}
	}
	took := time.Since(begin)
	in1, err := received(c.router, "r0")
	if err != nil {
		return turnResult{}, err
	}
	out1, err := received(c.receiver, "d0")
	if err != nil {
		return turnResult{}, err
	}
	if out1 == out0 {
		return turnResult{}, errors.New("no frame was forwarded")
	}
	return turnResult{rate: float64(out1-out0) / took.Seconds(), arrived: in1 - in0}, nil
}

// forwardTapped is forward with a tap on both interfaces of the router, and returns how many frames they saw.
func (c *chain) forwardTapped(d time.Duration) (r turnResult, seen uint64, err error) {
	var rings []*tap.Ring
	defer func() {
		for _, ring := range rings {
			err = errors.Join(err, ring.Close())
		}
	}()
	for _, name := range []string{"r0", "r1"} {
		err := c.router.Do(func() error {
			ring, err := tap.Open(tap.Config{Interface: name})
			if err == nil {
				rings = append(rings, ring)
			}
			return err
		})
		if err != nil {
			return r, 0, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var decoded atomic.Uint64
	var p roce.Packet
	group := tap.NewGroup(func(f *tap.Frame) {
		if roce.ParseEthernet(f.Data, &p) == nil {
			decoded.Add(1)
		}
	})
	var tasks errgroup.Group
	tasks.Go(func() error { return group.Run(ctx) })
	for _, ring := range rings {
		tasks.Go(func() error { return group.Serve(ctx, ring) })
	}
	r, err = c.forward(d)
	stored := rings[0].Stats().Packets + rings[1].Stats().Packets
	for deadline := time.Now().Add(5 * time.Second); decoded.Load() < stored && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	return r, decoded.Load(), errors.Join(err, tasks.Wait())
}

// received returns how many frames an interface has received.
func received(ns *taptest.NS, name string) (n uint64, err error) {
	err = ns.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
		n = l.Attrs().Statistics.RxPackets
		return nil
	})
	return n, err
}
