package speaker

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestASocketTakesWhatIsForItsInterface sends from one end of a veth pair to the other, in a namespace that ends
// with the test's thread.
func TestASocketTakesWhatIsForItsInterface(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	nl, err := netlink.NewHandle()
	if err != nil {
		t.Fatal(err)
	}
	defer nl.Close()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	index := func(name string) int {
		t.Helper()
		l, err := nl.LinkByName(name)
		ok(err)
		ok(nl.LinkSetUp(l))
		return l.Attrs().Index
	}
	ok(nl.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}))
	a, b := index("a"), index("b")
	open := func(index int) *socket {
		t.Helper()
		s, err := openSocket(index, "test")
		ok(err)
		t.Cleanup(s.close)
		return s
	}
	from, to := open(a), open(b)
	other := open(b) // what another program sends there is not what arrives
	raw, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	ok(err)
	defer unix.Close(raw)
	tagged := append(append(AllISs[:], 2, 0, 0, 0, 0, 9, 0x81, 0, 0, 7, 0, 14), llc[:]...)
	tagged = append(tagged, "of VLAN 7  "...)
	buf := make([]byte, 2000)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); { // the pair takes a while to come up
		ok(unix.Sendto(raw, tagged, 0, &unix.SockaddrLinklayer{Ifindex: a, Halen: 6}))
		ok(other.send([]byte("going out"), AllISs))
		ok(from.send([]byte("for another"), [6]byte{2, 0, 0, 0, 0, 9}))
		ok(from.send([]byte("ours"), AllISs))
		ok(to.file.SetReadDeadline(time.Now().Add(50 * time.Millisecond)))
		pdu, _, err := to.receive(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		ok(err)
		if string(pdu) != "ours" {
			t.Errorf("took the frame %q", pdu)
		}
		return
	}
	t.Error("nothing arrived")
}
