package speaker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pncd/internal/testwait"
)

// wire is a veth pair in a namespace that ends with the test's thread.
type wire struct {
	t    *testing.T
	a, b int // indexes of the ends
}

func newWire(t *testing.T) *wire {
	t.Helper()
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	nl, err := netlink.NewHandle()
	if err != nil {
		t.Fatal(err)
	}
	defer nl.Close()
	w := &wire{t: t}
	w.ok(nl.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}))
	for name, index := range map[string]*int{"a": &w.a, "b": &w.b} {
		l, err := nl.LinkByName(name)
		w.ok(err)
		w.ok(nl.LinkSetUp(l))
		*index = l.Attrs().Index
	}
	return w
}

func (w *wire) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) open(index int) *socket {
	w.t.Helper()
	s, err := openSocket(index, "test")
	w.ok(err)
	w.t.Cleanup(s.close)
	return s
}

// TestASocketTakesWhatIsForItsInterface sends from one end to the other.
func TestASocketTakesWhatIsForItsInterface(t *testing.T) {
	w := newWire(t)
	from, to := w.open(w.a), w.open(w.b)
	other := w.open(w.b) // what another program sends there is not what arrives
	raw, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	w.ok(err)
	defer unix.Close(raw)
	tagged := append(append(AllISs[:], 2, 0, 0, 0, 0, 9, 0x81, 0, 0, 7, 0, 14), llc[:]...)
	tagged = append(tagged, "of VLAN 7  "...)
	buf := make([]byte, 2000)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); { // the pair takes a while to come up
		w.ok(unix.Sendto(raw, tagged, 0, &unix.SockaddrLinklayer{Ifindex: w.a, Halen: 6}))
		w.ok(other.send([]byte("going out"), AllISs))
		w.ok(from.send([]byte("for another"), [6]byte{2, 0, 0, 0, 0, 9}))
		w.ok(from.send([]byte("ours"), AllISs))
		w.ok(to.file.SetReadDeadline(time.Now().Add(50 * time.Millisecond)))
		pdu, _, err := to.receive(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		w.ok(err)
		if string(pdu) != "ours" {
			t.Errorf("took the frame %q", pdu)
		}
		return
	}
	t.Error("nothing arrived")
}

func TestFramesTakeTheirOwnLengthAndNothingOfTheBuffer(t *testing.T) {
	w := newWire(t)
	from, to := w.open(w.a), circuitSocket{w.open(w.b), "b"}
	w.ok(to.file.SetReadDeadline(time.Now().Add(testwait.Patience)))
	read := make(chan []Frame)
	go func() {
		buf := make([]byte, 2000)
		var got []Frame
		for len(got) < 2 {
			f, err := to.Receive(buf)
			if err != nil {
				t.Error(err)
				break
			}
			got = append(got, f)
		}
		read <- got
	}()
	for n := 0; ; n++ { // the pair takes a while to come up
		w.ok(from.send(fmt.Appendf(nil, "frame %d", n), AllISs))
		select {
		case got := <-read:
			var seen []int
			for _, f := range got {
				n := 0
				if _, err := fmt.Sscanf(string(f.PDU), "frame %d", &n); err != nil || f.Circuit != "b" || cap(f.PDU) > 64 {
					t.Errorf("%s: %q of capacity %d", f.Circuit, f.PDU, cap(f.PDU))
				}
				seen = append(seen, n)
			}
			if len(seen) != 2 || seen[0] >= seen[1] {
				t.Errorf("the frames that waited are %d", seen)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}
