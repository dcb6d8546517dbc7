// Command pnclab builds labs on one machine and makes the traffic in them: topologies on network
// namespaces, replayed captures, generated RoCEv2 flows, the CNPs that arrive, and the demonstration.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"pncd/internal/version"
)

// Exit statuses: 1 failed, 2 a bad command line.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:])) }

// usageError marks errors of the command line.
type usageError struct{ error }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	broken := make(chan os.Signal, 1) // never read: see pipe
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	var readers sync.WaitGroup
	readers.Go(func() { watchReaders(ctx, cancel, os.Stdout, os.Stderr) })
	defer readers.Wait()
	defer cancel()
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(pipe{os.Stdout, cancel})
	cmd.SetErr(pipe{os.Stderr, cancel})
	started := false
	noteStart(cmd, &started)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !errors.Is(err, syscall.EPIPE) { // who closes the pipe wants no more
		fmt.Fprintln(os.Stderr, "pnclab:", err)
	}
	var usage usageError
	if !started || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// noteStart sets started when a command line was good and the work begins. (cobra checks required flags
// only after its own hooks.)
func noteStart(cmd *cobra.Command, started *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return run(cmd, args)
		}
	}
	for _, c := range cmd.Commands() {
		noteStart(c, started)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "pnclab",
		Short:         "Labs and RoCEv2 traffic on network namespaces",
		Version:       version.Get().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          needsSubcommand,
	}
	cmd.PersistentFlags().BoolP("verbose", "v", false, "say each step on standard error")
	cmd.AddCommand(labCommand(), replayCommand(), generateCommand(), watchCommand(), demoCommand())
	return cmd
}

func logger(cmd *cobra.Command) logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(cmd.ErrOrStderr())
	log.SetLevel(logrus.WarnLevel)
	if on, _ := cmd.Flags().GetBool("verbose"); on {
		log.SetLevel(logrus.DebugLevel)
	}
	return log
}

func needsSubcommand(cmd *cobra.Command, _ []string) error {
	return usageError{fmt.Errorf("a command is missing: see `%s --help`", cmd.CommandPath())}
}
