package packet

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

const (
	p2pHello = "83 14 01 00 11 01 00 00  02 000000000001 001e 0017 00  81 01 cc"
	lsp      = "83 1b 01 00 14 01 00 00  0021 04af 0000000000020000 00000001 0000 03  01 04 03490001"
	csnp     = "83 21 01 00 19 01 00 00  0033 00000000000200 0000000000000000 ffffffffffffffff  09 10 04af 0000000000020000 00000001 7ff7"
	psnp     = "83 11 01 00 1b 01 00 00  0023 00000000000100  09 10 04ae 0000000000020000 00000001 7ff7"
)

// with gives a PDU with octets changed.
func with(t *testing.T, s string, at int, octets ...byte) []byte {
	b := unhex(t, s)
	copy(b[at:], octets)
	return b
}

func TestMalformedPDUsAreRefusedWithFieldAndRule(t *testing.T) {
	for _, tc := range []struct {
		name  string
		pdu   []byte
		field string
		at    int
	}{
		{"nothing", nil, "header", 0},
		{"seven octets", unhex(t, lsp)[:7], "header", 7},
		{"another protocol", with(t, lsp, 0, 0x82), "protocol discriminator", 0},
		{"version 2", with(t, lsp, 2, 2), "version", 2},
		{"second version 2", with(t, lsp, 5, 2), "version", 5},
		{"system IDs of 8 octets", with(t, lsp, 3, 8), "ID length", 3},
		{"no system IDs", with(t, lsp, 3, 255), "ID length", 3},
		{"unknown type", with(t, lsp, 4, 21), "PDU type", 4},
		{"header length of another type", with(t, lsp, 1, 17), "header length", 1},
		{"header cut", unhex(t, lsp)[:20], "header", 20},
		{"length less than the header", with(t, lsp, 8, 0, 26), "PDU length", 8},
		{"length beyond the frame", with(t, lsp, 8, 0, 0x22), "PDU length", 8},
		{"hello: length beyond the frame", with(t, p2pHello, 17, 0, 0x18), "PDU length", 17},
		{"hello: circuit type 0", with(t, p2pHello, 8, 0xFC), "circuit type", 8},
		{"TLV beyond the end", with(t, lsp, 28, 5), "TLV length", 28},
		{"a type alone at the end", with(t, lsp, 28, 3), "TLV", 32},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := rewrite(tc.pdu)
			var e *Error
			if !errors.As(err, &e) || e.Field != tc.field || e.Offset != tc.at {
				t.Errorf("%v, want %s at %d", err, tc.field, tc.at)
			}
		})
	}
}

func TestAPDUOfAnotherKindIsRefused(t *testing.T) {
	for kind, parse := range map[string]func([]byte) error{
		"hello": func(b []byte) error { _, err := ParseHello(b); return err },
		"LSP":   func(b []byte) error { _, err := ParseLSP(b); return err },
		"SNP":   func(b []byte) error { _, err := ParseSNP(b); return err },
	} {
		for name, s := range map[string]string{"hello": p2pHello, "LSP": lsp, "SNP": csnp} {
			err := parse(unhex(t, s))
			if kind == name && err != nil || kind != name && (err == nil || !strings.Contains(err.Error(), "is no "+kind)) {
				t.Errorf("%s as %s: %v", name, kind, err)
			}
		}
	}
	for _, p := range []interface{ Append([]byte) ([]byte, error) }{
		Hello{Header: Header{Type: L1LSP}}, LSP{Header: Header{Type: L1CSNP}}, SNP{Header: Header{Type: P2PHello}},
	} {
		if _, err := p.Append(nil); err == nil {
			t.Errorf("%T of another type is written", p)
		}
	}
}

func TestReservedBitsAndUnknownTLVsAreKept(t *testing.T) {
	for name, b := range map[string][]byte{
		"reserved bits of the type":   with(t, lsp, 4, 0xF4),
		"ID length 6, maximum 3":      with(t, psnp, 3, 6, 0x1b, 1, 0, 3),
		"reserved octet":              with(t, csnp, 6, 0x5A),
		"reserved bits of the levels": with(t, p2pHello, 8, 0xFE),
		"unknown TLV":                 with(t, lsp, 27, 250),
		"every flag":                  with(t, lsp, 26, 0xFF),
	} {
		if out, err := rewrite(b); err != nil || !bytes.Equal(out, b) {
			t.Errorf("%s: %v\n got %x\nwant %x", name, err, out, b)
		}
	}
}

func TestWhatFollowsThePDUInTheFrameIsIgnored(t *testing.T) {
	b := unhex(t, psnp)
	out, err := rewrite(append(bytes.Clone(b), 0xDE, 0xAD, 0xBE, 0xEF))
	if err != nil || !bytes.Equal(out, b) {
		t.Errorf("%v, %x", err, out)
	}
}

func TestWhatDoesNotFitIsAnError(t *testing.T) {
	long := TLV{Type: 250, Value: make([]byte, 256)}
	if _, err := (LSP{Header: Header{Type: L2LSP}, TLVs: TLVs{long}}).Append(nil); err == nil {
		t.Error("a TLV of 256 octets is written")
	}
	var many TLVs
	for range 256 {
		many = append(many, TLV{Type: 250, Value: make([]byte, 255)})
	}
	if _, err := (LSP{Header: Header{Type: L2LSP}, TLVs: many}).Append(nil); err == nil {
		t.Error("a PDU of more than 65,535 octets is written")
	}
}

func TestAppendKeepsWhatWasThere(t *testing.T) {
	p, err := ParseSNP(unhex(t, csnp))
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Append([]byte("frame"))
	if err != nil || !bytes.Equal(out, append([]byte("frame"), unhex(t, csnp)...)) {
		t.Errorf("%v, %x", err, out)
	}
	if !p.Complete() || p.Start != (LSPID{}) || p.End != MaxLSPID || p.Source.String() != "0000.0000.0002.00" {
		t.Errorf("%+v", p)
	}
}
