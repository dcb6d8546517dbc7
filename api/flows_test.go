package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/testwait"
)

func keys(flows []*pncv1.Flow) string {
	var out []string
	for _, f := range flows {
		out = append(out, fmt.Sprintf("%s>%s:%#x", f.GetSender(), f.GetReceiver(), f.GetDestinationQp()))
	}
	return strings.Join(out, " ")
}

func TestListFlowsSortsByAddressNotByText(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	res, err := c.flows.ListFlows(deadline(t), &pncv1.ListFlowsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "198.51.100.9>203.0.113.10:0x20 198.51.100.10>203.0.113.10:0x18b 2001:db8:1::10>2001:db8:2::10:0xdc"
	if got := keys(res.GetFlows()); got != want {
		t.Errorf("flows = %s\n  want %s", got, want)
	}
	if res.GetVersion() != 42 || res.GetTruncated() {
		t.Errorf("version %d, truncated %v, want the map's version and no truncation", res.GetVersion(), res.GetTruncated())
	}
}

func TestListFlowsLimitKeepsTheFirstInOrder(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	var sorted []*pncv1.Flow
	for host := range 20 {
		for qp := range 10 {
			sorted = append(sorted, &pncv1.Flow{
				Sender: netip.AddrFrom4([4]byte{192, 0, 2, byte(host)}).String(), Receiver: "203.0.113.1",
				DestinationQp: uint32(qp + 2), State: pncv1.FlowState_FLOW_STATE_LEARNED,
			})
		}
	}
	shuffled := append([]*pncv1.Flow(nil), sorted...)
	rnd := rand.New(rand.NewPCG(1, 2))
	rnd.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	b.Flows.Set(shuffled)
	for _, limit := range []int{1, 7, 199, 200, 201} {
		res, err := c.flows.ListFlows(deadline(t), &pncv1.ListFlowsRequest{Limit: uint32(limit)})
		if err != nil {
			t.Fatal(err)
		}
		if want := keys(sorted[:min(limit, len(sorted))]); keys(res.GetFlows()) != want {
			t.Errorf("limit %d: flows = %s\n  want %s", limit, keys(res.GetFlows()), want)
		}
		if res.GetTruncated() != (limit < len(sorted)) {
			t.Errorf("limit %d: truncated = %v", limit, res.GetTruncated())
		}
	}
}

func TestListFlowsFilters(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	for _, tt := range []struct {
		name string
		req  *pncv1.ListFlowsRequest
		want string
	}{
		{"sender", &pncv1.ListFlowsRequest{Sender: "::ffff:198.51.100.9"}, "198.51.100.9>203.0.113.10:0x20"},
		{"receiver", &pncv1.ListFlowsRequest{Receiver: "2001:db8:2::10"}, "2001:db8:1::10>2001:db8:2::10:0xdc"},
		{"states", &pncv1.ListFlowsRequest{States: []pncv1.FlowState{pncv1.FlowState_FLOW_STATE_CLOSED, pncv1.FlowState_FLOW_STATE_UNDECIDED}}, "198.51.100.9>203.0.113.10:0x20 2001:db8:1::10>2001:db8:2::10:0xdc"},
		{"none", &pncv1.ListFlowsRequest{Sender: "192.0.2.77"}, ""},
	} {
		res, err := c.flows.ListFlows(deadline(t), tt.req)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(res.GetFlows()); got != tt.want {
			t.Errorf("%s: flows = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestGetFlowOfAnUnseenFlowIsNotFound(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	res, err := c.flows.GetFlow(deadline(t), &pncv1.GetFlowRequest{Sender: "198.51.100.10", Receiver: "203.0.113.10", DestinationQp: 0x18b})
	if err != nil || res.GetFlow().GetSourceQp() != 0x137 {
		t.Errorf("GetFlow() = %v, %v, want source QP 0x137", res, err)
	}
	_, err = c.flows.GetFlow(deadline(t), &pncv1.GetFlowRequest{Sender: "198.51.100.10", Receiver: "203.0.113.10", DestinationQp: 0x18c})
	wantCode(t, err, codes.NotFound, api.ReasonNotFound)
}

func TestWatchFlowsFiltersAndCarriesTheDropCount(t *testing.T) {
	b, srv, c := sample(t, api.Options{WatchBuffer: 4})
	stream, err := c.flows.WatchFlows(deadline(t), &pncv1.WatchFlowsRequest{Sender: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the watch to be open", func() bool { return b.Flows.Watchers() == 1 })

	// Changes of other senders fill the buffer until some are dropped, whatever the server takes out.
	other := &pncv1.Flow{Sender: "192.0.2.2"}
	testwait.Until(t, "a change to be dropped", func() bool {
		for range 64 {
			b.Flows.Change(other)
		}
		return srv.Stats().StreamDropped > 0
	})
	// Then one of ours gets through as soon as there is room.
	got := make(chan *pncv1.WatchFlowsResponse, 1)
	go func() {
		res, err := stream.Recv()
		if err != nil {
			t.Error(err)
		}
		got <- res
	}()
	testwait.Until(t, "our change to arrive", func() bool {
		b.Flows.Change(&pncv1.Flow{Sender: "192.0.2.1", DestinationQp: 9})
		return len(got) > 0
	})
	res := <-got
	if res.GetFlow().GetSender() != "192.0.2.1" || res.GetDropped() == 0 {
		t.Errorf("got %v, want our flow and what was dropped before it", res)
	}
	if total := srv.Stats().StreamDropped; res.GetDropped() > total {
		t.Errorf("dropped = %d, more than the server counted (%d)", res.GetDropped(), total)
	}
}

func TestWatchEndsWhenItsPartIsTakenAway(t *testing.T) {
	b, _, c := sample(t, api.Options{})
	stream, err := c.flows.WatchFlows(deadline(t), &pncv1.WatchFlowsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the watch to be open", func() bool { return b.Flows.Watchers() == 1 })
	b.Flows.End()
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable, api.ReasonStopping)
}

func TestClientThatGoesAwayClosesItsWatch(t *testing.T) {
	b, srv, c := sample(t, api.Options{})
	for range 3 {
		if _, err := c.flows.WatchFlows(deadline(t), &pncv1.WatchFlowsRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the watches to be open", func() bool { return b.Flows.Watchers() == 3 && srv.Stats().Streams == 3 })
	c.conn.Close()
	testwait.Until(t, "the watches to be closed", func() bool { return b.Flows.Watchers() == 0 && srv.Stats().Streams == 0 })
}
