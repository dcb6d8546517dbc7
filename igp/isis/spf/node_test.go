package spf

import (
	"fmt"
	"testing"

	"pncd/igp/isis/packet"
)

func node(n int) packet.NodeID { return packet.NodeID{5: byte(n)} }

func TestFromLSPs(t *testing.T) {
	reach := func(to int, metric uint32) []byte {
		b, err := packet.ISReach{Neighbor: node(to), Metric: metric}.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	mt := func(id packet.MTID, value []byte) []byte { return append(packet.AppendMT(nil, id), value...) }
	fragment := func(number uint8, flags uint8, tlvs ...packet.TLV) packet.LSP {
		return packet.LSP{ID: node(2).Fragment(number), Flags: flags, TLVs: tlvs}
	}
	plain := packet.TLV{Type: packet.TLVExtendedISReach, Value: append(reach(3, 5), reach(4, 6)...)}
	six := packet.TLV{Type: packet.TLVMTISReach, Value: mt(packet.MTIPv6, reach(5, 7))}
	zero := packet.TLV{Type: packet.TLVMTISReach, Value: mt(packet.MTStandard, reach(6, 8))}
	topologies := packet.TopologiesTLV(packet.Topology{}, packet.Topology{ID: packet.MTIPv6, Overload: true})
	for _, tc := range []struct {
		name string
		lsps []packet.LSP
		mt   packet.MTID
		want string
	}{
		{"standard", []packet.LSP{fragment(0, 3, plain), fragment(2, 3, packet.TLV{Type: 22, Value: reach(9, 1)})}, 0, "{[{3 5} {4 6} {9 1}] false}"},
		{"RFC 5305 section 3: metric 2^24-1 is no link, 2^24-2 is one", []packet.LSP{fragment(0, 3, packet.TLV{Type: 22, Value: append(reach(3, 0xFFFFFF), reach(4, 0xFFFFFE)...)})}, 0, "{[{4 16777214}] false}"},
		{"overload", []packet.LSP{fragment(0, packet.LSPOverload)}, 0, "{[] true}"},
		{"without the first fragment", []packet.LSP{fragment(1, 3, plain)}, 0, "none"},
		{"nothing", nil, 0, "none"},
		{"topology 0 in TLV 222 is ignored", []packet.LSP{fragment(0, 3, zero)}, 0, "{[] false}"},
		{"IPv6's topology, overloaded there", []packet.LSP{fragment(0, 3, topologies, plain, six)}, packet.MTIPv6, "{[{5 7}] true}"},
		{"a system that is no part of IPv6's topology", []packet.LSP{fragment(0, 3, plain, six)}, packet.MTIPv6, "none"},
		{"an entry that is cut: the others count", []packet.LSP{fragment(0, 3, packet.TLV{Type: 22, Value: reach(3, 5)[:15-4]}, packet.TLV{Type: 22, Value: append(reach(4, 6), 1, 2)})}, 0, "{[{3 5} {4 6}] false} error"},
	} {
		n, err := FromLSPs(tc.lsps, tc.mt)
		got := "none"
		if n != nil {
			got = "{["
			for i, l := range n.Links {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("{%d %d}", l.To[5], l.Cost)
			}
			got += fmt.Sprintf("] %v}", n.Overload)
		}
		if err != nil {
			got += " error"
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	pseudo := packet.LSP{ID: packet.NodeID{5: 2, 6: 1}.Fragment(0), TLVs: packet.TLVs{plain}}
	if n, err := FromLSPs([]packet.LSP{pseudo}, packet.MTIPv6); err != nil || n == nil || len(n.Links) != 2 {
		t.Errorf("a pseudonode in IPv6's topology: %+v, %v", n, err)
	}
}
