package flowmap

import (
	"fmt"
	"testing"
	"time"
)

// TestSimulationNeverWrong plays what tempts the rules into wrong pairs: nothing need be decided, nothing
// may be wrong.
func TestSimulationNeverWrong(t *testing.T) { eachTap(t, testNeverWrong) }

func testNeverWrong(t *testing.T, tap simTap) {
	var cases []simCase
	for _, n := range []int{2, 4} {
		for _, ports := range []portMode{portUnequal, portConstant} {
			for _, burst := range []bool{false, true} {
				cases = append(cases, simCase{name: fmt.Sprintf("lockstep %d, ports %v, burst=%v, 60 %% loss", n, ports, burst),
					cfg: simConfig{n: n, messages: 300, start: startZero, lockstep: true, burst: burst, ports: ports, tapLoss: 0.6}})
			}
		}
	}
	for _, n := range []int{16, 64} {
		for _, ports := range []portMode{portUnequal, portConstant} {
			cases = append(cases, simCase{name: fmt.Sprintf("lockstep %d in bursts, ports %v, 60 %% loss", n, ports),
				cfg: simConfig{n: n, messages: 120, start: startZero, lockstep: true, burst: true, ports: ports, tapLoss: 0.6}})
		}
	}
	for _, n := range []int{2, 3, 5, 17} {
		for _, ports := range []portMode{portConstant, portUnequal, portFormula, portUnique} {
			cfg := simConfig{n: n, messages: 150, tapLoss: 0.3, hidden: true, ports: ports, bothWays: true}
			cases = append(cases, simCase{name: fmt.Sprintf("half hidden %d, ports %v, random start", n, ports), cfg: cfg})
			cfg.lockstep, cfg.start = true, startZero
			cases = append(cases, simCase{name: fmt.Sprintf("half hidden %d, ports %v, lockstep from 0", n, ports), cfg: cfg})
			cfg.hidden, cfg.halfPath, cfg.start = false, true, startLate
			cases = append(cases, simCase{name: fmt.Sprintf("half of the paths hidden %d, ports %v, lockstep, a late tap", n, ports), cfg: cfg})
		}
	}
	cases = append(cases, simCase{name: "start 0, mixed sizes, 24, 80 % loss",
		cfg: simConfig{n: 24, messages: 102, start: startZero, mixed: true, tapLoss: 0.8, tapAt: 0.08, ports: portConstant}})
	for _, c := range cases {
		c.cfg = c.cfg.on(tap)
		for _, complete := range []bool{false, true} {
			if complete && (c.cfg.hidden || c.cfg.halfPath) {
				continue // the declaration would be false
			}
			c.cfg.config.TapComplete = complete
			r := runSeeds(c.cfg, seedsFor(false))
			t.Log(line(c.name, complete, r, 0))
			if r.wrong != 0 {
				t.Errorf("%s (complete=%v): %d wrong of %d", c.name, complete, r.wrong, r.directions)
			}
		}
	}
}

// TestSimulationBursts plays collectives as they are: all connections of two hosts send in the same
// microseconds, so that a response has many more requests with its PSN before it than rule 1 considers.
func TestSimulationBursts(t *testing.T) { eachTap(t, testBursts) }

func testBursts(t *testing.T, tap simTap) {
	for _, c := range []simCase{
		{name: "lockstep 64 in bursts, formula ports, 60 % loss", want: 99,
			cfg: simConfig{n: 64, messages: 120, start: startZero, lockstep: true, burst: true, tapLoss: 0.6, ports: portFormula}},
		{name: "lockstep 64 in bursts, formula ports, 5 ms one way", want: 99,
			cfg: simConfig{n: 64, messages: 120, start: startZero, lockstep: true, burst: true, tapLoss: 0.3, ports: portFormula,
				oneWay: 5 * time.Millisecond, gap: time.Millisecond}},
		{name: "lockstep 1,024 in bursts, formula ports, 30 % loss", want: 99, large: true,
			cfg: simConfig{n: 1024, messages: 40, start: startZero, lockstep: true, burst: true, tapLoss: 0.3, ports: portFormula}},
	} {
		c.cfg = c.cfg.on(tap)
		r := runSeeds(c.cfg, seedsFor(c.large))
		t.Log(line(c.name, false, r, c.want))
		if r.wrong != 0 || r.share() < c.want-5 {
			t.Errorf("%s: %d wrong, %.1f %% decided", c.name, r.wrong, r.share())
		}
	}
}

// TestSimulationReuse connects QPs anew with other peers: what was learned before must not stay.
func TestSimulationReuse(t *testing.T) { eachTap(t, testReuse) }

func testReuse(t *testing.T, tap simTap) {
	for _, loss := range []float64{0, 0.6} {
		cfg := simConfig{n: 64, messages: 300, mixed: true, reuse: 3, ports: portConstant, tapLoss: loss}.on(tap)
		r := runSeeds(cfg, seedsFor(false))
		name := fmt.Sprintf("QPs reused, %.0f %% loss", 100*loss)
		t.Log(line(name, false, r, 99.6))
		if r.wrong != 0 || r.everShare() > 0.1 || r.share() < 94.6 {
			t.Errorf("%s: %d wrong at the end, %.2f %% ever wrong, %.1f %% decided", name, r.wrong, r.everShare(), r.share())
		}
	}
}

// TestSimulationConnectsAgainNearby connects QPs with each other anew a little behind where they were: a tap that selects
// tells for a while how far the connection before had come, which is no evidence about the new one.
func TestSimulationConnectsAgainNearby(t *testing.T) { eachTap(t, testConnectsAgainNearby) }

func testConnectsAgainNearby(t *testing.T, tap simTap) {
	for _, ports := range []portMode{portConstant, portFormula} {
		for _, both := range []bool{false, true} {
			cfg := simConfig{n: 8, messages: 300, mixed: true, reads: 0.2, bothWays: both, reuse: 1, near: true, ports: ports}.on(tap)
			r := runSeeds(cfg, seedsFor(false))
			name := fmt.Sprintf("connected again nearby, ports %v, both ways %v", ports, both)
			t.Log(line(name, false, r, 99))
			if r.wrong != 0 || r.share() < 94 {
				t.Errorf("%s: %d wrong, %.1f %% decided", name, r.wrong, r.share())
			}
		}
	}
}

// TestSimulationReorderingWithdrawsNothing holds that what a lossy path and a late tap do to true pairs is
// not taken for evidence against them.
func TestSimulationReorderingWithdrawsNothing(t *testing.T) {
	eachTap(t, testReorderingWithdrawsNothing)
}

func testReorderingWithdrawsNothing(t *testing.T, tap simTap) {
	for _, ports := range []portMode{portConstant, portFormula} {
		var withdrawn, contradicted uint64
		var sum score
		for seed := range uint64(seedsFor(false)) {
			cfg := simConfig{n: 16, messages: 200, mixed: true, reads: 0.1, bothWays: true, pathLoss: 0.02, reorder: simReorder, ports: ports}.on(tap)
			s := newSim(cfg, seed+1)
			s.run(nil)
			c := s.m.Counters()
			withdrawn += c.Withdrawn
			contradicted += c.Contradicted
			sum.add(truth(s))
		}
		t.Log(line(fmt.Sprintf("reordering 100 us, 2 %% path loss, both ways, ports %v", ports), false, sum, 99), "withdrawn", withdrawn)
		if withdrawn != 0 || contradicted != 0 || sum.wrong != 0 {
			t.Errorf("ports %v: %d withdrawn, %d contradicted, %d wrong; want none", ports, withdrawn, contradicted, sum.wrong)
		}
		if sum.share() < 90 {
			t.Errorf("ports %v: decided %.1f %%", ports, sum.share())
		}
	}
}

// truth compares the map of a finished simulation with its connections.
func truth(s *sim) score {
	now := time.Unix(0, simEpoch+s.now)
	r := score{runs: 1, packets: s.seen, shown: s.seen, conns: len(s.conns)}
	if s.selector != nil {
		r.shown, r.settled = s.selector.shown, 2*int(s.m.settled.count.Load())
	}
	for _, c := range s.conns {
		if c.wrong {
			r.ever++
		}
		if c.closed {
			continue
		}
		for from := range uint8(2) {
			r.directions++
			e, v := s.m.Lookup(connKey(c, from), now)
			switch {
			case v == Hit && e.SourceQP == c.qp[from]:
				r.decided++
			case v == Hit:
				r.wrong++
			}
		}
	}
	return r
}

// TestSimulationLongPath shows that a path of 5 ms one way, with the tap near one end, decides as a short
// one does, in both directions' requests.
func TestSimulationLongPath(t *testing.T) { eachTap(t, testLongPath) }

func testLongPath(t *testing.T, tap simTap) {
	for _, at := range []float64{0.02, 0.98} {
		cfg := simConfig{n: 64, messages: 120, mixed: true, ports: portConstant, oneWay: 5 * time.Millisecond, tapAt: at,
			gap: 2 * time.Millisecond}.on(tap)
		r := runSeeds(cfg, seedsFor(false))
		t.Log(line(fmt.Sprintf("random start, 64, 5 ms one way, tap at %.2f", at), false, r, 99.6))
		if r.wrong != 0 || r.share() < 94.6 {
			t.Errorf("tap at %.2f: %d wrong, %.1f %% decided", at, r.wrong, r.share())
		}
	}
}

// TestSimulationBusyLongPath has more requests under way than the index may hold: it takes a sample of PSNs.
func TestSimulationBusyLongPath(t *testing.T) { eachTap(t, testBusyLongPath) }

func testBusyLongPath(t *testing.T, tap simTap) {
	for _, n := range []int{1, 8} {
		cfg := simConfig{n: n, messages: 8000, ports: portConstant, oneWay: 5 * time.Millisecond, window: 2000,
			gap: time.Duration(n) * 5 * time.Microsecond}.on(tap)
		seeds := seedsFor(true)
		r := runSeeds(cfg, seeds)
		t.Log(line(fmt.Sprintf("random start, %d, 5 ms one way, %d requests under way", n, 2000*n), false, r, 99.6))
		if r.wrong != 0 || r.share() < 94.6 {
			t.Errorf("%d connections: %d wrong, %.1f %% decided", n, r.wrong, r.share())
		}
	}
}
