package api_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
)

func TestNRPMappingsAreListedSetAndDeleted(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	nrp := pncv1.NewNrpServiceClient(c.conn)
	ctx := deadline(t)
	id := uint32(100)
	for _, tc := range []struct {
		req       *pncv1.ListNrpMappingsRequest
		want      int
		truncated bool
	}{
		{&pncv1.ListNrpMappingsRequest{}, 3, false},
		{&pncv1.ListNrpMappingsRequest{NrpSelectorId: &id}, 2, false},
		{&pncv1.ListNrpMappingsRequest{Limit: 2}, 2, true},
		{&pncv1.ListNrpMappingsRequest{Limit: 3}, 3, false},
	} {
		res, err := nrp.ListNrpMappings(ctx, tc.req)
		if err != nil || len(res.GetMappings()) != tc.want || res.GetTruncated() != tc.truncated || res.GetVersion() != 7 {
			t.Errorf("%v: %v, %v", tc.req, res, err)
		}
	}
	set, err := nrp.SetNrpMappings(ctx, &pncv1.SetNrpMappingsRequest{Mappings: []*pncv1.NrpMapping{
		{NrpSelectorId: 1, Sender: "::ffff:192.0.2.9", Receiver: "192.0.2.8", SourceQp: 5, Configured: true, Version: 99},
	}})
	if err != nil || len(set.GetMappings()) != 1 || set.GetMappings()[0].GetSender() != "192.0.2.9" || set.GetMappings()[0].GetVersion() != 8 || set.GetMappings()[0].GetConfigured() {
		t.Errorf("%v, %v", set, err)
	}
	if _, err := nrp.DeleteNrpMapping(ctx, &pncv1.DeleteNrpMappingRequest{NrpSelectorId: 1, Sender: "192.0.2.9", Receiver: "192.0.2.8"}); err != nil {
		t.Error(err)
	}
	_, err = nrp.DeleteNrpMapping(ctx, &pncv1.DeleteNrpMappingRequest{NrpSelectorId: 1})
	wantCode(t, err, codes.NotFound, api.ReasonNotFound)
	_, err = nrp.DeleteNrpMapping(ctx, &pncv1.DeleteNrpMappingRequest{NrpSelectorId: 100})
	wantCode(t, err, codes.FailedPrecondition, api.ReasonConfigured)
}
