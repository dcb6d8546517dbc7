// Command pncctl shows and steers a running pncd through its gRPC API. See internal/ctl for what it does
// and for its exit statuses.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"pncd/internal/ctl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := ctl.Main(ctx, ctl.Env{
		Args:   os.Args[1:],
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Getenv: os.Getenv,
		Now:    time.Now,
	})
	stop()
	os.Exit(status)
}
