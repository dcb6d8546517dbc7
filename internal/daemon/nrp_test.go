package daemon

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pncd/api"
)

func TestWhatTheAPIMappedOutlivesTheSectionOfTheNRPMap(t *testing.T) {
	const nrp = "  nrp: {}\n"
	r, ctx := start(t, template+nrp), context.Background()
	b := nrpBackend{r.Daemon}
	flow := api.NRPMapping{NRP: 7, Sender: netip.MustParseAddr("198.51.100.7"), Receiver: netip.MustParseAddr("203.0.113.7"), SourceQP: 9}
	if _, err := b.SetNRPMappings(ctx, []api.NRPMapping{flow}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.edit(); err != nil {
		t.Fatalf("the section can't be taken away: %v", err)
	}
	if _, _, err := b.NRPMappings(ctx); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("without the section the map is shown: %v", err)
	}
	if _, err := r.edit(template, template+nrp); err != nil {
		t.Fatal(err)
	}
	if list, _, err := b.NRPMappings(ctx); err != nil || len(list) != 1 || list[0].GetSourceQp() != 9 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestAMappingThatIsRefusedIsNamed(t *testing.T) {
	r := start(t, template+"  nrp: {}\n")
	good := api.NRPMapping{NRP: 7, Sender: netip.MustParseAddr("198.51.100.7"), Receiver: netip.MustParseAddr("203.0.113.7"), SourceQP: 9}
	bad := good
	bad.SourceQP = 1
	_, err := nrpBackend{r.Daemon}.SetNRPMappings(context.Background(), []api.NRPMapping{good, bad})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "mappings[1].source_qp: 1: must be") {
		t.Error(err)
	}
}
