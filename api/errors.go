package api

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// ErrorDomain is the domain of the google.rpc.ErrorInfo in this server's errors.
const ErrorDomain = "pncd"

// The reasons of FAILED_PRECONDITION, NOT_FOUND, RESOURCE_EXHAUSTED and UNAVAILABLE, in
// google.rpc.ErrorInfo. Backends use these and no others.
const (
	ReasonDisabled      = "DISABLED"       // the mechanism is switched off
	ReasonNotConfigured = "NOT_CONFIGURED" // the part that is asked is not configured
	ReasonConfigured    = "CONFIGURED"     // the object belongs to the configuration
	ReasonCannotEnable  = "CANNOT_ENABLE"  // something that the mechanism needs can't be opened
	ReasonNotRunning    = "NOT_RUNNING"    // the part that is needed has not started, or has ended
	ReasonNotOffered    = "NOT_OFFERED"    // the BGP neighbour can't do that
	ReasonNotFound      = "NOT_FOUND"      // there is no such object
	ReasonTooMany       = "TOO_MANY"       // a limit of the server is reached
	ReasonStopping      = "STOPPING"       // the daemon is stopping
)

// Error is a failure that the caller can do something about. Backends return it; it satisfies the
// interface by which gRPC finds the status of an error.
type Error struct {
	Code   codes.Code
	Field  string // the request's field, for InvalidArgument
	Reason string // one of the reasons above, for the others
	Msg    string
}

// Error returns the message, with the field before it.
func (e *Error) Error() string {
	if e.Field != "" {
		return e.Field + ": " + e.Msg
	}
	return e.Msg
}

// GRPCStatus returns the status with its details.
func (e *Error) GRPCStatus() *status.Status {
	st := status.New(e.Code, e.Error())
	var detail protoadapt.MessageV1
	switch {
	case e.Field != "":
		detail = &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: e.Field, Description: e.Msg}}}
	case e.Reason != "":
		detail = &errdetails.ErrorInfo{Reason: e.Reason, Domain: ErrorDomain}
	default:
		return st
	}
	with, err := st.WithDetails(detail)
	if err != nil {
		return st // the message alone still says it
	}
	return with
}

// Invalid is INVALID_ARGUMENT: the rule that the field breaks.
func Invalid(field, format string, args ...any) error {
	return &Error{Code: codes.InvalidArgument, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// NotFound is NOT_FOUND.
func NotFound(format string, args ...any) error {
	return &Error{Code: codes.NotFound, Reason: ReasonNotFound, Msg: fmt.Sprintf(format, args...)}
}

// Precondition is FAILED_PRECONDITION with one of the reasons above.
func Precondition(reason, format string, args ...any) error {
	return &Error{Code: codes.FailedPrecondition, Reason: reason, Msg: fmt.Sprintf(format, args...)}
}

// TooMany is RESOURCE_EXHAUSTED: a limit of this server is reached.
func TooMany(format string, args ...any) error {
	return &Error{Code: codes.ResourceExhausted, Reason: ReasonTooMany, Msg: fmt.Sprintf(format, args...)}
}

// Stopping is UNAVAILABLE: what a stream ends with when the server stops, and what a call gets that
// would begin something then.
func Stopping() error {
	return &Error{Code: codes.Unavailable, Reason: ReasonStopping, Msg: "pncd is stopping"}
}

// toStatus gives every error that leaves the server a status: ours and gRPC's as they are, the
// context's by its kind, and the rest INTERNAL.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		// The status of the innermost error with the message of the whole chain.
		if own.Error() != err.Error() && own.Field == "" {
			wrapped := *own
			wrapped.Msg = err.Error()
			own = &wrapped
		}
		return own.GRPCStatus().Err()
	}
	if st, ok := status.FromError(err); ok {
		return st.Err()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}
