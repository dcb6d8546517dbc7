package bgp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/bgp"
	"pncd/bgp/engine"
	"pncd/bgp/engine/enginetest"
	"pncd/bgp/nhc"
	"pncd/bgp/speakertest"
	"pncd/pnc"
)

// heldEnv makes this test binary the speaker of TestASlowTableHoldsNothingButTheLastStateOfEachPath: there is one GoBGP in
// a process, and the heap that the test bounds must not be the neighbour's too.
const heldEnv = "PNCD_TEST_HELD_SPEAKER"

// What the neighbour announces: held prefixes, each again and again with another of the two proxies.
const (
	heldPrefixes = 2000
	heldFor      = 10 * time.Second
	heldWindow   = 8 // rounds that the neighbour may be ahead of what was coalesced; at least 3 are never coalesced
)

var (
	heldNeighbor = netip.MustParseAddr("127.0.0.3")
	heldProxies  = [2]netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")}
)

func heldPrefix(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
}

// heldState is what the speaker's process says of itself, a line each time it is asked.
type heldState struct {
	Error     string
	Up        bool
	Held      time.Duration // how long the table has been holding the consumer back
	Heap      uint64        // in use after a collection
	Coalesced uint64        // events that a later one of the same path took the place of
	Received  uint64        // paths that GoBGP has
	Routes    int
	Proxies   [2]int // routes with each of the proxies
}

// heldSide is what the speaker's process is told.
type heldSide struct {
	Port     uint16
	HoldTime time.Duration
}

// slowTable is a table whose Apply waits while it is held.
type slowTable struct {
	*pnc.Table
	gate sync.RWMutex
	mu   sync.Mutex
	in   time.Time // since when Apply waits; zero when it does not
}

func (s *slowTable) Apply(now time.Time, updates ...pnc.Update) {
	s.waiting(time.Now())
	s.gate.RLock()
	defer s.gate.RUnlock()
	s.waiting(time.Time{})
	s.Table.Apply(now, updates...)
}

func (s *slowTable) waiting(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in = since
}

// serveHeld is the speaker's process. "hold" and "release" close and open the gate; each line is answered
// with the state, "count" with what costs nothing to know.
func serveHeld() {
	text := os.Getenv(heldEnv)
	if text == "" {
		return
	}
	out := json.NewEncoder(os.Stdout)
	if err := heldSpeaker(text, out); err != nil {
		out.Encode(heldState{Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

func heldSpeaker(text string, out *json.Encoder) error {
	var side heldSide
	if err := json.Unmarshal([]byte(text), &side); err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	table := &slowTable{Table: pnc.New(pnc.Config{})}
	routerID := netip.MustParseAddr("192.0.2.1")
	eng := engine.New(engine.Config{RouterID: routerID, AS: 65000, ListenPort: -1, Log: log})
	sp, err := bgp.NewSpeakerOn(eng, bgp.Config{
		RouterID: routerID, AS: 65000, ListenPort: -1,
		Neighbors: []bgp.NeighborConfig{{Address: heldNeighbor, Port: side.Port, PeerAS: 65000, ConnectRetry: time.Second, HoldTime: side.HoldTime}},
	}, table, nil, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sp.Run(ctx) }()
	defer cancel()
	held := false
	for in := json.NewDecoder(os.Stdin); ; {
		var line string
		if in.Decode(&line) != nil { // the test is over
			if held {
				table.gate.Unlock()
			}
			cancel()
			return <-ended
		}
		switch line {
		case "hold":
			table.gate.Lock()
			held = true
		case "release":
			table.gate.Unlock()
			held = false
		}
		select {
		case err := <-ended:
			return errors.Join(errors.New("the speaker ended"), err)
		default:
		}
		st := heldState{Coalesced: eng.Counters().Coalesced, Held: table.held()}
		if line != "count" {
			table.read(sp, &st)
			status, err := eng.Status(ctx)
			if err != nil {
				return err
			}
			for _, p := range status {
				st.Received += p.Received
			}
		}
		out.Encode(st)
	}
}

func (s *slowTable) held() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in.IsZero() {
		return 0
	}
	return time.Since(s.in)
}

func (s *slowTable) read(sp *bgp.Speaker, st *heldState) {
	up, _ := sp.Sessions()
	st.Up = up == 1
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	st.Heap = m.HeapInuse
	for r := range s.Snapshot().Routes(pnc.Filter{}) {
		st.Routes++
		for i, p := range heldProxies {
			if r.Proxy == p {
				st.Proxies[i]++
			}
		}
	}
}

// TestASlowTableHoldsNothingButTheLastStateOfEachPath holds the consumer of the engine's events back for ten
// seconds, with the real engine over TCP and a neighbour that changes the attributes of its prefixes as fast as
// GoBGP takes them in.
// Meanwhile the memory must stay within what the distinct paths need, however many UPDATEs there were, and
// afterwards the table must be right.
func TestASlowTableHoldsNothingButTheLastStateOfEachPath(t *testing.T) {
	f, err := enginetest.Listen(heldNeighbor, 65000, heldNeighbor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	ask := startHeld(t, heldSide{Port: f.Port()})
	ctx, cancel := context.WithTimeout(context.Background(), speakertest.Deadline)
	defer cancel()
	if err := f.Establish(ctx); err != nil {
		t.Fatal(err)
	}
	var all []netip.Prefix
	for i := range heldPrefixes {
		all = append(all, heldPrefix(i))
	}
	updates := [2][]byte{enginetest.AppendUpdates(nil, heldAttributes(t, 0), all...), enginetest.AppendUpdates(nil, heldAttributes(t, 1), all...)}
	send := func(proxy int) {
		t.Helper()
		if err := f.Send(updates[proxy]); err != nil {
			t.Fatal(err)
		}
	}
	await := func(what string, ok func(heldState) bool) heldState { t.Helper(); return awaitHeld(t, ask, what, ok) }

	send(0)
	base := await("the table", func(s heldState) bool { return s.Routes == heldPrefixes })
	ask("hold")
	rounds, most := 0, uint64(0)
	var held heldState
	for next := time.Now(); held.Held < heldFor; {
		rounds++
		send(rounds % 2)
		end := time.Now().Add(speakertest.Deadline)
		for int(held.Coalesced) < (rounds-heldWindow)*heldPrefixes {
			if held = ask("count"); time.Now().After(end) {
				t.Fatalf("after %d changes nothing is coalesced any more: %+v", rounds*heldPrefixes, held)
			}
		}
		if time.Now().After(next) { // looking costs the speaker time
			next = time.Now().Add(500 * time.Millisecond)
			held = ask("state")
			most = max(most, held.Heap)
		}
	}
	if held = ask("state"); held.Proxies[0] != heldPrefixes {
		t.Errorf("the table wasn't held: %+v", held)
	}
	most = max(most, held.Heap)
	ask("release")
	want := [2]int{}
	want[rounds%2] = heldPrefixes
	after := await("the last state", func(s heldState) bool { return s.Proxies == want && s.Routes == heldPrefixes })

	changes := uint64(rounds) * heldPrefixes
	t.Logf("%d changes of %d paths, %d coalesced; heap %d KiB before, %d at most while held, %d after",
		changes, heldPrefixes, after.Coalesced, base.Heap>>10, most>>10, after.Heap>>10)
	// Of each path one event waits, and one is on its way to the table; the neighbour is heldWindow rounds ahead. None
	// has more than 2 KiB, in GoBGP or here.
	if limit := base.Heap + 2*heldWindow*heldPrefixes<<11; most > limit {
		t.Errorf("the heap grew from %d to %d octets", base.Heap, most)
	}
	if !after.Up {
		t.Error("the session didn't last")
	}
}

func awaitHeld(t *testing.T, ask func(string) heldState, what string, ok func(heldState) bool) heldState {
	t.Helper()
	var st heldState
	for end := time.Now().Add(speakertest.Deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if st = ask("state"); ok(st) {
			return st
		}
	}
	t.Fatalf("waited in vain for: %s; %+v", what, st)
	return st
}

func heldAttributes(t *testing.T, proxy int) enginetest.Attributes {
	t.Helper()
	nextHop := netip.MustParseAddr("192.0.2.254")
	tlv, err := nhc.NewPNC(nhc.DefaultPNCCode, heldProxies[proxy])
	if err != nil {
		t.Fatal(err)
	}
	a, err := nhc.New(nhc.AFIIPv4, nhc.SAFIUnicast, nextHop, tlv)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := a.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Attributes{NextHop: nextHop, NHC: raw}
}

// startHeld starts the speaker's process, which ends with the test, and gives the way to ask it.
func startHeld(t *testing.T, side heldSide) func(string) heldState {
	t.Helper()
	text, err := json.Marshal(side)
	if err != nil {
		t.Fatal(err)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	wait, err := speakertest.Here(fmt.Sprintf("%s=%s", heldEnv, text), theirIn, theirOut, os.Stderr)
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		wait()
		out.Close()
	})
	enc, dec := json.NewEncoder(in), json.NewDecoder(out)
	return func(line string) heldState {
		t.Helper()
		var st heldState
		if err := errors.Join(enc.Encode(line), dec.Decode(&st)); err != nil || st.Error != "" {
			t.Fatalf("%s: %v %s", line, err, st.Error)
		}
		return st
	}
}
