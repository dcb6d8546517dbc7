package flowmap

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
)

// program is the eBPF program itself as the selection in front of a map: each packet becomes a frame that it is run on.
// Its clock is not the simulation's: when a flow was seen last is kept here.
type program struct {
	tap   *kernel.Tap
	last  map[kernel.Key]int64
	frame []byte
	err   error // the first one
}

func newProgram(mode kernel.Mode, flows int) (*program, error) {
	tap, err := kernel.Open(kernel.Config{Mode: mode, MaxFlows: flows, RingSize: 1 << 16, Interval: time.Hour})
	return &program{tap: tap, last: map[kernel.Key]int64{}}, err
}

func (g *program) fail(err error) {
	if err != nil && g.err == nil {
		g.err = err
	}
}

// take is Model.Take.
func (g *program) take(p *roce.Packet, at int64) (reason uint8, before Progress) {
	g.frame = append(g.frame[:0], 2, 0, 0, 0, 0, 9)
	g.frame = append(append(g.frame, p.SrcMAC[:]...), 8, 0)
	var err error
	if g.frame, err = roce.AppendPacket(g.frame, &roce.PacketSpec{Src: p.Src, Dst: p.Dst, TTL: p.TTL, SrcPort: p.SrcPort, BTH: p.BTH, Body: p.Body}); err != nil {
		g.fail(err)
		return 0, before
	}
	k := kernel.KeyOf(p)
	g.fail(g.tap.Try(g.frame, func(e *kernel.Event) {
		reason, before = uint8(e.Reason), g.progress(k, &e.Before)
		before.Sight, before.Foreign = Sight(e.State()), e.Reason == kernel.ReasonIdentity
	}))
	if reason != uint8(kernel.ReasonIdentity) {
		g.last[k] = at
	}
	return reason, before
}

func (g *program) progress(k kernel.Key, b *kernel.Progress) Progress {
	p := Progress{Sight: Sight(b.State), Skipped: b.Skipped, ReqHigh: b.ReqHigh, RespHigh: b.RespHigh, MSN: b.MSN, ReadLen: b.ReadLen,
		HasReq: b.HasReq, HasResp: b.HasResp, HasMSN: b.HasMSN}
	if at, ok := g.last[k]; ok {
		p.LastSeen = time.Unix(0, at)
	}
	return p
}

func (g *program) key(id FlowID) kernel.Key {
	return kernel.Key{Src: id.Sender, Dst: id.Receiver, DestQP: id.DestQP, SrcPort: id.SrcPort, VLAN: id.VLAN}
}

func (g *program) lookup(id FlowID) (Progress, bool) {
	k := g.key(id)
	f, err := g.tap.Lookup(k)
	if err != nil {
		return Progress{}, false
	}
	return g.progress(k, &f.Progress), true
}

func (g *program) tell(t *Telling) {
	if err := g.tap.SetState(g.key(t.Flow), kernel.State(t.Sight)); !errors.Is(err, kernel.ErrNoFlow) {
		g.fail(err)
	}
}

// packetsForProgram is how many packets the simulation shows the program in all; PNCD_KERNEL_PACKETS=10000000 is what the
// rules were promised to stand.
func packetsForProgram() int {
	if n, err := strconv.Atoi(os.Getenv("PNCD_KERNEL_PACKETS")); err == nil && n > 0 {
		return n
	}
	if raceEnabled {
		return 100_000
	}
	return 400_000
}

// What tempts the rules into wrong pairs, through the program in the kernel: no pair may be wrong.
func TestNoPairIsWrongThroughTheProgramInTheKernel(t *testing.T) {
	cases := []simCase{
		{name: "QPs reused", want: 99.6, cfg: simConfig{n: 64, messages: 300, mixed: true, reuse: 3, ports: portConstant}},
		{name: "QPs reused, 60 % loss", want: 99.6, cfg: simConfig{n: 64, messages: 300, mixed: true, reuse: 3, ports: portConstant, tapLoss: 0.6}},
		{name: "lockstep from 0, 256, formula ports, 60 % loss", want: 99, cfg: simConfig{n: 256, messages: 60, start: startZero, lockstep: true, tapLoss: 0.6, ports: portFormula}},
		{name: "lockstep from 0, 256, constant ports", cfg: simConfig{n: 256, messages: 40, start: startZero, lockstep: true, ports: portConstant}},
		{name: "60 % loss, READs, retransmissions, reordering", want: 99,
			cfg: simConfig{n: 64, messages: 120, tapLoss: 0.6, reads: 0.2, atomics: 0.05, pathLoss: 0.002, reorder: simReorder, mixed: true, bothWays: true, ports: portConstant}},
		{name: "reordering, both ways", want: 99, cfg: simConfig{n: 16, messages: 200, mixed: true, reads: 0.1, bothWays: true, pathLoss: 0.02, reorder: simReorder, ports: portFormula}},
		{name: "one direction of half of them only, 30 % loss", cfg: simConfig{n: 17, messages: 150, tapLoss: 0.3, hidden: true, ports: portFormula, bothWays: true}},
		{name: "lockstep from 0, 4,096, formula ports, 30 % loss", want: 100, cfg: simConfig{n: 4096, messages: 25, start: startZero, lockstep: true, tapLoss: 0.3, ports: portFormula}},
	}
	all, total := score{}, packetsForProgram()
	for i, c := range cases {
		mode := []kernel.Mode{kernel.TCX, kernel.XDP}[i%2]
		var sum score
		for seed := uint64(1); sum.packets < total/len(cases); seed++ {
			g, err := newProgram(mode, 1<<14)
			if errors.Is(err, kernel.ErrPermission) || errors.Is(err, kernel.ErrNotSupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.cfg.selects, c.cfg.program = simInterval, g
			sum.add(simulate(c.cfg, seed))
			if err := errors.Join(g.err, g.tap.Close()); err != nil {
				t.Fatal(err)
			}
		}
		t.Log(line(c.name+", "+mode.String(), false, sum, c.want))
		if sum.wrong != 0 || sum.everShare() > 0.1 {
			t.Errorf("%s: %d wrong at the end, %.2f %% ever", c.name, sum.wrong, sum.everShare())
		}
		if sum.share() < c.want-5 {
			t.Errorf("%s: decided %.1f %%", c.name, sum.share())
		}
		all.add(sum)
	}
	t.Logf("%d packets, %d handed up, %d of %d directions decided, %d wrong", all.packets, all.shown, all.decided, all.directions, all.wrong)
}
