package kernel

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"pncd/dataplane/roce"
)

// Mode is where the program is attached.
type Mode uint8

// The modes.
const (
	TCX        Mode = iota // TCX ingress: behind the driver, before the IP stack; other programs can stand beside it
	XDP                    // XDP in the driver, or where that has none, as XDPGeneric; one program for an interface
	XDPNative              // XDP in the driver only
	XDPGeneric             // XDP in the stack: slower, for any driver
	Clsact                 // a classifier on the clsact qdisc: where TCX is, for kernels that have none
)

var modeNames = [...]string{"tcx", "xdp", "xdp-native", "xdp-generic", "clsact"}

// String returns the mode's name in lower case.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Defaults.
const (
	DefaultMaxFlows = 1 << 18
	DefaultRingSize = 16 << 20
	DefaultInterval = 30 * time.Second

	maxInterval = 24 * time.Hour // the program keeps 26 days apart

	minFlows = 1 << 10
	maxFlows = 1 << 24
)

// Config describes a tap. Zero values mean the defaults.
type Config struct {
	Mode      Mode
	MaxFlows  int // places for flows of IPv4, 64 octets each, 1,024 to 16,777,216: best twice as many as there are flows
	MaxFlows6 int // places for flows of IPv6, 88 octets each; by default MaxFlows
	RingSize  int // octets of the ring buffer: a power of two, at least a page

	// Interval is in how long one packet of a flow that needs no watching is handed up, 1 ms to 24 h. It gives the rules
	// that look at a sample something to look at, and no more: that the flow lives, Each tells. With 60,000 flows, 5 s
	// would be 12,000 packets a second.
	Interval time.Duration

	// Tunnels are the outer headers that the program looks behind, as their ParseThrough does.
	Tunnels roce.Tunnels

	// Pins is where maps and links are kept over the end of the process, with TCX and XDP; nil: they end with it. What
	// an earlier process has left there for the same configuration is taken over. What it had learned takes 8 octets more for
	// each place.
	Pins *Pins
}

// Errors of Open, Attach and Run, matched with errors.Is.
var (
	ErrPermission    = errors.New("needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")
	ErrNotSupported  = errors.New("not supported by this kernel")
	ErrNoInterface   = errors.New("no such interface")
	ErrBusy          = errors.New("another XDP program is on the interface")
	ErrInterfaceGone = errors.New("interface is gone")
	ErrDetached      = errors.New("the program was taken off the interface")
	ErrTooMany       = errors.New("no more interfaces can be tapped")
	ErrNoFlow        = errors.New("no such flow")
	ErrClosed        = errors.New("tap is closed")
)

// withDefaults fills in defaults and holds the values to their ranges.
func (c Config) withDefaults() (Config, error) {
	if c.MaxFlows == 0 {
		c.MaxFlows = DefaultMaxFlows
	}
	if c.MaxFlows6 == 0 {
		c.MaxFlows6 = c.MaxFlows
	}
	if c.RingSize == 0 {
		c.RingSize = DefaultRingSize
	}
	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	switch {
	case c.Mode > Clsact:
		return c, fmt.Errorf("kernel tap: mode %d: not one of %v", c.Mode, modeNames)
	case c.MaxFlows < minFlows || c.MaxFlows > maxFlows:
		return c, fmt.Errorf("kernel tap: %d flows: not within %d to %d", c.MaxFlows, minFlows, maxFlows)
	case c.MaxFlows6 < minFlows || c.MaxFlows6 > maxFlows:
		return c, fmt.Errorf("kernel tap: %d flows of IPv6: not within %d to %d", c.MaxFlows6, minFlows, maxFlows)
	case bits.OnesCount(uint(c.RingSize)) != 1 || c.RingSize < os.Getpagesize() || c.RingSize > 1<<30:
		return c, fmt.Errorf("kernel tap: ring of %d octets: not a power of two from %d to 1 GiB", c.RingSize, os.Getpagesize())
	case c.Tunnels > roce.AllTunnels:
		return c, fmt.Errorf("kernel tap: tunnels %#x: none of that kind", uint8(c.Tunnels))
	case c.Interval < time.Millisecond || c.Interval > maxInterval:
		return c, fmt.Errorf("kernel tap: interval %v: not within 1 ms to %v", c.Interval, maxInterval)
	}
	return c, nil
}

// Explain makes an error of the kernel one that says what to do.
func Explain(err error) error {
	var refused *ebpf.VerifierError // its errno may be EACCES
	cause := err
	// The library's words for what is refused are of its own fields, and of RLIMIT_MEMLOCK, which bounds nothing here since Linux 5.11.
	if errno := unix.Errno(0); errors.As(err, &errno) {
		cause = errno
	}
	switch {
	case errors.As(err, &refused) && len(refused.Log) > 0 && has(unix.CAP_PERFMON):
	case refused != nil:
		// The verifier refuses pointer arithmetic to those who may not read the kernel's memory.
		return fmt.Errorf("%w: run as root or grant the capabilities (%w)", ErrPermission, cause)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: run as root or grant the capabilities (%w)", ErrPermission, cause)
	case isUnsupported(err):
		return fmt.Errorf("%w: %w", ErrNotSupported, err)
	}
	return err
}

// has says whether the calling thread has a capability.
func has(capability int) bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[capability/32].Effective&(1<<(capability%32)) != 0
}
