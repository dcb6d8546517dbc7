package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"pncd/bgp"
	"pncd/internal/config"
)

// The state file of bgp.graceful_restart exists from the time at which neighbours are asked to keep what is
// announced until it is withdrawn: a program that finds it was restarted. It says nothing else, and where it
// lies decides how far that reaches: in /run, not beyond a reboot.

// restartSettings is how neighbours treat a restart; whether this start is one is told apart.
func restartSettings(r *config.OwnRestart) bgp.OwnRestart {
	return bgp.OwnRestart{
		Enabled: r.Enabled, Time: r.RestartTime.Duration, Deferral: r.DeferralTime.Duration, Keep: r.OnStop == config.OnStopKeep,
	}
}

// leftBehind reports whether an earlier run left announcements with the neighbours.
func leftBehind(r *config.OwnRestart) bool {
	_, err := os.Stat(r.StateFile)
	return r.Enabled && err == nil
}

// keepsOnStop reports whether announcements stay with the neighbours at a clean stop.
func (d *Daemon) keepsOnStop() bool {
	cfg := d.config.Load()
	return cfg.BGP != nil && cfg.BGP.GracefulRestart.OnStop == config.OnStopKeep
}

// runSpeaker runs the speaker, and notes in the state file that there is something to come back to. A
// speaker that ends by itself withdrew nothing.
func (d *Daemon) runSpeaker(ctx context.Context) error {
	r := d.config.Load().BGP.GracefulRestart
	if r.Enabled {
		text := fmt.Sprintf("pncd %s announces by BGP; without a withdrawal the next start is a restart\n", d.boot)
		if err := os.WriteFile(r.StateFile, []byte(text), 0o644); err != nil {
			return fmt.Errorf("bgp.graceful_restart.state_file: %w", err)
		}
	}
	if err := d.speaker.Run(ctx); err != nil || !r.Enabled || d.keepsOnStop() {
		return err
	}
	if err := os.Remove(r.StateFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bgp.graceful_restart.state_file: %w", err)
	}
	return nil
}
