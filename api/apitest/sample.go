package apitest

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

// Now is the time at which the sample is looked at.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(Now.Add(-d)) }

// Backends are the sample's, for tests that change them.
type Backends struct {
	Table      *pnc.Table
	Advertiser *Advertiser
	Flows      *Flows
	Records    *evidence.Recorder
	Node       *Node
	ISIS       api.ISIS // nil: not configured
	OSPF       *OSPF
	NRPs       *NRPs
	Reports    *Reports
}

// API gives them as the server takes them.
func (b *Backends) API() api.Backends {
	return api.Backends{Table: b.Table, Advertiser: b.Advertiser, Flows: b.Flows, Records: b.Records, Node: b.Node, ISIS: b.ISIS, OSPF: b.OSPF, NRPs: b.NRPs, Reports: b.Reports}
}

// New makes the sample: a proxy and congestion node with a few entries of everything, the mechanism on.
func New(t testing.TB) *Backends {
	t.Helper()
	rec, err := evidence.NewRecorder(evidence.Config{Node: "pe1", Boot: "boot-1", Capacity: 64})
	if err != nil {
		t.Fatal(err)
	}
	b := &Backends{Table: table(), Advertiser: advertiser(), Flows: &Flows{list: flows()}, Records: rec, Node: node(), ISIS: isis(), OSPF: ospf(), NRPs: nrps(), Reports: &Reports{}}
	for _, r := range records() {
		rec.Record(&r)
	}
	rec.HostChanged(evidence.HostChange{At: Now.Add(-time.Minute), Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_NFT_TABLE, Name: "inet pncd", Change: "removed"})
	rec.HostChanged(evidence.HostChange{At: Now.Add(-time.Second), Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_VETH, Name: "isis0", Change: "removed", Err: "no such namespace"})
	return b
}

// SocketDir makes a directory for a test's sockets. Unlike t.TempDir it has a short name: the path of a unix
// socket is at most 107 octets long.
func SocketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pncd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Serve serves the sample on a unix socket until the test ends, and returns the socket's path. Zero
// options get a quiet log and the sample's clock.
func (b *Backends) Serve(t testing.TB, o api.Options) (socket string, srv *api.Server) {
	t.Helper()
	socket = filepath.Join(SocketDir(t), "pncd.sock")
	l, err := api.ListenConfig{Address: socket}.Listen(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return socket, Serve(t, b.API(), o, l)
}

// Serve serves backends on l until the test ends.
func Serve(t testing.TB, b api.Backends, o api.Options, l net.Listener) *api.Server {
	t.Helper()
	if o.Log == nil {
		log := logrus.New()
		log.SetOutput(io.Discard)
		o.Log = log
	}
	if o.Now == nil {
		o.Now = func() time.Time { return Now }
	}
	srv := api.New(b, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("Serve did not return after its context ended")
		}
	})
	return srv
}

// table has a prefix for each reason of a resolution; the comments name them.
func table() *pnc.Table {
	tb := pnc.New(pnc.Config{Contexts: []string{"blue"}})
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	route := func(p, proxy, peer string) pnc.Route {
		r := pnc.Route{Prefix: prefix(p), Source: pnc.SourceBGP, NextHop: addr("192.0.2.254"), Peer: peer, Originator: peer, Best: true}
		if proxy != "" {
			r.Proxy = addr(proxy)
		}
		return r
	}
	found := route("198.51.100.0/24", "192.0.2.1", "192.0.2.251") // found
	found.Partial = true
	second := route("198.51.100.0/24", "192.0.2.2", "192.0.2.252")
	second.Best, second.Stale = false, true
	mismatch := route("198.51.100.128/25", "192.0.2.9", "192.0.2.251") // no-proxy: disregarded
	mismatch.Disregarded = pnc.DisregardNextHopMismatch
	routes := []pnc.Route{
		found, second, mismatch,
		route("203.0.113.0/25", "", "192.0.2.251"),            // no-proxy: without PNC
		route("203.0.113.128/26", "192.0.2.7", "192.0.2.251"), // proxy-unreachable
		route("203.0.113.192/26", "192.0.2.8", "192.0.2.251"), // self-proxy
		route("0.0.0.0/0", "192.0.2.1", "192.0.2.251"),        // default-route-refused
		{Prefix: prefix("2001:db8:1::/48"), Source: pnc.SourceStatic, Proxy: addr("2001:db8::1")},
		{Context: "blue", Prefix: prefix("10.0.0.0/8"), Source: pnc.SourceStatic, Proxy: addr("192.0.2.1")},
	}
	updates := make([]pnc.Update, len(routes))
	for i, r := range routes {
		updates[i] = pnc.Update{Route: r}
	}
	learned := Now.Add(-3 * time.Hour)
	tb.Apply(learned, updates...)
	tb.Disregard(learned.Add(time.Second), pnc.Event{Route: mismatch, Reason: pnc.DisregardNextHopMismatch, Detail: "NHC next hop 192.0.2.253, route next hop 192.0.2.254"})
	tb.SetReachability(learned, map[netip.Addr]pnc.Reach{
		addr("192.0.2.1"):   {Reachable: true},
		addr("192.0.2.2"):   {Reachable: true},
		addr("192.0.2.7"):   {},
		addr("192.0.2.8"):   {Reachable: true, Self: true},
		addr("2001:db8::1"): {Reachable: true},
	})
	return tb
}

func advertiser() *Advertiser {
	return &Advertiser{list: []*pncv1.Advertisement{
		{Prefix: "198.51.100.0/24", Mode: pncv1.OriginationMode_ORIGINATION_MODE_INLINE, Proxy: "192.0.2.1", Active: true, Configured: true},
		{Prefix: "2001:db8:1::/48", Mode: pncv1.OriginationMode_ORIGINATION_MODE_ORIGINATE, Proxy: "2001:db8::1", NextHop: "2001:db8::fe", Configured: true, InactiveReason: "no path of the router's yet"},
	}}
}

func flows() []*pncv1.Flow {
	return []*pncv1.Flow{
		{
			Sender: "198.51.100.10", Receiver: "203.0.113.10", DestinationQp: 0x18b, SourceQp: 0x137,
			State: pncv1.FlowState_FLOW_STATE_CONFIRMED, Source: pncv1.FlowSource_FLOW_SOURCE_CM, PKey: 0xffff, Version: 7,
			SeenForward: true, SeenReverse: true, LearnedAt: ago(10 * time.Minute), ChangedAt: ago(9 * time.Minute), LastSeen: ago(2 * time.Second),
			Detail: "RTU seen", UdpSourcePort: 50001,
		},
		{
			Sender: "198.51.100.9", Receiver: "203.0.113.10", DestinationQp: 0x20, State: pncv1.FlowState_FLOW_STATE_UNDECIDED,
			Version: 8, SeenForward: true, ChangedAt: ago(5 * time.Second), LastSeen: ago(time.Second), Detail: "2 candidates", Votes: 3,
		},
		{
			Sender: "2001:db8:1::10", Receiver: "2001:db8:2::10", DestinationQp: 0xdc, SourceQp: 0x8d,
			State: pncv1.FlowState_FLOW_STATE_CLOSED, Source: pncv1.FlowSource_FLOW_SOURCE_CM, Version: 3, ChangedAt: ago(26 * time.Hour), LastSeen: ago(26 * time.Hour), Detail: "DREQ",
		},
	}
}

func records() []evidence.Record {
	addr := netip.MustParseAddr
	flow := evidence.Flow{Sender: addr("198.51.100.10"), Receiver: addr("203.0.113.10"), SrcPort: 50001, DstPort: 4791, Proto: 17, DestQP: 0x18b}
	other := flow
	other.Sender, other.DestQP = addr("198.51.100.9"), 0x20
	route := pnc.NewEntry(pnc.Route{Prefix: netip.MustParsePrefix("198.51.100.0/24"), Source: pnc.SourceBGP, Proxy: addr("192.0.2.1"), ChangedAt: Now.Add(-3 * time.Hour)})
	return []evidence.Record{
		{
			At: Now.Add(-2 * time.Minute), Outcome: pncv1.Outcome_OUTCOME_SENT, Flow: flow,
			Congestion: evidence.Congestion{Source: "ce:eth1", CECount: 5, Proxy: addr("192.0.2.1"), Route: route, Event: evidence.EventNumber{Port: 49153, Count: 2}},
		},
		{
			At: Now.Add(-time.Minute), Outcome: pncv1.Outcome_OUTCOME_PROXY_TRANSLATED, Flow: flow,
			Translation: evidence.Translation{
				Node: addr("192.0.2.33"), EventPort: 49153, Gap: 1, SourceQP: 0x137, Receipt: 1, ReceiptPort: 49152, Latency: 42 * time.Microsecond,
				Entry: evidence.MapEntry{State: pncv1.FlowState_FLOW_STATE_CONFIRMED, Source: pncv1.FlowSource_FLOW_SOURCE_CM, SourceQP: 0x137, Version: 7},
			},
		},
		{
			At: Now.Add(-30 * time.Second), Outcome: pncv1.Outcome_OUTCOME_PROXY_MAP_UNDECIDED, Flow: other,
			Translation: evidence.Translation{
				Node: addr("192.0.2.33"), EventPort: 49154,
				Entry: evidence.MapEntry{State: pncv1.FlowState_FLOW_STATE_UNDECIDED, Version: 8},
			},
		},
		{At: Now.Add(-10 * time.Second), Outcome: pncv1.Outcome_OUTCOME_PROXY_MALFORMED, Err: "length 3: want 24 or 48", Translation: evidence.Translation{Node: addr("192.0.2.34"), EventPort: 49155}},
	}
}

func node() *Node {
	part := func(name string, st pncv1.PartState, detail string) *pncv1.Part {
		return &pncv1.Part{Name: name, State: st, Detail: detail}
	}
	return &Node{
		on: true, level: "info",
		yaml: "node: pe1\nbgp:\n  neighbors:\n    - address: 192.0.2.251\n      password: (secret)\n",
		status: &pncv1.GetStatusResponse{
			Node: "pe1", Boot: "boot-1", Version: "v1.2.3", StartedAt: ago(74*time.Hour + 5*time.Minute), CongestionNode: true, Proxy: true,
			NotReadyReasons: []string{"tap:eth2 failed", "bgp: no session"},
			Parts: []*pncv1.Part{
				part("bgp", pncv1.PartState_PART_STATE_READY, "1 of 2 sessions established"),
				part("tap:eth2", pncv1.PartState_PART_STATE_FAILED, "interface eth2 does not exist"),
				part("translator", pncv1.PartState_PART_STATE_READY, "UDP port 1021"),
			},
			Objects: []*pncv1.HostObject{
				{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_NFT_TABLE, Name: "inet pncd", Detail: "border filter"},
				{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_VETH, Name: "isis0", Detail: "the other end is isis-r in namespace router", Error: "no such namespace"},
				{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_ADDRESS, Name: "192.0.2.11/31 of isis-r", Namespace: "router"},
			},
			CapabilityRoutes: 7, CapabilityVersion: 2, FlowsKnown: 1, FlowsTotal: 3, FlowVersion: 8,
			ConfigAppliedAt: ago(3 * time.Hour), ConfigPath: "/etc/pncd/pncd.yaml",
			Advertise: "when-ready", Senders: []*pncv1.SenderReadiness{
				{
					Prefix: "198.51.100.0/24", State: pncv1.ReadinessState_READINESS_STATE_ANNOUNCED, Ready: true, Since: ago(3 * time.Hour),
					SeenFrom: ago(2 * time.Second), SeenTowards: ago(3 * time.Second),
				},
				{
					Prefix: "198.51.101.0/24", State: pncv1.ReadinessState_READINESS_STATE_LOSING, Since: ago(10 * time.Second), Until: ago(-20 * time.Second),
					Failures: []*pncv1.ReadinessFailure{{Reason: pncv1.ReadinessReason_READINESS_REASON_TAP_DOWN, Detail: "eth2: the interface is down"}},
					Penalty:  512, SeenFrom: ago(12 * time.Second), SeenTowards: ago(12 * time.Second),
				},
				{
					Prefix: "198.51.102.0/24", State: pncv1.ReadinessState_READINESS_STATE_SUPPRESSED, Ready: true, Since: ago(30 * time.Second),
					Until: ago(-5 * time.Minute), Penalty: 2100, SeenFrom: ago(2 * time.Second), SeenTowards: ago(3 * time.Second),
				},
				{
					Context: "blue", Prefix: "203.0.113.0/24", State: pncv1.ReadinessState_READINESS_STATE_HELD, Since: ago(time.Hour),
					Failures: []*pncv1.ReadinessFailure{{Reason: pncv1.ReadinessReason_READINESS_REASON_MAP_FULL, Detail: "the map of 16 entries lost 24 to others within 10s"}},
				},
			},
		},
		neighbors: []*pncv1.Neighbor{
			{
				Address: "192.0.2.252", PeerAs: 65002, LocalAs: 65001, State: "active", Since: ago(70 * time.Second), LastError: "connect: connection refused",
				Passive: true, Flaps: 4, Description: "rr2", Received: 2, PncBelieved: 2, NhcReceived: 2,
				Stale: 2, StaleUntil: ago(-50 * time.Second), RestartTime: 120, LongLivedTime: 86400,
			},
			{
				Address: "192.0.2.251", PeerAs: 65001, LocalAs: 65001, State: "established", Since: ago(3*time.Hour + 4*time.Minute), RouterId: "192.0.2.251",
				Families: []string{"ipv4-unicast", "ipv6-unicast"}, Received: 7, Advertised: 1, Flaps: 1, NhcReceived: 6, PncBelieved: 5,
				NhcDisregarded: map[string]uint64{"next-hop-mismatch": 1, "malformed-tlv": 0},
				Malformed:      map[string]uint64{"wrong-flags": 3, "overrun": 0}, Faults: 1, Md5: true, LocalAddress: "192.0.2.1", LocalPort: 179, RemotePort: 40001,
				MessagesSent: map[string]uint64{"open": 1, "update": 3, "keepalive": 61}, MessagesReceived: map[string]uint64{"open": 1, "update": 12, "keepalive": 60}, TtlMin: 254, HoldTime: 90, Description: "rr1",
			},
		},
		counters: []*pncv1.Counter{
			{Part: "proxy", Name: "translated", Value: 1, Help: "The CNP with the Source QP left for the sender."},
			{Part: "proxy", Name: "map-miss", Value: 0, Help: "No traffic of this flow was seen at the proxy, so nothing is known of its Source QP."},
			{Part: "congestion-node", Name: "sent", Value: 1, Help: "The notification left for the proxy."},
		},
	}
}
