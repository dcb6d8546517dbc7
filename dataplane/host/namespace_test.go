package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// namespace is a network namespace without a name: it goes with the file descriptor, so nothing is
// left behind however the test ends.
type namespace struct {
	t    *testing.T
	path string
	nl   *netlink.Handle
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_NET_ADMIN and CAP_SYS_ADMIN to make a network namespace: run as root")
	}
	runtime.LockOSThread()
	own, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	ns, err := netns.New() // the thread is in it now
	if err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	if err := netns.Set(own); err != nil {
		t.Fatal(err) // the thread stays locked and ends with the goroutine
	}
	runtime.UnlockOSThread()
	own.Close()
	n := &namespace{t: t, path: fmt.Sprintf("/proc/self/fd/%d", int(ns))}
	t.Cleanup(func() { ns.Close() })
	n.nl, err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.nl.Close)
	n.up("lo")
	return n
}

// A process without CAP_SYS_ADMIN is told which capability it lacks, whatever it opens in a namespace.
func TestEnteringANamespaceNamesTheCapabilityItNeeds(t *testing.T) {
	if path := os.Getenv("PNCD_TEST_NETNS"); path != "" { // the process without it
		_, openErr := Open(path)
		_, subscribeErr := subscribe(path, 1<<20, groups)
		_, vethErr := EnsureVeth(VethConfig{Name: "va", Peer: "vb", PeerNamespace: path, Owner: "test"})
		for what, err := range map[string]error{"Open": openErr, "subscribe": subscribeErr, "EnsureVeth": vethErr} {
			if !errors.Is(err, ErrNamespacePermission) {
				t.Errorf("%s: %v", what, err)
			}
		}
		return
	}
	n := newNamespace(t)
	file, err := os.Open(n.path)
	n.ok(err)
	defer file.Close()
	self, err := os.Open("/proc/self/exe")
	n.ok(err)
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/4", "-test.run=^"+t.Name()+"$") // its folder is closed to others
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", append(os.Environ(), "PNCD_TEST_NETNS=/proc/self/fd/3"), []*os.File{file, self}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func (n *namespace) ok(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *namespace) link(name string) netlink.Link {
	n.t.Helper()
	l, err := n.nl.LinkByName(name)
	n.ok(err)
	return l
}

func (n *namespace) up(name string)   { n.t.Helper(); n.ok(n.nl.LinkSetUp(n.link(name))) }
func (n *namespace) down(name string) { n.t.Helper(); n.ok(n.nl.LinkSetDown(n.link(name))) }

// veth makes a pair, both ends up, in this namespace.
func (n *namespace) veth(a, b string) {
	n.t.Helper()
	n.ok(n.nl.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: a}, PeerName: b}))
	n.up(a)
	n.up(b)
}

func (n *namespace) addr(name, prefix string) *netlink.Addr {
	n.t.Helper()
	a, err := netlink.ParseAddr(prefix)
	n.ok(err)
	a.Flags = unix.IFA_F_NODAD
	n.ok(n.nl.AddrAdd(n.link(name), a))
	return a
}

// route adds a route; via is empty for one on the link, dev for one of another type.
func (n *namespace) route(prefix, via, dev string, change ...func(*netlink.Route)) *netlink.Route {
	n.t.Helper()
	_, dst, err := net.ParseCIDR(prefix)
	n.ok(err)
	r := &netlink.Route{Dst: dst, Gw: net.ParseIP(via)}
	if dev != "" {
		r.LinkIndex = n.link(dev).Attrs().Index
	}
	for _, f := range change {
		f(r)
	}
	n.ok(n.nl.RouteAdd(r))
	return r
}

func kind(typ int) func(*netlink.Route) { return func(r *netlink.Route) { r.Type = typ } }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }
