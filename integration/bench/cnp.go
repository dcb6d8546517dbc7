package bench

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/netip"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

// CNPBuild measures how long one CNP over IPv4 takes to build, checksums and ICRC included, for changing
// flows. Baseline: the same packet built field by field, and its ICRC by hash/crc32 over a masked copy, in
// the same run, the two taking turns; each value is the median of the turns.
func CNPBuild() ([]Result, error) {
	const turns, n = 21, 200_000
	c := roce.CNP{
		Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("198.51.100.2"),
		TOS: roce.DefaultCNPTOS, TTL: roce.DefaultCNPTTL, PKey: roce.DefaultPKey,
	}
	change := func(i int) {
		c.IPID, c.SrcPort, c.DestQP = uint16(i)|1, 49152+uint16(i)&0x3FFF, uint32(i)&0xFFFFFF
	}
	buf := make([]byte, 0, roce.CNPLenIPv6)
	change(12345)
	ours, err := roce.AppendCNP(nil, &c)
	if err != nil {
		return nil, err
	}
	if plain := plainCNP(nil, &c); string(ours) != string(plain) {
		return nil, fmt.Errorf("cnp-build: the two builders differ: %x and %x", ours, plain)
	}

	var build, plain []float64
	allocs := testing.AllocsPerRun(1000, func() {
		change(1)
		_, _ = roce.AppendCNP(buf, &c)
	})
	for range turns {
		begin := time.Now()
		for i := range n {
			change(i)
			if _, err := roce.AppendCNP(buf, &c); err != nil {
				return nil, err
			}
		}
		build = append(build, float64(time.Since(begin).Nanoseconds())/n)

		begin = time.Now()
		for i := range n {
			change(i)
			plainCNP(buf, &c)
		}
		plain = append(plain, float64(time.Since(begin).Nanoseconds())/n)
	}
	return []Result{{
		Name: "cnp-build", Value: median(build), Unit: "ns", Baseline: median(plain),
		Allocs: allocs, Note: "IPv4; baseline: hash/crc32 over a masked copy",
	}}, nil
}

// plainCNP builds a CNP over IPv4 the obvious way.
func plainCNP(dst []byte, c *roce.CNP) []byte {
	be := binary.BigEndian
	start := len(dst)
	dst = append(dst, 0x45, c.TOS)
	dst = be.AppendUint16(dst, roce.CNPLenIPv4)
	dst = be.AppendUint16(dst, c.IPID)
	dst = be.AppendUint16(dst, 0x4000)
	dst = append(dst, c.TTL, 17, 0, 0)
	dst = append(append(dst, c.Src.AsSlice()...), c.Dst.AsSlice()...)
	dst = be.AppendUint16(dst, c.SrcPort)
	dst = be.AppendUint16(dst, roce.UDPPort)
	dst = be.AppendUint16(dst, 40)
	dst = be.AppendUint16(dst, 0)
	dst = roce.AppendBTH(dst, roce.BTH{Opcode: roce.OpcodeCNP, PKey: c.PKey, BECN: true, DestQP: c.DestQP})
	dst = append(dst, make([]byte, 16)...)
	ip := dst[start:]

	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(be.Uint16(ip[i:]))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	be.PutUint16(ip[10:], ^uint16(sum))

	masked := make([]byte, 8, 8+roce.CNPLenIPv4)
	for i := range masked {
		masked[i] = 0xFF
	}
	masked = append(masked, ip...)
	for _, i := range []int{1, 8, 10, 11, 26, 27, 32} {
		masked[8+i] = 0xFF
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(masked))
}
