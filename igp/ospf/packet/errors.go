package packet

import (
	"fmt"

	"pncd/igp/wire"
)

// Error says what breaks which rule, and where.
type Error = wire.Error

func fault(offset int, field, format string, args ...any) error {
	return &Error{Protocol: "ospf", Offset: offset, Field: field, Rule: fmt.Sprintf(format, args...)}
}

// shifted moves an error of an inner part to where that part begins in the outer one.
func shifted(err error, by int) error { return wire.Shifted(err, by) }
