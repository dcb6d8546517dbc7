package integration

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"pncd/igp/isis/packet"
)

// recording is a PDU that was heard.
type recording struct {
	typ  packet.PDUType
	from [6]byte
	pdu  []byte
}

// attacker sends frames to a segment in the name of the systems on it, and hears what they send.
type attacker struct {
	fd, index int
	longest   int // octets of a PDU that the interface takes
	rng       *rand.Rand
	secret    bool // there is authentication
	group     [6]byte
	router    [6]byte // FRR's address
	leaf      [6]byte // pncd's
	from, to  [6]byte // of the next frame

	mu       sync.Mutex
	recorded []recording
	frozen   bool          // no more is recorded
	heard    atomic.Uint64 // frames from the router itself
	idle     atomic.Uint64 // how often nothing at all was there to hear for 100 ms
}

const recordings = 1000 // at most

// send sends a PDU as an 802.3 frame, however long it is.
func (a *attacker) send(pdu []byte) error {
	if len(pdu)+3 == unix.ETH_P_IP {
		pdu = append(pdu, 0) // a bridge would take the length for IPv4's type, and drop the frame as a broken packet
	}
	frame := slices.Concat(a.to[:], a.from[:], binary.BigEndian.AppendUint16(nil, uint16(3+len(pdu))), []byte{0xFE, 0xFE, 0x03}, pdu)
	return unix.Sendto(a.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: a.index})
}

// hear counts and records until ctx ends.
func (a *attacker) hear(ctx context.Context) error {
	b := make([]byte, 1<<16)
	for ctx.Err() == nil {
		n, err := unix.Read(a.fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) {
			a.idle.Add(1)
			continue
		}
		if err != nil {
			return err
		}
		if n <= 17 || [3]byte(b[14:17]) != [3]byte{0xFE, 0xFE, 0x03} {
			continue
		}
		r := recording{from: [6]byte(b[6:12]), pdu: slices.Clone(b[17:n])}
		if r.from == a.router {
			a.heard.Add(1)
		}
		if r.typ, err = packet.Type(r.pdu); err == nil {
			a.mu.Lock()
			if !a.frozen && len(a.recorded) < recordings {
				a.recorded = append(a.recorded, r)
			}
			a.mu.Unlock()
		}
	}
	return nil
}

// missing names what isn't recorded yet.
func (a *attacker) missing() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, from := range [][6]byte{a.router, a.leaf} {
		for _, types := range [][]packet.PDUType{{packet.L2LSP}, {packet.L2CSNP, packet.L2PSNP}, {packet.P2PHello, packet.L2LANHello}} {
			if !slices.ContainsFunc(a.recorded, func(r recording) bool { return r.from == from && slices.Contains(types, r.typ) }) {
				if from == a.leaf && types[0] == packet.L2CSNP {
					continue // a leaf on a LAN may have nothing to ask for
				}
				return net.HardwareAddr(from[:]).String() + ": nothing of type " + types[0].String()
			}
		}
	}
	return ""
}

// freeze ends the recording, and says how much there is. Nothing writes what was recorded from then on.
func (a *attacker) freeze() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.frozen = true
	return len(a.recorded)
}

// newAttacker opens a socket in a node, and hears from then on.
func (l *isisLab) newAttacker(t *testing.T, node string, seed uint64, lan, secret bool) *attacker {
	t.Helper()
	a := &attacker{rng: rand.New(rand.NewPCG(seed, 0)), secret: secret, group: [6]byte{0x09, 0x00, 0x2B, 0x00, 0x00, 0x05}}
	if lan {
		a.group = [6]byte{0x01, 0x80, 0xC2, 0x00, 0x00, 0x15}
	}
	for of, to := range map[string]*[6]byte{"r1": &a.router, "pa": &a.leaf} {
		mac, err := net.ParseMAC(strings.TrimSpace(l.run(of, "cat", "/sys/class/net/eth1/address")))
		if err != nil {
			t.Fatal(err)
		}
		*to = [6]byte(mac)
	}
	opened := make(chan error)
	go func() { // its thread stays in the namespace, and ends with it
		runtime.LockOSThread()
		opened <- a.open(l.Namespace(node))
	}()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	stop := inBackground(t, "hearing", a.hear)
	t.Cleanup(func() { stop(); unix.Close(a.fd) })
	return a
}

func (a *attacker) open(namespace string) error {
	ns, err := netns.GetFromName(namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := netns.Set(ns); err != nil {
		return err
	}
	i, err := net.InterfaceByName("eth1")
	if err != nil {
		return err
	}
	a.index, a.longest = i.Index, i.MTU-3
	all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	if a.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(all)); err != nil {
		return err
	}
	return errors.Join(
		unix.SetsockoptInt(a.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20), // every frame is to be heard
		unix.SetsockoptTimeval(a.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
		unix.SetsockoptPacketMreq(a.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &unix.PacketMreq{Ifindex: int32(i.Index), Type: unix.PACKET_MR_PROMISC}),
	)
}
