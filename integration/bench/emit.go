package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"pncd/dataplane/emit"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
)

// onePath is emit.Paths with the same answer for every destination.
type onePath struct {
	index int
	mac   [6]byte
}

// Path implements emit.Paths.
func (p onePath) Path(netip.Addr) (int, [6]byte, int, bool) { return p.index, p.mac, 1500, true }

// openFrames opens a packet socket in a namespace whose frames go by its interface to the one at the other end.
func openFrames(ns *taptest.NS, name string, peer *taptest.NS, peerName string) (s *emit.FrameSender, err error) {
	mac, err := peer.MAC(peerName)
	if err != nil {
		return nil, err
	}
	err = ns.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		s, err = emit.OpenFrames(emit.Config{}, onePath{l.Attrs().Index, [6]byte(mac)}, new(emit.FrameCounts))
		return err
	})
	return s, err
}

// EmitFrames measures how many CNPs a second a thread sends as frames by the packet socket (proxy.emit: packet),
// over a veth pair, where each is dropped at the other end. Baseline: the raw sockets (proxy.emit: raw), the two
// taking turns; each value is the median of the turns. It needs root.
func EmitFrames() (results []Result, err error) {
	const turns, batches = 15, 500
	a, err := taptest.New()
	if err != nil {
		return nil, fmt.Errorf("emit-frames: %w", err)
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := taptest.New()
	if err != nil {
		return nil, fmt.Errorf("emit-frames: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var raw *emit.Sender
	var frames *emit.FrameSender
	for _, step := range []func() error{
		func() error { return taptest.Veth(a, "n0", b, "p0") },
		func() error { return a.Addr("n0", netip.PrefixFrom(translateNear, 24)) },
		func() error { return b.Addr("p0", netip.PrefixFrom(translateProxy, 24)) },
		func() error { return neighbors(a, "n0", translateNear, b, "p0", translateProxy) },
		func() error { return a.Route(netip.MustParsePrefix("0.0.0.0/0"), "n0", translateProxy) },
		func() error { return a.Do(func() (err error) { raw, err = emit.Open(emit.Config{}); return }) },
		func() (err error) { frames, err = openFrames(a, "n0", b, "p0"); return },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("emit-frames: %w", err)
		}
	}
	defer func() { err = errors.Join(err, raw.Close(), frames.Close()) }()
	pkts := make([][]byte, emit.DefaultBatchSize)
	for i := range pkts {
		sender, receiver, _, qp := translateFlow(i)
		if pkts[i], err = roce.AppendCNP(nil, &roce.CNP{Src: receiver, Dst: sender, SrcPort: 50000, TOS: roce.DefaultCNPTOS, IPID: 1, DestQP: qp}); err != nil {
			return nil, err
		}
	}
	rate := func(send func([][]byte) (int, error)) (float64, error) {
		begin := time.Now()
		for range batches {
			if _, err := send(pkts); err != nil {
				return 0, fmt.Errorf("emit-frames: %w", err)
			}
		}
		return float64(batches*len(pkts)) / time.Since(begin).Seconds(), nil
	}
	var fast, slow []float64
	for range turns {
		s, err := rate(raw.Send)
		if err != nil {
			return nil, err
		}
		f, err := rate(frames.Send)
		if err != nil {
			return nil, err
		}
		slow, fast = append(slow, s), append(fast, f)
	}
	return []Result{{
		Name: "emit-frames", Value: median(fast), Unit: "CNPs/s", Baseline: median(slow), Note: "IPv4, batches of 64; baseline: raw sockets",
	}}, nil
}
