package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pncd/api"
)

// Exit statuses; the package comment says when.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// envAddress is the environment variable with the address of pncd.
const envAddress = "PNCCTL_ADDRESS"

const defaultTimeout = 10 * time.Second

// Env is what a run of pncctl sees of the world.
type Env struct {
	Args           []string // without the program's name
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
}

// Main runs pncctl and returns its exit status. It ends early, with status 0, when ctx ends while
// changes are followed.
func Main(ctx context.Context, env Env) int {
	a := &app{env: env}
	root := a.root()
	root.SetArgs(env.Args)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	completionNeedsShell(root)
	err := root.ExecuteContext(ctx)
	a.close()
	if err == nil {
		return exitOK
	}
	line, status := a.report(err)
	if line != "" {
		fmt.Fprintln(env.Stderr, "pncctl: "+line)
	}
	return status
}

// app is one run: the global flags, and the connection once a command needs it.
type app struct {
	env Env

	address, socket string
	tlsCA, tlsName  string
	tlsCert, tlsKey string
	timeout         time.Duration
	output          string
	started         bool // the command line was accepted
	client          *client
}

// errNegative ends a command whose answer is negative and already printed.
var errNegative = errors.New("negative answer")

// usageError is a value on the command line that cannot be used.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run wraps what a command does, so that errors from here on are not the command line's.
func (a *app) run(do func(ctx context.Context, args []string) error, rules ...flagRule) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := a.checkFlags(cmd, rules...); err != nil {
			return err
		}
		a.started = true
		return do(cmd.Context(), args)
	}
}

func (a *app) close() {
	if a.client != nil {
		a.client.close()
	}
}

const rootLong = `pncctl shows and steers a running pncd through its gRPC API.

It talks to ` + "unix://" + api.DefaultSocket + ` unless --socket, --address or ` + envAddress + ` say
otherwise; an address is unix:///path or host:port, which needs TLS.

Exit status: 0 done or the answer is positive; 1 the call failed or the answer is negative
(no proxy, no such flow); 2 the command line is wrong.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "pncctl",
		Short:         "Show and steer a running pncd",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
	}
	f := root.PersistentFlags()
	f.StringVar(&a.socket, "socket", "", "path of pncd's unix socket (default "+api.DefaultSocket+")")
	f.StringVar(&a.address, "address", "", "address of pncd: unix:///path or host:port (default $"+envAddress+")")
	f.StringVar(&a.tlsCA, "tls-ca", "", "PEM file with the CAs that sign pncd's certificate (default the system's)")
	f.StringVar(&a.tlsCert, "tls-cert", "", "PEM file with our certificate, for mutual TLS")
	f.StringVar(&a.tlsKey, "tls-key", "", "PEM file with the key of --tls-cert")
	f.StringVar(&a.tlsName, "tls-server-name", "", "name that pncd's certificate must have (default the address's host)")
	f.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long a call may take")
	f.StringVarP(&a.output, "output", "o", outputTable, "table, json or yaml")
	root.SetFlagErrorFunc(flagError)
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{outputTable, outputJSON, outputYAML}, cobra.ShellCompDirectiveNoFileComp))
	// Arguments are addresses, prefixes and names; the flags that take a file say so.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for _, name := range []string{"socket", "tls-ca", "tls-cert", "tls-key"} {
		_ = root.RegisterFlagCompletionFunc(name, files)
	}
	root.RunE = needSubcommand
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(
		a.statusCommand(), a.versionCommand(), a.neighborsCommand(), a.refreshCommand(),
		a.capabilitiesCommand(), a.resolveCommand(), a.advertiseCommand(), a.withdrawCommand(),
		a.flowsCommand(), a.recordsCommand(), a.countersCommand(), a.watchCommand(),
		a.enableCommand(), a.disableCommand(), a.reloadCommand(), a.logCommand(),
		a.isisCommand(), a.ospfCommand(), a.nrpCommand(), a.reportCommand(), a.boundaryCommand(), a.bundleCommand(),
	)
	return root
}

// completionNeedsShell makes cobra's own command fail as every other one that only groups others. The
// output must be set before: cobra keeps it.
func completionNeedsShell(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE, c.SuggestionsMinimumDistance = cobra.ArbitraryArgs, needSubcommand, 2
		}
	}
}

// files is the completion of a flag that takes a file.
func files(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// needSubcommand is the RunE of a command that only groups others: alone it shows its help, with an
// argument it names what is unknown.
func needSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr()) // the answer of a wrong command line is no output
		_ = cmd.Help()
		return usagef("%s needs a command", cmd.CommandPath())
	}
	hint := ""
	if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
		hint = fmt.Sprintf("; did you mean %s?", s[0])
	}
	return usagef("unknown command %q for %s%s", args[0], cmd.CommandPath(), hint)
}

// needs is the Args of a command with required arguments; the error names those that are missing.
func needs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s needs %s", cmd.CommandPath(), strings.Join(names[len(args):], " "))
		case len(args) > len(names):
			return usagef("%s: unexpected argument %q", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}
