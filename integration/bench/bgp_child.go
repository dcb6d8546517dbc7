package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"pncd/bgp"
	"pncd/bgp/engine/enginetest"
	"pncd/internal/daemon"
	"pncd/pnc"
)

// bgpEnv makes this program one side of a BGP benchmark, in a process of its own: there is one GoBGP in
// a process, and what is measured of memory is a process's. Its value is a bgpSide in JSON.
const bgpEnv = "PNCD_BENCH_BGP"

// bgpSide is what a child process runs.
type bgpSide struct {
	Bare bool // GoBGP's watch of best paths with a callback that counts, instead of pncd's learning
	Port uint16
}

// The session. The feeder is the neighbour; the speaker connects to it.
var (
	bgpFeeder  = netip.MustParseAddr("127.0.0.2")
	bgpSpeaker = netip.MustParseAddr("192.0.2.1")
)

const bgpAS = 65000

// bgpRequest asks one thing of a child; one line of JSON each.
type bgpRequest struct {
	// Await asks to tell when so many prefixes have a proxy that can be used (bare: when so many best
	// paths are there), and Sender, if given, resolves.
	Await *int
	// Sender alone asks to tell when its proxy is another (bare: when the callback is called).
	Sender netip.Addr
	Memory bool   // asks how much is in use
	Heap   string // with Memory: where to write a heap profile; empty: nowhere
	CPU    string // asks to write a profile of the processor time from now on, until Memory is asked for
}

// bgpAnswer is what a child says; one line of JSON each. Requests to tell are answered twice: at once,
// and when it has happened.
type bgpAnswer struct {
	At    time.Duration // when it happened, by the kernel's monotonic clock
	CPU   time.Duration // processor time of the process until then, user and system
	Heap  uint64        // octets of the heap in use after two collections
	Peak  uint64        // octets of the resident set at its peak (VmHWM)
	Error string
}

// monotonic reads the clock that all processes share.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // this clock always exists
	return time.Duration(ts.Nano())
}

// processorTime is what this process has used, user and system.
func processorTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // nothing can be wrong with it
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ServeBGP runs one side of a BGP benchmark and exits when the environment asks for it; else it returns
// at once.
func ServeBGP() {
	text := os.Getenv(bgpEnv)
	if text == "" {
		return
	}
	c := &bgpChild{out: json.NewEncoder(os.Stdout)}
	if err := c.serve(text, os.Stdin); err != nil {
		c.tell(bgpAnswer{Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// bgpChild watches what its side learns.
type bgpChild struct {
	mu   sync.Mutex
	out  *json.Encoder
	want bgpRequest // what is to be told; one thing at a time
	old  netip.Addr // the proxy of want.Sender when it was asked for
	last learnt
}

// learnt is what a side has learned so far.
type learnt struct {
	prefixes int
	proxy    func(sender netip.Addr) netip.Addr // nil: bare
}

func (c *bgpChild) serve(text string, in io.Reader) error {
	var side bgpSide
	if err := json.Unmarshal([]byte(text), &side); err != nil {
		return err
	}
	start := c.startPncd
	if side.Bare {
		start = c.startBare
	}
	stop, err := start(side.Port)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r bgpRequest
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("request %q: %w", lines.Text(), err)
		}
		if err := c.do(r); err != nil {
			return err
		}
	}
	return stop()
}

func (c *bgpChild) tell(a bgpAnswer) { c.out.Encode(a) } // an error means that the parent has gone

func (c *bgpChild) do(r bgpRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Memory {
		pprof.StopCPUProfile()
		a, err := memory(r.Heap)
		c.tell(a)
		return err
	}
	if r.CPU != "" {
		f, err := os.Create(r.CPU)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil { // the file stays open as long as the process lives
			return err
		}
	}
	c.want = r
	if c.last.proxy != nil && r.Sender.IsValid() {
		c.old = c.last.proxy(r.Sender)
	}
	c.tell(bgpAnswer{CPU: processorTime()})
	if r.Await != nil {
		c.check()
	}
	return nil
}

// changed is called when something was learned.
func (c *bgpChild) changed(l learnt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = l
	c.check()
}

// check tells what was asked for, if it has happened.
func (c *bgpChild) check() {
	w := c.want
	switch bare := c.last.proxy == nil; {
	case w.Await != nil:
		if c.last.prefixes != *w.Await || !bare && w.Sender.IsValid() && !c.last.proxy(w.Sender).IsValid() {
			return
		}
	case !w.Sender.IsValid() || !bare && c.last.proxy(w.Sender) == c.old:
		return
	}
	at := monotonic()
	c.want = bgpRequest{}
	c.tell(bgpAnswer{At: at, CPU: processorTime()})
}

// startBare starts GoBGP as it comes.
func (c *bgpChild) startBare(port uint16) (func() error, error) {
	prefixes := 0
	b, err := enginetest.StartBare(context.Background(), bgpAS, bgpSpeaker, netip.AddrPortFrom(bgpFeeder, port), func(announced, withdrawn int) {
		prefixes += announced - withdrawn
		c.changed(learnt{prefixes: prefixes})
	})
	if err != nil {
		return nil, err
	}
	return func() error { b.Stop(); return nil }, nil
}

// startPncd starts a speaker with a table, and says of every proxy that it can be reached, as the daemon
// does for those that the kernel has a route to.
func (c *bgpChild) startPncd(port uint16) (func() error, error) {
	daemon.SetGCPercent()
	quiet := logrus.New()
	quiet.SetLevel(logrus.ErrorLevel)
	table := pnc.New(pnc.Config{})
	sp, err := bgp.NewSpeaker(bgp.Config{
		RouterID: bgpSpeaker, AS: bgpAS, ListenPort: -1,
		Neighbors: []bgp.NeighborConfig{{Address: bgpFeeder, Port: port, PeerAS: bgpAS, ConnectRetry: time.Second}},
	}, &tellingSink{table, c}, nil, quiet)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	ended := make(chan error, 1)
	tasks.Go(func() { ended <- sp.Run(ctx) })
	tasks.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-table.ProxiesChanged():
			}
			reach := map[netip.Addr]pnc.Reach{}
			for _, p := range table.Proxies() {
				reach[p] = pnc.Reach{Reachable: true}
			}
			table.SetReachability(time.Now(), reach)
			c.changed(fromTable(table))
		}
	})
	select {
	case <-sp.Ready():
	case err := <-ended:
		cancel()
		tasks.Wait()
		return nil, errors.Join(errors.New("the speaker ended"), err)
	}
	return func() error {
		cancel()
		tasks.Wait()
		return <-ended
	}, nil
}

// tellingSink is a table that says when it has changed.
type tellingSink struct {
	*pnc.Table
	c *bgpChild
}

// Apply implements bgp.RouteSink.
func (s *tellingSink) Apply(now time.Time, updates ...pnc.Update) {
	s.Table.Apply(now, updates...)
	s.c.changed(fromTable(s.Table))
}

func fromTable(t *pnc.Table) learnt {
	snapshot := t.Snapshot()
	_, capabilities := snapshot.Len()
	return learnt{prefixes: capabilities, proxy: func(sender netip.Addr) netip.Addr { return snapshot.Resolve("", sender, 0).Proxy }}
}

// memory reads the memory in use, and writes a heap profile if asked.
func memory(profile string) (a bgpAnswer, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return a, err
	}
	for line := range strings.Lines(string(status)) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			a.Peak = kib << 10
		}
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	a.Heap = m.HeapInuse
	if profile == "" {
		return a, nil
	}
	f, err := os.Create(profile)
	if err != nil {
		return a, err
	}
	defer f.Close()
	return a, pprof.Lookup("heap").WriteTo(f, 0)
}
