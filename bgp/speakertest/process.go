package speakertest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/pnc"
)

// Deadline is how long Await waits.
const Deadline = 40 * time.Second

// Process is a speaker in a process of its own.
type Process struct {
	t   testing.TB
	in  io.Writer
	out *json.Decoder
	log *output
}

// Starter starts this test binary with the environment variable added and the given standard
// streams, and gives a function that waits for its end after its standard input was closed.
type Starter func(env string, stdin, stdout *os.File, stderr io.Writer) (wait func(), err error)

// Here starts the process beside the test.
func Here(env string, stdin, stdout *os.File, stderr io.Writer) (func(), error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		timer := time.AfterFunc(15*time.Second, func() { cmd.Process.Kill() })
		defer timer.Stop()
		cmd.Wait()
	}, nil
}

// Launch starts a speaker and stops it at the end of the test. The text is the error with which the
// speaker refused to start; empty when it runs.
func Launch(t testing.TB, cfg bgp.Config, start Starter) (*Process, string) {
	t.Helper()
	text, err := json.Marshal(cfg)
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
	p := &Process{t: t, in: in, out: json.NewDecoder(out), log: &output{}}
	wait, err := start(Env+"="+string(text), theirIn, theirOut, p.log)
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // ends its loop
		wait()
		out.Close()
		if t.Failed() {
			t.Logf("log of the speaker with AS %d, router ID %s:\n%s", cfg.AS, cfg.RouterID, p.Log())
		}
	})
	var hello Answer
	if err := p.out.Decode(&hello); err != nil {
		t.Fatalf("the speaker didn't start: %v\n%s", err, p.Log())
	}
	return p, hello.Error
}

// Start is Launch for a speaker that has to start.
func Start(t testing.TB, cfg bgp.Config, start Starter) *Process {
	t.Helper()
	p, refused := Launch(t, cfg, start)
	if refused != "" {
		t.Fatalf("the speaker refused to start: %s", refused)
	}
	return p
}

// Log is what the speaker has logged, all levels.
func (p *Process) Log() string { return p.log.String() }

// Ask has a request done and gives the state after it.
func (p *Process) Ask(r Request) Answer {
	p.t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		p.t.Fatal(err)
	}
	var a Answer
	if err := p.out.Decode(&a); err != nil {
		p.t.Fatalf("no answer: %v", err)
	}
	return a
}

// Must is Ask for a request that has to succeed.
func (p *Process) Must(r Request) Answer {
	p.t.Helper()
	a := p.Ask(r)
	if a.Error != "" {
		p.t.Fatalf("%+v: %s", r, a.Error)
	}
	return a
}

// Await asks until the condition holds.
func (p *Process) Await(what string, ok func(Answer) bool) Answer {
	p.t.Helper()
	var a Answer
	for end := time.Now().Add(Deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if a = p.Ask(Request{}); ok(a) {
			return a
		}
	}
	p.t.Fatalf("waited in vain for: %s\n%s", what, a)
	return a
}

// AwaitUp waits for the session with a neighbour.
func (p *Process) AwaitUp(neighbor string) Answer {
	p.t.Helper()
	return p.Await("session with "+neighbor, func(a Answer) bool { return a.Up(neighbor) })
}

// Up reports whether the session with a neighbour is established.
func (a Answer) Up(neighbor string) bool {
	n := a.Neighbor(neighbor)
	return n != nil && n.State.String() == "established"
}

// Neighbor finds a neighbour.
func (a Answer) Neighbor(at string) *bgp.NeighborStatus {
	for i := range a.Neighbors {
		if a.Neighbors[i].Address.String() == at {
			return &a.Neighbors[i]
		}
	}
	return nil
}

// Of gives the routes of a prefix.
func (a Answer) Of(prefix string) []pnc.Route {
	var out []pnc.Route
	for _, r := range a.Routes {
		if r.Prefix.String() == prefix {
			out = append(out, r)
		}
	}
	return out
}

// Believed finds a route of the prefix whose PNC is believed.
func (a Answer) Believed(prefix string) *pnc.Route {
	for _, r := range a.Of(prefix) {
		if r.Believed() {
			return &r
		}
	}
	return nil
}

// Believes is a condition for Await: the prefix has a route with this proxy, and it is believed.
func Believes(prefix, proxy string) func(Answer) bool {
	return func(a Answer) bool {
		r := a.Believed(prefix)
		return r != nil && r.Proxy.String() == proxy
	}
}

// String is for failed tests.
func (a Answer) String() string {
	var b strings.Builder
	for _, r := range a.Routes {
		fmt.Fprintf(&b, "route %s from %s id %d next hop %s proxy %s disregarded %s best %v partial %v\n",
			r.Prefix, r.Peer, r.PathID, r.NextHop, r.Proxy, r.Disregarded, r.Best, r.Partial)
	}
	for _, e := range a.Disregarded {
		fmt.Fprintf(&b, "disregarded %s on %s from %s: %s\n", e.Reason, e.Route.Prefix, e.Route.Peer, e.Detail)
	}
	for _, n := range a.Neighbors {
		fmt.Fprintf(&b, "neighbor %s %s flaps %d advertised %d: %s\n", n.Address, n.State, n.Flaps, n.Advertised, n.LastError)
	}
	for _, ad := range a.Advertisements {
		fmt.Fprintf(&b, "advertisement %s %s active %v: %s\n", ad.Prefix, ad.Mode, ad.Active, ad.InactiveReason)
	}
	return b.String()
}

// output collects what a process logs while the test reads it.
type output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
