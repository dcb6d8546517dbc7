package tap

import (
	"errors"
	"fmt"
	"os"
	"time"

	"pncd/dataplane/roce"
)

// Direction says which frames of an interface a tap admits.
type Direction uint8

const (
	// Incoming admits what the interface received (PACKET_IGNORE_OUTGOING): the default.
	Incoming Direction = iota
	// Outgoing admits what leaves by the interface, after queueing disciplines and egress filters.
	Outgoing
)

func (d Direction) String() string {
	switch d {
	case Incoming:
		return "incoming"
	case Outgoing:
		return "outgoing"
	}
	return fmt.Sprintf("direction %d", uint8(d))
}

// Defaults. 64 blocks of 256 KiB are 16 MiB an interface: they hold about 180 ms of small frames at 400,000
// a second, and at least 128 ms at any lower rate, when a block is closed each 2 ms.
const (
	DefaultBlockSize     = 256 << 10
	DefaultBlocks        = 64
	DefaultRetireTimeout = 2 * time.Millisecond
	// DefaultSnapLen holds every header and a whole connection management datagram over IPv6 with two VLAN
	// tags. The ICRC of a longer packet can't be verified from a tap.
	DefaultSnapLen = 512

	minSnapLen = 128
	maxSnapLen = 65535
	maxSample  = 1 << 16
)

// Config describes the tap of one interface. Zero values mean the defaults.
type Config struct {
	Interface string
	Direction Direction
	CEOnly    bool         // admit only packets marked Congestion Experienced (RFC 3168)
	Sample    int          // admit of all these one in so many, at random, at most 65,536; 0 and 1: each
	Context   uint32       // given with each frame: the VPN that the interface is in
	Tunnels   roce.Tunnels // admit also all that has one of these outer headers; not with CEOnly

	BlockSize     int           // octets; a multiple of the page size
	Blocks        int           // at least 2
	RetireTimeout time.Duration // a block with frames in it is handed over after at most this; whole milliseconds
	SnapLen       int           // octets kept of a frame, 128 to 65535
}

// Frame is one captured frame. It and its Data are valid until the function it was handed to returns.
type Frame struct {
	Data      []byte    // from the Ethernet header on, without the outer VLAN tag
	At        time.Time // when the kernel captured it
	IfIndex   int
	Context   uint32 // Config.Context
	VLANTCI   uint16 // outer tag: priority 3 bits, DEI 1, VLAN identifier 12
	VLANTPID  uint16 // outer tag: 0x8100 or 0x88A8
	HasVLAN   bool   // an outer tag was there
	Wire      int    // octets of the frame on the wire, without the outer tag
	Truncated bool   // Data is shorter than Wire
}

// VLAN returns the identifier of the outer tag, 0 without one.
func (f *Frame) VLAN() uint16 { return f.VLANTCI & 0x0FFF }

// Stats are counts since Open.
type Stats struct {
	Packets uint64 // admitted by the filter and stored
	Drops   uint64 // admitted, and lost because the ring was full
	Freezes uint64 // how often the ring filled up
	Downs   uint64 // how often the interface went down while tapped
}

// Errors of Open and Run, matched with errors.Is.
var (
	ErrNoInterface   = errors.New("no such interface")
	ErrPermission    = errors.New("needs CAP_NET_RAW")
	ErrInterfaceGone = errors.New("interface is gone")
	ErrClosed        = errors.New("ring is closed")
	ErrRunning       = errors.New("ring is already read")
)

// withDefaults fills in defaults and holds the values to their ranges.
func (c Config) withDefaults() (Config, error) {
	if c.BlockSize == 0 {
		c.BlockSize = DefaultBlockSize
	}
	if c.Blocks == 0 {
		c.Blocks = DefaultBlocks
	}
	if c.RetireTimeout == 0 {
		c.RetireTimeout = DefaultRetireTimeout
	}
	if c.SnapLen == 0 {
		c.SnapLen = DefaultSnapLen
	}
	page := os.Getpagesize()
	switch {
	case c.Interface == "":
		return c, errors.New("tap: interface: no name given")
	case len(c.Interface) > 15:
		return c, fmt.Errorf("tap: interface %q: longer than 15 octets", c.Interface)
	case c.Direction > Outgoing:
		return c, fmt.Errorf("tap: %s: direction %d: neither incoming nor outgoing", c.Interface, c.Direction)
	case c.CEOnly && c.Tunnels != 0:
		return c, fmt.Errorf("tap: %s: tunnels %s: a tap of marked packets looks behind none", c.Interface, c.Tunnels)
	case c.Sample < 0 || c.Sample > maxSample:
		return c, fmt.Errorf("tap: %s: sample of one in %d: not within 0 to %d", c.Interface, c.Sample, maxSample)
	case c.SnapLen < minSnapLen || c.SnapLen > maxSnapLen:
		return c, fmt.Errorf("tap: %s: snap length %d: not within %d to %d octets", c.Interface, c.SnapLen, minSnapLen, maxSnapLen)
	case c.BlockSize < 2*page || c.BlockSize%page != 0 || c.BlockSize > 1<<30:
		return c, fmt.Errorf("tap: %s: block size %d: not a multiple of %d octets from %d to 1 GiB", c.Interface, c.BlockSize, page, 2*page)
	case c.SnapLen > c.BlockSize/2:
		return c, fmt.Errorf("tap: %s: snap length %d: more than half of the block size %d", c.Interface, c.SnapLen, c.BlockSize)
	case c.Blocks < 2 || c.Blocks > 1<<16 || c.Blocks*c.BlockSize > 1<<31-1:
		return c, fmt.Errorf("tap: %s: %d blocks of %d octets: not within 2 blocks and 2 GiB", c.Interface, c.Blocks, c.BlockSize)
	case c.RetireTimeout < time.Millisecond || c.RetireTimeout > 10*time.Second || c.RetireTimeout%time.Millisecond != 0:
		return c, fmt.Errorf("tap: %s: retire timeout %v: not whole milliseconds from 1 ms to 10 s", c.Interface, c.RetireTimeout)
	}
	return c, nil
}
