package ctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagRule is a rule over several flags. (cobra has the same rules, but words their breach for programmers.)
type flagRule struct {
	names    []string
	together bool // all or none of them; otherwise at most one
}

func (r flagRule) check(set func(name string) bool) error {
	var given, missing []string
	for _, n := range r.names {
		if set(n) {
			given = append(given, "--"+n)
		} else {
			missing = append(missing, "--"+n)
		}
	}
	switch {
	case r.together && len(given) > 0 && len(missing) > 0:
		return usagef("%s needs %s beside it", strings.Join(given, " and "), strings.Join(missing, " and "))
	case !r.together && len(given) > 1:
		return usagef("%s cannot be used together", strings.Join(given, " and "))
	}
	return nil
}

// checkFlags holds the rules over several flags, and those that the flags' types don't.
func (a *app) checkFlags(cmd *cobra.Command, own ...flagRule) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	if a.timeout <= 0 {
		return usagef("--timeout: %s is no time to wait: want a duration above zero, as in 10s", a.timeout)
	}
	rules := append([]flagRule{
		{names: []string{"socket", "address"}},
		{names: []string{"tls-cert", "tls-key"}, together: true},
	}, own...)
	for _, r := range rules {
		if err := r.check(cmd.Flags().Changed); err != nil {
			return err
		}
	}
	return nil
}

// flagError words a flag's bad value for those who typed it.
func flagError(_ *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	want := ""
	switch t := bad.GetFlag().Value.Type(); t {
	case "duration":
		want = "a duration, as in 10s or 1m30s"
	case "bool":
		want = "true or false"
	case "uint32":
		want = "a number from 0 to 4294967295"
	default:
		return err
	}
	return usagef("--%s: %q is not %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// oneOf checks a name against those that exist.
func oneOf(flag, name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	return usageError{fmt.Errorf("%s: %q is none of %s", flag, name, strings.Join(names, ", "))}
}
