// Command pncd is the daemon beside a router: it advertises and learns the Proxy Node Capability, sends
// notifications as a congestion node, and translates them to CNPs as a proxy.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"pncd/deploy"
	"pncd/internal/config"
	"pncd/internal/daemon"
	"pncd/internal/telemetry"
	"pncd/internal/version"
)

// Exit statuses: 0 stopped as told, or a valid file; 1 failed; 2 a bad command line or configuration.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	var path string
	var check, reference bool
	var failed error // what the daemon ended with; everything else is a usage error
	cmd := &cobra.Command{
		Use:           "pncd",
		Short:         "Fast CNP with Proxy beside a router",
		Args:          cobra.NoArgs,
		Version:       version.Get().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reference {
				_, err := os.Stdout.Write(deploy.ReferenceConfig)
				return err
			}
			cfg, err := config.Load(path)
			if err == nil {
				err = daemon.Check(cfg)
			}
			if err != nil {
				return err
			}
			if check {
				for _, w := range cfg.Warnings() {
					fmt.Fprintf(os.Stderr, "pncd: %s: warning: %s\n", path, w)
				}
				fmt.Printf("%s: valid\n", path)
				return nil
			}
			failed = serve(cfg, path)
			return failed
		},
	}
	cmd.SetArgs(args)
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.Flags().StringVarP(&path, "config", "c", "/etc/pncd/pncd.yaml", "configuration file")
	cmd.Flags().BoolVar(&check, "check", false, "check the configuration file and exit")
	cmd.Flags().BoolVar(&reference, "reference", false, "print the reference configuration, every key documented, and exit")
	err := cmd.Execute()
	switch {
	case err == nil:
		return 0
	case errors.Is(err, failed):
		fmt.Fprintln(os.Stderr, "pncd:", err)
		return exitFailed
	default:
		fmt.Fprintln(os.Stderr, "pncd:", err)
		return exitUsage
	}
}

func serve(cfg *config.Config, path string) error {
	log, err := telemetry.NewLogger(telemetry.LogConfig{Level: cfg.Log.Level, Format: cfg.Log.Format, Output: os.Stderr})
	if err != nil {
		return err
	}
	daemon.SetGCPercent()
	return daemon.Main(cfg, path, log)
}
