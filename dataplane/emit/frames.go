package emit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Paths says by which interface and to which MAC address the kernel would send to a destination. With ok false a
// packet is left to the kernel's own output. It is asked for each packet, and must not allocate.
type Paths interface {
	Path(dst netip.Addr) (index int, mac [6]byte, mtu int, ok bool)
}

// FrameSender sends IP packets as frames of an interface by a packet socket (packet(7), SOCK_DGRAM: the
// interface's driver writes the link's header, so a VLAN device or a bond does as it does for the kernel's own
// packets). That skips the look-up of the route, of the neighbour and the firewall's output hooks; the queueing
// discipline and netdev's egress hook are passed. What has no path goes by raw sockets, in order with the rest.
type FrameSender struct {
	raw   *Sender
	paths Paths

	mu     sync.Mutex
	closed bool
	fd     int
	msgs   []unix.Mmsghdr
	iovs   []unix.Iovec
	to     []unix.RawSockaddrLinklayer

	counts *FrameCounts
}

// FrameCounts count packets. Senders that follow one another may share them.
type FrameCounts struct {
	Frames atomic.Uint64 // went as frames
	Left   atomic.Uint64 // were left to the kernel's output
}

// errBound: an interface or a mark chooses among routes, which Paths does not know of.
var errBound = errors.New("emit: frames can't be sent with an interface or a mark that chooses the route: use the raw sockets")

// OpenFrames opens a packet socket, and the raw sockets of Open. c must name neither an interface nor a mark.
// Errors as of Open.
func OpenFrames(c Config, paths Paths, counts *FrameCounts) (*FrameSender, error) {
	if c.Interface != "" || c.Mark != 0 {
		return nil, errBound
	}
	raw, err := Open(c)
	if err != nil {
		return nil, err
	}
	size := len(raw.msgs)
	s := &FrameSender{raw: raw, paths: paths, counts: counts, msgs: make([]unix.Mmsghdr, size), iovs: make([]unix.Iovec, size), to: make([]unix.RawSockaddrLinklayer, size)}
	if s.fd, err = openFrameSocket(); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	for i := range s.msgs {
		h := &s.msgs[i].Hdr
		h.Iov = &s.iovs[i]
		h.SetIovlen(1)
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&s.to[i])), unix.SizeofSockaddrLinklayer
		s.to[i].Family, s.to[i].Halen = unix.AF_PACKET, 6
	}
	return s, nil
}

// openFrameSocket opens a packet socket that receives nothing: protocol 0.
func openFrameSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		timeout := unix.NsecToTimeval(int64(sendTimeout))
		if err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout); err == nil {
			return fd, nil
		}
		_ = unix.Close(fd)
	}
	if errors.Is(err, unix.EPERM) {
		return -1, fmt.Errorf("emit: packet socket: %w: run as root or grant the capability (%w)", ErrPermission, err)
	}
	return -1, fmt.Errorf("emit: packet socket: %w", err)
}

// Send is as of Sender. A frame that its interface refuses for another reason than a full queue goes by the
// kernel's own output, which may know another way by then.
func (s *FrameSender) Send(pkts [][]byte) (sent int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, fmt.Errorf("emit: %w", ErrClosed)
	}
	for sent < len(pkts) {
		n, left := s.fill(pkts[sent:])
		if n > 0 {
			done, errno := sendAll(s.fd, s.msgs[:n])
			clear(s.iovs[:n]) // keep no packet alive
			sent += done
			s.counts.Frames.Add(uint64(done))
			if done == n {
				continue
			}
			if errno == unix.ENOBUFS || errno == unix.EAGAIN {
				return sent, packetError(pkts, sent, errno)
			}
			left = 1
		}
		done, err := s.raw.Send(pkts[sent : sent+left])
		sent += done
		s.counts.Left.Add(uint64(done))
		if err != nil {
			var bad *PacketError
			if errors.As(err, &bad) {
				bad.Index = sent
			}
			return sent, err
		}
	}
	return sent, nil
}

// fill prepares the leading packets that can go as frames, n of them; with none it gives the number of leading
// packets that can't.
func (s *FrameSender) fill(pkts [][]byte) (n, left int) {
	for i, pkt := range pkts[:min(len(pkts), len(s.msgs))] {
		ok := s.address(n, pkt)
		switch {
		case ok && left > 0, !ok && n > 0:
			return n, left
		case !ok:
			left = i + 1
		default:
			s.iovs[n].Base = &pkt[0]
			s.iovs[n].SetLen(len(pkt))
			n++
		}
	}
	return n, left
}

// address writes where a packet goes; not when it can't go as a frame.
func (s *FrameSender) address(i int, pkt []byte) bool {
	six, err := check(pkt)
	if err != nil {
		return false // the raw sockets' error names it
	}
	protocol, dst := uint16(unix.ETH_P_IP), netip.Addr{}
	if six {
		protocol, dst = unix.ETH_P_IPV6, netip.AddrFrom16([16]byte(pkt[24:40]))
	} else {
		if headerSum(pkt) != 0xFFFF {
			return false // the kernel's output writes the checksum
		}
		dst = netip.AddrFrom4([4]byte(pkt[16:20]))
	}
	index, mac, mtu, ok := s.paths.Path(dst)
	if !ok || len(pkt) > mtu {
		return false
	}
	to := &s.to[i]
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&to.Protocol))[:], protocol)
	to.Ifindex = int32(index)
	copy(to.Addr[:], mac[:])
	return true
}

// headerSum is the one's complement sum of an IPv4 header (RFC 1071): all ones when its checksum is right.
func headerSum(pkt []byte) uint32 {
	var sum uint64
	for h := pkt[:int(pkt[0]&0x0F)*4]; len(h) >= 4; h = h[4:] {
		sum += uint64(binary.BigEndian.Uint32(h))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return uint32(sum)
}

// Close closes the sockets. A second Close does nothing.
func (s *FrameSender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(unix.Close(s.fd), s.raw.Close())
}
