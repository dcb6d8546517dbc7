package labtraffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/gopacket/gopacket/layers"

	"pncd/dataplane/roce"
)

// side is one of the two ends.
type side uint8

const (
	local side = iota
	peer
)

func (s side) other() side { return 1 - s }

// captured is one RoCEv2 packet between the two hosts of a capture.
type captured struct {
	from   side
	at     time.Duration // since the first packet
	packet roce.Packet   // its slices are the capture's own
	ipID   uint16
}

// Capture is the RoCEv2 traffic of two hosts, read from a file.
type Capture struct {
	Local, Peer netip.Addr // the captured addresses
	Skipped     int        // other packets in the file
	packets     []captured
}

// pcapReader is what both file formats offer.
type pcapReader interface {
	ReadPacketData() ([]byte, gopacketInfo, error)
	LinkType() layers.LinkType
}

// ReadCapture reads a pcap or pcapng file with Ethernet frames. The two hosts are those of the first RoCEv2
// packet; its source is the local one, or the other when swap is set. A packet cut by the capture's
// snapshot length is an error: its payload is not known.
func ReadCapture(path string, swap bool) (*Capture, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read capture: %w", err)
	}
	defer func() { _ = f.Close() }()
	c, err := readCapture(f, swap)
	if err != nil {
		return nil, fmt.Errorf("read capture %s: %w", path, err)
	}
	return c, nil
}

func readCapture(f io.Reader, swap bool) (*Capture, error) {
	r, err := openPcap(f)
	if err != nil {
		return nil, err
	}
	if t := r.LinkType(); t != layers.LinkTypeEthernet {
		return nil, fmt.Errorf("link type %v; only Ethernet is known", t)
	}
	c := &Capture{}
	var start time.Time
	for n := 1; ; n++ {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("packet %d: %w", n, err)
		}
		var p captured
		if err := roce.ParseEthernet(data, &p.packet); err != nil || p.packet.IsCNP() {
			c.Skipped++
			continue
		}
		if p.packet.Truncated {
			return nil, fmt.Errorf("packet %d is cut to %d octets", n, len(data))
		}
		if len(c.packets) == 0 {
			c.Local, c.Peer, start = p.packet.Src, p.packet.Dst, ci.Timestamp
			if swap {
				c.Local, c.Peer = c.Peer, c.Local
			}
		}
		switch {
		case p.packet.Src == c.Local && p.packet.Dst == c.Peer:
			p.from = local
		case p.packet.Src == c.Peer && p.packet.Dst == c.Local:
			p.from = peer
		default:
			c.Skipped++
			continue
		}
		p.at = ci.Timestamp.Sub(start)
		if p.packet.Src.Is4() {
			p.ipID = binary.BigEndian.Uint16(p.packet.IP[4:])
		}
		c.packets = append(c.packets, p)
	}
	if len(c.packets) == 0 {
		return nil, fmt.Errorf("no RoCEv2 packet among %d", c.Skipped)
	}
	return c, nil
}

// Len is the number of packets.
func (c *Capture) Len() int { return len(c.packets) }

// isClose tells the packets that end a connection, which a replay holds back.
func (p *captured) isClose() bool {
	if !p.packet.IsMAD() {
		return false
	}
	m, err := roce.ParseMAD(p.packet.Body)
	return err == nil && (m.CM.Kind == roce.CMDREQ || m.CM.Kind == roce.CMDREP)
}
