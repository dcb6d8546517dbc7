package packet

import "pncd/igp/wire"

// The checksum of an LSP is Fletcher's over everything from the LSP ID to the end (ISO 10589 clause 7.3.11).

// ChecksumOK verifies the checksum of a raw LSP, which must be one that ParseLSP takes, without what
// followed it in the frame. A checksum of zero is never right.
func ChecksumOK(lsp []byte) bool { return wire.FletcherOK(lsp[lspIDAt:], lspChecksumAt-lspIDAt) }

// SetChecksum computes the checksum of a raw LSP and writes it there.
func SetChecksum(lsp []byte) uint16 { return wire.SetFletcher(lsp[lspIDAt:], lspChecksumAt-lspIDAt) }
