package tcx

import (
	"net/netip"
	"testing"

	"pncd/dataplane/roce"
)

// packet is an IP packet of RoCEv2 from 10.0.1.1 to 10.0.2.2, or the same in IPv6.
func packet(tb testing.TB, v6 bool, tos uint8, op roce.Opcode, qp uint32) []byte {
	tb.Helper()
	s := roce.PacketSpec{
		Src: netip.MustParseAddr("10.0.1.1"), Dst: netip.MustParseAddr("10.0.2.2"), TOS: tos, SrcPort: 0xC123, IPID: 1,
		BTH: roce.BTH{Opcode: op, PKey: 0xFFFF, DestQP: qp}, Body: make([]byte, 32),
	}
	if v6 {
		s.Src, s.Dst = netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("2001:db8:2::2")
	}
	b, err := roce.AppendPacket(nil, &s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
