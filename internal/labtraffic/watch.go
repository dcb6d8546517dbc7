package labtraffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pncd/dataplane/roce"
)

// SeenCNP is a CNP that arrived at an interface.
type SeenCNP struct {
	At            time.Time  `json:"at"`
	Interface     string     `json:"interface"`
	From          netip.Addr `json:"from"` // the data's destination
	To            netip.Addr `json:"to"`   // the data's sender
	DestinationQP uint32     `json:"destination_qp"`
	ReceiptPort   uint16     `json:"receipt_port"` // UDP source port
	PKey          uint16     `json:"p_key"`
	TOS           uint8      `json:"tos"`
	TTL           uint8      `json:"ttl"`
	ICRCValid     bool       `json:"icrc_valid"`
}

// WriteText writes the CNP as one line.
func (c *SeenCNP) WriteText(w io.Writer) error {
	icrc := "valid"
	if !c.ICRCValid {
		icrc = "INVALID"
	}
	_, err := fmt.Fprintf(w, "%s %s CNP from %v to %v Destination QP 0x%x receipt port %d TOS 0x%02x TTL %d ICRC %s\n",
		c.At.Format("15:04:05.000000"), c.Interface, c.From, c.To, c.DestinationQP, c.ReceiptPort, c.TOS, c.TTL, icrc)
	return err
}

// WriteJSON writes the CNP as one line of JSON.
func (c *SeenCNP) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(c) }

// Watcher reads the CNPs that arrive at an interface.
type Watcher struct {
	fd   int
	name string
}

// NewWatcher opens a packet socket on an interface of a network namespace (the process's own when
// empty). Watch must be called, which closes it.
func NewWatcher(netnsName, iface string) (*Watcher, error) {
	w := &Watcher{fd: -1, name: iface}
	err := inNetns(netnsName, func() error {
		ifi, err := net.InterfaceByName(iface)
		if err != nil {
			return fmt.Errorf("interface %q: %w", iface, err)
		}
		// Protocol 0 receives nothing until bind names the interface, so no other one's packets slip in.
		if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return fmt.Errorf("open packet socket (needs CAP_NET_RAW): %w", err)
		}
		if err := unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
			return fmt.Errorf("set PACKET_IGNORE_OUTGOING: %w", err)
		}
		if err := unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
			return fmt.Errorf("set SO_TIMESTAMPNS: %w", err)
		}
		_ = unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20) // best effort: only bursts need it
		return unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: ifi.Index})
	})
	if err != nil {
		if w.fd >= 0 {
			_ = unix.Close(w.fd)
		}
		return nil, err
	}
	return w, nil
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

// Watch calls fn for each CNP until ctx ends, which returns nil, or fn fails.
func (w *Watcher) Watch(ctx context.Context, fn func(SeenCNP) error) error {
	defer func() { _ = unix.Close(w.fd) }()
	buf := make([]byte, 65536)
	oob := make([]byte, 128)
	for ctx.Err() == nil {
		fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, 50); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watch %s: %w", w.name, err)
		}
		for ctx.Err() == nil {
			n, oobn, _, _, err := unix.Recvmsg(w.fd, buf, oob, 0)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				break
			}
			if err != nil {
				return fmt.Errorf("watch %s: %w", w.name, err)
			}
			cnp, err := roce.ParseCNP(buf[:n])
			if err != nil {
				continue // something else
			}
			ok, err := roce.VerifyICRC(buf[:n])
			seen := SeenCNP{
				At: timestamp(oob[:oobn]), Interface: w.name, From: cnp.Src, To: cnp.Dst, DestinationQP: cnp.DestQP,
				ReceiptPort: cnp.SrcPort, PKey: cnp.PKey, TOS: cnp.TOS, TTL: cnp.TTL, ICRCValid: ok && err == nil,
			}
			if err := fn(seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// timestamp is the kernel's receive time, or now when it gave none.
func timestamp(oob []byte) time.Time {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err == nil {
		for _, m := range msgs {
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
				ts := *(*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
				return time.Unix(ts.Unix())
			}
		}
	}
	return time.Now()
}
