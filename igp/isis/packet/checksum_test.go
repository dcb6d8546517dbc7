package packet

import "testing"

func TestTheChecksumLeavesTheLifetimeOut(t *testing.T) {
	b := make([]byte, headerLen[L2LSP])
	if SetChecksum(b); !ChecksumOK(b) {
		t.Fatal("a computed checksum doesn't verify")
	}
	if SetLifetime(b, 1200); !ChecksumOK(b) {
		t.Error("another lifetime, another checksum")
	}
	if b[lspSequenceAt] ^= 1; ChecksumOK(b) {
		t.Error("another sequence number, the same checksum")
	}
}
