package speaker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"pncd/igp/shell"
)

// socket sends and receives IS-IS frames on one interface: 802.3 with the LLC header FE FE 03 (ISO 10589
// clause 8.4.8). It needs CAP_NET_RAW.
type socket struct {
	file  *shell.File
	index int
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
	file, err := shell.NewRawSocket("isis:"+name, unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, fmt.Errorf("isis: packet socket for %s: %w", name, err)
	}
	s := &socket{file: file, index: index}
	if err := file.Control(s.setUp); err != nil {
		s.close()
		return nil, fmt.Errorf("isis: %s: %w", name, err)
	}
	return s, nil
}

func (s *socket) setUp(fd int) error {
	for _, group := range [][6]byte{AllL1ISs, AllL2ISs, AllISs} {
		m := unix.PacketMreq{Ifindex: int32(s.index), Type: unix.PACKET_MR_MULTICAST, Alen: 6}
		copy(m.Address[:], group[:])
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			return fmt.Errorf("join a group: %w", err)
		}
	}
	filter := unix.SockFprog{Len: uint16(len(llcFilter)), Filter: &llcFilter[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter); err != nil {
		return fmt.Errorf("attach the filter: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return fmt.Errorf("leave out what is sent: %w", err)
	}
	// All types, for a frame of more than 1,500 octets has its length where the kernel looks for a type, as FRR
	// sends padded hellos on a link with a greater MTU. Only bound does the socket receive, so that nothing of
	// other interfaces comes first.
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: swap16(unix.ETH_P_ALL), Ifindex: s.index}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

// close makes a waiting receive return shell.ErrClosed.
func (s *socket) close() { s.file.Close() }

// receive waits for a frame and gives its PDU, in b, and where it came from.
func (s *socket) receive(b []byte) (pdu []byte, mac [6]byte, err error) {
	for {
		var n int
		var from unix.Sockaddr
		err := s.file.Read(func(fd int) (err error) {
			n, from, err = unix.Recvfrom(fd, b, 0)
			return err
		})
		if errors.Is(err, unix.ENETDOWN) {
			continue // the interface went down; it may come up again
		}
		if err != nil {
			return nil, mac, fmt.Errorf("isis: receive: %w", err)
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
	_ = s.file.Control(func(fd int) error {
		st, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err == nil {
			n = uint64(st.Drops)
		}
		return err
	})
	return n
}

// send sends a PDU.
func (s *socket) send(pdu []byte, group [6]byte) error {
	frame := append(append(make([]byte, 0, llcLen+len(pdu)), llc[:]...), pdu...)
	// The field of the type holds the length (IEEE 802.3).
	to := &unix.SockaddrLinklayer{Protocol: swap16(uint16(len(frame))), Ifindex: s.index, Halen: 6}
	copy(to.Addr[:], group[:])
	return s.file.Write(func(fd int) error { return unix.Sendto(fd, frame, 0, to) })
}

// circuitSocket is a socket with the name of its circuit, as the shell takes it.
type circuitSocket struct {
	*socket
	circuit string
}

func (s circuitSocket) Receive(buf []byte) (Frame, error) {
	pdu, mac, err := s.receive(buf)
	if err != nil {
		return Frame{}, err
	}
	return Frame{Circuit: s.circuit, MAC: mac, PDU: bytes.Clone(pdu)}, nil // a full queue holds no more than what came
}

func (s circuitSocket) Send(f Frame) error { return s.send(f.PDU, f.MAC) }
func (s circuitSocket) Lost() uint64       { return s.lost() }
func (s circuitSocket) Close()             { s.close() }

// swap16 is htons on this machine.
func swap16(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}
