package packet

import "encoding/binary"

// SNP is a sequence numbers PDU, complete (ISO 10589 clauses 9.10 and 9.11) or partial (9.12 and 9.13).
type SNP struct {
	Header
	Source     NodeID
	Start, End LSPID // complete: the range that it covers, both ends included
	TLVs       TLVs
}

// Complete reports whether it is a CSNP.
func (p SNP) Complete() bool { return p.Type == L1CSNP || p.Type == L2CSNP }

// ParseSNP reads a sequence numbers PDU. What follows the PDU in b is ignored.
func ParseSNP(b []byte) (SNP, error) {
	h, pdu, err := parseHeader(b)
	if err != nil {
		return SNP{}, err
	}
	p := SNP{Header: h}
	switch h.Type {
	case L1CSNP, L2CSNP:
		p.Start, p.End = LSPID(pdu[17:25]), LSPID(pdu[25:33])
	case L1PSNP, L2PSNP:
	default:
		return SNP{}, fault(4, "PDU type", "%s is no SNP", h.Type)
	}
	p.Source = NodeID(pdu[10:17])
	p.TLVs, err = parseTLVs(h.Type, pdu)
	return p, err
}

// Append writes the SNP.
func (p SNP) Append(dst []byte) ([]byte, error) {
	if !p.Complete() && p.Type != L1PSNP && p.Type != L2PSNP {
		return nil, fault(4, "PDU type", "%s is no SNP", p.Type)
	}
	start := len(dst)
	dst = p.append(dst)
	dst = append(dst, 0, 0)
	dst = append(dst, p.Source[:]...)
	if p.Complete() {
		dst = append(dst, p.Start[:]...)
		dst = append(dst, p.End[:]...)
	}
	return finish(dst, start, p.Type, p.TLVs)
}

// Entry says which version of an LSP the sender of an SNP has, or asks for. TLV 9 holds them.
type Entry struct {
	Lifetime uint16 // seconds
	ID       LSPID
	Sequence uint32
	Checksum uint16
}

const (
	entryLen      = 16
	entriesInTLV  = maxValue / entryLen
	entryIDAt     = 2
	entrySeqAt    = 10
	entrySumAt    = 14
	fieldLSPEntry = "LSP entries"
)

// Entries reads all TLVs 9, in order.
func (l TLVs) Entries() ([]Entry, error) {
	var out []Entry
	at := 0
	for _, t := range l {
		if t.Type == TLVLSPEntries {
			if len(t.Value)%entryLen != 0 {
				return out, fault(at+1, fieldLSPEntry, "%d octets are not a multiple of %d (ISO 10589 clause 9.10)", len(t.Value), entryLen)
			}
			for b := t.Value; len(b) > 0; b = b[entryLen:] {
				out = append(out, Entry{
					Lifetime: binary.BigEndian.Uint16(b),
					ID:       LSPID(b[entryIDAt:entrySeqAt]),
					Sequence: binary.BigEndian.Uint32(b[entrySeqAt:]),
					Checksum: binary.BigEndian.Uint16(b[entrySumAt:]),
				})
			}
		}
		at += 2 + len(t.Value)
	}
	return out, nil
}

// EntryTLVs makes as many TLVs 9 as the entries need.
func EntryTLVs(entries []Entry) (out TLVs) {
	for len(entries) > 0 {
		n := min(entriesInTLV, len(entries))
		value := make([]byte, 0, n*entryLen)
		for _, e := range entries[:n] {
			value = binary.BigEndian.AppendUint16(value, e.Lifetime)
			value = append(value, e.ID[:]...)
			value = binary.BigEndian.AppendUint32(value, e.Sequence)
			value = binary.BigEndian.AppendUint16(value, e.Checksum)
		}
		out = append(out, TLV{Type: TLVLSPEntries, Value: value})
		entries = entries[n:]
	}
	return out
}
