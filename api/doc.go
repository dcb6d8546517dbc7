// Package api is the server that answers pncd's gRPC surface.
//
// The surface is described by the protobuf files in proto/pnc/v1 and nowhere else; the Go generated from
// them is in api/pnc/v1. This package checks requests, turns the domain's types into messages, and asks
// the parts of the daemon through the interfaces in Backends, which the daemon satisfies. It holds no
// state of the mechanism itself and is not for deciding anything: a rule that is more than the form of a
// request belongs to the part that is asked.
//
// Errors follow https://google.aip.dev/193: INVALID_ARGUMENT carries a google.rpc.BadRequest with the
// field and the rule, FAILED_PRECONDITION and NOT_FOUND a google.rpc.ErrorInfo with the domain
// ErrorDomain and a reason in capitals. The standard health service (grpc.health.v1) answers for each
// service and for ReadinessService; server reflection is on.
package api
