package packet

import (
	"bytes"
	"testing"
)

// FuzzPDU holds that no input panics, and that what is parsed is written back byte for byte, with every
// typed TLV of it.
func FuzzPDU(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(unhex(f, v.PDU))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := rewrite(b)
		if err != nil {
			return
		}
		if !bytes.Equal(out, b[:len(out)]) {
			t.Fatalf("got %x\nwant %x", out, b[:len(out)])
		}
		typ, _ := Type(b)
		list, err := ParseTLVs(out[headerLen[typ]:])
		if err != nil {
			t.Fatal(err)
		}
		readAll(list)
		for _, tlv := range list {
			retypeAgain(t, tlv)
		}
		if typ == L1LSP || typ == L2LSP {
			ChecksumOK(out)
			if SetChecksum(out); !ChecksumOK(out) {
				t.Fatalf("a computed checksum doesn't verify: %x", out)
			}
		}
	})
}

// readAll calls every reader of the list.
func readAll(l TLVs) {
	l.Areas()
	l.LANNeighbors()
	l.Protocols()
	l.IPv4Interfaces()
	l.IPv6Interfaces()
	l.TERouterIDs()
	l.Hostname()
	l.Topologies()
	l.ThreeWay()
	l.Restart()
	l.PurgeOriginator()
	l.Entries()
}

// retypeAgain holds that what is written of typed entries reads as the same.
func retypeAgain(t *testing.T, tlv TLV) {
	value, ipv6 := tlv.Value, false
	switch tlv.Type {
	case TLVMTIPReach, TLVMTIPv6Reach, TLVMTISReach:
		var err error
		if _, _, value, err = ParseMT(value); err != nil {
			return
		}
	}
	switch tlv.Type {
	case TLVExtendedISReach, TLVMTISReach:
		entries, err := ParseISReach(value)
		if err != nil {
			return
		}
		var out []byte
		for _, e := range entries {
			if out, err = e.Append(out); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(out, value) {
			t.Fatalf("got %x\nwant %x", out, value)
		}
	case TLVIPv6Reach, TLVMTIPv6Reach:
		ipv6 = true
		fallthrough
	case TLVExtendedIPReach, TLVMTIPReach:
		entries, err := ParsePrefixes(value, ipv6)
		if err != nil {
			return
		}
		var once []byte
		for _, e := range entries {
			e.Attributes().Has(FlagProxy)
			e.SourceRouterIDs()
			if once, err = e.Append(once); err != nil {
				t.Fatal(err)
			}
		}
		if len(once) != len(value) { // bits of the host may be cleared, nothing else
			t.Fatalf("got %x\nwant %x", once, value)
		}
		again, err := ParsePrefixes(once, ipv6)
		if err != nil {
			t.Fatal(err)
		}
		var twice []byte
		for _, e := range again {
			if twice, err = e.Append(twice); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("once %x\ntwice %x", once, twice)
		}
	}
}
