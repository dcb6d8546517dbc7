package daemon

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"pncd/internal/config"
)

// Main runs a daemon until SIGINT or SIGTERM; SIGHUP applies the configuration file again. The error
// says why it could not start or go on.
func Main(cfg *config.Config, path string, log *logrus.Logger) error {
	d, err := New(cfg, path, log)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A log whose reader went away is no reason to die with sockets open and capabilities announced.
	signal.Ignore(syscall.SIGPIPE)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	return d.Run(ctx, hup)
}

// notifySystemd tells the service manager, if there is one (sd_notify(3)).
func notifySystemd(log logrus.FieldLogger, state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		log.WithError(err).Warn("telling the service manager failed")
	}
}

// reloading says that a reload began, which READY=1 ends; a unit of Type=notify-reload needs the time of
// CLOCK_MONOTONIC with it.
func reloading() string {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return "RELOADING=1"
	}
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", ts.Nano()/1000)
}
