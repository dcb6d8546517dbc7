package message

import (
	"fmt"

	"pncd/igp/wire"
)

// Error says what breaks which rule, and where.
type Error = wire.Error

// shifted moves an error of a body to where the body begins in the message.
func shifted(err error) error { return wire.Shifted(err, HeaderLen) }

func fault(offset int, field, format string, args ...any) error {
	return &Error{Protocol: "ospf api", Offset: offset, Field: field, Rule: fmt.Sprintf(format, args...)}
}
