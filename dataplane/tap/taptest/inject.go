package taptest

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Injector puts Ethernet frames on an interface as they are, VLAN tags in the bytes included.
type Injector struct {
	fd   int
	msgs []unix.Mmsghdr
	iovs []unix.Iovec
}

// NewInjector opens an injector on an interface of n.
func NewInjector(n *NS, name string) (*Injector, error) {
	in := &Injector{fd: -1}
	err := n.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		req, err := unix.NewIfreq(name)
		if err == nil {
			err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req)
		}
		if err == nil {
			// Protocol 0: this socket receives nothing.
			err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: int(req.Uint32())})
		}
		if err != nil {
			_ = unix.Close(fd)
			return err
		}
		in.fd = fd
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("taptest: injector on %s: %w", name, err)
	}
	return in, nil
}

// Send puts the frames on the wire in their order, and returns when all are.
func (in *Injector) Send(frames ...[]byte) error {
	if len(frames) > len(in.msgs) {
		in.msgs = make([]unix.Mmsghdr, len(frames))
		in.iovs = make([]unix.Iovec, len(frames))
	}
	for i, f := range frames {
		in.iovs[i].Base = &f[0]
		in.iovs[i].SetLen(len(f))
		in.msgs[i].Hdr.Iov = &in.iovs[i]
		in.msgs[i].Hdr.SetIovlen(1)
	}
	for done := 0; done < len(frames); {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(in.fd),
			uintptr(unsafe.Pointer(&in.msgs[done])), uintptr(len(frames)-done), 0, 0, 0)
		switch errno {
		case 0:
			done += int(n)
		case unix.EINTR, unix.ENOBUFS:
		default:
			return fmt.Errorf("taptest: send frame %d: %w", done, errno)
		}
	}
	return nil
}

// Close closes the injector.
func (in *Injector) Close() error { return unix.Close(in.fd) }

// Ethernet prefixes an IP packet with an Ethernet header, between locally administered addresses, and with
// the given tags (EtherType and TCI), outermost first.
func Ethernet(ip []byte, tags ...[2]uint16) []byte {
	f := make([]byte, 0, 14+4*len(tags)+len(ip))
	f = append(f, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1)
	for _, t := range tags {
		f = binary.BigEndian.AppendUint16(f, t[0])
		f = binary.BigEndian.AppendUint16(f, t[1])
	}
	typ := uint16(0x0800)
	if ip[0]>>4 == 6 {
		typ = 0x86DD
	}
	return append(binary.BigEndian.AppendUint16(f, typ), ip...)
}
