package nhc

import (
	"errors"
	"fmt"
)

// What is wrong with an attribute. All come wrapped in an *Error.
var (
	ErrTruncated     = errors.New("truncated")
	ErrType          = errors.New("wrong attribute type")
	ErrFlags         = errors.New("wrong attribute flags")
	ErrLength        = errors.New("wrong length")
	ErrNextHopLength = errors.New("wrong next hop length")
	ErrNextHop       = errors.New("wrong next hop")
	ErrMismatch      = errors.New("next hop mismatch")
	ErrTLVLength     = errors.New("wrong TLV length")
	ErrNoTLV         = errors.New("no TLV")
	ErrTLVOrder      = errors.New("TLVs not in increasing order")
	ErrDuplicateTLV  = errors.New("identical TLVs")
	ErrProxy         = errors.New("wrong proxy address")
)

// Error says where an attribute breaks which rule.
type Error struct {
	Offset int    // octets from the start of what was parsed
	Field  string // the field's name in the draft
	Rule   string // what it must be, and what it is
	Err    error  // one of the errors of this package
}

func (e *Error) Error() string {
	return fmt.Sprintf("NHC attribute: offset %d: %s: %s: %v", e.Offset, e.Field, e.Rule, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// fail makes an *Error; the last of args is the error it wraps, those before fill the rule.
func fail(offset int, field, rule string, args ...any) *Error {
	last := len(args) - 1
	return &Error{Offset: offset, Field: field, Rule: fmt.Sprintf(rule, args[:last]...), Err: args[last].(error)}
}
