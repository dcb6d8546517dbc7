package kernel

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

// spec is a packet of the flow that most of these tests follow.
func spec(op byte, psn uint32) roce.PacketSpec {
	return roce.PacketSpec{
		Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 50000,
		BTH: roce.BTH{Opcode: roce.Opcode(op), DestQP: 0x1234, PSN: psn}, Body: make([]byte, 64),
	}
}

func frameOf(t testing.TB, s roce.PacketSpec) []byte {
	t.Helper()
	ip, err := roce.AppendPacket(nil, &s)
	if err != nil {
		t.Fatal(err)
	}
	return taptest.Ethernet(ip)
}

func keyOfSpec(s roce.PacketSpec) Key {
	return Key{Src: s.Src, Dst: s.Dst, DestQP: s.BTH.DestQP, SrcPort: s.SrcPort}
}

const (
	writeOnly  = 0x0A
	sendMiddle = 0x01
	readReq    = 0x0C
	ack        = 0x11
	udSend     = 0x64
	ucOnly     = 0x2A
)

// withMSN puts an AETH in front of the body.
func withMSN(s roce.PacketSpec, msn uint32) roce.PacketSpec {
	s.Body = roce.AppendAETH(nil, roce.AETH{MSN: msn})
	return s
}

// read is a READ request of n octets.
func read(psn, n uint32) roce.PacketSpec {
	s := spec(readReq, psn)
	s.Body = roce.AppendRETH(nil, roce.RETH{DMALen: n})
	return s
}

// fromQP is a UD packet from a source QP.
func fromQP(qp uint32) roce.PacketSpec {
	s := spec(udSend, 0)
	s.Body = append(roce.AppendDETH(nil, roce.DETH{SrcQP: qp}), 0, 0, 0, 0)
	return s
}

func expect(t *testing.T, k *Tap, s roce.PacketSpec, want Reason) Event {
	t.Helper()
	return expectFrame(t, k, frameOf(t, s), want)
}

// expectFrame expects that a frame is handed up for a reason; 0: that it is not.
func expectFrame(t *testing.T, k *Tap, frame []byte, want Reason) Event {
	t.Helper()
	got := run(t, k, frame)
	switch {
	case want == 0 && len(got) == 0:
		return Event{}
	case len(got) != 1 || got[0].Reason != want:
		t.Fatalf("handed up %+v, want once for %q", got, want)
	}
	return got[0].Event
}

// state expects a flow's state.
func state(t *testing.T, k *Tap, s roce.PacketSpec, want State) {
	t.Helper()
	f, err := k.Lookup(keyOfSpec(s))
	if err != nil {
		t.Fatal(err)
	}
	if f.State != want {
		t.Fatalf("state %v, want %v", f.State, want)
	}
}

func set(t *testing.T, k *Tap, s roce.PacketSpec, want State) {
	t.Helper()
	if err := k.SetState(keyOfSpec(s), want); err != nil {
		t.Fatal(err)
	}
}

func TestFollowedFlowIsHandedUpOnlyWhenItSteps(t *testing.T) {
	k := need(t, Config{MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour})
	for i, tt := range []struct {
		name   string
		before []roce.PacketSpec // while watched
		then   roce.PacketSpec
		want   Reason
		behind bool // the step does not move the highest PSN: so each packet is one until that is reached
	}{
		{"next PSN", []roce.PacketSpec{spec(writeOnly, 100)}, spec(writeOnly, 101), 0, false},
		{"within the window", []roce.PacketSpec{spec(writeOnly, 100)}, spec(writeOnly, 1124), 0, false},
		{"out of the window", []roce.PacketSpec{spec(writeOnly, 100)}, spec(writeOnly, 1125), ReasonStep, false},
		{"wrap of the PSN", []roce.PacketSpec{spec(writeOnly, 0xFFFFFF)}, spec(writeOnly, 0), 0, false},
		{"sent again", []roce.PacketSpec{spec(writeOnly, 100)}, spec(writeOnly, 36), 0, false},
		{"back by more than 64", []roce.PacketSpec{spec(writeOnly, 100)}, spec(writeOnly, 35), ReasonStep, false},
		{"back over the wrap", []roce.PacketSpec{spec(writeOnly, 10)}, spec(writeOnly, 0xFFFF00), ReasonStep, true},
		{"jump", []roce.PacketSpec{spec(writeOnly, 100)}, spec(writeOnly, 0x800000), ReasonStep, false},
		{"MIDDLE that jumps", []roce.PacketSpec{spec(writeOnly, 100)}, spec(sendMiddle, 5001), ReasonStep, false},
		{"a READ's PSNs", []roce.PacketSpec{read(100, 1<<20)}, spec(writeOnly, 100+4096), 0, false},
		{"more than a READ's PSNs", []roce.PacketSpec{read(100, 1<<20)}, spec(writeOnly, 100+4096+1025), ReasonStep, false},
		{"a READ of all there is", []roce.PacketSpec{read(100, 0xFFFFFFFF)}, spec(writeOnly, 100+1<<22), 0, false},
		{"first response", []roce.PacketSpec{spec(writeOnly, 100)}, withMSN(spec(ack, 7), 1), ReasonStep, false},
		{"next response", []roce.PacketSpec{withMSN(spec(ack, 7), 1)}, withMSN(spec(ack, 200), 2), 0, false},
		{"response far ahead", []roce.PacketSpec{withMSN(spec(ack, 7), 1)}, withMSN(spec(ack, 16392), 2), ReasonStep, false},
		{"response far back", []roce.PacketSpec{withMSN(spec(ack, 7), 1)}, withMSN(spec(ack, 0xFFFB00), 2), ReasonStep, false},
		{"MSN again", []roce.PacketSpec{withMSN(spec(ack, 7), 100)}, withMSN(spec(ack, 8), 1), ReasonStep, false},
		{"MSN a little back", []roce.PacketSpec{withMSN(spec(ack, 7), 10)}, withMSN(spec(ack, 7), 6), 0, false},
		{"MSN wraps", []roce.PacketSpec{withMSN(spec(ack, 7), 0xFFFFFF)}, withMSN(spec(ack, 8), 0), 0, false},
		{"another transport", []roce.PacketSpec{spec(writeOnly, 100)}, spec(ucOnly, 101), ReasonTransport, false},
		{"UD again", []roce.PacketSpec{fromQP(9)}, fromQP(9), 0, false},
		{"UD, another source", []roce.PacketSpec{fromQP(9)}, fromQP(10), ReasonSource, false},
		{"UC in sequence", []roce.PacketSpec{spec(ucOnly, 1)}, spec(ucOnly, 2), 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			qp := 0x100 + uint32(i) // each a flow of its own
			tt.then.BTH.DestQP = qp
			for _, s := range tt.before {
				s.BTH.DestQP = qp
				if got := run(t, k, frameOf(t, s)); len(got) != 1 {
					t.Fatalf("a watched flow was handed up %d times", len(got))
				}
			}
			set(t, k, tt.then, Followed)
			expect(t, k, tt.then, tt.want)
			if tt.want == 0 {
				state(t, k, tt.then, Followed)
				return
			}
			// What follows is needed to judge the step.
			state(t, k, tt.then, Watched)
			next := tt.then
			next.BTH.PSN++
			if next.BTH.Opcode == sendMiddle { // which alone are not handed up while watched
				next.BTH.Opcode = writeOnly
			}
			if got := run(t, k, frameOf(t, next)); len(got) != 1 {
				t.Errorf("after the step %+v", got)
			}
			set(t, k, tt.then, Followed)
			if next.BTH.PSN++; tt.behind {
				expect(t, k, next, ReasonStep)
				return
			}
			expect(t, k, next, 0)
		})
	}
}

// coarse is a tick of the kernel's coarse clock (100 Hz at the least) and one of the program.
const coarse = 12 * time.Millisecond

func TestEventsTellHowFarTheFlowWas(t *testing.T) {
	k := need(t, Config{MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour})
	if e := expect(t, k, spec(writeOnly, 100), ReasonNew); e.Before != (Progress{}) {
		t.Errorf("before the first packet: %+v", e.Before)
	}
	expect(t, k, withMSN(spec(ack, 7), 3), ReasonStep)
	set(t, k, spec(ack, 0), Followed)
	before := time.Now()
	for i := range uint32(10) {
		expect(t, k, spec(writeOnly, 101+i), 0)
	}
	expect(t, k, read(111, 5000), 0)
	after := time.Now()
	e := expect(t, k, spec(writeOnly, 90_000), ReasonStep)
	if e.Before.LastSeen.Before(before.Add(-coarse)) || e.Before.LastSeen.After(after.Add(time.Millisecond)) || e.At.Before(e.Before.LastSeen) {
		t.Errorf("last seen %v, at %v, not within %v and %v", e.Before.LastSeen, e.At, before, after)
	}
	e.Before.LastSeen = time.Time{}
	want := Progress{State: Followed, Skipped: 11, ReqHigh: 111, RespHigh: 7, MSN: 3, ReadLen: 5000, HasReq: true, HasResp: true, HasMSN: true}
	if e.Before != want {
		t.Errorf("before the step\ngot  %+v\nwant %+v", e.Before, want)
	}
}

// A forger's packets must neither move a decided flow nor stay unseen.
func TestPacketsOfAnotherSenderMoveNothing(t *testing.T) {
	k := need(t, Config{MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour})
	s := spec(writeOnly, 100)
	expect(t, k, s, ReasonNew)
	set(t, k, s, Followed)
	mac := frameOf(t, spec(writeOnly, 5000))
	mac[6] ^= 4
	expectFrame(t, k, mac, ReasonIdentity)
	far := spec(writeOnly, 5001)
	far.TTL = 62
	expect(t, k, far, ReasonIdentity)
	bulk := spec(sendMiddle, 5002)
	bulk.TTL = 62
	expect(t, k, bulk, 0)
	near := spec(writeOnly, 101)
	near.TTL = 63
	expect(t, k, near, 0)
	if f, err := k.Lookup(keyOfSpec(s)); err != nil || f.Packets != 2 || f.State != Followed {
		t.Errorf("%+v, %v; want 2 packets of the flow's own sender", f, err)
	}
}

func TestFlowsAreToldApart(t *testing.T) {
	k := need(t, Config{MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour})
	s := spec(writeOnly, 100)
	expect(t, k, s, ReasonNew)
	set(t, k, s, Followed)
	port, qp, from, to := s, s, s, s
	port.SrcPort++
	qp.BTH.DestQP++
	from.Src, to.Dst = netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("10.0.0.3")
	for _, o := range []roce.PacketSpec{port, qp, from, to} {
		expect(t, k, o, ReasonNew)
	}
	ip := frameOf(t, s)[14:]
	expectFrame(t, k, taptest.Ethernet(ip, [2]uint16{0x8100, 0x2005}), ReasonNew)
	expectFrame(t, k, taptest.Ethernet(ip, [2]uint16{0x8100, 5}), ReasonVote) // the priority is not the VLAN
	tagged := keyOfSpec(s)
	tagged.VLAN = 5
	if _, err := k.Lookup(tagged); err != nil {
		t.Error(err)
	}
}

func TestQuietAndFollowedFlowsAreHandedUpOnceInAnInterval(t *testing.T) {
	both(t, Config{MaxFlows: 1024, RingSize: 1 << 16, Interval: 20 * time.Millisecond}, func(t *testing.T, k *Tap) {
		for _, st := range []State{Quiet, Followed} {
			s := spec(writeOnly, 100)
			s.BTH.DestQP += uint32(st)
			first := expect(t, k, s, ReasonNew)
			set(t, k, s, st)
			last, sent := first.At, uint32(0)
			for range 3 {
				testwait.Until(t, "a packet handed up", func() bool {
					got := run(t, k, frameOf(t, s))
					if len(got) == 0 {
						sent++
						return false
					}
					e := got[0]
					if e.Reason != ReasonInterval || e.At.Sub(last) < 20*time.Millisecond || e.Before.Skipped != sent {
						t.Fatalf("%v: %+v after %v, %d packets", st, e.Event, e.At.Sub(last), sent)
					}
					last, sent = e.At, 0
					return true
				})
			}
		}
	})
}

// DC and the like have no learnable Source QP: user space must know that they are there, and no more.
func TestUnsupportedTransportsAreQuiet(t *testing.T) {
	k := need(t, Config{MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour})
	for i, op := range []byte{0x44, 0xA4, 0xC4, 0xE4} {
		s := spec(op, 1)
		s.BTH.DestQP += uint32(i)
		expect(t, k, s, ReasonNew)
		state(t, k, s, Quiet)
		s.BTH.PSN, s.TTL = 1<<20, 9
		expect(t, k, s, 0)
	}
}

func TestMADsAreHandedUpWholeAndMakeNoFlow(t *testing.T) {
	both(t, Config{MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour}, func(t *testing.T, k *Tap) {
		s := spec(udSend, 1)
		s.BTH.DestQP = roce.QP1
		s.Body = make([]byte, 8+256)
		for i := range s.Body {
			s.Body[i] = byte(i)
		}
		for range 3 {
			expect(t, k, s, ReasonMAD)
		}
		if live, _, err := k.Flows(); live != 0 || err != nil {
			t.Errorf("%d flows, %v", live, err)
		}
	})
}

func TestFlowMapIsBoundedAndEvictionsAreCounted(t *testing.T) {
	const bound, flows = 1024, 5000
	k := need(t, Config{MaxFlows: bound, RingSize: 1 << 20, Interval: time.Hour})
	for i := range uint32(flows) {
		s := spec(writeOnly, 1)
		s.BTH.DestQP = 1<<16 + i
		expect(t, k, s, ReasonNew)
	}
	live, evicted, err := k.Flows()
	if err != nil {
		t.Fatal(err)
	}
	if live == 0 || live > bound || live+evicted != flows {
		t.Errorf("%d flows and %d evictions of %d", live, evicted, flows)
	}
	if err := k.Forget(keyOfSpec(spec(0, 0))); !errors.Is(err, ErrNoFlow) {
		t.Errorf("forget what is not there: %v", err)
	}
	if err := k.SetState(keyOfSpec(spec(0, 0)), Followed); !errors.Is(err, ErrNoFlow) {
		t.Errorf("set what is not there: %v", err)
	}
	last := spec(writeOnly, 2)
	last.BTH.DestQP = 1<<16 + flows - 1
	if err := k.Forget(keyOfSpec(last)); err != nil {
		t.Fatal(err)
	}
	if l, e, err := k.Flows(); l != live-1 || e != evicted || err != nil {
		t.Errorf("%d flows and %d evictions, %v; want %d and %d", l, e, err, live-1, evicted)
	}
	expect(t, k, last, ReasonNew)
}

func TestPacketsThatTheRingBufferCantTakeAreCounted(t *testing.T) {
	k := need(t, Config{MaxFlows: 1024, RingSize: 4096, Interval: time.Hour})
	frame := frameOf(t, spec(writeOnly, 1))
	const packets = 100
	for i := range uint32(packets) {
		binary.BigEndian.PutUint32(frame[14+20+8+8:], i)
		if _, err := k.progs[0].Run(runOptions(frame)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := k.Counters()
	if err != nil {
		t.Fatal(err)
	}
	got := uint64(len(run(t, k, frameOf(t, spec(0x81, 0))))) // a CNP: what comes is what waited
	if c.Lost == 0 || c.Lost+got != packets || c.Packets != packets || c.HandedUp[ReasonNew]+c.HandedUp[ReasonVote] != got {
		t.Errorf("%d came, %+v", got, c)
	}
}
