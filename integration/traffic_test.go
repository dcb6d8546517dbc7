package integration

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/integration/lab"
	"pncd/internal/labtraffic"
	"pncd/internal/testvectors"
)

const twoHosts = `
name: t-hosts
topology:
  kinds: {linux: {image: debian}}
  nodes:
    a: {kind: linux, exec: ["ip addr add 10.5.0.1/24 dev eth1", "ip addr add fd00:5::1/64 dev eth1 nodad"]}
    b: {kind: linux, exec: ["ip addr add 10.5.0.2/24 dev eth1", "ip addr add fd00:5::2/64 dev eth1 nodad"]}
  links:
    - endpoints: ["a:eth1", "b:eth1"]
`

// hosts is a lab of two hosts on one link.
func hosts(t *testing.T) *lab.Lab {
	t.Helper()
	needLab(t)
	topo, err := lab.Parse(filepath.Join(t.TempDir(), "t.clab.yml"), []byte(twoHosts))
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(testContext(t), topo, lab.Options{Unique: true, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// arrivals is what a host gets from the wire.
type arrivals struct {
	mu     sync.Mutex
	badIP  int
	badCRC int
	ce     int
	byOp   map[roce.Opcode]int
	psns   map[uint32]bool // of requests
	acked  map[uint32]bool
}

func (a *arrivals) get(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fn()
}

// listen records what arrives at a node from the wire, checking every ICRC.
func listen(t *testing.T, l *lab.Lab, node string) *arrivals {
	t.Helper()
	a := &arrivals{byOp: map[roce.Opcode]int{}, psns: map[uint32]bool{}, acked: map[uint32]bool{}}
	var ring *tap.Ring
	err := inNode(l, node, func() error {
		var err error
		ring, err = tap.Open(tap.Config{Interface: "eth1", SnapLen: 4096})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	inBackground(t, "tap at "+node, func(ctx context.Context) error {
		defer func() { _ = ring.Close() }()
		return ring.Run(ctx, func(f *tap.Frame) {
			var p roce.Packet
			if err := roce.ParseEthernet(f.Data, &p); err != nil {
				a.get(func() { a.badIP++ })
				return
			}
			ok, err := roce.VerifyICRC(p.IP)
			a.get(func() {
				if !ok || err != nil {
					a.badCRC++
				}
				if p.TOS&3 == 3 {
					a.ce++
				}
				a.byOp[p.BTH.Opcode]++
				switch {
				case p.BTH.Opcode.IsRequest() && !p.IsMAD():
					a.psns[p.BTH.PSN] = true
				case p.BTH.Opcode.IsAck():
					a.acked[p.BTH.PSN] = true
				}
			})
		})
	})
	return a
}

func TestGeneratorSendsWhatItSaysAndEveryICRCIsRight(t *testing.T) {
	for _, family := range [][2]string{{"10.5.0.1", "10.5.0.2"}, {"fd00:5::1", "fd00:5::2"}} {
		t.Run(family[0], func(t *testing.T) {
			l := hosts(t)
			atA, atB := listen(t, l, "a"), listen(t, l, "b")
			const messages = 200
			g, err := labtraffic.NewGenerator(labtraffic.GeneratorConfig{
				Local:    labtraffic.Host{Netns: l.Namespace("a"), Addr: netip.MustParseAddr(family[0])},
				Peer:     labtraffic.Host{Netns: l.Namespace("b"), Addr: netip.MustParseAddr(family[1])},
				Rate:     5000,
				Messages: messages,
				Flows:    labtraffic.FlowConfig{QPs: 4, CM: true, Packets: 3, CEShare: 0.25},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Run(testContext(t)); err != nil {
				t.Fatal(err)
			}
			// REQ, RTU and DREQ of four pairs, 600 packets of data; REP and DREP, 200 ACKs.
			waitFor(t, l, func() error {
				var atHost, atPeer int
				atA.get(func() { atHost = atA.byOp[roce.OpcodeRCAck] + atA.byOp[roce.OpcodeUDSendOnly] })
				atB.get(func() {
					atPeer = atB.byOp[0x06] + atB.byOp[0x07] + atB.byOp[0x08] + atB.byOp[roce.OpcodeUDSendOnly]
				})
				if atHost != messages+8 || atPeer != 3*messages+12 {
					return fmt.Errorf("%d of %d packets at the sender, %d of %d at the receiver", atHost, messages+8, atPeer, 3*messages+12)
				}
				return nil
			})
			for _, a := range []*arrivals{atA, atB} {
				if a.badCRC != 0 || a.badIP != 0 {
					t.Errorf("%d ICRCs are wrong, %d packets don't parse", a.badCRC, a.badIP)
				}
			}
			if atB.ce != 3*messages/4 || atA.ce != 0 || g.Marked() != 3*messages/4 {
				t.Errorf("%d of %d data packets have CE (%d said), %d ACKs; want a quarter and none", atB.ce, 3*messages, g.Marked(), atA.ce)
			}
			for psn := range atA.acked {
				if !atB.psns[psn] {
					t.Errorf("PSN %d was acknowledged and never sent", psn)
				}
			}
			if len(atB.psns) != 3*messages {
				t.Errorf("%d different PSNs, want %d", len(atB.psns), 3*messages)
			}
		})
	}
}

func TestReplayHoldsTheCloseBackWhileDataLoops(t *testing.T) {
	dir := testvectors.Dir(t)
	l := hosts(t)
	atA, atB := listen(t, l, "a"), listen(t, l, "b")
	c, err := labtraffic.ReadCapture(filepath.Join(dir, "cm-write.pcap"), false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := labtraffic.NewReplay(labtraffic.ReplayConfig{
		Capture: c, Loop: true, HoldClose: true,
		Local: labtraffic.Host{Netns: l.Namespace("a"), Addr: netip.MustParseAddr("10.5.0.1")},
		Peer:  labtraffic.Host{Netns: l.Namespace("b"), Addr: netip.MustParseAddr("10.5.0.2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	ctx := testContext(t)
	g.Go(func() error { return r.Run(ctx) })
	// In each pass the capture's first host sends three requests, the other as many: none twice.
	waitFor(t, l, func() error {
		n := 0
		atB.get(func() { n = len(atB.psns) })
		if n < 30 || r.Passes() < 10 {
			return fmt.Errorf("%d PSNs in %d passes", n, r.Passes())
		}
		return nil
	})
	atB.get(func() {
		if n := atB.byOp[roce.OpcodeUDSendOnly]; n != 2 {
			t.Errorf("%d datagrams before the close, want REQ and RTU", n)
		}
	})
	r.Close()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, l, func() error {
		var a, b, psns int
		atA.get(func() { a = atA.byOp[roce.OpcodeUDSendOnly] })
		atB.get(func() { b, psns = atB.byOp[roce.OpcodeUDSendOnly], len(atB.psns) })
		if want := 3 * int(r.Passes()); a != 2 || b != 3 || psns != want {
			return fmt.Errorf("%d and %d datagrams, want REP, DREP and REQ, RTU, DREQ; %d PSNs of %d", a, b, psns, want)
		}
		return nil
	})
	if atA.badCRC+atB.badCRC != 0 {
		t.Errorf("%d ICRCs are wrong", atA.badCRC+atB.badCRC)
	}
}

func waitFor(t *testing.T, l *lab.Lab, cond func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(testContext(t), patience)
	defer cancel()
	if err := l.WaitFor(ctx, func(context.Context) error { return cond() }); err != nil {
		t.Fatal(err)
	}
}
