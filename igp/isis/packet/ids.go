package packet

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
)

// SystemID names a system, as in 1921.6800.1001.
type SystemID [6]byte

// NodeID names a system or a pseudonode, as in 1921.6800.1001.00.
type NodeID [7]byte

// LSPID names a fragment of a node's link state PDU, as in 1921.6800.1001.00-00.
type LSPID [8]byte

// Area is an area address, as in 49.0001: 1 to 13 octets.
type Area []byte

// MaxLSPID is the end of the range that a CSNP for the whole database covers.
var MaxLSPID = LSPID{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}

// Node gives the system's own node, or one of its pseudonodes.
func (s SystemID) Node(pseudonode uint8) (n NodeID) {
	copy(n[:], s[:])
	n[6] = pseudonode
	return n
}

// System gives the system that the node is or belongs to.
func (n NodeID) System() SystemID { return SystemID(n[:6]) }

// Pseudonode gives the pseudonode's number; zero for the system itself.
func (n NodeID) Pseudonode() uint8 { return n[6] }

// Fragment gives the name of one of the node's LSPs.
func (n NodeID) Fragment(number uint8) (id LSPID) {
	copy(id[:], n[:])
	id[7] = number
	return id
}

// Node gives whose LSP it is.
func (id LSPID) Node() NodeID { return NodeID(id[:7]) }

// Fragment gives its number among the LSPs of the node.
func (id LSPID) Fragment() uint8 { return id[7] }

// Compare orders LSP IDs as CSNPs do.
func (id LSPID) Compare(other LSPID) int { return bytes.Compare(id[:], other[:]) }

// String gives the usual form.
func (s SystemID) String() string { return fmt.Sprintf("%x.%x.%x", s[0:2], s[2:4], s[4:6]) }

// String gives the usual form.
func (n NodeID) String() string { return fmt.Sprintf("%s.%02x", n.System(), n[6]) }

// String gives the usual form.
func (id LSPID) String() string { return fmt.Sprintf("%s-%02x", id.Node(), id[7]) }

// String gives the usual form.
func (a Area) String() string {
	if len(a) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%02x", a[0])
	for rest := []byte(a[1:]); len(rest) > 0; {
		n := min(2, len(rest))
		fmt.Fprintf(&b, ".%x", rest[:n])
		rest = rest[n:]
	}
	return b.String()
}

// ParseSystemID reads the form 1921.6800.1001.
func ParseSystemID(s string) (id SystemID, err error) {
	parts := strings.Split(s, ".")
	raw, err := hex.DecodeString(strings.Join(parts, ""))
	if err != nil || len(parts) != 3 || len(parts[0]) != 4 || len(parts[1]) != 4 || len(raw) != len(id) {
		return id, fmt.Errorf("isis: system ID %q: must be three groups of four hexadecimal digits, as in 1921.6800.1001", s)
	}
	return SystemID(raw), nil
}

// ParseArea reads the form 49.0001: pairs of hexadecimal digits, with dots anywhere between them.
func ParseArea(s string) (Area, error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(s, ".", ""))
	if err != nil || len(raw) < 1 || len(raw) > MaxAreaLen {
		return nil, fmt.Errorf("isis: area %q: must be 1 to %d octets in hexadecimal, as in 49.0001", s, MaxAreaLen)
	}
	return raw, nil
}

// MaxAreaLen is the greatest length of an area address, octets (ISO 10589 clause 7.1.2).
const MaxAreaLen = 13

// ParseNET reads a network entity title, as in 49.0001.1921.6800.1001.00: area, system ID and the selector,
// which is zero.
func ParseNET(s string) (Area, SystemID, error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(s, ".", ""))
	if err != nil || len(raw) < 8 || len(raw) > MaxAreaLen+7 || raw[len(raw)-1] != 0 {
		return nil, SystemID{}, fmt.Errorf("isis: NET %q: must be an area of 1 to %d octets, six of system ID and the selector 00, as in 49.0001.1921.6800.1001.00", s, MaxAreaLen)
	}
	n := len(raw) - 7
	return raw[:n:n], SystemID(raw[n : n+6]), nil
}
