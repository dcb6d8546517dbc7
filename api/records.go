package api

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc"

	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/evidence"
)

type recordService struct {
	pncv1.UnimplementedRecordServiceServer
	srv *Server
}

func (r recordService) recorder() (*evidence.Recorder, error) {
	if b := r.srv.backends.Records; b != nil {
		return b, nil
	}
	return nil, Precondition(ReasonNotConfigured, "this node keeps no records")
}

// filter checks a filter and reads it into evidence's form.
func filter(p *pncv1.RecordFilter) (evidence.Filter, error) {
	if err := recordFilter(p); err != nil {
		return evidence.Filter{}, err
	}
	f, err := evidence.FilterFromProto(p)
	if err != nil {
		return evidence.Filter{}, Invalid("filter", "%v", err)
	}
	return f, nil
}

// ListRecords lists records.
func (r recordService) ListRecords(_ context.Context, req *pncv1.ListRecordsRequest) (*pncv1.ListRecordsResponse, error) {
	f, err := filter(req.GetFilter())
	if err != nil {
		return nil, err
	}
	limit, err := rows("limit", req.GetLimit(), defaultRecords)
	if err != nil {
		return nil, err
	}
	rec, err := r.recorder()
	if err != nil {
		return nil, err
	}
	list := rec.List(f, limit+1) // one more tells whether there are older ones
	if len(list) == 0 {
		if err := r.srv.configured("filter.context", f.Context); err != nil {
			return nil, err
		}
	}
	truncated := len(list) > limit
	if truncated {
		list = list[1:]
	}
	res := &pncv1.ListRecordsResponse{
		Records: make([]*pncv1.Record, len(list)), Overwritten: rec.Overwritten(), Truncated: truncated,
	}
	for i := range list {
		res.Records[i] = rec.ToProto(&list[i])
	}
	return res, nil
}

// WatchRecords streams records.
func (r recordService) WatchRecords(req *pncv1.WatchRecordsRequest, stream grpc.ServerStreamingServer[pncv1.WatchRecordsResponse]) error {
	f, err := filter(req.GetFilter())
	if err != nil {
		return err
	}
	rec, err := r.recorder()
	if err != nil {
		return err
	}
	if f.Context != nil && len(rec.List(f, 1)) == 0 {
		if err := r.srv.configured("filter.context", f.Context); err != nil {
			return err
		}
	}
	open := func() (Stream[evidence.Record], error) { return rec.Watch(f, req.GetIncludeHistory()), nil }
	return watch(r.srv, stream.Context(), open, func(item evidence.Record, dropped uint64) (bool, error) {
		return true, stream.Send(&pncv1.WatchRecordsResponse{Record: rec.ToProto(&item), Dropped: dropped})
	})
}

// ListHostChanges lists what somebody else changed of this node in the kernel.
func (r recordService) ListHostChanges(context.Context, *pncv1.ListHostChangesRequest) (*pncv1.ListHostChangesResponse, error) {
	rec, err := r.recorder()
	if err != nil {
		return nil, err
	}
	kept, overwritten := rec.HostChanges()
	res := &pncv1.ListHostChangesResponse{Changes: make([]*pncv1.HostChange, len(kept)), Overwritten: overwritten}
	for i := range kept {
		res.Changes[i] = kept[i].ToProto()
	}
	return res, nil
}

// ListCounters reads the exact counters.
func (r recordService) ListCounters(context.Context, *pncv1.ListCountersRequest) (*pncv1.ListCountersResponse, error) {
	counters := slices.Clone(r.srv.backends.Node.Counters())
	slices.SortStableFunc(counters, func(a, b *pncv1.Counter) int {
		return cmp.Or(cmp.Compare(a.GetPart(), b.GetPart()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return &pncv1.ListCountersResponse{Counters: counters}, nil
}
