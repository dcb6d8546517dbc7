package emit

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pncd/dataplane/roce"
)

// fixed is Paths of one interface and one neighbour, for the destinations that have.
type fixed struct {
	index int
	mac   [6]byte
	mtu   int
	none  atomic.Pointer[netip.Addr] // has no path
}

func (f *fixed) Path(dst netip.Addr) (int, [6]byte, int, bool) {
	if none := f.none.Load(); none != nil && *none == dst {
		return 0, f.mac, 0, false
	}
	return f.index, f.mac, f.mtu, true
}

var neighborMAC = [6]byte{2, 0, 0, 0, 0, 7}

// newFrames opens a FrameSender at a wire, towards a neighbour that only the frames' path knows.
func newFrames(t testing.TB, w *wire, device string, batch int) (*FrameSender, *fixed) {
	t.Helper()
	p := &fixed{mac: neighborMAC, mtu: 1500}
	var s *FrameSender
	if err := w.a.Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		p.index = l.Attrs().Index
		s, err = OpenFrames(Config{BatchSize: batch}, p, new(FrameCounts))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, p
}

func TestFramesCarryTheSamePacketsInOrder(t *testing.T) {
	w := newWire(t, Config{})
	w.watch(t)
	s, p := newFrames(t, w, "va", 7)
	var pkts [][]byte
	for i := range 100 {
		pkts = append(pkts, cnp(t, i%10 > 6 || i%2 == 1 && i < 30, uint16(i+1), uint32(i)))
	}
	none := netip.MustParseAddr("2001:db8::2")
	for round, want := range []uint64{100, 61} { // then all IPv6 packets are left to the kernel's output
		before := s.counts.Frames.Load()
		n, err := s.Send(pkts)
		if n != len(pkts) || err != nil {
			t.Fatalf("Send: %d of %d, %v", n, len(pkts), err)
		}
		ours, err := w.a.MAC("va")
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range pkts {
			got := w.frame(t)
			if !bytes.Equal(got[14:], want) {
				t.Fatalf("packet %d:\ngot  %x\nwant %x", i, got[14:], want)
			}
			v6 := want[0]>>4 == 6
			if framed := bytes.Equal(got[:6], neighborMAC[:]); !bytes.Equal(got[6:12], ours) || framed != (round == 0 || !v6) {
				t.Fatalf("round %d, packet %d: from %x to %x", round, i, got[6:12], got[:6])
			}
			if got[12] != 0x08 && !v6 || got[12] != 0x86 && v6 {
				t.Fatalf("packet %d: type %x", i, got[12:14])
			}
		}
		if frames, left := s.counts.Frames.Load(), s.counts.Left.Load(); frames-before != want || left != uint64(round)*(100-want) {
			t.Errorf("round %d: %d frames, %d left", round, frames-before, left)
		}
		p.none.Store(&none)
	}
}

func TestWhatCantGoAsAFrameIsLeftToTheKernel(t *testing.T) {
	w := newWire(t, Config{})
	w.watch(t)
	s, p := newFrames(t, w, "va", 7)
	good := cnp(t, false, 1, 1)
	bad := bytes.Clone(good)
	bad[10]++ // the kernel's output writes the checksum
	if n, err := s.Send([][]byte{good, bad, good}); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	for range 3 {
		if got := w.frame(t)[14:]; !bytes.Equal(got, good) {
			t.Errorf("got %x", got)
		}
	}
	if left := s.counts.Left.Load(); left != 1 {
		t.Errorf("%d were left", left)
	}
	p.index = 4096 // the interface is gone: the kernel knows another way
	if n, err := s.Send([][]byte{good, good}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	w.frame(t)
	w.frame(t)
	p.mtu = 59
	unroutable := bytes.Clone(good)
	copy(unroutable[16:], []byte{203, 0, 113, 5})
	if err := roce.FixICRC(unroutable); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pkt  []byte
		want error
		says string
	}{{unroutable, unix.ENETUNREACH, "203.0.113.5"}, {good[:19], ErrPacket, "IP header"}} {
		n, err := s.Send([][]byte{good, good, tt.pkt, good})
		var pe *PacketError
		if n != 2 || !errors.As(err, &pe) || pe.Index != 2 || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("sent %d, error %v, want %v", n, err, tt.want)
		}
	}
}

func TestAFrameThatAQueueDropsIsReported(t *testing.T) {
	w := newWire(t, Config{})
	s, _ := newFrames(t, w, "va", 7)
	w.slow(t)
	sent, failed := 0, 0
	for pkts := batchOf(t, 200); len(pkts) > 0; {
		n, err := s.Send(pkts)
		sent += n
		if err == nil {
			break
		}
		if !errors.Is(err, unix.ENOBUFS) {
			t.Fatal(err)
		}
		failed++
		pkts = pkts[n+1:]
	}
	if sent+failed != 200 || failed == 0 || sent == 0 {
		t.Errorf("%d sent, %d dropped, want both and 200 together", sent, failed)
	}
}

func TestFramesByAnUpperDeviceHaveItsHeader(t *testing.T) {
	for name, device := range map[string]func(lower int) netlink.Link{
		"vlan": func(lower int) netlink.Link {
			return &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "up0", ParentIndex: lower}, VlanId: 5}
		},
		"bond": func(int) netlink.Link {
			b := netlink.NewLinkBond(netlink.LinkAttrs{Name: "up0"})
			b.Mode = netlink.BOND_MODE_ACTIVE_BACKUP
			return b
		},
		"bridge": func(int) netlink.Link {
			return &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "up0"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, Config{})
			if err := w.a.Do(func() error {
				lower, err := netlink.LinkByName("va")
				if err != nil {
					return err
				}
				if err := netlink.LinkAdd(device(lower.Attrs().Index)); err != nil {
					return err
				}
				upper, err := netlink.LinkByName("up0")
				if err == nil && name != "vlan" {
					err = errors.Join(netlink.LinkSetDown(lower), netlink.LinkSetMaster(lower, upper), netlink.LinkSetUp(lower))
				}
				return errors.Join(err, netlink.LinkSetUp(upper))
			}); errors.Is(err, unix.EOPNOTSUPP) {
				t.Skipf("the kernel has no %s devices", name)
			} else if err != nil {
				t.Fatal(err)
			}
			if err := w.a.WaitUp("up0"); err != nil {
				t.Fatal(err)
			}
			w.watch(t)
			s, _ := newFrames(t, w, "up0", 1)
			want := cnp(t, false, 1, 1)
			if n, err := s.Send([][]byte{want}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			for {
				f := w.frame(t)
				if !bytes.Equal(f[:6], neighborMAC[:]) {
					continue // what the devices say by themselves
				}
				if !bytes.HasSuffix(f, want) {
					t.Errorf("got %x", f)
				}
				return
			}
		})
	}
}

func TestSendingFramesAllocatesNothing(t *testing.T) {
	w := newWire(t, Config{})
	s, p := newFrames(t, w, "va", 7)
	none := netip.MustParseAddr("2001:db8::2")
	p.none.Store(&none)
	pkts := [][]byte{cnp(t, false, 1, 1), cnp(t, false, 2, 2), cnp(t, true, 0, 3)}
	if n := testing.AllocsPerRun(100, func() {
		if n, err := s.Send(pkts); n != len(pkts) || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

func TestFramesNeedNoOtherChoiceOfRoutes(t *testing.T) {
	for _, c := range []Config{{Interface: "va"}, {Mark: 1}} {
		if _, err := OpenFrames(c, &fixed{}, new(FrameCounts)); !errors.Is(err, errBound) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	w := newWire(t, Config{})
	s, _ := newFrames(t, w, "va", 7)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Send([][]byte{cnp(t, false, 1, 1)}); n != 0 || !errors.Is(err, ErrClosed) {
		t.Errorf("Send: %d, %v", n, err)
	}
}

func BenchmarkSendFrames(b *testing.B) {
	w := newWire(b, Config{})
	s, p := newFrames(b, w, "va", DefaultBatchSize)
	mac, err := w.b.MAC("vb")
	if err != nil {
		b.Fatal(err)
	}
	p.mac = [6]byte(net.HardwareAddr(mac))
	pkts := make([][]byte, DefaultBatchSize)
	for i := range pkts {
		pkts[i] = cnp(b, false, uint16(i+1), 0x118)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Send(pkts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pkts)), "ns/packet")
}

// A packet that nftables drops on its way out of the interface did not leave: both senders say so, as of a full queue.
func TestADropByTheEgressHookIsAnError(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("needs nft")
	}
	w := newWire(t, Config{})
	w.watch(t)
	frames, _ := newFrames(t, w, "va", 7)
	rules := `table netdev t { chain e { type filter hook egress device "va" priority 0; udp sport 49154 drop; }; }`
	if err := w.a.Do(func() error {
		if out, err := exec.Command(nft, rules).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, v6 := range []bool{false, true} {
		pkts := [][]byte{cnp(t, v6, 1, 1), cnp(t, v6, 2, 2), cnp(t, v6, 3, 3)} // from ports 49153 to 49155
		for name, s := range map[string]interface {
			Send([][]byte) (int, error)
		}{"frames": frames, "raw": w.s} {
			n, err := s.Send(pkts)
			var pe *PacketError
			if n != 1 || !errors.As(err, &pe) || pe.Index != 1 || !errors.Is(err, unix.ENOBUFS) {
				t.Errorf("%s, IPv6 %v: %d sent, %v", name, v6, n, err)
			}
			if n, err := s.Send(pkts[2:]); n != 1 || err != nil {
				t.Errorf("%s, IPv6 %v: the next one: %d sent, %v", name, v6, n, err)
			}
			for _, want := range [][]byte{pkts[0], pkts[2]} {
				if got := w.frame(t)[14:]; !bytes.Equal(got, want) {
					t.Errorf("%s, IPv6 %v: got %x, want %x", name, v6, got, want)
				}
			}
		}
	}
}
