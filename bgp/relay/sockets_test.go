package relay

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

func listening(t *testing.T, at ...string) *listeners {
	t.Helper()
	var all []netip.AddrPort
	for _, a := range at {
		all = append(all, netip.MustParseAddrPort(a))
	}
	ls, err := listen(context.Background(), all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ls.close)
	return ls
}

func TestListenersTakeKeysAndFilters(t *testing.T) {
	ls := listening(t, "127.0.0.32:0")
	if isMPTCP(t, ls.socks[0].TCPListener) {
		t.Error("the listener is MPTCP")
	}
	if !ls.hasFamily(addr("192.0.2.1")) || ls.hasFamily(addr("2001:db8::1")) {
		t.Error("families are wrong")
	}
	for _, key := range []string{"secret", "other", "", ""} {
		if err := ls.setKey(addr("192.0.2.1"), key); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if err := ls.setKey(addr("192.0.2.1"), strings.Repeat("x", 81)); !errors.Is(err, ErrMD5) {
		t.Errorf("a key that is too long: %v", err)
	}
	for _, m := range []map[netip.Prefix]uint8{{hostPrefix(addr("192.0.2.1")): 255}, {}, {}} {
		if err := ls.setMinTTL(m); err != nil {
			t.Errorf("%v: %v", m, err)
		}
	}
	tooMany := map[netip.Prefix]uint8{}
	for i := range 5000 {
		tooMany[hostPrefix(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))] = 255
	}
	if err := ls.setMinTTL(tooMany); !errors.Is(err, ErrTTLMin) {
		t.Errorf("a filter that the kernel refuses: %v", err)
	}
}

func TestATakenAddressIsAnErrorThatNamesIt(t *testing.T) {
	ls := listening(t, "127.0.0.33:0")
	at := addrPort(ls.socks[0].Addr())
	if _, err := Start(context.Background(), Config{Listen: []netip.AddrPort{at}}); !errors.Is(err, ErrListen) || !strings.Contains(err.Error(), at.String()) {
		t.Errorf("%v", err)
	}
}

func TestWithoutListenersThereIsNothingToSet(t *testing.T) {
	ls := listening(t)
	if err := errors.Join(ls.setKey(addr("192.0.2.1"), "x"), ls.setMinTTL(nil)); err != nil || ls.hasFamily(addr("192.0.2.1")) {
		t.Error(err)
	}
}

func TestProbeSaysWhatCannotBeSet(t *testing.T) {
	for _, a := range []string{"192.0.2.1", "2001:db8::1", "fe80::1%lo"} {
		p := Peer{Address: addr(a), Password: "secret", TTL: 255, TTLMin: 254}
		if err := p.probe(); err != nil {
			t.Errorf("%s: %v", a, err)
		}
		p.Password = strings.Repeat("x", 81)
		if err := p.probe(); !errors.Is(err, ErrMD5) {
			t.Errorf("%s: key too long: %v", a, err)
		}
	}
}

// RFC 5082 section 3, RFC 4594 section 3.2.
func TestConnectionsHaveTheNeighboursTTLAndDSCP(t *testing.T) {
	get := func(c *net.TCPConn, o option) int {
		raw, err := c.SyscallConn()
		v := 0
		if err == nil {
			err = onSocket(raw, func(fd int) (err error) { v, err = unix.GetsockoptInt(fd, o.level, o.name); return })
		}
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, tt := range []struct {
		at       string
		ttl, min uint8
		want     int
	}{{"127.0.0.34", 255, 254, 255}, {"127.0.0.34", 1, 0, 1}, {"127.0.0.34", 0, 0, 64}, {"::1", 255, 254, 255}, {"::1", 0, 0, 64}} {
		v6 := addr(tt.at).Is6()
		ls := listening(t, netip.AddrPortFrom(addr(tt.at), 0).String())
		p := &Peer{Address: addr(tt.at), Port: addrPort(ls.socks[0].Addr()).Port(), TTL: tt.ttl, TTLMin: tt.min, ConnectRetry: dialTimeout}
		out, err := dialPeer(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		in, err := ls.socks[0].AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		raw, _ := in.SyscallConn()
		if err := onSocket(raw, p.secure); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*net.TCPConn{out, in} {
			if got := get(c, ttl(v6, 0)); got != tt.want {
				t.Errorf("%+v: TTL %d", tt, got)
			}
			if got := get(c, ttlMin(v6, 0)); got != int(tt.min) {
				t.Errorf("%+v: minimum TTL %d", tt, got)
			}
			if got := get(c, trafficClass(v6)); got != 0xc0 {
				t.Errorf("%+v: traffic class %#x, want CS6", tt, got)
			}
		}
	}
}

// The filter's arithmetic, on packets: the VM has no SKF_NET_OFF, so the offsets are moved to where
// the header is.
func TestTheTTLFilterDropsOnlyLowTTLsOfItsPeers(t *testing.T) {
	min := map[netip.Prefix]uint8{}
	for text, ttl := range map[string]uint8{
		"192.0.2.1/32": 255, "192.0.2.2/32": 100, "192.0.2.128/25": 64, "192.0.2.129/32": 0,
		"2001:db8::1/128": 255, "2001:db8::2/128": 100, "2001:db8:0:0:80::/73": 64, "2001:db8:0:0:81::1/128": 0,
	} {
		min[netip.MustParsePrefix(text)] = ttl
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
			{"192.0.2.3", "2001:db8::3", 1, true},
			{"192.0.2.200", "2001:db8:0:0:82::9", 64, true}, {"192.0.2.200", "2001:db8:0:0:82::9", 63, false},
			{"192.0.2.129", "2001:db8:0:0:81::1", 1, true}, {"192.0.3.1", "2001:db9::1", 1, true},
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
	if ttlFilter(true, map[netip.Prefix]uint8{hostPrefix(addr("192.0.2.1")): 255}) != nil {
		t.Error("a filter without need")
	}
}
