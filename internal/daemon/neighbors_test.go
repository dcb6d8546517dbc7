package daemon

import (
	"context"
	"errors"
	"testing"

	"pncd/api"
	"pncd/internal/config"
)

func TestNeighboursWithoutBGPAreExplained(t *testing.T) {
	cfg, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = quietDaemon(t, cfg).Neighbors(context.Background())
	var e *api.Error
	if !errors.As(err, &e) || e.Reason != api.ReasonNotConfigured || e.Msg != "BGP is not configured: the configuration has no bgp section" {
		t.Errorf("%v", err)
	}
}
