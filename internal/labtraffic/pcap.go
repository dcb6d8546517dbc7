package labtraffic

import (
	"bufio"
	"fmt"
	"io"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"
)

type gopacketInfo = gopacket.CaptureInfo

// pcapngMagic is the block type of a pcapng section header, the same in both byte orders.
const pcapngMagic = "\x0a\x0d\x0d\x0a"

func openPcap(f io.Reader) (pcapReader, error) {
	b := bufio.NewReader(f)
	magic, err := b.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("not a capture file: %w", err)
	}
	if string(magic) == pcapngMagic {
		return pcapgo.NewNgReader(b, pcapgo.DefaultNgReaderOptions)
	}
	return pcapgo.NewReader(b)
}
