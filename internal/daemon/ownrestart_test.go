package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"pncd/internal/config"
)

func TestTheStateFileSaysThatAStartIsARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bgp-restart")
	r := &config.OwnRestart{Enabled: true, StateFile: file}
	if leftBehind(r) {
		t.Error("there is no file")
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if !leftBehind(r) {
		t.Error("there is a file")
	}
	r.Enabled = false
	if leftBehind(r) {
		t.Error("graceful restart is off")
	}
}

func TestOnStopDecidesWhatStays(t *testing.T) {
	for onStop, keep := range map[string]bool{config.OnStopKeep: true, config.OnStopWithdraw: false} {
		r := config.OwnRestart{Enabled: true, OnStop: onStop}
		d := &Daemon{}
		d.config.Store(&config.Config{BGP: &config.BGP{GracefulRestart: r}})
		if got := d.keepsOnStop(); got != keep || restartSettings(&r).Keep != keep {
			t.Errorf("%s: %v", onStop, got)
		}
	}
	d := &Daemon{}
	d.config.Store(&config.Config{})
	if d.keepsOnStop() {
		t.Error("without BGP")
	}
}
