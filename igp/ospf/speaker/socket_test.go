package speaker

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/taptest"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/packet"
	"pncd/igp/shell"
	"pncd/internal/testwait"
)

// wire is a veth pair between two hosts, va with two addresses and vb.
type wire struct {
	*testing.T
	v      packet.Version
	a, b   *taptest.NS
	group  netip.Addr
	va, vb netip.Addr
	second netip.Addr // of va
}

// eachVersion runs a test over a wire for both versions.
func eachVersion(t *testing.T, test func(w *wire)) {
	for v, addresses := range map[packet.Version][3]string{
		packet.V2: {"10.0.0.1/24", "10.0.0.2/24", "10.0.0.11/24"}, packet.V3: {"fe80::5:1/64", "fe80::5:2/64", "fe80::5:11/64"},
	} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			w := &wire{T: t, v: v, group: iface.AllSPFRouters(v)}
			w.a, w.b = taptest.Pair(t)
			w.va, w.vb = w.address(w.a, "va", addresses[0]), w.address(w.b, "vb", addresses[1])
			w.second = w.address(w.a, "va", addresses[2])
			test(w)
		})
	}
}

func (w *wire) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *wire) address(n *taptest.NS, name, prefix string) netip.Addr {
	w.Helper()
	p := netip.MustParsePrefix(prefix)
	w.ok(n.Addr(name, p))
	return p.Addr()
}

func (w *wire) index(n *taptest.NS, name string) (index int) {
	w.Helper()
	w.ok(n.Do(func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		r, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, r)
		index = int(r.Uint32())
		return err
	}))
	return index
}

func (w *wire) open(n *taptest.NS, name string) (s *socket) {
	w.Helper()
	index := w.index(n, name)
	w.ok(n.Do(func() (err error) {
		s, err = openSocket(w.v, index, name)
		return err
	}))
	w.Cleanup(s.Close)
	return s
}

func (w *wire) send(s *socket, from, to netip.Addr, payload string) {
	w.Helper()
	w.ok(s.Send(Datagram{Source: from, Destination: to, Payload: []byte(payload)}))
}

func (w *wire) receive(s *socket) Datagram {
	w.Helper()
	w.ok(s.file.SetReadDeadline(time.Now().Add(testwait.Patience)))
	d, err := s.Receive(make([]byte, 1<<16))
	w.ok(err)
	return d
}

// want receives a packet with this payload.
func (w *wire) want(s *socket, payload string) Datagram {
	w.Helper()
	d := w.receive(s)
	if string(d.Payload) != payload {
		w.Fatalf("received %.40q, want %.40q", d.Payload, payload)
	}
	return d
}

func TestASocketSendsFromTheAddressThatIsNamed(t *testing.T) {
	eachVersion(t, func(w *wire) {
		a, b := w.open(w.a, "va"), w.open(w.b, "vb")
		for _, from := range []netip.Addr{w.va, w.second} {
			for _, to := range []netip.Addr{w.group, w.vb} {
				// What is in the place of the checksum is neither right nor 0, and arrives as it is.
				payload := fmt.Sprintf("payload from %s to %s", from, to)
				w.send(a, from, to, payload)
				d := w.want(b, payload)
				if d.Source != from || d.Destination != to || d.Link != "vb" || cap(d.Payload) > 2*len(payload) {
					w.Errorf("received from %s to %s on %s, capacity %d; want %s to %s", d.Source, d.Destination, d.Link, cap(d.Payload), from, to)
				}
			}
		}
		w.send(b, w.vb, w.second, "back")
		if d := w.want(a, "back"); d.Source != w.vb || d.Destination != w.second {
			w.Errorf("received from %s to %s", d.Source, d.Destination)
		}
	})
}

// sniff gives the IP header of the next packet of OSPF that arrives at vb.
func (w *wire) sniff(sniffer *shell.File) []byte {
	w.Helper()
	for {
		b := make([]byte, 2000)
		var n int
		w.ok(sniffer.SetReadDeadline(time.Now().Add(testwait.Patience)))
		w.ok(sniffer.Read(func(fd int) (err error) {
			n, err = unix.Read(fd, b)
			return err
		}))
		if v4 := w.v == packet.V2; v4 && b[0]>>4 == 4 && b[9] == protocol || !v4 && b[0]>>4 == 6 && b[6] == protocol {
			return b[:n]
		}
	}
}

func TestPacketsDoNotLeaveTheLinkAndAreInternetworkControl(t *testing.T) {
	eachVersion(t, func(w *wire) {
		a := w.open(w.a, "va")
		var sniffer *shell.File
		w.ok(w.b.Do(func() (err error) {
			ethertype := unix.ETH_P_IP
			if w.v == packet.V3 {
				ethertype = unix.ETH_P_IPV6
			}
			sniffer, err = shell.NewRawSocket("sniffer", unix.AF_PACKET, unix.SOCK_DGRAM, ethertype>>8|ethertype&0xFF<<8)
			return err
		}))
		defer sniffer.Close()
		for _, to := range []netip.Addr{w.group, w.vb} {
			w.send(a, w.va, to, "payload")
			b := w.sniff(sniffer)
			tos, ttl := b[1], b[8]
			if w.v == packet.V3 {
				tos, ttl = b[0]<<4|b[1]>>4, b[7]
			}
			if tos != 0xC0 || ttl != 1 {
				w.Errorf("to %s: precedence %#x, TTL %d", to, tos, ttl)
			}
		}
	})
}

func TestAPacketLongerThanTheMTUArrives(t *testing.T) {
	eachVersion(t, func(w *wire) {
		a, b := w.open(w.a, "va"), w.open(w.b, "vb")
		long := strings.Repeat("0123456789", 500)
		for _, to := range []netip.Addr{w.group, w.vb} {
			w.send(a, w.va, to, long)
			w.want(b, long)
		}
	})
}

func TestASocketTakesNothingOfAnotherInterface(t *testing.T) {
	eachVersion(t, func(w *wire) {
		c := taptest.Need(w.T)
		w.ok(taptest.Veth(c, "vc", w.b, "vd"))
		prefix := map[packet.Version]string{packet.V2: "10.0.1.%d/24", packet.V3: "fe80::6:%d/64"}[w.v]
		vc, vd := w.address(c, "vc", fmt.Sprintf(prefix, 1)), w.address(w.b, "vd", fmt.Sprintf(prefix, 2))
		fromA, fromC := w.open(w.a, "va"), w.open(c, "vc")
		b, d := w.open(w.b, "vb"), w.open(w.b, "vd")
		w.send(fromA, w.va, w.group, "to vb")
		w.send(fromA, w.va, w.vb, "to vb alone")
		w.want(b, "to vb")
		w.want(b, "to vb alone") // the kernel gave it to every socket that takes it
		w.ok(d.file.Control(func(fd int) error {
			if n, err := unix.Read(fd, make([]byte, 2000)); !errors.Is(err, unix.EAGAIN) { // they take no room of its queue, either
				return fmt.Errorf("queued %d octets, %w", n, err)
			}
			return nil
		}))
		w.send(fromC, vc, vd, "to vd")
		w.want(d, "to vd")
	})
}

// What was sent before the socket was bound may have come from anywhere.
func TestWhatCameInElsewhereIsLeftOut(t *testing.T) {
	eachVersion(t, func(w *wire) {
		a, b := w.open(w.a, "va"), w.open(w.b, "vb")
		b.index++
		w.send(a, w.va, w.vb, "of another interface")
		w.ok(b.file.SetReadDeadline(time.Now().Add(100 * time.Millisecond)))
		if d, err := b.Receive(make([]byte, 1<<16)); !errors.Is(err, os.ErrDeadlineExceeded) {
			w.Errorf("received %q, %v", d.Payload, err)
		}
		b.index--
		w.send(a, w.va, w.vb, "of this one")
		w.want(b, "of this one")
	})
}

func TestASocketTakesNeitherOwnPacketsNorThoseOfOtherGroups(t *testing.T) {
	eachVersion(t, func(w *wire) {
		a, b := w.open(w.a, "va"), w.open(w.b, "vb")
		other := w.open(w.b, "vb") // another program's, that is a Designated Router
		routers := iface.AllDRouters(w.v)
		w.ok(other.file.Control(func(fd int) error {
			if w.v == packet.V2 {
				return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: routers.As4(), Ifindex: int32(b.index)})
			}
			return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: routers.As16(), Interface: uint32(b.index)})
		}))
		w.ok(other.file.SetReadDeadline(time.Now().Add(testwait.Patience)))
		w.send(b, w.vb, w.group, "own")
		w.send(a, w.va, routers, "for the Designated Router")
		w.ok(other.file.Read(func(fd int) error { // without our Receive, which leaves it out, too
			raw := make([]byte, 2000)
			n, err := unix.Read(fd, raw)
			if err == nil && !bytes.HasSuffix(raw[:n], []byte("for the Designated Router")) {
				w.Errorf("the other socket received %q", raw[:n])
			}
			return err
		}))
		w.send(a, w.va, w.group, "for all")
		w.want(b, "for all")
	})
}

func TestAClosedSocketIsReadNoMore(t *testing.T) {
	eachVersion(t, func(w *wire) {
		s := w.open(w.a, "va")
		done := make(chan error)
		go func() {
			_, err := s.Receive(make([]byte, 1<<16))
			done <- err
		}()
		s.Close()
		if err := <-done; !errors.Is(err, shell.ErrClosed) {
			w.Errorf("%v, want %v", err, shell.ErrClosed)
		}
	})
}

// withCapabilities runs f on a thread that may do only this.
func (w *wire) withCapabilities(n *taptest.NS, mask uint32, f func() error) error {
	return n.Do(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := [2]unix.CapUserData{{Effective: mask, Permitted: mask}}
		if err := unix.Capset(&header, &data[0]); err != nil {
			w.Error(err)
		}
		return f()
	})
}

func TestASocketNeedsOnlyTheRightToSendRaw(t *testing.T) {
	eachVersion(t, func(w *wire) {
		index := w.index(w.a, "va")
		w.ok(w.withCapabilities(w.a, 1<<unix.CAP_NET_RAW, func() error {
			s, err := openSocket(w.v, index, "va")
			if err == nil {
				s.Close()
			}
			return err
		}))
		err := w.withCapabilities(w.a, 0, func() error {
			_, err := openSocket(w.v, index, "va")
			return err
		})
		if want := w.v.String() + ": raw socket for va: operation not permitted (the capability CAP_NET_RAW is missing)"; err == nil || err.Error() != want {
			w.Errorf("%v, want %s", err, want)
		}
	})
}

func TestAnInterfaceThatIsNotThereIsAnError(t *testing.T) {
	eachVersion(t, func(w *wire) {
		err := w.a.Do(func() error {
			_, err := openSocket(w.v, 1<<20, "gone")
			return err
		})
		if err == nil || !strings.HasPrefix(err.Error(), w.v.String()+": gone: ") {
			w.Errorf("%v", err)
		}
	})
}

func TestASocketCountsWhatTheKernelDrops(t *testing.T) {
	eachVersion(t, func(w *wire) {
		a, b := w.open(w.a, "va"), w.open(w.b, "vb")
		w.ok(b.file.Control(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1) }))
		sent, received, lost := 0, 0, uint64(0)
		send := func() {
			w.send(a, w.va, w.group, strings.Repeat("x", 1000))
			sent++
		}
		for range 50 {
			send()
		}
		testwait.UntilRight(w.T, func() string {
			for { // until the queue is empty, so that there is room for one that tells of those before it
				w.ok(b.file.SetReadDeadline(time.Now().Add(5 * time.Millisecond)))
				if _, err := b.Receive(make([]byte, 1<<16)); err != nil {
					break
				}
				received++
			}
			if lost += b.Lost(); lost > 0 && sent == received+int(lost) {
				return ""
			}
			send()
			return fmt.Sprintf("of %d packets %d received, %d lost", sent, received, lost)
		})
		if n := b.Lost(); n != 0 {
			w.Errorf("%d are lost once more", n)
		}
	})
}

func TestASocketGoesOnWhenItsInterfaceComesBack(t *testing.T) {
	eachVersion(t, func(w *wire) {
		a, b := w.open(w.a, "va"), w.open(w.b, "vb")
		w.ok(w.b.SetLink("vb", false))
		if err := b.Send(Datagram{Source: w.vb, Destination: w.group, Payload: []byte("x")}); err == nil {
			w.Error("sent over an interface that is down")
		}
		w.ok(w.b.SetLink("vb", true))
		w.ok(w.b.WaitUp("vb"))
		w.ok(w.a.WaitUp("va"))
		testwait.UntilRight(w.T, func() string { // the address of IPv6 may be a moment in coming
			if err := a.Send(Datagram{Source: w.va, Destination: w.group, Payload: []byte("again")}); err != nil {
				return err.Error()
			}
			return ""
		})
		w.want(b, "again")
	})
}

func TestASocketWhoseInterfaceIsGoneWaitsToBeClosed(t *testing.T) {
	eachVersion(t, func(w *wire) {
		b := w.open(w.b, "vb")
		w.ok(w.b.Delete("vb"))
		if err := b.Send(Datagram{Source: w.vb, Destination: w.group, Payload: []byte("x")}); err == nil {
			w.Error("sent over an interface that is gone")
		}
		done := make(chan error)
		go func() {
			_, err := b.Receive(make([]byte, 1<<16))
			done <- err
		}()
		b.Close()
		if err := <-done; !errors.Is(err, shell.ErrClosed) {
			w.Errorf("%v, want %v", err, shell.ErrClosed)
		}
	})
}

func TestAddressesMustBeThoseOfTheVersion(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1")
	for v, of := range map[packet.Version][2]netip.Addr{packet.V2: {v4, v6}, packet.V3: {v6, v4}} {
		right, wrong := of[0], of[1]
		s := &socket{version: v}
		for _, d := range []Datagram{{Source: wrong, Destination: right}, {Source: right, Destination: wrong}, {Destination: right}, {Source: right}} {
			if err := s.Send(d); err == nil || !strings.Contains(err.Error(), "not the version's addresses") {
				t.Errorf("%s: from %s to %s: %v", v, d.Source, d.Destination, err)
			}
		}
	}
}

// ipv4 is a packet of 2 octets of payload and an octet that the link added.
func ipv4() []byte {
	return []byte{
		0x46, 0xC0, 0, 26, 0, 0, 0, 0, 1, 89, 0, 0, 10, 0, 0, 1, 224, 0, 0, 5, // header
		0x94, 4, 0, 0, // router alert
		'h', 'i', 0,
	}
}

func TestParseIPv4(t *testing.T) {
	from, to, payload, ok := parseIPv4(ipv4())
	if !ok || from.String() != "10.0.0.1" || to.String() != "224.0.0.5" || string(payload) != "hi" {
		t.Errorf("%s, %s, %q, %v", from, to, payload, ok)
	}
	for name, change := range map[string]func(b []byte) []byte{
		"empty":                       func([]byte) []byte { return nil },
		"short":                       func(b []byte) []byte { return b[:19] },
		"IPv6":                        func(b []byte) []byte { b[0] = 0x66; return b },
		"header of 16 octets":         func(b []byte) []byte { b[0] = 0x44; return b },
		"length within the header":    func(b []byte) []byte { b[3] = 23; return b },
		"longer than what is there":   func(b []byte) []byte { b[3] = 28; return b },
		"header beyond what is there": func(b []byte) []byte { b[0], b[3] = 0x4F, 60; return b },
		"another protocol":            func(b []byte) []byte { b[9] = 17; return b },
	} {
		if _, _, _, ok := parseIPv4(change(ipv4())); ok {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzParseIPv4(f *testing.F) {
	f.Add(ipv4())
	f.Add(ipv4()[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		was := bytes.Clone(b)
		from, to, payload, ok := parseIPv4(b)
		if !bytes.Equal(was, b) {
			t.Error("changed what it read")
		}
		if ok && (!from.Is4() || !to.Is4() || len(payload) > len(b)-20) {
			t.Errorf("%s, %s, %d octets of %d", from, to, len(payload), len(b))
		}
	})
}
