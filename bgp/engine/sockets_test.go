package engine

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

var addr = netip.MustParseAddr

func TestAnMPTCPListenerIsRefused(t *testing.T) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(true)
	l, err := lc.Listen(context.Background(), "tcp4", "127.0.0.31:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !isMPTCP(t, l) {
		t.Skip("this kernel has no MPTCP")
	}
	port := l.Addr().(*net.TCPAddr).Port
	if ls, err := findListeners(port, []netip.Addr{addr("127.0.0.31")}); !errors.Is(err, ErrMultipath) {
		t.Errorf("%+v, %v", ls, err)
	}
}

func isMPTCP(t *testing.T, l net.Listener) bool {
	rc, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	proto := 0
	rc.Control(func(fd uintptr) { proto, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PROTOCOL) })
	return proto == unix.IPPROTO_MPTCP
}

// The module carries `godebug multipathtcp=0`, and so do its tests.
func TestListenersOfThisModuleAreNotMPTCP(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if isMPTCP(t, l) {
		t.Error("godebug multipathtcp=0 is not in force: TCP MD5 could not be set on GoBGP's listener")
	}
}

func TestTheListenersAreFoundByPortAndAddress(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.32:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	ls, err := findListeners(port, []netip.Addr{addr("127.0.0.32")})
	if err != nil {
		t.Fatal(err)
	}
	defer ls.close()
	if len(ls.socks) != 1 || ls.socks[0].ipv6 || !ls.hasFamily(addr("192.0.2.1")) || ls.hasFamily(addr("2001:db8::1")) {
		t.Errorf("%+v", ls)
	}
	if _, err := findListeners(port, []netip.Addr{addr("127.0.0.33")}); !errors.Is(err, ErrListen) {
		t.Errorf("a socket on another address was taken: %v", err)
	}
	for _, key := range []string{"secret", "other", "", ""} {
		if err := ls.setKey(addr("192.0.2.1"), key); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if err := ls.setKey(addr("192.0.2.1"), strings.Repeat("x", 81)); !errors.Is(err, ErrMD5) {
		t.Errorf("a key that is too long: %v", err)
	}
	for _, m := range []map[netip.Addr]uint8{{addr("192.0.2.1"): 255}, {}, {}} {
		if err := ls.setMinTTL(m); err != nil {
			t.Errorf("%v: %v", m, err)
		}
	}
	tooMany := map[netip.Addr]uint8{}
	for i := range 5000 {
		tooMany[netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})] = 255
	}
	if err := ls.setMinTTL(tooMany); !errors.Is(err, ErrTTLMin) {
		t.Errorf("a filter that the kernel refuses: %v", err)
	}
}

func TestProbeSaysWhatCannotBeSet(t *testing.T) {
	for _, a := range []string{"192.0.2.1", "2001:db8::1"} {
		if err := probe(Peer{Address: addr(a), Password: "secret", TTLMin: 254}); err != nil {
			t.Errorf("%s: %v", a, err)
		}
		if err := probe(Peer{Address: addr(a), Password: strings.Repeat("x", 81)}); !errors.Is(err, ErrMD5) {
			t.Errorf("%s: key too long: %v", a, err)
		}
	}
}

// The filter's arithmetic, on packets: the VM has no SKF_NET_OFF, so the offsets are moved to where
// the header is.
func TestTheTTLFilterDropsOnlyLowTTLsOfItsPeers(t *testing.T) {
	min := map[netip.Addr]uint8{
		addr("192.0.2.1"): 255, addr("192.0.2.2"): 100, addr("2001:db8::1"): 255, addr("2001:db8::2"): 100,
	}
	for _, v6 := range []bool{false, true} {
		prog := ttlFilter(v6, min)
		for i, in := range prog {
			if l, ok := in.(bpf.LoadAbsolute); ok {
				l.Off -= 0xfff00000
				prog[i] = l
			}
		}
		vm, err := bpf.NewVM(prog)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			src4, src6 string
			ttl        byte
			pass       bool
		}{
			{"192.0.2.1", "2001:db8::1", 255, true}, {"192.0.2.1", "2001:db8::1", 254, false}, {"192.0.2.1", "2001:db8::1", 1, false},
			{"192.0.2.2", "2001:db8::2", 100, true}, {"192.0.2.2", "2001:db8::2", 99, false},
			{"192.0.2.3", "2001:db8::3", 1, true}, {"192.0.3.1", "2001:db9::1", 1, true},
		} {
			packet, src := make([]byte, 60), addr(tt.src4)
			ttlAt, srcAt := 8, 12
			if v6 {
				src, ttlAt, srcAt = addr(tt.src6), 7, 8
			}
			packet[ttlAt] = tt.ttl
			copy(packet[srcAt:], src.AsSlice())
			n, err := vm.Run(packet)
			if err != nil || (n > 0) != tt.pass {
				t.Errorf("%s with TTL %d: %d, %v", src, tt.ttl, n, err)
			}
		}
	}
	if ttlFilter(true, map[netip.Addr]uint8{addr("192.0.2.1"): 255}) != nil {
		t.Error("a filter without need")
	}
}

func TestWithoutListenersThereIsNothingToSet(t *testing.T) {
	var ls *listeners
	if err := errors.Join(ls.setKey(addr("192.0.2.1"), "x"), ls.setMinTTL(nil)); err != nil || ls.hasFamily(addr("192.0.2.1")) {
		t.Error(err)
	}
	ls.close()

}
