package apitest

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pncv1 "pncd/api/pnc/v1"
)

// ISIS is a fixed system.
type ISIS struct {
	system *pncv1.GetIsisResponse
	lsps   []*pncv1.IsisLsp
}

func isis() *ISIS {
	later := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(Now.Add(d)) }
	return &ISIS{
		system: &pncv1.GetIsisResponse{
			SystemId: "1920.0000.2001", Areas: []string{"49.0001"}, Hostname: "pe1", Dropped: map[string]uint64{"malformed": 2, "authentication": 0},
			Levels: []*pncv1.IsisLevel{{Level: 2, Lsps: 4, Systems: 3, Reachable: 2, Prefixes: 7, Marked: 1, SpfRuns: 5, SpfRan: ago(90 * time.Second),
				Counters: map[string]uint64{"stored": 9, "bad-checksum": 0}}},
			Circuits: []*pncv1.IsisCircuit{
				{Interface: "isis0", Levels: 2, Up: true, Mtu: 1500, Addresses: []string{"192.0.2.1"}, Refused: map[string]uint64{"area": 3},
					Neighbors: []*pncv1.IsisNeighbor{{SystemId: "1920.0000.2002", Hostname: "r2", Levels: 2, State: "up", Since: ago(time.Hour), Expires: later(25 * time.Second),
						Mac: "02:00:00:00:00:02", Addresses: []string{"192.0.2.2", "fe80::2"}, ThreeWay: true}}},
				{Interface: "isis1", Lan: true, Levels: 3, Detail: "the link is down", Designated: map[uint32]string{2: "1920.0000.2003.01"}},
			},
		},
		lsps: []*pncv1.IsisLsp{
			{Level: 2, Id: "1920.0000.2001.00-00", Hostname: "pe1", Sequence: 7, Checksum: 0xabcd, Lifetime: 1100, Length: 98, Own: true, Reachable: true, Overload: true},
			{Level: 2, Id: "1920.0000.2002.00-00", Hostname: "r2", Sequence: 0x20, Checksum: 0x12, Lifetime: 900, Length: 120, Reachable: true, Attached: true,
				Prefixes: []*pncv1.IsisPrefix{
					{Prefix: "198.51.100.0/24", Metric: 0xFE000001, P: true, Flags: "01", SourceRouterIds: []string{"192.0.2.9"}},
					{Prefix: "2001:db8::/32", Metric: 10, Down: true, Topology: 2, OtherSubTlvs: []uint32{3}},
				},
				Lines: []string{"areas: 49.0001", "host name: r2"}},
			{Level: 2, Id: "1920.0000.2009.00-01", Sequence: 3},
		},
	}
}

// Isis implements api.ISIS.
func (s *ISIS) Isis(context.Context) (*pncv1.GetIsisResponse, error) { return s.system, nil }

// Lsps implements api.ISIS.
func (s *ISIS) Lsps(_ context.Context, r *pncv1.ListLspsRequest) (out []*pncv1.IsisLsp, err error) {
	for _, l := range s.lsps {
		if r.GetSystem() == "" || r.GetSystem() == l.GetHostname() {
			out = append(out, l)
		}
	}
	return out, nil
}
