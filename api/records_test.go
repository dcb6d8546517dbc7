package api_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pncd/api"
	"pncd/api/apitest"
	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/evidence"
)

func TestListRecordsFilters(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	qp := uint32(0x18b)
	for _, tt := range []struct {
		name string
		req  *pncv1.ListRecordsRequest
		want []uint64 // sequences
	}{
		{"all, oldest first", &pncv1.ListRecordsRequest{}, []uint64{1, 2, 3, 4}},
		{"the newest", &pncv1.ListRecordsRequest{Limit: 2}, []uint64{3, 4}},
		{"sender", &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{Sender: "198.51.100.9"}}, []uint64{3}},
		{"mapped sender", &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{Sender: "::ffff:198.51.100.9"}}, []uint64{3}},
		{"QP", &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{DestinationQp: &qp}}, []uint64{1, 2}},
		{"the default context", &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{Context: new(string)}}, []uint64{1, 2, 3}}, // 4 is about no flow
		{"another context", &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{Context: proto.String("blue")}}, nil},
		{"outcome", &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{Outcomes: []pncv1.Outcome{pncv1.Outcome_OUTCOME_PROXY_MALFORMED}}}, []uint64{4}},
		{"time", &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{Since: timestamppb.New(apitest.Now.Add(-time.Minute)), Until: timestamppb.New(apitest.Now.Add(-10 * time.Second))}}, []uint64{2, 3}},
	} {
		res, err := c.recs.ListRecords(deadline(t), tt.req)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, r := range res.GetRecords() {
			got = append(got, r.GetSequence())
			if r.GetNode() != "pe1" || r.GetBoot() != "boot-1" {
				t.Errorf("%s: record %d is of node %q boot %q", tt.name, r.GetSequence(), r.GetNode(), r.GetBoot())
			}
		}
		if limit := tt.req.GetLimit(); res.GetTruncated() != (limit > 0) {
			t.Errorf("%s: truncated %v with limit %d of 4 records", tt.name, res.GetTruncated(), limit)
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: records = %v, want %v", tt.name, got, tt.want)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: records = %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

func TestListRecordsSaysHowManyWereOverwritten(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	for range 64 {
		b.Records.Record(&evidence.Record{At: apitest.Now, Outcome: pncv1.Outcome_OUTCOME_NO_PROXY})
	}
	res, err := c.recs.ListRecords(deadline(t), &pncv1.ListRecordsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if res.GetOverwritten() != 4 || len(res.GetRecords()) != 64 {
		t.Errorf("overwritten = %d of %d kept, want 4 of 64", res.GetOverwritten(), len(res.GetRecords()))
	}
}

func TestWatchRecordsGivesHistoryThenNewOnesByFilter(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	stream, err := c.recs.WatchRecords(deadline(t), &pncv1.WatchRecordsRequest{
		IncludeHistory: true,
		Filter:         &pncv1.RecordFilter{Outcomes: []pncv1.Outcome{pncv1.Outcome_OUTCOME_SENT}},
	})
	if err != nil {
		t.Fatal(err)
	}
	res, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if res.GetRecord().GetSequence() != 1 || res.GetRecord().GetCongestion().GetEvent().GetPort() != 49153 {
		t.Errorf("first = %v, want the one of the history", res)
	}
	b.Records.Record(&evidence.Record{At: apitest.Now, Outcome: pncv1.Outcome_OUTCOME_NO_PROXY})
	b.Records.Record(&evidence.Record{At: apitest.Now, Outcome: pncv1.Outcome_OUTCOME_SENT})
	if res, err = stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if res.GetRecord().GetSequence() != 6 || res.GetRecord().GetOutcome() != pncv1.Outcome_OUTCOME_SENT {
		t.Errorf("second = %v, want record 6", res)
	}
}

func TestCountersAreSortedByPartAndName(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	res, err := c.recs.ListCounters(deadline(t), &pncv1.ListCountersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, x := range res.GetCounters() {
		got += x.GetPart() + "/" + x.GetName() + " "
	}
	if want := "congestion-node/sent proxy/map-miss proxy/translated "; got != want {
		t.Errorf("counters = %q, want %q", got, want)
	}
}
