package roce

import (
	"errors"
	"fmt"
	"strconv"
)

// What can be wrong with a packet. Every decoding error of this package is a *FieldError that wraps
// one of these, so callers match with errors.Is and count by kind.
var (
	// ErrNotRoCEv2: a sound packet of something else (not IP, not UDP, not port 4791).
	ErrNotRoCEv2 = errors.New("not RoCEv2")
	// ErrRoCEv1: RoCE without IP (EtherType 0x8915), which is not decoded: a kind of ErrNotRoCEv2.
	ErrRoCEv1 = fmt.Errorf("RoCEv1, %w", ErrNotRoCEv2)
	// ErrTruncated: the bytes end before the headers do.
	ErrTruncated = errors.New("truncated")
	// ErrMalformed: a field contradicts another one or its definition.
	ErrMalformed = errors.New("malformed")
	// ErrFragment: an IP fragment. RoCEv2 packets are never fragmented (IBTA annex A17.4.5.1), and a
	// fragment can't be decoded without its siblings.
	ErrFragment = errors.New("IP fragment")
	// ErrExtensionHeader: an IPv6 extension header other than hop-by-hop and destination options.
	ErrExtensionHeader = errors.New("unsupported IPv6 extension header")
	// ErrNotCM: a management datagram that is no connection management message of a known kind.
	ErrNotCM = errors.New("not connection management")
	// ErrValue: a value that does not fit its field, from a builder.
	ErrValue = errors.New("value out of range")
)

// FieldError says where decoding or building stopped: the layer, the offset in octets from the start of
// that layer, the field, and the rule it broke. All of them are package variables, so that a flood of
// bad packets costs no allocation.
type FieldError struct {
	Layer  string
	Offset int
	Field  string
	Rule   string
	Err    error // one of the Err variables
}

func (e *FieldError) Error() string {
	return "roce: " + e.Layer + " offset " + strconv.Itoa(e.Offset) + ": " + e.Field + ": " + e.Rule + " (" + e.Err.Error() + ")"
}

func (e *FieldError) Unwrap() error { return e.Err }
