package ospfapi

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const procNetTCP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0A2F 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 68211 1 0000000000000000 100 0 0 10 0
   1: 0100007F:0A2F 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 5 1 0000000000000000 100 0 0 10 0
   2: 0100007F:0A2D 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 6 1 0000000000000000 100 0 0 10 0
   3: 0200007F:0A2F 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 7 1 0000000000000000 100 0 0 10 0
   4: 0100007F:0A2F 0100007F:C350 01 00000000:00000000 00:00000000 00000000   101        0 8 1 0000000000000000 20 4 30 10 -1
`

func TestListenersOfAnAddress(t *testing.T) {
	got, err := parseListeners(strings.NewReader(procNetTCP), netip.MustParseAddrPort("127.0.0.1:2607"))
	if err != nil || !slices.Equal(got, []uint64{68211, 5}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{
		strings.Replace(procNetTCP, "0100007F:0A2F 00", "0100007:0A2F 00", 1),
		strings.Replace(procNetTCP, "68211", "x", 1),
	} {
		if _, err := parseListeners(strings.NewReader(bad), netip.MustParseAddrPort("127.0.0.1:2607")); err == nil {
			t.Errorf("no error:\n%s", bad)
		}
	}
}

func TestAListenerIsSeenAndAnotherHasAnotherInode(t *testing.T) {
	listen := func(at string) (net.Listener, uint64) {
		l, err := net.Listen("tcp4", at)
		if err != nil {
			t.Fatal(err)
		}
		inodes, err := listeners(l.Addr().(*net.TCPAddr).AddrPort())
		if err != nil || len(inodes) != 1 {
			t.Fatalf("%v, %v", inodes, err)
		}
		return l, inodes[0]
	}
	one, first := listen("127.0.0.2:0")
	at := one.Addr().String()
	one.Close()
	two, second := listen(at)
	two.Close()
	if first == second {
		t.Errorf("both have inode %d", first)
	}
}
