package apitest

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
)

// OSPF is two fixed routers, and a learner that a test may add.
type OSPF struct {
	routers []*pncv1.OspfRouter
	lsas    []*pncv1.OspfLsa
	Learner *pncv1.OspfApiLearner
}

func ospf() *OSPF {
	later := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(Now.Add(d)) }
	return &OSPF{
		routers: []*pncv1.OspfRouter{
			{Version: 2, RouterId: "192.0.2.1", ExternalLsas: 1, Dropped: map[string]uint64{"malformed": 2, "authentication": 0}, NotMarked: 1,
				Received: map[string]uint64{"hello": 90, "ls-update": 12}, Used: 100, Counters: map[string]uint64{"stored": 9, "bad-checksum": 0},
				Areas: []*pncv1.OspfArea{
					{Id: "0.0.0.0", Type: "normal", Lsas: 12, Routers: 4, Reachable: 3, Prefixes: 7, Marked: 1, SpfRuns: 5, SpfRan: ago(90 * time.Second)},
					{Id: "0.0.0.1", Type: "nssa", Lsas: 3, Error: "the own router LSA is too long"},
				},
				Links: []*pncv1.OspfLink{
					{Interface: "ospf0", Area: "0.0.0.0", State: "point-to-point", Up: true, Mtu: 1500, Address: "192.0.2.12/31", Lsas: 1, Refused: map[string]uint64{"hello-interval": 3},
						Neighbors: []*pncv1.OspfNeighbor{{RouterId: "192.0.2.254", Address: "192.0.2.13", Priority: 1, State: "full", Since: ago(time.Hour), Expires: later(35 * time.Second)}}},
					{Interface: "ospf1", Area: "0.0.0.1", Broadcast: true, State: "dr-other", Up: true, Mtu: 9000, Address: "198.51.100.1/24", Designated: "198.51.100.2", Backup: "198.51.100.3",
						Neighbors: []*pncv1.OspfNeighbor{
							{RouterId: "192.0.2.252", Address: "198.51.100.2", Priority: 1, State: "exstart", Since: ago(12 * time.Second), Expires: later(38 * time.Second),
								Designated: "198.51.100.2", Backup: "198.51.100.3", Dropped: map[string]uint64{"mtu": 4}},
							{RouterId: "192.0.2.251", Address: "198.51.100.3", Priority: 1, State: "full", Since: ago(time.Minute), Expires: later(5 * time.Second), HelpedUntil: later(100 * time.Second),
								Designated: "198.51.100.2", Backup: "198.51.100.3", Retransmissions: 2},
						}},
				}},
			{Version: 3, RouterId: "192.0.2.1", Areas: []*pncv1.OspfArea{{Id: "0.0.0.0", Type: "normal"}},
				Links: []*pncv1.OspfLink{{Interface: "ospf0", Area: "0.0.0.0", State: "down", Detail: "the link is down"}}},
		},
		lsas: []*pncv1.OspfLsa{
			{Version: 2, Scope: "area", Area: "0.0.0.0", Type: 1, TypeName: "router", Id: "192.0.2.1", Router: "192.0.2.1", Sequence: 0x80000007, Checksum: 0xabcd, Age: 100, Length: 36, Own: true, Reachable: true,
				Lines: []string{"link to router 192.0.2.254 metric 65535"}},
			{Version: 2, Scope: "area", Area: "0.0.0.0", Type: 10, TypeName: "extended-prefix", Id: "7.0.0.1", Router: "192.0.2.9", Sequence: 0x80000002, Checksum: 0x12, Age: 900, Length: 52, Reachable: true,
				Prefixes: []*pncv1.OspfPrefix{{Prefix: "198.51.100.0/24", P: true, Flags: "20000000", RouteType: "intra-area", SourceAddress: "192.0.2.9", SourceRouterId: "192.0.2.9", OtherSubTlvs: []uint32{2}}}},
			{Version: 2, Scope: "as", Type: 5, TypeName: "external", Id: "203.0.113.0", Router: "192.0.2.8", Sequence: 0x80000001, Age: 3600, Length: 36},
			{Version: 3, Scope: "link", Area: "0.0.0.0", Interface: "ospf0", Type: 8, TypeName: "link", Id: "0.0.0.3", Router: "192.0.2.254", Sequence: 0x80000001, Age: 7, Length: 44, Reachable: true},
			{Version: 3, Scope: "area", Area: "0.0.0.0", Type: 0xA029, TypeName: "e-intra-area-prefix", Id: "0.0.0.1", Router: "192.0.2.9", Sequence: 0x80000003, Age: 17, Length: 80, Reachable: true,
				Prefixes: []*pncv1.OspfPrefix{{Prefix: "2001:db8:1::/48", Metric: 10, Options: 2, Flags: "20000000", P: true, SourceAddress: "2001:db8::9"}, {Prefix: "2001:db8:2::/48"}}},
		},
	}
}

// Ospf implements api.OSPF.
func (o *OSPF) Ospf(_ context.Context, version uint32) (*pncv1.GetOspfResponse, error) {
	out := &pncv1.GetOspfResponse{Learner: o.Learner}
	for _, r := range o.routers {
		if version == 0 || version == r.GetVersion() {
			out.Routers = append(out.Routers, r)
		}
	}
	return out, nil
}

// Lsas implements api.OSPF.
func (o *OSPF) Lsas(_ context.Context, f api.LsaFilter) (out []*pncv1.OspfLsa, err error) {
	for _, l := range o.lsas {
		if f.Match(l) {
			out = append(out, l)
		}
	}
	return out, nil
}
