package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/sirupsen/logrus"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/config"
	"pncd/internal/testvectors"
	"pncd/internal/testwait"
	"pncd/proxyagent/flowmap"
)

// tapped is a learner with one tap, running, and all that its map has answered.
type tapped struct {
	*learner
	watch    *flowmap.Watch
	answered map[string]bool
}

// quietLearner is a learner with an empty map, that logs nothing.
func quietLearner() *learner {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return newLearner(flowmap.New(flowmap.Config{}), new(atomic.Uint64), time.Now, log)
}

// tapOn runs a learner on an interface of a namespace for the time of the test.
func tapOn(t *testing.T, ns *taptest.NS, iface string, s tapSettings) *tapped {
	t.Helper()
	l := quietLearner()
	l.detached = func(string, string) {}
	var units []runner
	err := ns.Do(func() error {
		for _, open := range []func() (runner, error){l.opener(s), l.tapOpener(iface, s, newRingBook())} {
			r, err := open()
			if err != nil {
				return err
			}
			units = append(units, r)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, len(units))
	for _, u := range units {
		begin(u)
		go func() { done <- u.Run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range units {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for _, u := range slices.Backward(units) {
			if err := u.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	if errors.Is(err, kernel.ErrPermission) || errors.Is(err, kernel.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	x := &tapped{learner: l, watch: l.flows.Watch(1 << 16), answered: map[string]bool{}}
	t.Cleanup(x.watch.Close)
	return x
}

// seen is how many packets the tap has seen and handled.
func (x *tapped) seen() uint64 {
	n, c := x.programCounts(), x.flows.Counters()
	n.into(&c)
	return c.Packets
}

// answers are all pairs that were answered at some time, and how their entries stand.
func (x *tapped) answers() string {
	for len(x.watch.C()) > 0 {
		if e := (<-x.watch.C()).Entry; e.Known() {
			x.answered[fmt.Sprintf("%v>%v %#x: %#x by %v", e.Key.Sender, e.Key.Receiver, e.Key.DestQP, e.SourceQP, e.Source)] = true
		}
	}
	var now []string
	x.flows.Range(time.Now(), func(e flowmap.Entry) bool {
		now = append(now, fmt.Sprintf("%v>%v %#x: %v", e.Key.Sender, e.Key.Receiver, e.Key.DestQP, e.State))
		return true
	})
	slices.Sort(now)
	return fmt.Sprint(slices.Sorted(maps.Keys(x.answered)), now)
}

// The captures' packets pass an interface on which a program taps, and a packet ring: both learners answer the same, of all
// pairs, by the same source, and close the same.
func TestCapturesGiveTheSamePairsThroughProgramAndRing(t *testing.T) {
	for _, mode := range []kernel.Mode{kernel.TCX, kernel.XDP, kernel.Clsact} {
		for _, name := range []string{"nvme-discover.pcap", "cm-write.pcap", "perftest-no-cm.pcap", "dc-negative.pcap"} {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				samePairs(t, mode, name, 0, func(frame []byte) []byte { return frame })
			})
		}
	}
	for _, w := range taptest.Wraps() {
		t.Run(w.Name, func(t *testing.T) {
			samePairs(t, kernel.TCX, "cm-write.pcap", w.Of, func(frame []byte) []byte { return taptest.Ethernet(w.Wrap(frame[14:])) })
		})
	}
}

// samePairs plays a capture, each frame as wrap gives it.
func samePairs(t *testing.T, mode kernel.Mode, name string, tunnels roce.Tunnels, wrap func([]byte) []byte) {
	a, b := taptest.Pair(t)
	ring := tapOn(t, a, "va", tapSettings{ringMiB: 4, tunnels: tunnels})
	program := tapOn(t, a, "va", tapSettings{tapChoice{program: true, mode: mode}, 4, 4096, tunnels})
	in := taptest.NeedInjector(t, b, "vb")
	r, err := pcapgo.NewReader(testvectors.Open(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	var sent uint64
	for {
		frame, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !last.IsZero() { // the pace of the capture, without its pauses: votes must span a millisecond
			time.Sleep(min(info.Timestamp.Sub(last), 200*time.Microsecond))
		}
		last = info.Timestamp
		var p roce.Packet
		if roce.ParseEthernet(frame, &p) != nil {
			continue
		}
		if frame = wrap(frame); len(frame) > 1514 {
			continue
		}
		if err := in.Send(frame); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	if sent == 0 {
		t.Fatal("no RoCEv2 packet")
	}
	testwait.UntilRight(t, func() string {
		if n, m := ring.seen(), program.seen(); n != sent || m != sent {
			return fmt.Sprintf("%d packets by the ring, %d by the program, of %d", n, m, sent)
		}
		if got, want := program.answers(), ring.answers(); got != want {
			return fmt.Sprintf("answers\n%s\nof the ring\n%s", got, want)
		}
		return ""
	})
	if len(ring.answered) == 0 != (name == "dc-negative.pcap") {
		t.Errorf("answers %v", ring.answered)
	}
}

// From rings to a program and back: one of them feeds the map, and what is learned from one is answered with the other.
func TestOneSourceFeedsTheMapWhileTheTapsChange(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	flows := flowmap.New(flowmap.Config{})
	l := newLearner(flows, new(atomic.Uint64), func() time.Time { return now }, logrus.New())
	var program feeder
	l.take(&l.rings)
	if !l.feeds(&l.rings, now.Add(-time.Hour)) || l.feeds(&program, now) {
		t.Error("the first one feeds from its beginning on, and no other")
	}
	now = now.Add(time.Second)
	l.take(&program)
	if l.feeds(&l.rings, now) || l.feeds(&program, now.Add(-time.Millisecond)) || !l.feeds(&program, now) {
		t.Error("the second one feeds from where the first one ended")
	}
	if c := chooseTap(config.TapRing, nil); c.program {
		t.Errorf("%+v", c)
	}
}

// openTap opens a learner's program, which is not run.
func openTap(t *testing.T, l *learner, s tapSettings) *kernelTap {
	t.Helper()
	r, err := l.opener(s)()
	if errors.Is(err, kernel.ErrPermission) || errors.Is(err, kernel.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.(*kernelTap)
}

// Between opening and Run nothing looks through the flows: those that an earlier process followed are unknown to the map until
// Run has taken them over.
func TestNoSweepBeforeWhatThereWasIsTakenOver(t *testing.T) {
	l := quietLearner()
	l.pins.root = t.TempDir() // where nothing can be pinned
	k := openTap(t, l, tapSettings{tapChoice: tapChoice{program: true, mode: kernel.TCX}, ringMiB: 1, flows: 1024})
	ip, err := roce.AppendPacket(nil, &roce.PacketSpec{
		Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 50000,
		BTH: roce.BTH{Opcode: 0x0A, PKey: roce.DefaultPKey, DestQP: 7, PSN: 1, AckReq: true}, Body: make([]byte, 16),
	})
	if err != nil {
		t.Fatal(err)
	}
	frame := taptest.Ethernet(ip)
	var p roce.Packet
	if err := errors.Join(k.tap.Try(frame, func(*kernel.Event) {}), roce.ParseEthernet(frame, &p), k.tap.SetState(kernel.KeyOf(&p), kernel.Followed)); err != nil {
		t.Fatal(err)
	}
	state := func() kernel.State {
		f, err := k.tap.Lookup(kernel.KeyOf(&p))
		if err != nil {
			t.Fatal(err)
		}
		return f.State
	}
	l.tick(nil, time.Minute)
	if s := state(); s != kernel.Followed {
		t.Errorf("%v before the program's unit runs", s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	testwait.Until(t, "a flow that the map does not know is watched", func() bool {
		l.tick(nil, time.Minute)
		return state() == kernel.Watched
	})
	if n := l.programCounts(); n.live != 1 {
		t.Errorf("%d flows", n.live)
	}
	cancel()
	if err := errors.Join(<-done, k.Close()); err != nil {
		t.Error(err)
	}
	if n := l.programCounts(); n.live != 0 || n.FlowsMade != 1 {
		t.Errorf("closed: %d flows, %d made", n.live, n.FlowsMade)
	}
}

// Of what is in doubt nothing is kept for a next process; what an earlier one has kept stays until it is taken over.
func TestNothingIsKeptOfPairsInDoubt(t *testing.T) {
	l := quietLearner()
	l.pins.root = taptest.BPFFS(t)
	k := openTap(t, l, tapSettings{tapChoice: tapChoice{program: true, mode: kernel.TCX}, ringMiB: 1, flows: 1024})
	ip, err := roce.AppendPacket(nil, &roce.PacketSpec{
		Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 50000,
		BTH: roce.BTH{Opcode: 0x0A, DestQP: 7, PSN: 1}, Body: make([]byte, 16),
	})
	if err != nil {
		t.Fatal(err)
	}
	frame := taptest.Ethernet(ip)
	var p roce.Packet
	if err := errors.Join(k.tap.Try(frame, func(*kernel.Event) {}), roce.ParseEthernet(frame, &p)); err != nil {
		t.Fatal(err)
	}
	key := kernel.KeyOf(&p)
	if err := errors.Join(k.tap.KeepPair(key, kernel.Pair{SourceQP: 9, Source: 2}), k.tap.SetState(key, kernel.Followed)); err != nil {
		t.Fatal(err)
	}
	kept := func() (n int) {
		if err := k.tap.Pairs(func(kernel.Key, kernel.Pair) { n++ }); err != nil {
			t.Error(err)
		}
		return n
	}
	k.Begin()
	if n := kept(); n != 1 {
		t.Errorf("%d pairs are kept before they are taken over", n)
	}
	l.mu.Lock()
	k.adopted = true
	l.mu.Unlock()
	l.missed()
	if n := kept(); n != 0 {
		t.Errorf("%d pairs are kept", n)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// While two programs overlap in a reload, what the map wants to be shown is for the one that feeds it.
func TestOnlyTheProgramThatFeedsTheMapIsTold(t *testing.T) {
	l := quietLearner()
	l.pins.root = t.TempDir() // where nothing can be pinned
	var taps []*kernelTap
	for _, flows := range []int{1024, 2048} {
		k := openTap(t, l, tapSettings{tapChoice: tapChoice{program: true, mode: kernel.TCX}, ringMiB: 1, flows: flows})
		t.Cleanup(func() {
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		})
		taps = append(taps, k)
	}
	old, next := taps[0], taps[1]
	old.Begin()
	next.Begin()
	p := roce.Packet{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 50000, TTL: 64, BTH: roce.BTH{Opcode: 0x0A, DestQP: 7}}
	l.flows.Observe(&flowmap.Observation{Packet: &p, At: time.Now(), IfIndex: 1, Before: &flowmap.Progress{Sight: flowmap.Quiet}})
	old.tell()
	if due := l.flows.Due(make([]flowmap.Telling, 0, 8), time.Now()); len(due) != 1 {
		t.Errorf("%d tellings are left for the next program, want 1", len(due))
	}
}

// A reload that makes the program anew puts the new filter in the old one's place: that is not somebody else's doing.
func TestFilterOfOursInPlaceOfAnotherIsNoForeignChange(t *testing.T) {
	a, _ := taptest.Pair(t)
	l := quietLearner()
	var foreign atomic.Uint64
	l.detached = func(string, string) { foreign.Add(1) }
	var taps []*programTap
	for _, flows := range []int{1024, 2048} {
		s := tapSettings{tapChoice: tapChoice{program: true, mode: kernel.Clsact}, ringMiB: 1, flows: flows}
		var k *kernelTap
		var r runner
		if err := a.Do(func() (err error) {
			k = openTap(t, l, s)
			r, err = l.tapOpener("va", s, newRingBook())()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		x := r.(*programTap)
		taps = append(taps, x)
		t.Cleanup(func() {
			if err := errors.Join(x.Close(), k.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	if err := taps[0].attached.Check(); !errors.Is(err, kernel.ErrDetached) {
		t.Fatalf("the old filter: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second) // several looks at the filter
	defer cancel()
	if err := taps[0].Run(ctx); err != nil || foreign.Load() != 0 {
		t.Errorf("%v, told as somebody else's %d times", err, foreign.Load())
	}
}

func TestProgramThatCouldNotBeHadIsAskedForAgain(t *testing.T) {
	var asked int
	var why error
	l := &learner{choices: map[string]tapChoice{}, probe: func() kernel.Support {
		asked++
		return kernel.Support{TCX: why, Clsact: why, XDP: why}
	}}
	for _, want := range []string{config.TapAuto, config.TapTCX} {
		asked = 0
		for _, step := range []struct {
			why   error
			has   bool
			asked int
		}{{errors.New("out of memory"), false, 1}, {nil, true, 2}, {errors.New("not asked"), true, 2}} {
			why = step.why
			l.decide(want)
			if c := l.choice(want); (c.program && c.err == nil) != step.has || asked != step.asked {
				t.Errorf("%s, the kernel says %v: %+v, asked %d times", want, why, c, asked)
			}
		}
	}
}
