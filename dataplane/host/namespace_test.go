package host

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
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
