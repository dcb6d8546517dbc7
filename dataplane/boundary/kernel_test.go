package boundary

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

func quiet() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

// filterIn makes a filter for a namespace.
func filterIn(t *testing.T, n *taptest.NS) *Filter {
	t.Helper()
	var ns *os.File
	if err := n.Do(func() (err error) { ns, err = os.Open("/proc/thread-self/ns/net"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return New(Config{Namespace: int(ns.Fd())}, quiet())
}

func apply(t *testing.T, f *Filter, p *Policy) {
	t.Helper()
	if err := f.Apply(p); err != nil {
		t.Fatal(err)
	}
}

// run runs the filter and returns what stops it; the end of the test does, too.
func run(t *testing.T, f *Filter) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// nft runs the command in a namespace; the test is skipped where it isn't installed.
func nft(t *testing.T, n *taptest.NS, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("nft is not installed")
	}
	var out []byte
	err = n.Do(func() (err error) { out, err = exec.Command(path, args...).CombinedOutput(); return err })
	if err != nil {
		t.Fatalf("nft %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// site is a border router with a link to the outside and one to the inside.
type site struct{ outside, router, inside *taptest.NS }

var (
	routerInside  = netip.MustParseAddr("10.0.0.1")
	routerOutside = netip.MustParseAddr("198.51.100.1")
	member        = netip.MustParseAddr("10.0.0.2")  // of the domain
	stranger      = netip.MustParseAddr("10.0.0.77") // inside, and not of the domain
	foreigner     = netip.MustParseAddr("198.51.100.2")
)

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{taptest.Need(t), taptest.Need(t), taptest.Need(t)}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(taptest.Veth(s.router, "ext0", s.outside, "eth0"))
	check(taptest.Veth(s.router, "int0", s.inside, "eth0"))
	check(s.router.Addr("ext0", netip.PrefixFrom(routerOutside, 24)))
	check(s.router.Addr("int0", netip.PrefixFrom(routerInside, 24)))
	check(s.outside.Addr("eth0", netip.PrefixFrom(foreigner, 24)))
	check(s.inside.Addr("eth0", netip.PrefixFrom(member, 24)))
	check(s.inside.Addr("eth0", netip.PrefixFrom(stranger, 24)))
	check(s.outside.Route(netip.MustParsePrefix("10.0.0.0/24"), "eth0", routerOutside))
	check(s.inside.Route(netip.MustParsePrefix("198.51.100.0/24"), "eth0", routerInside))
	return s
}

// policy is that of the site: two congestion nodes inside.
func (s *site) policy(family Family) *Policy {
	p := samplePolicy()
	p.Family, p.Own = family, []netip.Addr{routerInside}
	p.AcceptFrom = []netip.Prefix{netip.PrefixFrom(member, 32), netip.MustParsePrefix("2001:db8::/32")}
	p.Total, p.PerSource = Limit{}, Limit{}
	return p
}

// send sends count datagrams from an address to a port; the kernel may refuse them (a border does).
func send(t *testing.T, n *taptest.NS, from, to netip.Addr, port uint16, payload []byte, count int) {
	t.Helper()
	sendTTL(t, n, from, to, port, payload, count, 64)
}

// sendTTL is send with a TTL.
func sendTTL(t *testing.T, n *taptest.NS, from, to netip.Addr, port uint16, payload []byte, count, ttl int) {
	t.Helper()
	err := n.Do(func() error {
		c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, port)))
		if err != nil {
			return err
		}
		defer c.Close()
		if from.Is4() {
			err = ipv4.NewConn(c).SetTTL(ttl)
		} else {
			err = ipv6.NewConn(c).SetHopLimit(ttl)
		}
		if err != nil {
			return err
		}
		for range count {
			// An answer that nobody listens comes back as an error of the next write.
			if _, err := c.Write(payload); err != nil && !errors.Is(err, os.ErrPermission) {
				if _, err = c.Write(payload); err != nil && !errors.Is(err, os.ErrPermission) {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listen counts what arrives at a port.
func listen(t *testing.T, n *taptest.NS, at netip.AddrPort) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	if err := n.Do(func() (err error) { c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// received reads what has arrived until the marker, which the test sends last.
func received(t *testing.T, c *net.UDPConn) (n int) {
	t.Helper()
	buf := make([]byte, 256)
	if err := c.SetReadDeadline(time.Now().Add(testwait.Patience)); err != nil {
		t.Fatal(err)
	}
	for {
		size, err := c.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if string(buf[:size]) == "marker" {
			return n
		}
		n++
	}
}

func wantCounts(t *testing.T, f *Filter, want Counts) {
	t.Helper()
	testwait.UntilRight(t, func() string {
		got, err := f.Counts()
		if err != nil {
			return err.Error()
		}
		for name, n := range got {
			if n != want[name] {
				return name + " is " + itoa(n) + ", want " + itoa(want[name])
			}
		}
		for name, n := range want {
			if got[name] != n {
				return name + " is " + itoa(got[name]) + ", want " + itoa(n)
			}
		}
		return ""
	})
}

func itoa(n uint64) string {
	return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(n)).String()[len("0.0.0.0:"):]
}

// cnpPayload is a CNP behind its UDP header.
func cnpPayload(t *testing.T) []byte {
	t.Helper()
	p := make([]byte, 32)
	p[0] = byte(roce.OpcodeCNP)
	return p
}

func TestPacketsAtTheBorder(t *testing.T) {
	for _, family := range []Family{FamilyNetdev, FamilyInet} {
		t.Run(string(family), func(t *testing.T) {
			s := newSite(t)
			f := filterIn(t, s.router)
			p := s.policy(family)
			p.TTLMin = 64 // what the kernel sends
			apply(t, f, p)
			run(t, f)
			socket := listen(t, s.router, netip.AddrPortFrom(routerInside, 1021))
			all := listen(t, s.outside, netip.AddrPortFrom(foreigner, 4791))

			send(t, s.outside, foreigner, routerInside, 1021, []byte("in by the border"), 3)
			send(t, s.outside, foreigner, routerInside, 1022, []byte("format 2"), 2)
			send(t, s.router, routerOutside, foreigner, 1021, []byte("out"), 4)
			send(t, s.router, routerOutside, foreigner, 4791, cnpPayload(t), 5)
			send(t, s.router, routerOutside, foreigner, 4791, []byte{0x04, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 6) // RC SEND only
			send(t, s.inside, stranger, routerInside, 1021, []byte("wrong source"), 7)
			send(t, s.inside, member, routerOutside, 1021, []byte("wrong address"), 8)
			send(t, s.inside, member, routerInside, 1021, []byte("right"), 9)
			sendTTL(t, s.inside, member, routerInside, 1021, []byte("from afar"), 10, 1)
			send(t, s.inside, member, routerInside, 1021, []byte("marker"), 1)
			send(t, s.router, routerOutside, foreigner, 4791, []byte("marker"), 1)
			if n := received(t, socket); n != 9 {
				t.Errorf("%d notifications arrived, want 9", n)
			}
			if n := received(t, all); n != 6 {
				t.Errorf("%d RoCEv2 packets that are no CNPs left, want 6", n)
			}
			wantCounts(t, f, Counts{
				CounterBorderIn: 5, CounterBorderOut: 4, CounterCNPOut: 5,
				CounterNotOurDomain: 7, CounterNotOurAddress: 8, CounterTTLTooLow: 10, CounterAccepted: 10,
			})
		})
	}
}

func TestIPv6PacketsAtTheBorder(t *testing.T) {
	addr := netip.MustParseAddr
	router, outer, in, wrong, out := addr("2001:db8::1"), addr("2001:db8:ff::1"), addr("2001:db8::2"), addr("2001:db8::77"), addr("2001:db8:ff::2")
	for _, family := range []Family{FamilyNetdev, FamilyInet} {
		t.Run(string(family), func(t *testing.T) {
			s := newSite(t)
			for _, err := range []error{
				s.router.Addr("int0", netip.PrefixFrom(router, 64)), s.router.Addr("ext0", netip.PrefixFrom(outer, 64)),
				s.inside.Addr("eth0", netip.PrefixFrom(in, 64)), s.inside.Addr("eth0", netip.PrefixFrom(wrong, 64)),
				s.outside.Addr("eth0", netip.PrefixFrom(out, 64)),
				s.outside.Route(netip.MustParsePrefix("2001:db8::/64"), "eth0", outer),
				s.inside.Route(netip.MustParsePrefix("2001:db8:ff::/64"), "eth0", router),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			f := filterIn(t, s.router)
			p := s.policy(family)
			p.TTLMin, p.Own, p.AcceptFrom = 64, []netip.Addr{router}, []netip.Prefix{netip.PrefixFrom(in, 128)}
			apply(t, f, p)
			run(t, f)
			socket := listen(t, s.router, netip.AddrPortFrom(router, 1021))
			listen(t, s.outside, netip.AddrPortFrom(out, 4791))
			send(t, s.outside, out, router, 1021, []byte("in by the border"), 3)
			send(t, s.router, outer, out, 1022, []byte("out"), 4)
			send(t, s.router, outer, out, 4791, cnpPayload(t), 5)
			send(t, s.inside, wrong, router, 1021, []byte("wrong source"), 6)
			send(t, s.inside, in, outer, 1021, []byte("wrong address"), 7)
			sendTTL(t, s.inside, in, router, 1021, []byte("from afar"), 8, 1)
			send(t, s.inside, in, router, 1021, []byte("right"), 9)
			send(t, s.inside, in, router, 1021, []byte("marker"), 1)
			if n := received(t, socket); n != 9 {
				t.Errorf("%d notifications arrived, want 9", n)
			}
			wantCounts(t, f, Counts{
				CounterBorderIn: 3, CounterBorderOut: 4, CounterCNPOut: 5, CounterNotOurDomain: 6,
				CounterNotOurAddress: 7, CounterTTLTooLow: 8, CounterAccepted: 10,
			})
		})
	}
}

func TestRates(t *testing.T) {
	for name, tc := range map[string]struct {
		total, perSource   Limit
		fromOne, fromOther int
		sources            uint32
		counter            string
		pass               int
	}{
		// One packet in 100 s, so that the burst alone decides.
		"in total":                 {total: Limit{1, 20}, fromOne: 15, fromOther: 15, counter: CounterTotalLimit, pass: 20},
		"per source":               {perSource: Limit{1, 10}, fromOne: 30, fromOther: 4, sources: 16, counter: CounterPerSourceLimit, pass: 14},
		"more sources than places": {perSource: Limit{1, 10}, fromOne: 30, fromOther: 30, sources: 1, counter: CounterPerSourceLimit, pass: 40},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			f := filterIn(t, s.router)
			p := s.policy(FamilyAuto)
			p.AcceptFrom = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
			p.Total, p.PerSource, p.Sources, p.SourceAge = tc.total, tc.perSource, tc.sources, time.Minute
			apply(t, f, p)
			run(t, f)
			listen(t, s.router, netip.AddrPortFrom(routerInside, 1021))
			began := time.Now()
			send(t, s.inside, member, routerInside, 1021, []byte("one"), tc.fromOne)
			send(t, s.inside, stranger, routerInside, 1021, []byte("other"), tc.fromOther)
			refilled := 2 * int(time.Since(began)/time.Second) // a token a second and source
			var got Counts
			testwait.UntilRight(t, func() (wrong string) {
				var err error
				if got, err = f.Counts(); err != nil {
					return err.Error()
				}
				if got[CounterAccepted]+got[tc.counter] != uint64(tc.fromOne+tc.fromOther) {
					return "not all are counted"
				}
				return ""
			})
			if n := int(got[CounterAccepted]); n < tc.pass || n > tc.pass+refilled {
				t.Errorf("%d were accepted, want %d and at most %d more for the time", n, tc.pass, refilled)
			}
		})
	}
}

// elements matches those of a set that packets fill: nft prints them, we count them.
var elements = regexp.MustCompile(`(?m)^\t\t(# \d+ elements|elements = \{[^}]* expires [^}]*\})\n`)

func TestTheTextIsThatOfNFT(t *testing.T) {
	for _, family := range []Family{FamilyNetdev, FamilyInet} {
		t.Run(string(family), func(t *testing.T) {
			s := newSite(t)
			f := filterIn(t, s.router)
			p := samplePolicy()
			p.Family, p.Own = family, append(p.Own, routerInside, netip.MustParseAddr("10.9.9.9"))
			p.Borders, p.Ports = []string{"ext0", "int0"}, []uint16{1, 2, 3, 4, 5, 6, 7, 8}
			p.AcceptInterfaces, p.TTLMin = []string{"lo"}, 254
			p.AcceptFrom = append(p.AcceptFrom, netip.MustParsePrefix("255.0.0.0/8"), netip.MustParsePrefix("0.0.0.0/8"))
			apply(t, f, p)
			send(t, s.outside, foreigner, routerInside, 3, []byte("counted"), 2)
			wantCounts(t, f, Counts{CounterBorderIn: 2})
			r, err := f.Ruleset()
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range r {
				want := nft(t, s.router, "list", "table", familyName(table.Family), TableName)
				if got := elements.ReplaceAllString(table.String(), ""); got != elements.ReplaceAllString(want, "") {
					t.Errorf("ours:\n%s\nnft's:\n%s", got, want)
				}
			}
			apply(t, f, nil)
		})
	}
}

func FuzzChainDevices(f *testing.F) {
	f.Add([]byte{5, 0, 0, 0, 9, 0, 1, 0, 'p', 'n', 'c', 'd', 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, msg []byte) {
		_ = chainDevices(msg, TableName, map[string][]string{}) // an error, never a panic
	})
}
