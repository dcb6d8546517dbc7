package bgp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/bgp"
	"pncd/pnc"
)

// There can be one GoBGP in a process, so each speaker of a test is this test binary, started again:
// it reads requests from its standard input, a JSON object a line, and answers each with one.

const speakerEnv = "PNCD_TEST_SPEAKER"

func TestMain(m *testing.M) {
	if cfg := os.Getenv(speakerEnv); cfg != "" {
		os.Exit(serveSpeaker(cfg))
	}
	os.Exit(m.Run())
}

type request struct {
	Enable    *bool
	Advertise *bgp.OriginateConfig
	Withdraw  *netip.Prefix
	Configure *bgp.Config
	Stop      bool
}

type answer struct {
	Error          string
	Routes         []pnc.Route
	Disregarded    []pnc.Event
	Neighbors      []bgp.NeighborStatus
	Advertisements []bgp.AdvertisementStatus
	Counters       bgp.Counters
}

// memory is a sink that remembers.
type memory struct {
	mu     sync.Mutex
	routes map[pnc.RouteID]pnc.Route
	events []pnc.Event
}

func (m *memory) Apply(_ time.Time, us ...pnc.Update) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range us {
		if u.Withdraw {
			delete(m.routes, u.Route.ID())
		} else {
			m.routes[u.Route.ID()] = u.Route
		}
	}
}

func (m *memory) Disregard(_ time.Time, e pnc.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
}

func serveSpeaker(text string) int {
	var cfg bgp.Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetLevel(logrus.DebugLevel)
	sink := &memory{routes: map[pnc.RouteID]pnc.Route{}}
	sp, err := bgp.NewSpeaker(cfg, sink, nil, log)
	if err != nil {
		json.NewEncoder(os.Stdout).Encode(answer{Error: err.Error()})
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- sp.Run(ctx) }()
	select {
	case <-sp.Ready():
	case err := <-ended:
		json.NewEncoder(os.Stdout).Encode(answer{Error: err.Error()})
		return 1
	}
	out := json.NewEncoder(os.Stdout)
	out.Encode(answer{})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		var err error
		switch {
		case r.Enable != nil:
			err = sp.SetOriginating(*r.Enable)
		case r.Advertise != nil:
			err = sp.Advertise(*r.Advertise)
		case r.Withdraw != nil:
			err = sp.Withdraw(*r.Withdraw)
		case r.Configure != nil:
			err = sp.Reconfigure(*r.Configure)
		case r.Stop:
			cancel()
			err = <-ended
		}
		a := answer{Neighbors: sp.Neighbors(), Advertisements: sp.Advertisements(), Counters: sp.Counters()}
		if err != nil {
			a.Error = err.Error()
		}
		sink.mu.Lock()
		for _, rt := range sink.routes {
			a.Routes = append(a.Routes, rt)
		}
		a.Disregarded = slices.Clone(sink.events)
		sink.mu.Unlock()
		slices.SortFunc(a.Routes, func(x, y pnc.Route) int {
			if c := x.Prefix.Compare(y.Prefix); c != 0 {
				return c
			}
			return strings.Compare(x.Peer, y.Peer)
		})
		out.Encode(a)
		if r.Stop {
			return 0
		}
	}
	return 0
}

// process is a speaker in a process of its own.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
	log *strings.Builder
}

// launch starts a speaker; refused is the error with which it didn't start.
func launch(t *testing.T, cfg bgp.Config) (p *process, refused string) {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p = &process{t: t, cmd: exec.Command("/proc/self/exe"), log: &strings.Builder{}}
	p.cmd.Env = append(os.Environ(), speakerEnv+"="+string(text))
	p.cmd.Stderr = p.log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.in.Close() // ends its loop
		timer := time.AfterFunc(10*time.Second, func() { p.cmd.Process.Kill() })
		p.cmd.Wait()
		timer.Stop()
		if t.Failed() {
			t.Logf("log of the speaker with AS %d, router ID %s:\n%s", cfg.AS, cfg.RouterID, p.log)
		}
	})
	var hello answer
	if err := p.out.Decode(&hello); err != nil {
		t.Fatalf("the speaker didn't start: %v\n%s", err, p.log)
	}
	return p, hello.Error
}

func start(t *testing.T, cfg bgp.Config) *process {
	t.Helper()
	p, refused := launch(t, cfg)
	if refused != "" {
		t.Fatalf("the speaker refused to start: %s", refused)
	}
	return p
}

func (p *process) ask(r request) answer {
	p.t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		p.t.Fatal(err)
	}
	var a answer
	if err := p.out.Decode(&a); err != nil {
		p.t.Fatalf("no answer: %v", err)
	}
	return a
}

func (p *process) must(r request) answer {
	p.t.Helper()
	a := p.ask(r)
	if a.Error != "" {
		p.t.Fatalf("%+v: %s", r, a.Error)
	}
	return a
}

// await asks until the condition holds.
func (p *process) await(what string, ok func(answer) bool) answer {
	p.t.Helper()
	var a answer
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if a = p.ask(request{}); ok(a) {
			return a
		}
	}
	p.t.Fatalf("waited in vain for: %s\nroutes %+v\nneighbors %+v\nadvertisements %+v", what, a.Routes, a.Neighbors, a.Advertisements)
	return a
}

func (p *process) awaitUp(addr string) answer {
	p.t.Helper()
	return p.await("session with "+addr, func(a answer) bool { return established(a, addr) })
}

func established(a answer, addr string) bool {
	for _, n := range a.Neighbors {
		if n.Address.String() == addr {
			return n.State.String() == "established"
		}
	}
	return false
}

func route(a answer, prefix, peer string) *pnc.Route {
	for i, r := range a.Routes {
		if r.Prefix.String() == prefix && r.Peer == peer {
			return &a.Routes[i]
		}
	}
	return nil
}

func believes(prefix, peer, proxy string) func(answer) bool {
	return func(a answer) bool {
		r := route(a, prefix, peer)
		return r != nil && r.Believed() && r.Proxy.String() == proxy
	}
}

// freePort gives a TCP port that nobody uses on the loopback addresses.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

var (
	addr   = netip.MustParseAddr
	prefix = netip.MustParsePrefix
)

func ptr[T any](v T) *T { return &v }

// node is exactly with one end of each session passive, so that the two ends' connections never
// collide.
func node(port int, as uint32, at string, neighbors ...bgp.NeighborConfig) bgp.Config {
	for i := range neighbors {
		neighbors[i].Passive = addr(at).Less(neighbors[i].Address)
	}
	return exactly(port, as, at, neighbors...)
}

// exactly is a configuration of a speaker on a loopback address, with neighbours on others.
func exactly(port int, as uint32, at string, neighbors ...bgp.NeighborConfig) bgp.Config {
	for i := range neighbors {
		n := &neighbors[i]
		n.Port, n.LocalAddress = uint16(port), addr(at)
		if n.PeerAS == 0 {
			n.PeerAS = as
		}
		if n.ConnectRetry == 0 {
			n.ConnectRetry = time.Second
		}
		if n.Families == nil {
			n.Families = []bgp.Family{bgp.IPv4Unicast, bgp.IPv6Unicast}
		}
	}
	return bgp.Config{
		RouterID: addr(at), AS: as, ListenPort: port, ListenAddresses: []netip.Addr{addr(at)}, Neighbors: neighbors,
	}
}
