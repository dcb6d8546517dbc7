package packet

import (
	"bytes"
	"strings"
	"testing"

	"pncd/igp/internal/recorded"
)

func vectors(t testing.TB) []recorded.PDU {
	t.Helper()
	return recorded.PDUs(t, "isis-", 1)
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	return recorded.Unhex(t, s)
}

// rewrite parses a PDU and everything in it, and writes it back.
func rewrite(b []byte) (out []byte, err error) {
	typ, err := Type(b)
	if err != nil {
		return nil, err
	}
	switch typ {
	case L1LANHello, L2LANHello, P2PHello:
		p, err := ParseHello(b)
		if err != nil {
			return nil, err
		}
		return p.Append(nil)
	case L1LSP, L2LSP:
		p, err := ParseLSP(b)
		if err != nil {
			return nil, err
		}
		return p.Append(nil)
	}
	p, err := ParseSNP(b)
	if err != nil {
		return nil, err
	}
	return p.Append(nil)
}

func TestEveryRecordedPDUIsWrittenBackByteForByte(t *testing.T) {
	seen := map[PDUType]int{}
	for _, v := range vectors(t) {
		b := unhex(t, v.PDU)
		out, err := rewrite(b)
		if err != nil {
			t.Errorf("%s %s: %v", v.Kind, v.Note, err)
			continue
		}
		if !bytes.Equal(out, b[:len(out)]) {
			t.Errorf("%s %s:\n got %x\nwant %x", v.Kind, v.Note, out, b)
		}
		if strings.Trim(string(b[len(out):]), "\x00") != "" {
			t.Errorf("%s %s: %x is left over", v.Kind, v.Note, b[len(out):])
		}
		typ, _ := Type(b)
		seen[typ]++
	}
	for typ := range pduNames {
		if seen[typ] == 0 {
			t.Errorf("no vector is a %s", typ)
		}
	}
}

func TestTheTLVsOfRecordedPDUsAreWrittenBackByteForByte(t *testing.T) {
	seen := map[uint8]int{}
	for _, v := range vectors(t) {
		b := unhex(t, v.PDU)
		typ, _ := Type(b)
		list, err := ParseTLVs(b[headerLen[typ]:length(b, typ)])
		if err != nil {
			t.Fatalf("%s: %v", v.Kind, err)
		}
		for _, tlv := range list {
			if out := retype(t, tlv); out != nil {
				seen[tlv.Type]++
				if !bytes.Equal(out, tlv.Value) {
					t.Errorf("%s TLV %d:\n got %x\nwant %x", v.Kind, tlv.Type, out, tlv.Value)
				}
			}
		}
	}
	for _, typ := range []uint8{TLVAreas, TLVLSPEntries, TLVExtendedISReach, TLVIPv4Interfaces, TLVExtendedIPReach, TLVIPv6Interfaces, TLVIPv6Reach, TLVThreeWay} {
		if seen[typ] == 0 {
			t.Errorf("no vector has TLV %d", typ)
		}
	}
}

func length(b []byte, typ PDUType) int {
	at := lengthAt(typ)
	return int(b[at])<<8 | int(b[at+1])
}

// retype reads a TLV into its typed form and writes it back; nil for a type without one.
func retype(t testing.TB, tlv TLV) (out []byte) {
	t.Helper()
	list := TLVs{tlv}
	var err error
	defer func() {
		if err != nil {
			t.Errorf("TLV %d %x: %v", tlv.Type, tlv.Value, err)
		}
	}()
	switch tlv.Type {
	case TLVAreas:
		var areas []Area
		areas, err = list.Areas()
		return AreasTLV(areas...).Value
	case TLVLSPEntries:
		var entries []Entry
		entries, err = list.Entries()
		for _, e := range EntryTLVs(entries) {
			out = append(out, e.Value...)
		}
	case TLVExtendedISReach:
		var entries []ISReach
		entries, err = ParseISReach(tlv.Value)
		for _, e := range entries {
			if out, err = e.Append(out); err != nil {
				return nil
			}
		}
	case TLVExtendedIPReach, TLVIPv6Reach:
		var entries []Prefix
		entries, err = ParsePrefixes(tlv.Value, tlv.Type == TLVIPv6Reach)
		n := 0
		for _, e := range entries {
			n += e.Len()
			if out, err = e.Append(out); err != nil {
				return nil
			}
		}
		if n != len(out) {
			t.Errorf("Len says %d, %d were written", n, len(out))
		}
	case TLVIPv4Interfaces:
		addrs, e := list.IPv4Interfaces()
		err = e
		return AddressesTLV(addrs...).Value
	case TLVIPv6Interfaces:
		addrs, e := list.IPv6Interfaces()
		err = e
		return AddressesTLV(addrs...).Value
	case TLVThreeWay:
		w, e := list.ThreeWay()
		if err = e; err == nil {
			return w.TLV().Value
		}
	}
	return out
}

func TestTheChecksumOfEveryRecordedLSPIsRight(t *testing.T) {
	n := 0
	for _, v := range vectors(t) {
		b := unhex(t, v.PDU)
		p, err := ParseLSP(b)
		if err != nil || p.Lifetime == 0 {
			continue
		}
		n++
		b = b[:length(b, p.Type)]
		if !ChecksumOK(b) {
			t.Errorf("%s %s: the checksum doesn't verify", v.Kind, v.Note)
		}
		if got := SetChecksum(bytes.Clone(b)); got != p.Checksum {
			t.Errorf("%s %s: computed %#04x, the router has %#04x", v.Kind, v.Note, got, p.Checksum)
		}
		SetLifetime(b, 7)
		if !ChecksumOK(b) {
			t.Errorf("%s %s: the lifetime changed the checksum", v.Kind, v.Note)
		}
		b[len(b)-1] ^= 0x40
		if ChecksumOK(b) {
			t.Errorf("%s %s: a changed octet goes unnoticed", v.Kind, v.Note)
		}
	}
	if n < 10 {
		t.Fatalf("%d LSPs among the vectors", n)
	}
}
