package integration

import (
	"encoding/binary"
	"slices"

	"pncd/igp/isis/packet"
)

// hostileKind is a kind of PDU. Without authentication the protocol withstands only those that are plain:
// everything else is believed, as it comes from a system that there is an adjacency with. FRR 8.4, besides, then
// keeps an empty LSP for everything that a forged SNP names.
//
// Mutated and random PDUs are sent to pncd alone: FRR 8.4's isisd aborts at some mutated ones, with
// authentication, too (lib/stream.c, stream_get_from: assertion failed).
type hostileKind struct {
	name  string
	plain bool
	make  func(a *attacker) []byte
}

var hostileKinds = []hostileKind{
	{"malformed header", true, func(a *attacker) []byte {
		b := a.one()
		b[a.rng.IntN(6)] ^= 0x08 // the type 16 becomes 24, and so on: the header's length is wrong then
		return b
	}},
	{"truncated", true, func(a *attacker) []byte { b := a.one(); return b[:1+a.rng.IntN(len(b)-1)] }},
	{"longer than the frame", true, func(a *attacker) []byte {
		b := a.one()
		binary.BigEndian.PutUint16(b[lengthAt(b):], uint16(len(b)+1+a.rng.IntN(0xFFFF-len(b)))) // not so long that it is short again
		return b
	}},
	{"oversized frame", true, func(a *attacker) []byte {
		b := a.one() // of up to the interface's MTU, as hellos are padded to it
		return append(b, a.random(a.rng.IntN(max(a.longest-len(b), 1)))...)
	}},
	{"wrong TLV length", true, func(a *attacker) []byte { // the last TLV ends beyond the PDU
		b := a.one()
		b = append(b[:min(len(b), 1400)], 250, uint8(1+a.rng.IntN(255)))
		packet.SetLength(b)
		return b
	}},
	{"wrong checksum", true, func(a *attacker) []byte {
		b := a.one(packet.L2LSP)
		b[24] ^= uint8(1 + a.rng.IntN(254))
		return b
	}},
	{"random behind the header", true, func(a *attacker) []byte {
		from := []packet.PDUType{packet.L2LSP}
		if a.secret { // without, a hello can have anything in it that ends an adjacency
			from = nil
		}
		b := a.one(from...)
		a.to = a.leaf
		head := int(b[1])
		if head > len(b) {
			head = 8
		}
		copy(b[head:], a.random(len(b)-head))
		packet.SetLength(b)
		return b
	}},
	{"replayed hello", true, func(a *attacker) []byte { return a.one(packet.P2PHello, packet.L2LANHello) }},
	{"replayed LSP", true, func(a *attacker) []byte { return a.one(packet.L2LSP) }},
	{"replayed SNP", true, func(a *attacker) []byte { return a.one(packet.L2CSNP, packet.L2PSNP) }},
	{"purge of what is not there", true, func(a *attacker) []byte { return a.lsp(a.stranger(), a.rng.Uint32()|1, 0, nil) }},
	{"SNP of unknown LSPs", false, func(a *attacker) []byte {
		var entries []packet.Entry
		for range 80 {
			entries = append(entries, packet.Entry{Lifetime: 1000, ID: a.stranger(), Sequence: 5, Checksum: 9})
		}
		return a.append(packet.SNP{Header: packet.Header{Type: packet.L2PSNP}, Source: packet.SystemID{5: 1}.Node(0), TLVs: packet.EntryTLVs(entries)})
	}},
	{"flood of systems", false, func(a *attacker) []byte { return a.lsp(a.stranger(), 1, 1200, nil) }},
	{"oversized LSP", false, func(a *attacker) []byte {
		var tlvs packet.TLVs
		for range 1 + a.rng.IntN(35) {
			tlvs = append(tlvs, packet.TLV{Type: uint8(a.rng.Uint32()), Value: a.random(255)})
		}
		return a.lsp(a.stranger(), 1, 1200, tlvs)
	}},
	{"forged purge", false, func(a *attacker) []byte { return a.lsp(a.known(), 1000+a.rng.Uint32N(1000), 0, nil) }},
	{"purge of a recording", false, func(a *attacker) []byte { // the digest leaves the lifetime out
		b := a.one(packet.L2LSP)
		packet.SetLifetime(b, 0)
		return b
	}},
	{"the end of the sequence space", false, func(a *attacker) []byte {
		return a.lsp(packet.SystemID{5: 0x10}.Node(0).Fragment(0), 0xFFFFFFFF, 1200, nil)
	}},
	{"the same instance, other contents", false, func(a *attacker) []byte {
		b := a.one(packet.L2LSP)
		b[len(b)-1] ^= uint8(1 + a.rng.IntN(255))
		packet.SetChecksum(b)
		return b
	}},
	{"mutated", false, func(a *attacker) []byte {
		b := a.one()
		a.to = a.leaf
		for range 1 + a.rng.IntN(8) {
			// The lifetime is covered by no digest, and "purge of a recording" has it.
			if at := a.rng.IntN(len(b)); at != 10 && at != 11 {
				b[at] ^= uint8(1 + a.rng.IntN(255))
			}
		}
		return b
	}},
}

// lengthAt is where a PDU has its length.
func lengthAt(b []byte) int {
	if b[4]&0x1F <= byte(packet.P2PHello) {
		return 17
	}
	return 8
}

// one is a recorded PDU of one of these types, or of any; it is sent from where it came from.
func (a *attacker) one(types ...packet.PDUType) []byte {
	for {
		r := a.recorded[a.rng.IntN(len(a.recorded))]
		if len(types) == 0 || slices.Contains(types, r.typ) {
			a.from = r.from
			return slices.Clone(r.pdu)
		}
	}
}

// known is an LSP that was recorded.
func (a *attacker) known() packet.LSPID {
	return must(packet.ParseLSP(a.one(packet.L2LSP))).ID
}

// stranger is an LSP of a system that doesn't exist: its ID begins with 66.
func (a *attacker) stranger() packet.LSPID {
	id := packet.LSPID(a.random(8))
	id[0], id[6] = 0x66, 0
	return id
}

func (a *attacker) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = uint8(a.rng.Uint32())
	}
	return b
}

func (a *attacker) append(p interface{ Append([]byte) ([]byte, error) }) []byte {
	return must(p.Append(nil))
}

func (a *attacker) lsp(id packet.LSPID, sequence uint32, life uint16, tlvs packet.TLVs) []byte {
	b := a.append(packet.LSP{Header: packet.Header{Type: packet.L2LSP}, ID: id, Sequence: sequence, Lifetime: life, Flags: 3, TLVs: tlvs})
	if life != 0 {
		packet.SetChecksum(b)
	}
	return b
}
