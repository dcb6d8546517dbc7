package kernel

import (
	"math/rand/v2"
	"testing"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel/kerneltest"
)

// The simulations of package flowmap stand on the model of package kerneltest: it must hand up what the program does,
// and know of each flow what the program knows.
func TestModelHandsUpWhatTheProgramDoes(t *testing.T) {
	const packets = 3000
	both(t, Config{MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour}, func(t *testing.T, k *Tap) {
		rng := rand.New(rand.NewPCG(3, uint64(k.mode)))
		m := kerneltest.NewModel(int64(time.Hour))
		last := map[Key]time.Time{}
		var walk [4]uint32
		told := map[Reason]int{}
		for range packets {
			s := randomSpec(rng, &walk)
			frame := frameOf(t, s)
			if rng.IntN(20) == 0 {
				frame[11] ^= 1 // the source MAC
			}
			var p roce.Packet
			if err := roce.ParseEthernet(frame, &p); err != nil {
				t.Fatal(err)
			}
			key, mk := KeyOf(&p), kerneltest.KeyOf(&p)
			// The program reads the clock itself: a flow must not be near the time after which it counts as idle.
			if time.Since(last[key]) > 50*time.Millisecond && m.Flows[mk] != nil {
				delete(m.Flows, mk)
				if err := k.Forget(key); err != nil {
					t.Fatal(err)
				}
			}
			want, before := m.Take(&p, 1, time.Now().UnixNano())
			got := run(t, k, frame)
			last[key] = time.Now()
			checkBefore(t, s, got, Reason(want), before)
			if f, err := k.Lookup(key); err != nil || f.Transport != m.Flows[mk].Transport {
				t.Fatalf("%+v: transport %v, want %v (%v)", s.BTH, f.Transport, m.Flows[mk].Transport, err)
			}
			told[Reason(want)]++
			if rng.IntN(4) == 0 {
				st := State(rng.IntN(3))
				m.Flows[mk].State = uint8(st)
				if err := k.SetState(key, st); err != nil {
					t.Fatal(err)
				}
			}
		}
		for r := ReasonNew; int(r) < len(reasonNames); r++ {
			if r != ReasonInterval && told[r] == 0 {
				t.Errorf("no packet was handed up for %q", r)
			}
		}
	})
}

func checkBefore(t *testing.T, s roce.PacketSpec, got []seen, want Reason, f kerneltest.Flow) {
	t.Helper()
	switch {
	case want == 0 && len(got) == 0:
		return
	case len(got) != 1 || got[0].Reason != want:
		t.Fatalf("%+v: handed up %+v, want once for %q", s.BTH, got, want)
	}
	b := got[0].Before
	b.LastSeen = time.Time{}
	w := Progress{State: State(f.State), Skipped: f.Skipped, ReqHigh: f.ReqHigh, RespHigh: f.RespHigh, MSN: f.MSN, ReadLen: f.ReadLen,
		HasReq: f.HasReq, HasResp: f.HasResp, HasMSN: f.HasMSN}
	if b != w {
		t.Fatalf("%+v: before it\ngot  %+v\nwant %+v", s.BTH, b, w)
	}
}

// randomSpec is a packet of one of a few flows, mostly a step that fits.
func randomSpec(rng *rand.Rand, walk *[4]uint32) roce.PacketSpec {
	flow := rng.IntN(len(walk))
	ops := [][]byte{{0x00, 0x01, 0x02, 0x04, 0x0A, 0x07, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x17}, {0x24, 0x2A, 0x21, 0x31}, {0x64}, {0x04, 0x0C, 0x11, 0x44, 0xA4}}
	steps := []int{1, 1, 1, 1, 1, 2, 30, 255, 1024, 1025, 5000, 16385, 40000, 1 << 22, 1 << 23, 0, -1, -64, -65, -1024, -1025, -40000}
	walk[flow] = (walk[flow] + uint32(steps[rng.IntN(len(steps))])) & 0xFFFFFF
	s := spec(ops[flow][rng.IntN(len(ops[flow]))], walk[flow])
	s.BTH.DestQP += uint32(flow)
	s.BTH.AckReq = rng.IntN(2) == 0
	s.TTL = 64
	if rng.IntN(20) == 0 {
		s.TTL = uint8(61 + rng.IntN(4))
	}
	op := s.BTH.Opcode
	switch {
	case op.IsReadRequest():
		s.Body = roce.AppendRETH(nil, roce.RETH{DMALen: rng.Uint32() >> rng.IntN(32)})
	case op.HasAETH():
		s.Body = roce.AppendAETH(nil, roce.AETH{MSN: []uint32{1, 63, 64, 70, walk[flow]}[rng.IntN(5)]})
	case op == udSend:
		s.Body = append(roce.AppendDETH(nil, roce.DETH{SrcQP: 9 + rng.Uint32N(8)/7}), 0, 0, 0, 0)
	}
	return s
}
