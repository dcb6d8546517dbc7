package ctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pncd/api"
)

// refusedFile marks an error that says what is wrong with a file of pncd's, not with the command line.
type refusedFile struct{ error }

// report turns the error of a run into one line, empty when everything was said, and the exit status.
func (a *app) report(err error) (line string, exit int) {
	var usage usageError
	switch {
	case errors.Is(err, errNegative):
		return "", exitFailed
	case errors.As(err, &usage):
		return oneLine(err.Error()), exitUsage
	case !a.started:
		return oneLine(err.Error()) + "; see 'pncctl --help'", exitUsage
	}
	var refused refusedFile
	if errors.As(err, &refused) {
		line, _ = a.report(refused.error)
		return line, exitFailed
	}
	if st, ok := status.FromError(err); ok {
		line, exit = a.reportStatus(st)
		return oneLine(line), exit
	}
	return oneLine(err.Error()), exitFailed
}

func (a *app) reportStatus(st *status.Status) (line string, exit int) {
	switch st.Code() {
	case codes.InvalidArgument:
		return fieldsOf(st), exitUsage
	case codes.Unavailable:
		return a.unavailable(st), exitFailed
	case codes.DeadlineExceeded:
		return fmt.Sprintf("no answer from pncd at %s within %s; a longer --timeout may help", a.client.target(), a.timeout), exitFailed
	case codes.Unimplemented:
		return fmt.Sprintf("this pncd does not know the call (%s); is it older than pncctl?", st.Message()), exitFailed
	case codes.FailedPrecondition:
		if reasonOf(st) == api.ReasonDisabled {
			return st.Message() + " ('pncctl enable')", exitFailed
		}
	case codes.Internal, codes.Unknown:
		return st.Message() + " (the log of pncd says more)", exitFailed
	}
	return st.Message(), exitFailed
}

// fieldsOf names the fields and rules of an INVALID_ARGUMENT.
func fieldsOf(st *status.Status) string {
	var all []string
	for _, d := range st.Details() {
		if br, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range br.GetFieldViolations() {
				all = append(all, v.GetField()+": "+v.GetDescription())
			}
		}
	}
	if len(all) == 0 {
		return st.Message()
	}
	return strings.Join(all, "; ")
}

func reasonOf(st *status.Status) string {
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == api.ErrorDomain {
			return info.GetReason()
		}
	}
	return ""
}

// unavailable says why pncd can't be reached and what to do.
func (a *app) unavailable(st *status.Status) string {
	if reasonOf(st) != "" { // pncd itself said so
		return st.Message()
	}
	c := a.client
	at := "cannot reach pncd at " + c.target()
	var err error
	if p := c.dialError.Load(); p != nil {
		err = *p
	}
	switch {
	case err == nil:
		hint := ""
		if c.network == "tcp" {
			hint = "; check --tls-ca, --tls-cert and --tls-server-name"
		}
		why := st.Message()
		for _, noise := range []string{"connection error: desc = ", "transport: "} {
			why = strings.Trim(strings.TrimPrefix(why, noise), `"`)
		}
		return fmt.Sprintf("%s: %s%s", at, why, hint)
	case c.network == "unix" && errors.Is(err, fs.ErrNotExist):
		return at + ": there is no such socket: is pncd running? ('systemctl status pncd'; --socket gives another path)"
	case errors.Is(err, syscall.ECONNREFUSED) && c.network == "unix":
		return at + ": nobody listens on the socket: is pncd running? ('systemctl status pncd')"
	case errors.Is(err, syscall.ECONNREFUSED):
		return at + ": connection refused: is pncd running, and does its api.listen have this address?"
	case c.network == "unix" && errors.Is(err, fs.ErrPermission):
		return at + ": permission denied: " + whoMay(c.address)
	}
	return fmt.Sprintf("%s: %v", at, err)
}

// whoMay says who may open the socket, as far as it can be seen.
func whoMay(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return "its directory is closed to you; run pncctl as root"
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return "run pncctl as root"
	}
	if st.Mode().Perm()&0o020 == 0 {
		return "only its owner may use it; run pncctl as root"
	}
	if sys.Gid == 0 { // nobody should join root's group
		return "only root may use it: name a group in api.group of pncd.yaml and restart pncd, or run pncctl as root"
	}
	group := strconv.FormatUint(uint64(sys.Gid), 10)
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	return fmt.Sprintf("you must be in group %s, which api.group of pncd.yaml chooses ('usermod -aG %s USER', then log in again), or run pncctl as root", group, group)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
