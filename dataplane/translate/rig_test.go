package translate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/taptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	own4  = netip.MustParseAddr("192.0.2.1")
	own6  = netip.MustParseAddr("2001:db8::1")
	node4 = netip.MustParseAddr("203.0.113.1")
	node6 = netip.MustParseAddr("2001:db8:ffff::1")
	// The way to the senders: by the interface that notifications come in by, by another one, to a neighbour that
	// nobody knows, and nowhere.
	here4, here6   = netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8:2:1::2")
	there4, there6 = netip.MustParseAddr("198.51.101.2"), netip.MustParseAddr("2001:db8:2:2::2")
	silent4        = netip.MustParseAddr("198.51.102.2")
	lost4          = netip.MustParseAddr("198.51.103.2")
	receiver4      = netip.MustParseAddr("198.18.0.9")
	receiver6      = netip.MustParseAddr("2001:db8:9::9")
)

const (
	testPort  = 1021
	testPort2 = 1022 // of format 2
)

// place is a namespace with two interfaces, va and wa, behind which the senders are.
type place struct {
	ns           *taptest.NS
	inner, outer uint32 // indexes of va and wa
	macs         map[uint32][6]byte
	next         map[uint32][6]byte // of the neighbours
	vpns         map[string]vpn
}

// vpn is a VPN in the place: its senders have addresses that those of the other VPNs have, too.
type vpn struct {
	table uint32
	port  uint32 // index of its interface
}

func newPlace(t testing.TB) *place {
	t.Helper()
	a, b := taptest.Pair(t)
	p := &place{ns: a, macs: map[uint32][6]byte{}, next: map[uint32][6]byte{}}
	if err := taptest.Veth(a, "wa", b, "wb"); err != nil {
		t.Fatal(err)
	}
	for _, l := range []struct {
		name, peer         string
		net4, net6         string
		gate4, gate6       string
		sender4, sender6   string
		index              *uint32
		silentGate, silent string
	}{
		{"va", "vb", "10.9.1.1/24", "fd09:1::1/64", "10.9.1.2", "fd09:1::2", "198.51.100.0/24", "2001:db8:2:1::/64", &p.inner, "10.9.1.3", "198.51.102.0/24"},
		{"wa", "wb", "10.9.2.1/24", "fd09:2::1/64", "10.9.2.2", "fd09:2::2", "198.51.101.0/24", "2001:db8:2:2::/64", &p.outer, "", ""},
	} {
		mac, err := b.MAC(l.peer)
		own, err2 := a.MAC(l.name)
		steps := []func() error{
			func() error { return errors.Join(err, err2) },
			func() error { return a.Addr(l.name, netip.MustParsePrefix(l.net4)) },
			func() error { return a.Addr(l.name, netip.MustParsePrefix(l.net6)) },
			func() error { return a.Neighbor(l.name, netip.MustParseAddr(l.gate4), mac) },
			func() error { return a.Neighbor(l.name, netip.MustParseAddr(l.gate6), mac) },
			func() error {
				return a.Route(netip.MustParsePrefix(l.sender4), l.name, netip.MustParseAddr(l.gate4))
			},
			func() error {
				return a.Route(netip.MustParsePrefix(l.sender6), l.name, netip.MustParseAddr(l.gate6))
			},
			func() error {
				return a.Do(func() error {
					link, err := netlink.LinkByName(l.name)
					if err == nil {
						*l.index = uint32(link.Attrs().Index)
					}
					return err
				})
			},
		}
		if l.silent != "" {
			steps = append(steps, func() error {
				return a.Route(netip.MustParsePrefix(l.silent), l.name, netip.MustParseAddr(l.silentGate))
			})
		}
		for _, step := range steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		p.macs[*l.index], p.next[*l.index] = [6]byte(own), [6]byte(mac)
	}
	p.vpns = map[string]vpn{}
	for i, name := range []string{"blue", "red"} {
		p.addVPN(t, b, name, i)
	}
	forward(t, a)
	return p
}

// addVPN makes a routing table with an interface, behind which the senders of here4 and here6 are, and no route for others.
func (p *place) addVPN(t testing.TB, far *taptest.NS, name string, i int) {
	t.Helper()
	port := name + "0"
	if err := taptest.Veth(p.ns, port, far, name+"1"); err != nil {
		t.Fatal(err)
	}
	next, err := far.MAC(name + "1")
	own, err2 := p.ns.MAC(port)
	if err := errors.Join(err, err2, p.ns.Do(func() error {
		l, err := netlink.LinkByName(port)
		if err != nil {
			return err
		}
		p.vpns[name] = vpn{uint32(100 + i), uint32(l.Attrs().Index)}
		p.macs[uint32(l.Attrs().Index)], p.next[uint32(l.Attrs().Index)] = [6]byte(own), [6]byte(next)
		for _, x := range []struct{ own, gate, to string }{
			{fmt.Sprintf("10.9.%d.1/24", 10+i), fmt.Sprintf("10.9.%d.2", 10+i), "198.51.100.0/24"},
			{fmt.Sprintf("fd09:%d::1/64", 10+i), fmt.Sprintf("fd09:%d::2", 10+i), "2001:db8:2:1::/64"},
		} {
			addr, err := netlink.ParseAddr(x.own)
			to, err2 := netlink.ParseIPNet(x.to)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			addr.Flags = unix.IFA_F_NODAD
			gate := net.ParseIP(x.gate)
			if err := errors.Join(
				netlink.AddrAdd(l, addr),
				netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: gate, HardwareAddr: next, State: netlink.NUD_PERMANENT}),
				netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: to, Gw: gate, Table: 100 + i}),
			); err != nil {
				return err
			}
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
}

// forward switches forwarding on: without it the kernel tells the program no way.
func forward(t testing.TB, ns *taptest.NS) {
	t.Helper()
	if err := ns.Do(func() error {
		return errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0), os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
	}); err != nil {
		t.Fatal(err)
	}
}

func testPolicy() Policy {
	return Policy{
		OwnIPv4: own4, OwnIPv6: own6, Port: testPort, PortFormat2: testPort2,
		AcceptFrom: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8:ffff::/48")},
		Served:     []netip.Prefix{netip.MustParsePrefix("198.51.0.0/16"), netip.MustParsePrefix("2001:db8:2::/48")},
		MinTTL:     250, Window: 50 * time.Microsecond, PerSecond: 1000, TotalPerSecond: 100_000, TotalBurst: 1000, RecordOneIn: 1,
	}
}

// bench is the program in a place, with its clock turned by hand and its interfaces without traffic.
type bench struct {
	*Translator
	place *place
}

// newBench has va as the interface that notifications are accepted by.
func newBench(t testing.TB, c Config, turned bool) *bench {
	t.Helper()
	p := newPlace(t)
	k, err := open(c, turned)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	for index, mac := range p.macs {
		port := translatePort{Mac: mac}
		if index == p.inner {
			port.Accepted = 1
		}
		if err := k.maps.Ports.Update(index, &port, ebpf.UpdateAny); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(k.SetPolicy(testPolicy()), k.SetEnabled(true)); err != nil {
		t.Fatal(err)
	}
	return &bench{k, p}
}

// XDP actions.
const (
	xdpDrop     = 1
	xdpPass     = 2
	xdpTx       = 3
	xdpRedirect = 4
)

// run puts a frame through the program as if it came in by an interface. It is for a thread in the place's namespace.
func (b *bench) run(frame, buf []byte, ifindex uint32) (action uint32, out []byte, err error) {
	in := struct{ Data, DataEnd, DataMeta, Ingress, RxQueue, Egress uint32 }{DataEnd: uint32(len(frame)), Ingress: ifindex}
	o := ebpf.RunOptions{Data: frame, DataOut: buf, Repeat: 1, Context: in}
	action, err = b.programs.Translate.Run(&o)
	return action, o.DataOut, err
}

// outer is what stands around a notification.
type outer struct {
	from, to  netip.Addr
	port      uint16 // destination
	fromPort  uint16
	ttl       uint8
	noSum     bool
	badSum    bool
	mac       [6]byte
	padTo     int
	fragment  bool
	badIPSum  bool
	options   bool
	udpLength int // added to the right one
}

// frame builds a notification as it is on the wire.
func (o *outer) frame(payload []byte) []byte {
	be := binary.BigEndian
	f := append(append([]byte{}, o.mac[:]...), 2, 0, 0, 0, 0, 9)
	n := 8 + len(payload)
	pseudo := binary.BigEndian.AppendUint32(append(o.from.AsSlice(), o.to.AsSlice()...), uint32(n))
	pseudo = be.AppendUint32(pseudo, 17)
	if o.from.Is4() {
		f = be.AppendUint16(f, 0x0800)
		header := 20
		if o.options {
			header = 24
		}
		ip := []byte{0x40 | byte(header/4), 0xC0}
		ip = be.AppendUint16(ip, uint16(header+n))
		ip = append(ip, 0, 1, 0x40, 0, o.ttl, 17, 0, 0)
		if o.fragment {
			ip[6] = 0x20
		}
		ip = append(append(ip, o.from.AsSlice()...), o.to.AsSlice()...)
		ip = append(ip, bytes.Repeat([]byte{1}, header-20)...)
		be.PutUint16(ip[10:], sumOf(ip))
		if o.badIPSum {
			ip[10] ^= 0x40
		}
		f = append(f, ip...)
	} else {
		f = be.AppendUint16(f, 0x86DD)
		f = be.AppendUint32(f, 0x6C000000)
		f = be.AppendUint16(f, uint16(n))
		f = append(f, 17, o.ttl)
		f = append(append(f, o.from.AsSlice()...), o.to.AsSlice()...)
	}
	at := len(f)
	f = be.AppendUint16(f, o.fromPort)
	f = be.AppendUint16(f, o.port)
	f = be.AppendUint16(f, uint16(n+o.udpLength))
	f = append(append(f, 0, 0), payload...)
	if !o.noSum {
		sum := sumOf(pseudo, f[at:])
		if sum == 0 {
			sum = 0xFFFF
		}
		if o.badSum {
			sum ^= 0x1111 // never to zero from the values that matter, see the caller
		}
		be.PutUint16(f[at+6:], sum)
	}
	for len(f) < o.padTo {
		f = append(f, 0)
	}
	return f
}

// sumOf is the Internet checksum of parts of even length.
func sumOf(parts ...[]byte) uint16 {
	sum := uint32(0)
	for _, p := range parts {
		for ; len(p) >= 2; p = p[2:] {
			sum += uint32(p[0])<<8 | uint32(p[1])
		}
		if len(p) == 1 {
			sum += uint32(p[0]) << 8
		}
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return ^uint16(sum)
}
