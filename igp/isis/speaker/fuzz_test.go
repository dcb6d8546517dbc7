package speaker

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/isis/packet"
)

// FuzzReceive holds that no frame ends the machine, makes it want ticks without end, or grows its database
// beyond its bound. The input is frames, each after its length; LSPs get a right checksum, so that they are
// believed.
func FuzzReceive(f *testing.F) {
	var seed []byte
	add := func(p interface{ Append([]byte) ([]byte, error) }) {
		raw, err := p.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		seed = append(binary.BigEndian.AppendUint16(seed, uint16(len(raw))), raw...)
	}
	id := packet.SystemID{5: 2}
	add(packet.LSP{Header: packet.Header{Type: packet.L2LSP}, ID: id.Node(0).Fragment(0), Sequence: 3, Lifetime: 1200, TLVs: packet.TLVs{packet.AreasTLV(packet.Area{0x49})}})
	add(packet.LSP{Header: packet.Header{Type: packet.L2LSP}, ID: packet.SystemID{5: 10}.Node(0).Fragment(0), Sequence: 9, Lifetime: 1200})
	add(packet.LSP{Header: packet.Header{Type: packet.L2LSP}, ID: id.Node(0).Fragment(0), Sequence: 3})
	add(packet.SNP{Header: packet.Header{Type: packet.L2CSNP}, End: packet.MaxLSPID, TLVs: packet.EntryTLVs([]packet.Entry{{ID: id.Node(1).Fragment(2), Sequence: 7, Lifetime: 9, Checksum: 5}})})
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		n := build(t, func(_ int, c *Config) { c.MaxLSPs = 256 }, [2]int{10, 1})
		n.pass(time.Second)
		m := n.systems[10]
		m.Advertise(n.now, []igp.Advertisement{ad("10.1.0.0/24", "10.255.0.10")})
		for len(b) >= 2 {
			size := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
			pdu := bytes.Clone(b[2 : 2+size])
			b = b[2+size:]
			if p, err := packet.ParseLSP(pdu); err == nil && p.Lifetime != 0 {
				raw, _ := packet.Trim(pdu)
				packet.SetChecksum(raw)
			}
			m.Receive(n.now, Frame{Circuit: "10-1", MAC: [6]byte{2}, PDU: pdu})
			n.pass(100 * time.Millisecond)
		}
		n.pass(10 * time.Second)
		if got := m.levels[0].flood.DB().Len(); got > 256 {
			t.Fatalf("%d LSPs", got)
		}
		m.Status(n.now)
		m.Database(n.now, packet.Level2)
	})
}
