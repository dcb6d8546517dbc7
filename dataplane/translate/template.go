package translate

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"pncd/dataplane/roce"
)

// Where in a CNP, from its IP header on, the receipt number shows, and what follows from it.
const (
	atIPv4ID   = 4
	atIPv4Sum  = 10
	atIPv4Port = 20
	atIPv6Port = 40
	atIPv6Sum  = 46
	icrcLen    = 4
	bthFromEnd = roce.BTHLen + 16 + icrcLen

	atIPv4TTL = 8
	atIPv6TTL = 7
)

// icrcTables say by which bits the ICRC of a CNP changes with an octet of the IPv4 identification, high and low, and of
// the source port, from what it is with zero there. A CRC is linear, and both families have the port as far from the end, so
// that the rest of the packet doesn't matter.
func icrcTables() (t [4][256]uint32) {
	crc := func(at int, v byte) uint32 {
		var b [roce.CNPLenIPv4 - icrcLen]byte
		b[at] = v
		return crc32.ChecksumIEEE(b[:])
	}
	for i, at := range []int{atIPv4ID, atIPv4ID + 1, atIPv4Port, atIPv4Port + 1} {
		for v := range 256 {
			t[i][v] = crc(at, byte(v)) ^ crc(at, 0)
		}
	}
	return t
}

// template fills in what a CNP has that is not its flow's. Source port and identification of c don't matter; the program
// knows no flow label.
func (a *translateReady) template(c roce.CNP) error {
	c.SrcPort, c.IPID, c.FlowLabel = 0, 0, 0
	b, err := roce.AppendCNP(make([]byte, 0, roce.CNPLenIPv6), &c)
	if err != nil {
		return fmt.Errorf("kernel translator: %w", err)
	}
	be, end, bth := binary.BigEndian, len(b)-icrcLen, b[len(b)-bthFromEnd:]
	a.SourceQp, a.Pkey, a.Tos, a.Ttl = c.DestQP, be.Uint16(bth[2:]), c.TOS, b[atIPv4TTL]
	if c.Src.Is6() {
		a.Ttl = b[atIPv6TTL]
	}
	a.Icrc = binary.LittleEndian.Uint32(b[end:])
	clear(b[end:])
	var sum uint64
	words := func(b []byte) {
		for ; len(b) >= 2; b = b[2:] {
			sum += uint64(be.Uint16(b))
		}
	}
	if c.Src.Is4() {
		clear(b[atIPv4Sum : atIPv4Sum+2])
		words(b[:atIPv4Port])
	} else {
		clear(b[atIPv6Sum : atIPv6Sum+2])
		const protoUDP = 17
		sum = protoUDP + uint64(len(b)-atIPv6Port)
		words(b[8:])
	}
	a.Sum = uint32(sum)
	return nil
}
