package speaker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// socket sends and receives IS-IS frames on one interface: 802.3 with the LLC header FE FE 03 (ISO 10589
// clause 8.4.8). It needs CAP_NET_RAW.
type socket struct {
	file *os.File // in the poller, so that a read ends when it is closed
	raw  interface {
		Control(func(fd uintptr)) error
		Read(func(fd uintptr) bool) error
		Write(func(fd uintptr) bool) error
	}
	index int
	over  atomic.Bool
}

var llc = [llcLen]byte{0xFE, 0xFE, 0x03}

// Offsets of a filter's data about a frame (linux/filter.h).
const (
	skfPacketType = 0xFFFFF000 + 4  // SKF_AD_PKTTYPE
	skfVLANTag    = 0xFFFFF000 + 44 // SKF_AD_VLAN_TAG
)

// llcFilter takes frames whose payload begins with FE FE 03; not those that go out or to another system, and not
// those of a VLAN, which belong to the VLAN's own interface, although the socket of the one below sees them.
var llcFilter = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: skfPacketType},
	{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, Jt: 8, K: unix.PACKET_MULTICAST},
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: skfVLANTag},
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x0FFF},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 5, K: 0},
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 0},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: 0xFEFE},
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 2},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: 0x03},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xFFFFFFFF},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
}

// openSocket joins the groups of all circuits.
func openSocket(index int, name string) (*socket, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		hint := ""
		if errors.Is(err, unix.EPERM) {
			hint = " (the capability CAP_NET_RAW is missing)"
		}
		return nil, fmt.Errorf("isis: packet socket for %s: %w%s", name, err, hint)
	}
	s := &socket{file: os.NewFile(uintptr(fd), "isis:"+name), index: index}
	fail := func(step string, err error) (*socket, error) {
		s.close()
		return nil, fmt.Errorf("isis: %s: %s: %w", name, step, err)
	}
	for _, group := range [][6]byte{AllL1ISs, AllL2ISs, AllISs} {
		m := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_MULTICAST, Alen: 6}
		copy(m.Address[:], group[:])
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			return fail("join a group", err)
		}
	}
	filter := unix.SockFprog{Len: uint16(len(llcFilter)), Filter: &llcFilter[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter); err != nil {
		return fail("attach the filter", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return fail("leave out what is sent", err)
	}
	// All types, for a frame of more than 1,500 octets has its length where the kernel looks for a type, as FRR
	// sends padded hellos on a link with a greater MTU. Only bound does the socket receive, so that nothing of
	// other interfaces comes first.
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: swap16(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		return fail("bind", err)
	}
	if s.raw, err = s.file.SyscallConn(); err != nil {
		return fail("poll", err)
	}
	return s, nil
}

// close makes a waiting receive return errClosed.
func (s *socket) close() {
	s.over.Store(true)
	_ = s.file.Close()
}

var errClosed = errors.New("isis: the socket is closed")

// receive waits for a frame and gives its PDU, in b, and where it came from.
func (s *socket) receive(b []byte) (pdu []byte, mac [6]byte, err error) {
	for {
		var n int
		var from unix.Sockaddr
		var rerr error
		if err := s.raw.Read(func(fd uintptr) bool {
			n, from, rerr = unix.Recvfrom(int(fd), b, 0)
			return !errors.Is(rerr, unix.EAGAIN) && !errors.Is(rerr, unix.EINTR)
		}); err != nil {
			if s.over.Load() {
				err = errClosed // that of a raw read on a closed file has no name to match
			}
			return nil, mac, err
		}
		if errors.Is(rerr, unix.ENETDOWN) {
			continue // the interface went down; it may come up again
		}
		if rerr != nil {
			return nil, mac, fmt.Errorf("isis: receive: %w", rerr)
		}
		if n <= llcLen || [llcLen]byte(b[:llcLen]) != llc {
			continue
		}
		if sa, ok := from.(*unix.SockaddrLinklayer); ok {
			copy(mac[:], sa.Addr[:6])
		}
		return b[llcLen:n], mac, nil
	}
}

// lost is how many frames the kernel has dropped since the last call because the socket's queue was full
// (packet(7), PACKET_STATISTICS).
func (s *socket) lost() (n uint64) {
	_ = s.raw.Control(func(fd uintptr) {
		if st, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			n = uint64(st.Drops)
		}
	})
	return n
}

// send sends a PDU; what doesn't fit the queue is lost, as on any wire.
func (s *socket) send(pdu []byte, group [6]byte) error {
	frame := append(append(make([]byte, 0, llcLen+len(pdu)), llc[:]...), pdu...)
	// The field of the type holds the length (IEEE 802.3).
	to := &unix.SockaddrLinklayer{Protocol: swap16(uint16(len(frame))), Ifindex: s.index, Halen: 6}
	copy(to.Addr[:], group[:])
	var serr error
	_ = s.file.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err := s.raw.Write(func(fd uintptr) bool {
		serr = unix.Sendto(int(fd), frame, 0, to)
		return !errors.Is(serr, unix.EAGAIN) && !errors.Is(serr, unix.EINTR)
	}); err != nil {
		return err
	}
	return serr
}

// sendTimeout bounds how long a full queue holds the speaker up.
const sendTimeout = 100 * time.Millisecond

// swap16 is htons on this machine.
func swap16(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}
