package api_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
)

func TestNeighborsAreSortedAndFiltered(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	res, err := c.node.ListNeighbors(deadline(t), &pncv1.ListNeighborsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.GetNeighbors()) != 2 || res.GetNeighbors()[0].GetAddress() != "192.0.2.251" {
		t.Errorf("neighbours = %v, want two by address", res.GetNeighbors())
	}
	res, err = c.node.ListNeighbors(deadline(t), &pncv1.ListNeighborsRequest{Address: "::ffff:192.0.2.252"})
	if err != nil || len(res.GetNeighbors()) != 1 || res.GetNeighbors()[0].GetDescription() != "rr2" {
		t.Errorf("neighbour = %v, %v, want rr2", res, err)
	}
	_, err = c.node.ListNeighbors(deadline(t), &pncv1.ListNeighborsRequest{Address: "192.0.2.99"})
	wantCode(t, err, codes.NotFound, api.ReasonNotFound)
}

func TestEnableAndDisableSayWhatWasBefore(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	ctx := deadline(t)
	for i, tt := range []struct{ enable, was bool }{{false, true}, {false, false}, {true, false}, {true, true}} {
		var was bool
		if tt.enable {
			res, err := c.node.Enable(ctx, &pncv1.EnableRequest{})
			if err != nil {
				t.Fatal(err)
			}
			was = res.GetWasEnabled()
		} else {
			res, err := c.node.Disable(ctx, &pncv1.DisableRequest{})
			if err != nil {
				t.Fatal(err)
			}
			was = res.GetWasEnabled()
		}
		st, err := c.node.GetStatus(ctx, &pncv1.GetStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if was != tt.was || st.GetEnabled() != tt.enable {
			t.Errorf("step %d: was %v, now %v, want %v, %v", i, was, st.GetEnabled(), tt.was, tt.enable)
		}
	}
}

func TestErrorsOfBackendsKeepTheirKind(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	for _, tt := range []struct {
		name   string
		err    error
		code   codes.Code
		detail string
		msg    string
	}{
		{"ours", api.Precondition(api.ReasonNotConfigured, "no BGP"), codes.FailedPrecondition, api.ReasonNotConfigured, "no BGP"},
		{"ours, wrapped", fmt.Errorf("reload: %w", api.Precondition(api.ReasonDisabled, "off")), codes.FailedPrecondition, api.ReasonDisabled, "reload: off"},
		{"a field", api.Invalid("bgp.neighbors[0].address", "is no address"), codes.InvalidArgument, "bgp.neighbors[0].address", "bgp.neighbors[0].address: is no address"},
		{"a status", status.Error(codes.DataLoss, "gone"), codes.DataLoss, "", "gone"},
		{"a deadline", fmt.Errorf("wait: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "", "wait: context deadline exceeded"},
		{"a cancellation", context.Canceled, codes.Canceled, "", "context canceled"},
		{"any other", errors.New("disk on fire"), codes.Internal, "", "disk on fire"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.Node.Fail(tt.err)
			_, err := c.node.Reload(deadline(t), &pncv1.ReloadRequest{})
			wantCode(t, err, tt.code, tt.detail)
			if got := status.Convert(err).Message(); got != tt.msg {
				t.Errorf("message = %q, want %q", got, tt.msg)
			}
		})
	}
}

func TestReloadConfigAndLogLevelPassThrough(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	ctx := deadline(t)
	b.Node.SetChanges("bgp.neighbors[192.0.2.253]: added")
	if res, err := c.node.Reload(ctx, &pncv1.ReloadRequest{}); err != nil || len(res.GetChanges()) != 1 {
		t.Errorf("Reload() = %v, %v, want one change", res, err)
	}
	b.Node.SetConfig("node: pe9\n")
	if res, err := c.node.GetConfig(ctx, &pncv1.GetConfigRequest{}); err != nil || res.GetYaml() != "node: pe9\n" {
		t.Errorf("GetConfig() = %v, %v", res, err)
	}
	if res, err := c.node.SetLogLevel(ctx, &pncv1.SetLogLevelRequest{Level: "debug"}); err != nil || res.GetPrevious() != "info" {
		t.Errorf("SetLogLevel() = %v, %v, want info before", res, err)
	}
}
