// Package wire is what the codecs of IS-IS and OSPF share: the form of their errors and Fletcher's checksum.
package wire

import "fmt"

// Error says what breaks which rule, and where.
type Error struct {
	Protocol string // "isis", "ospf"
	Offset   int    // octets from the begin of what was parsed
	Field    string // as named in the document
	Rule     string // what should have been, with its source
}

// Error gives it as one sentence.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: offset %d: %s: %s", e.Protocol, e.Offset, e.Field, e.Rule)
}

// Shifted moves an error of an inner part to where that part begins in the outer one.
func Shifted(err error, by int) error {
	if e, ok := err.(*Error); ok {
		moved := *e
		moved.Offset += by
		return &moved
	}
	return err
}
