package relay

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inNamespace runs the test again, in a process that has a network namespace of its own, and reports whether
// this is that process: the relay's goroutines are on any thread.
func inNamespace(t *testing.T) bool {
	t.Helper()
	const mark = "PNCD_RELAY_TEST_NAMESPACE"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skipf("needs a network namespace: %v", err)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("in the namespace: %v\n%s", err, out)
	}
	return false
}

// pair makes a link of two interfaces with link-local addresses.
func pair(t *testing.T, name, address, peer, peerAddress string) {
	t.Helper()
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: peer}); err != nil {
		t.Fatal(err)
	}
	for n, a := range map[string]string{name: address, peer: peerAddress} {
		l, err := netlink.LinkByName(n)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
		ip, err := netlink.ParseAddr(a + "/64")
		if err != nil {
			t.Fatal(err)
		}
		ip.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(l, ip); err != nil {
			t.Fatal(err)
		}
	}
}

func loUp(t *testing.T) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reach connects to a node over a link, and tries again while the link comes up.
func reach(t *testing.T, from, to string, port uint16) *remote {
	t.Helper()
	local := net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr(from), 0))
	end := time.Now().Add(deadline)
	for {
		d := net.Dialer{LocalAddr: local, Timeout: time.Second}
		c, err := d.Dial("tcp6", netip.AddrPortFrom(addr(to), port).String())
		if err == nil {
			t.Cleanup(func() { c.Close() })
			c.SetDeadline(time.Now().Add(deadline))
			return &remote{t, c.(*net.TCPConn), bufio.NewReader(c)}
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// RFC 4007: the same address on another interface is somebody else.
func TestALinkLocalNeighbourIsOneOfItsInterface(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	loUp(t)
	pair(t, "near0", "fe80::a", "far0", "fe80::b")
	pair(t, "near1", "fe80::a1", "far1", "fe80::b1")
	n := start(t, here, netip.MustParseAddrPort("[::]:0"), Peer{Address: addr("fe80::b%near0"), LocalAddress: addr("fe80::a%near0"), Passive: true})
	n.active()
	port := addrPort(n.relay.lis.socks[0].Addr()).Port()
	far1, err := netlink.LinkByName("far1")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(far1, &netlink.Addr{IPNet: netlink.NewIPNet(net.ParseIP("fe80::b")), Flags: unix.IFA_F_NODAD}); err != nil {
		t.Fatal(err)
	}
	reach(t, "fe80::b%far1", "fe80::a1%far1", port).closed()
	r := reach(t, "fe80::b%far0", "fe80::a%far0", port)
	r.establish(false)
	n.await("the session", func() bool { return n.up == 1 })
	if s := n.relay.Stats(n.peer.Address); s.Remote.Addr() != n.peer.Address {
		t.Errorf("%+v", s)
	}
	if len(n.seen().notes) != 0 {
		t.Errorf("the stranger was taken for the neighbour: %+v", n.seen().notes)
	}
}

func TestALinkLocalNeighbourIsConnectedToOverItsInterface(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	loUp(t)
	pair(t, "near0", "fe80::a", "far0", "fe80::b")
	l, err := net.Listen("tcp6", "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := Peer{Address: addr("fe80::b%near0"), LocalAddress: addr("fe80::a%near0"), Port: addrPort(l.Addr()).Port(), Password: "secret", TTL: 255, TTLMin: 255}
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err == nil {
		err = onSocket(raw, func(fd int) error {
			return errors.Join(ttl(true, 255).set(fd), setKey(fd, addr("fe80::a"), "secret"))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	n := start(t, here, netip.AddrPort{}, p)
	n.active()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(deadline))
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if from, err := remoteOf(c.(*net.TCPConn)); err != nil || from.Addr() != addr("fe80::a%far0") {
		t.Errorf("from %s, %v", from, err)
	}
	c.SetDeadline(time.Now().Add(deadline))
	r := &remote{t, c.(*net.TCPConn), bufio.NewReader(c)}
	r.establish(false)
	n.await("the session", func() bool { return n.up == 1 })
}

func TestAnInterfaceThatIsNotThereIsNamed(t *testing.T) {
	n := start(t, here, netip.AddrPort{}, Peer{Address: addr("fe80::1%nowhere0"), Port: 179})
	n.active()
	n.await("a note", func() bool { return len(n.notes) > 0 })
	if text := n.seen().notes[0].Text; !strings.HasPrefix(text, "connect: interface nowhere0: ") {
		t.Errorf("%q", text)
	}
}

// The kernel has one key for an address on all interfaces: removing one neighbour leaves the other's.
func TestTheKeyOfAnAddressStaysWhileANeighbourHasIt(t *testing.T) {
	n := start(t, here, netip.MustParseAddrPort("[::1]:0"), Peer{Address: addr("fe80::1%lo"), Port: 1, Passive: true, Password: "secret"})
	other := n.peer
	other.Address, other.Inside = addr("fe80::1%other0"), addr("127.64.0.2")
	if err := n.relay.Add(other); err != nil {
		t.Fatal(err)
	}
	// Taking off a key that isn't there is ENOENT.
	taken := func() (err error) {
		n.relay.lis.each(func(fd int, _ bool) error {
			sig := &unix.TCPMD5Sig{}
			sig.Addr.Family = unix.AF_INET6
			copy(sig.Addr.Data[6:], addr("fe80::1").AsSlice())
			err = unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, sig)
			return nil
		})
		return err
	}
	if err := n.relay.Remove(other.Address); err != nil {
		t.Fatal(err)
	}
	if err := taken(); err != nil {
		t.Errorf("the key went with the first of two neighbours: %v", err)
	}
	if err := n.relay.Add(other); err != nil {
		t.Fatal(err)
	}
	for _, a := range []netip.Addr{n.peer.Address, other.Address} {
		if err := n.relay.Remove(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := taken(); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a key stayed: %v", err)
	}
}
