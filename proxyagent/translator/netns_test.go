package translator

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pncd/dataplane/emit"
	"pncd/internal/testwait"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_NET_RAW, and CAP_SYS_ADMIN to make a network namespace: run as root")
	}
}

// enterNetns moves the test into a network namespace of its own, with a loopback that has the given
// addresses. The namespace has no name: it goes with its last socket.
func enterNetns(t *testing.T, addresses ...string) {
	t.Helper()
	needRoot(t)
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer home.Close()
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			t.Errorf("back to the first namespace: %v", err)
			return // the thread stays locked, and ends with the test
		}
		runtime.UnlockOSThread()
	})
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		addr, err := netlink.ParseAddr(a)
		if err != nil {
			t.Fatal(err)
		}
		addr.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(lo, addr); err != nil {
			t.Fatalf("address %s: %v", a, err)
		}
		// An IPv6 address works from when a worker of the kernel has put its local route in.
		testwait.Until(t, "local route of "+a, func() bool { return hasLocalRoute(t, addr.IP) })
	}
}

func hasLocalRoute(t *testing.T, ip net.IP) bool {
	t.Helper()
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_LOCAL}, netlink.RT_FILTER_TABLE)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(routes, func(r netlink.Route) bool {
		return r.Type == unix.RTN_LOCAL && r.Dst != nil && r.Dst.IP.Equal(ip)
	})
}

func openSender(t *testing.T) *emit.Sender {
	t.Helper()
	s, err := emit.Open(emit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func listen(t *testing.T, cfg ListenConfig) *Listener {
	t.Helper()
	l, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

var (
	proxy4 = netip.MustParseAddr("203.0.113.9")
	proxy6 = netip.MustParseAddr("2001:db8:ffff::9")
)
