package emit

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/dataplane/tap/taptest"
)

// wire is two namespaces: a Sender in the first, a host in the second that a tap watches.
type wire struct {
	s      *Sender
	a, b   *taptest.NS
	frames chan []byte
}

func newWire(t testing.TB, c Config) *wire {
	t.Helper()
	a, b := taptest.Pair(t)
	w := &wire{a: a, b: b, frames: make(chan []byte, 1<<14)}
	mac, err := b.MAC("vb")
	for _, step := range []func() error{
		func() error { return err },
		func() error { return a.Addr("va", netip.MustParsePrefix("10.0.0.1/24")) },
		func() error { return a.Addr("va", netip.MustParsePrefix("2001:db8::1/64")) },
		func() error { return b.Addr("vb", netip.MustParsePrefix("10.0.0.2/24")) },
		func() error { return b.Addr("vb", netip.MustParsePrefix("2001:db8::2/64")) },
		// A way back to the spoofed sources, for hosts that filter by the reverse path.
		func() error { return b.Route(netip.MustParsePrefix("192.0.2.0/24"), "vb", netip.Addr{}) },
		func() error { return a.Neighbor("va", netip.MustParseAddr("10.0.0.2"), mac) },
		func() error { return a.Neighbor("va", netip.MustParseAddr("2001:db8::2"), mac) },
		func() error {
			return a.Do(func() error {
				w.s, err = Open(c)
				return err
			})
		},
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := w.s.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// slow puts a queue before the wire that drops most of what comes at once.
func (w *wire) slow(t *testing.T) {
	t.Helper()
	w.queue(t, 1000, 500)
}

// queue puts one before the wire that holds limit octets and lets out rate of them a second.
func (w *wire) queue(t *testing.T, rate uint64, limit uint32) {
	t.Helper()
	if err := w.a.Do(func() error {
		l, err := netlink.LinkByName("va")
		if err != nil {
			return err
		}
		return netlink.QdiscReplace(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       rate, Buffer: netlink.Xmittime(rate, 2000), Limit: limit,
		})
	}); err != nil {
		t.Fatal("token bucket filter: ", err)
	}
}

// batchOf makes CNPs of both families.
func batchOf(t *testing.T, n int) [][]byte {
	t.Helper()
	pkts := make([][]byte, n)
	for i := range pkts {
		pkts[i] = cnp(t, i%2 == 1, uint16(i+1), 1)
	}
	return pkts
}

// watch starts a tap at the receiver.
func (w *wire) watch(t *testing.T) {
	t.Helper()
	var r *tap.Ring
	if err := w.b.Do(func() (err error) {
		r, err = tap.Open(tap.Config{Interface: "vb", RetireTimeout: time.Millisecond})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, func(f *tap.Frame) { w.frames <- bytes.Clone(f.Data) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (w *wire) frame(t *testing.T) []byte {
	t.Helper()
	select {
	case f := <-w.frames:
		return f
	case <-time.After(patience):
		t.Fatal("no frame")
		return nil
	}
}

func cnp(t testing.TB, v6 bool, id uint16, qp uint32) []byte {
	t.Helper()
	// The source is the data's receiver, never an address of the host that sends.
	c := roce.CNP{
		Src: netip.MustParseAddr("192.0.2.77"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 49152 + id,
		TOS: roce.DefaultCNPTOS, IPID: id, DestQP: qp,
	}
	if v6 {
		c.Src, c.Dst = netip.MustParseAddr("2001:db8:7::77"), netip.MustParseAddr("2001:db8::2")
	}
	b, err := roce.AppendCNP(nil, &c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// udp builds a UDP packet with its checksum.
func udp(src, dst netip.Addr, sport, dport uint16, payload []byte) []byte {
	be := binary.BigEndian
	n := uint16(8 + len(payload))
	var b, pseudo []byte
	pseudo = append(append(pseudo, src.AsSlice()...), dst.AsSlice()...)
	pseudo = append(pseudo, 0, 17, byte(n>>8), byte(n))
	if src.Is4() {
		b = be.AppendUint16([]byte{0x45, 0xC0}, 20+n)
		b = append(b, 0, 1, 0x40, 0, 255, 17, 0, 0)
	} else {
		b = be.AppendUint16([]byte{0x6C, 0, 0, 0}, n)
		b = append(b, 17, 255)
	}
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	at := len(b)
	b = be.AppendUint16(b, sport)
	b = be.AppendUint16(b, dport)
	b = be.AppendUint16(b, n)
	b = append(append(b, 0, 0), payload...)
	sum := uint32(0)
	for _, part := range [][]byte{pseudo, b[at:]} {
		for i := 0; i+1 < len(part); i += 2 {
			sum += uint32(be.Uint16(part[i:]))
		}
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	be.PutUint16(b[at+6:], ^uint16(sum))
	return b
}
