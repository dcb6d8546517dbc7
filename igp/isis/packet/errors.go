package packet

import "fmt"

// Error says what breaks which rule, and where.
type Error struct {
	Offset int    // octets from the begin of what was parsed
	Field  string // as named in the document
	Rule   string // what should have been, with its source
}

// Error gives it as one sentence.
func (e *Error) Error() string {
	return fmt.Sprintf("isis: offset %d: %s: %s", e.Offset, e.Field, e.Rule)
}

func fault(offset int, field, format string, args ...any) error {
	return &Error{Offset: offset, Field: field, Rule: fmt.Sprintf(format, args...)}
}

// shifted moves an error of an inner part to where that part begins in the outer one.
func shifted(err error, by int) error {
	if e, ok := err.(*Error); ok {
		return &Error{Offset: e.Offset + by, Field: e.Field, Rule: e.Rule}
	}
	return err
}
