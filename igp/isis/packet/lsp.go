package packet

import "encoding/binary"

// Bits of an LSP's flags octet (ISO 10589 clause 9.8).
const (
	LSPPartition = 0x80 // partition repair
	LSPAttached  = 0x08 // attached, by the default metric
	LSPOverload  = 0x04 // LSDBOL: no transit
	LSPISType    = 0x03 // 1: level 1 system, 3: level 2 system
)

// LSP is a link state PDU (ISO 10589 clauses 9.8 and 9.9).
type LSP struct {
	Header
	Lifetime uint16 // remaining, seconds; 0: a purge
	ID       LSPID
	Sequence uint32
	Checksum uint16 // as received; Append writes it as it is
	Flags    uint8
	TLVs     TLVs
}

// Where an LSP has its fields.
const (
	lspLifetimeAt = 10
	lspIDAt       = 12
	lspSequenceAt = 20
	lspChecksumAt = 24
	lspFlagsAt    = 26
)

// ParseLSP reads a link state PDU. It does not look at the checksum: see ChecksumOK. What follows the PDU
// in b is ignored.
func ParseLSP(b []byte) (LSP, error) {
	h, pdu, err := parseHeader(b)
	if err != nil {
		return LSP{}, err
	}
	if h.Type != L1LSP && h.Type != L2LSP {
		return LSP{}, fault(4, "PDU type", "%s is no LSP", h.Type)
	}
	p := LSP{
		Header:   h,
		Lifetime: binary.BigEndian.Uint16(pdu[lspLifetimeAt:]),
		ID:       LSPID(pdu[lspIDAt:lspSequenceAt]),
		Sequence: binary.BigEndian.Uint32(pdu[lspSequenceAt:]),
		Checksum: binary.BigEndian.Uint16(pdu[lspChecksumAt:]),
		Flags:    pdu[lspFlagsAt],
	}
	p.TLVs, err = parseTLVs(h.Type, pdu)
	return p, err
}

// Append writes the LSP with the checksum that it has; SetChecksum makes one.
func (p LSP) Append(dst []byte) ([]byte, error) {
	if p.Type != L1LSP && p.Type != L2LSP {
		return nil, fault(4, "PDU type", "%s is no LSP", p.Type)
	}
	start := len(dst)
	dst = p.append(dst)
	dst = append(dst, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, p.Lifetime)
	dst = append(dst, p.ID[:]...)
	dst = binary.BigEndian.AppendUint32(dst, p.Sequence)
	dst = binary.BigEndian.AppendUint16(dst, p.Checksum)
	dst = append(dst, p.Flags)
	return finish(dst, start, p.Type, p.TLVs)
}

// SetLifetime changes the remaining lifetime in a raw LSP, seconds: the one field that may change on the
// way, and that the checksum leaves out. The LSP must be one that ParseLSP takes.
func SetLifetime(lsp []byte, seconds uint16) {
	binary.BigEndian.PutUint16(lsp[lspLifetimeAt:], seconds)
}
