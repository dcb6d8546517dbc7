package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/config"
	"pncd/internal/testwait"
	"pncd/pnc"
	"pncd/proxyagent/flowmap"
)

// running is a daemon under test with its configuration file.
type running struct {
	*Daemon
	t    *testing.T
	port uint16
}

// template has %PORT% and %DIR% for what each test gets of its own.
const template = `
node: test
api: {listen: "unix://%DIR%/pncd.sock"}
static: [{prefix: 198.51.100.0/24, proxy: 192.0.2.1}]
congestion_node: {interfaces: [lo], source_ipv4: 127.0.0.1, detect: {mode: ring}}
proxy:
  ipv4: 127.0.0.1
  port: %PORT%
  taps: [lo]
  tap: ring
  accept_from: [127.0.0.0/8]
  senders: [{prefix: 198.51.100.0/24}]
`

// start runs a daemon; before is called with it when it does not run yet.
func start(t *testing.T, yaml string, before ...func(*Daemon)) *running {
	t.Helper()
	requireRaw(t)
	ignore := goleak.IgnoreCurrent()
	r := &running{t: t, port: freePort(t)}
	path := filepath.Join(t.TempDir(), "pncd.yaml")
	r.write(path, yaml)
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	if r.Daemon, err = New(cfg, path, log); err != nil {
		t.Fatal(err)
	}
	for _, f := range before {
		f(r.Daemon)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		goleak.VerifyNone(t, ignore)
	})
	testwait.Until(t, "the API answers", func() bool {
		c, err := net.Dial("unix", filepath.Join(filepath.Dir(path), "pncd.sock"))
		if err == nil {
			c.Close()
		}
		return err == nil && r.up()
	})
	return r
}

func (d *Daemon) up() bool {
	_, known := d.tracker.Reach(netip.MustParseAddr("192.0.2.1"))
	return known
}

func (r *running) write(path, yaml string) {
	r.t.Helper()
	yaml = strings.NewReplacer("%PORT%", fmt.Sprint(r.port), "%DIR%", filepath.Dir(path)).Replace(yaml)
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) edit(edit ...string) ([]string, error) {
	r.t.Helper()
	r.write(r.path, strings.NewReplacer(edit...).Replace(template))
	return r.Reload(context.Background())
}

// listening says whether somebody holds the notification port.
func (r *running) listening() bool {
	c, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", r.port))
	if err == nil {
		c.Close()
	}
	return err != nil
}

// packetSockets counts the packet sockets of this process.
func packetSockets(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/net/packet")
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for _, line := range strings.Split(string(b), "\n")[1:] {
		if f := strings.Fields(line); len(f) > 0 {
			inodes[f[len(f)-1]] = true
		}
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range fds {
		to, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok && inodes[strings.TrimSuffix(inode, "]")] {
			n++
		}
	}
	return n
}

func requireRaw(t *testing.T) {
	t.Helper()
	c, err := net.ListenPacket("ip4:255", "127.0.0.1")
	if err != nil {
		t.Skip("needs CAP_NET_RAW: run as root")
	}
	c.Close()
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Port()
}

func TestOffMeansOffAndSwitchesBothWays(t *testing.T) {
	r := start(t, template)
	ctx := context.Background()
	if r.Enabled() || r.listening() || packetSockets(t) != 0 {
		t.Fatalf("by default: enabled %v, listening %v, %d packet sockets", r.Enabled(), r.listening(), packetSockets(t))
	}
	for range 2 {
		if was, err := r.Enable(ctx); err != nil || was {
			t.Fatalf("Enable: was %v, %v", was, err)
		}
		if was, err := r.Enable(ctx); err != nil || !was {
			t.Fatalf("Enable again: was %v, %v", was, err)
		}
		if ready, why := r.Ready(); !ready || !r.listening() || packetSockets(t) != 2 {
			t.Fatalf("enabled: ready %v %v, listening %v, %d packet sockets", ready, why, r.listening(), packetSockets(t))
		}
		if was, err := r.Disable(ctx); err != nil || !was {
			t.Fatalf("Disable: was %v, %v", was, err)
		}
		if ready, why := r.Ready(); ready || len(why) != 1 || r.listening() || packetSockets(t) != 0 {
			t.Fatalf("disabled: ready %v %v, listening %v, %d packet sockets", ready, why, r.listening(), packetSockets(t))
		}
	}
}

// The API answers before the mechanism is on: it is not disabled then.
func TestUntilTheMechanismIsOnItIsStarting(t *testing.T) {
	r := start(t, strings.Replace(template, "node: test", "node: test\nenabled: true", 1), func(d *Daemon) { d.control.Lock() })
	look := func() *pncv1.GetStatusResponse {
		t.Helper()
		st, err := r.Status(context.Background())
		if err != nil {
			t.Error(err)
		}
		return st
	}
	tap := func(st *pncv1.GetStatusResponse) pncv1.PartState {
		for _, p := range st.GetParts() {
			if p.GetName() == "tap:lo" {
				return p.GetState()
			}
		}
		return pncv1.PartState_PART_STATE_UNSPECIFIED
	}
	st := look()
	r.control.Unlock()
	if !st.GetStarting() || st.GetEnabled() || tap(st) != pncv1.PartState_PART_STATE_STARTING || !slices.Contains(st.GetNotReadyReasons(), "pncd is starting") {
		t.Errorf("%v", st)
	}
	testwait.Until(t, "the mechanism is on", func() bool {
		st := look()
		return st.GetEnabled() && !st.GetStarting() && tap(st) == pncv1.PartState_PART_STATE_READY
	})
	if _, err := r.Disable(context.Background()); err != nil {
		t.Fatal(err)
	}
	if st := look(); st.GetStarting() || tap(st) != pncv1.PartState_PART_STATE_DISABLED {
		t.Errorf("switched off: %v", st)
	}
}

func TestEnableOpensEverythingOrNothing(t *testing.T) {
	r := start(t, template)
	taken, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", r.port))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = r.Enable(context.Background())
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "the address is taken") {
		t.Fatalf("got %v", err)
	}
	if r.Enabled() || packetSockets(t) != 0 {
		t.Errorf("enabled %v, %d packet sockets", r.Enabled(), packetSockets(t))
	}
}

func TestReloadAppliesAsAWholeOrNotAtAll(t *testing.T) {
	r := start(t, template)
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	sender := netip.MustParseAddr("198.51.100.7")
	before := r.table.Resolve("", sender, 0)
	for _, tc := range []struct{ name, old, new, want string }{
		{"unknown key", "node: test", "nod: test", "line 2: nod: unknown key"},
		{"unknown interface", "taps: [lo]", "taps: [lo, nosuch0]", "nosuch0"},
		{"unknown interface to accept from", "taps: [lo]", "taps: [lo]\n  accept_interfaces: [nosuch0]", "nosuch0"},
		{"restart needed", "node: test", "node: other", "needs a restart of pncd: node: test -> other"},
		{"bgp added", "node: test", "node: test\nbgp: {as: 1, router_id: 192.0.2.1}", "bgp: added or removed as a whole"},
	} {
		// The route's change is in each of them, and must not take effect.
		_, err := r.edit("198.51.100.0/24, proxy: 192.0.2.1", "203.0.113.0/24, proxy: 192.0.2.1", "198.51.100.0/24}]", "198.51.100.0/24, mode: none}]", tc.old, tc.new)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
		if got := r.table.Resolve("", sender, 0); got.Reason != before.Reason {
			t.Errorf("%s: the table changed: %v", tc.name, got.Reason)
		}
		if n := packetSockets(t); n != 2 {
			t.Errorf("%s: %d packet sockets", tc.name, n)
		}
	}
}

// What was opened for a reload that is refused in the end has changed nothing: not whose packets feed the Source-QP map,
// nor its answers, nor what CNPs leave by.
func TestRefusedReloadLeavesAnswersAndSocketsAlone(t *testing.T) {
	vpns := func(r *running, edit ...string) error {
		r.write(r.path, strings.NewReplacer(append(edit, "%PORT2%", fmt.Sprint(freePort(t)))...).Replace(vpnTemplate))
		_, err := r.Reload(context.Background())
		return err
	}
	foreign := []string{"accept_from: [127.0.0.0/8]", "accept_from: [127.0.0.0/8, \"::1/128\"]\n  ipv6: \"fd00::1\""}
	lacking := []string{"taps: [lo]}", "taps: [lo, nosuch0]}"} // in the VPN, whose parts are opened after the others
	for _, tc := range []struct {
		name, old, new, want string
		refused              []string
	}{
		{"the taps' program", "tap: ring", "tap: clsact", "fd00::1", foreign},
		{"how CNPs leave", "tap: ring", "emit: packet\n  tap: ring", "fd00::1", foreign},
		{"the sockets of a VPN", "senders: [{", "senders: [{prefix: \"2001:db8::/32\", mode: none, context: blue}, {", "nosuch0", lacking},
		{"the taps in a VPN", "tap: ring", "tap_ring: 8\n  tap: ring", "nosuch0", lacking},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, _ := vpnsUnderTest(t, 0)
			if err := vpns(r); err != nil {
				t.Fatal(err)
			}
			p, v := r.parts.Load(), r.contexts.of(&r.config.Load().Contexts[0])
			now := time.Now()
			known := learnPair(t, p.flows, &now)
			feeding, sockets, inVPN := p.learner.feeding.Load(), r.sender.current.Load(), v.open.Load()
			if err := vpns(r, append(tc.refused, tc.old, tc.new)...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if !known() {
				t.Error("the answer is held back")
			}
			if p.learner.feeding.Load() != feeding {
				t.Error("another tap feeds the map")
			}
			if r.sender.current.Load() != sockets || v.open.Load() != inVPN {
				t.Errorf("other sockets send: %v, %v", r.sender.current.Load(), v.open.Load())
			}
		})
	}
}

// What this machine lacks is said of the key that asks for it, once.
func TestErrorsOfTheMachineNameTheKeyThatAsks(t *testing.T) {
	r := start(t, template)
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "blue")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const lacking = "nosuch0: no such interface: create it, or correct its name in the configuration"
	for _, tc := range []struct{ old, new, want string }{
		{"taps: [lo]", "taps: [lo, nosuch0]", "proxy.taps: " + lacking},
		{"taps: [lo]\n  tap: ring", "taps: [lo, nosuch0]\n  tap: clsact", "proxy.taps: " + lacking},
		{"taps: [lo]", "taps: [lo]\n  translate: kernel\n  translate_interfaces: [nosuch0]", "proxy.translate_interfaces: " + lacking},
		{"interfaces: [lo]", "interfaces: [lo, nosuch0]", "congestion_node.interfaces: " + lacking},
		{"detect: {mode: ring}", "detect: {mode: ring, qdiscs: [{interface: nosuch0}]}", "congestion_node.detect: " + lacking},
		{"  ipv4: 127.0.0.1\n", "  ipv4: 192.0.2.77\n", fmt.Sprintf("proxy.ipv4: listen on 192.0.2.77:%d: bind: cannot assign requested address; this node has no such address: add it to an interface, or configure one that it has", r.port)},
		{"node: test", "node: test\ncontexts: [{name: blue, namespace: " + plain + "}]",
			"contexts[0]: network namespace " + plain + ": it is no network namespace (invalid argument)"},
	} {
		_, err := r.edit(tc.old, tc.new)
		if got := status.Convert(err).Message(); got != "configuration: "+tc.want {
			t.Errorf("%s:\n%s\nwant\nconfiguration: %s", tc.new, got, tc.want)
		}
	}
}

func TestReloadTouchesOnlyWhatChanged(t *testing.T) {
	r := start(t, template)
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	since := map[string]time.Time{}
	for _, u := range r.units.statuses() {
		since[u.name] = u.since
	}
	changes, err := r.edit("proxy: 192.0.2.1}]", "proxy: 192.0.2.2}]", "taps: [lo]", "taps: [lo]\n  tap_ring: 4")
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 2 {
		t.Errorf("changes: %q", changes)
	}
	for _, u := range r.units.statuses() {
		if moved := !u.since.Equal(since[u.name]); moved != (u.name == "tap:lo") {
			t.Errorf("%s: started again: %v", u.name, moved)
		}
	}
	if got := r.table.Resolve("", netip.MustParseAddr("198.51.100.7"), 0); got.Route == nil || got.Route.Proxy() != netip.MustParseAddr("192.0.2.2") {
		t.Errorf("the route was not changed: %+v", got)
	}
	if changes, err := r.Reload(context.Background()); err != nil || len(changes) != 0 {
		t.Errorf("an unchanged file: %q, %v", changes, err)
	}
}

func TestReloadTakesRolesAwayAndBringsThemBack(t *testing.T) {
	r := start(t, template)
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	proxy := template[strings.Index(template, "proxy:\n"):]
	if _, err := r.edit(proxy, ""); err != nil {
		t.Fatal(err)
	}
	if r.listening() || packetSockets(t) != 1 {
		t.Errorf("without the proxy: listening %v, %d packet sockets", r.listening(), packetSockets(t))
	}
	if _, err := (flowsBackend{r.Daemon}).GetFlow(context.Background(), "", netip.IPv4Unspecified(), netip.IPv4Unspecified(), 0); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("flows without a proxy: %v", err)
	}
	if _, err := r.edit(); err != nil {
		t.Fatal(err)
	}
	if ready, why := r.Ready(); !ready || !r.listening() {
		t.Errorf("the proxy is back: ready %v %v", ready, why)
	}
}

func TestReloadSwitchesOnlyWhenTheKeyChanged(t *testing.T) {
	r := start(t, template)
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.edit("node: test", "node: test\nlog: {level: debug}"); err != nil || !r.Enabled() {
		t.Fatalf("enabled by hand, and the file says nothing new: %v, %v", r.Enabled(), err)
	}
	if _, err := r.edit("node: test", "node: test\nenabled: true"); err != nil || !r.Enabled() {
		t.Fatalf("%v, %v", r.Enabled(), err)
	}
	if _, err := r.edit(); err != nil || r.Enabled() || r.listening() {
		t.Fatalf("the file switched it off: enabled %v, %v", r.Enabled(), err)
	}
}

func TestAdvertiseNeedsBGPAndTheMechanism(t *testing.T) {
	r := start(t, template)
	req := api.Advertise{Prefix: netip.MustParsePrefix("198.51.100.0/24"), Mode: pncv1.OriginationMode_ORIGINATION_MODE_ORIGINATE}
	if _, err := (advertiser{r.Daemon}).Advertise(context.Background(), req); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("got %v", err)
	}
}

func TestStartFailsWithWhatToDo(t *testing.T) {
	requireRaw(t)
	for _, tc := range []struct{ old, new, want string }{
		{"interfaces: [lo]", "interfaces: [nosuch0]", "nosuch0: no such interface"},
		{"ipv4: 127.0.0.1\n", "ipv4: 192.0.2.77\n", "this node has no such address"},
		{"source_ipv4: 127.0.0.1", "source_ipv4: 192.0.2.77", "congestion_node.source_ipv4: this node has no address 192.0.2.77"},
		{"taps: [lo]", "taps: [lo]\n  accept_interfaces: [lo, nosuch0]", `proxy.accept_interfaces: no such interface: "nosuch0"`},
	} {
		dir := t.TempDir()
		yaml := strings.NewReplacer("%DIR%", dir, "%PORT%", fmt.Sprint(freePort(t)), tc.old, tc.new, "node: test", "node: test\nenabled: true").Replace(template)
		cfg, err := config.Parse([]byte(yaml))
		if err != nil {
			t.Fatal(err)
		}
		log := logrus.New()
		log.SetOutput(io.Discard)
		d, err := New(cfg, "none", log)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "pncd.sock")); err == nil {
			t.Error("the socket was left behind")
		}
	}
}

func TestFlowStatesAndSourcesHaveTheNumbersOfTheProtobuf(t *testing.T) {
	for s := flowmap.StateUndecided; s <= flowmap.StateEvicted; s++ {
		if got := strings.ToLower(strings.TrimPrefix(pncv1.FlowState(s).String(), "FLOW_STATE_")); got != s.String() {
			t.Errorf("state %d: %s and %s", s, s, got)
		}
	}
	for s := flowmap.SourceCM; s <= flowmap.SourceDETH; s++ {
		if got := strings.ToLower(strings.TrimPrefix(pncv1.FlowSource(s).String(), "FLOW_SOURCE_")); got != s.String() {
			t.Errorf("source %d: %s and %s", s, s, got)
		}
	}
}

func TestEverySourceOfTheTableHasAName(t *testing.T) {
	for _, s := range pnc.Sources() {
		if sourceByName[s.String()] != s {
			t.Errorf("%v is not in sourceByName", s)
		}
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for n := range sourceByName {
			if !yield(n) {
				return
			}
		}
	})
	if len(names) != len(pnc.Sources()) {
		t.Errorf("names %v", names)
	}
}
