package translator

import (
	"net/netip"
	"testing"
	"time"

	"pncd/proxyagent/message"
)

func TestEventNumbersTellLossFromRestartAndReordering(t *testing.T) {
	type want struct{ lost, late, repeated, restarts uint64 }
	for _, tc := range []struct {
		name    string
		numbers []uint64
		gaps    []uint32
		want    want
	}{
		{"in order", []uint64{5, 6, 7}, []uint32{0, 0, 0}, want{}},
		{"the first is no loss, whatever it is", []uint64{9000}, []uint32{0}, want{}},
		{"three missing", []uint64{5, 9, 10}, []uint32{0, 3, 0}, want{lost: 3}},
		{"over the end of the range", []uint64{16382, 16383, 0, 2}, []uint32{0, 0, 0, 1}, want{lost: 1}},
		{"8,192 ahead is loss", []uint64{0, 8192}, []uint32{0, 8191}, want{lost: 8191}},
		{"more than 8,192 ahead is a restart", []uint64{0, 8193, 8194}, []uint32{0, 0, 0}, want{restarts: 1}},
		{"a step backwards is a restart", []uint64{500, 400, 401}, []uint32{0, 0, 0}, want{restarts: 1}},
		{"one step backwards is a restart too", []uint64{500, 499, 500}, []uint32{0, 0, 0}, want{restarts: 1}},
		{"two that changed places", []uint64{5, 7, 6, 8}, []uint32{0, 1, 0, 0}, want{late: 1}},
		{"late ones over the end of the range", []uint64{16383, 2, 0, 1, 3}, []uint32{0, 2, 0, 0, 0}, want{late: 2}},
		{"late by 64", []uint64{0, 65, 1, 66}, []uint32{0, 64, 0, 0}, want{lost: 63, late: 1}},
		{"later than is remembered: a restart", []uint64{0, 66, 1, 2}, []uint32{0, 65, 0, 0}, want{lost: 65, restarts: 1}},
		{"the same again", []uint64{5, 5, 6}, []uint32{0, 0, 0}, want{repeated: 1}},
		{"late and then again: a restart", []uint64{5, 7, 6, 6}, []uint32{0, 1, 0, 0}, want{late: 1, restarts: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := newNodes(4)
			for i, number := range tc.numbers {
				if got := n.observe(message.Format1, netipPort(message.EventPort(number)), proxy4, start); got != tc.gaps[i] {
					t.Errorf("number %d: gap %d, want %d", number, got, tc.gaps[i])
				}
			}
			s := n.list()[0]
			if got := (want{s.Lost, s.Late, s.Repeated, s.Restarts}); got != tc.want {
				t.Errorf("node %+v, want %+v", got, tc.want)
			}
			if s.Received != uint64(len(tc.numbers)) || s.Addr != node4 {
				t.Errorf("node %+v", s)
			}
		})
	}
}

func TestPortsOutsideOfTheRangeAreJustPorts(t *testing.T) {
	n := newNodes(4)
	for _, port := range []uint16{1021, 40000, 9, 49151} {
		if gap := n.observe(message.Format1, netipPort(port), proxy4, start); gap != 0 {
			t.Errorf("port %d: gap %d", port, gap)
		}
	}
	n.observe(message.Format1, netipPort(50000), proxy4, start)
	n.observe(message.Format1, netipPort(3), proxy4, start) // and they do not disturb the numbers
	if gap := n.observe(message.Format1, netipPort(50001), proxy4, start); gap != 0 {
		t.Errorf("gap %d", gap)
	}
	if s := n.list()[0]; s.Lost+s.Late+s.Repeated+s.Restarts != 0 || s.Received != 7 {
		t.Errorf("node %+v", s)
	}
}

func TestANodeCountsForEachOfOurAddressesApart(t *testing.T) {
	n := newNodes(4)
	for i, number := range []uint64{100, 101, 102} {
		for j, to := range []netip.Addr{proxy4, own4} {
			if gap := n.observe(message.Format1, netipPort(message.EventPort(number+uint64(j)*5000)), to, start); gap != 0 {
				t.Errorf("step %d to %v: gap %d", i, to, gap)
			}
		}
	}
	for _, s := range n.list() {
		if s.Restarts+s.Lost != 0 || s.Received != 3 || s.Addr != node4 || s.Proxy != proxy4 && s.Proxy != own4 {
			t.Errorf("node %+v", s)
		}
	}
}

func TestNodesAreFollowedApartAndBounded(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxNodes = 3 })
	for i := range 10 {
		dg := notification(uint32(i), uint64(i*100))
		dg.From = netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), dg.From.Port())
		dg.At = start.Add(time.Duration(i))
		if rec := r.one(dg, 0); rec.Translation.Gap != 0 {
			t.Errorf("node %d: gap %d", i, rec.Translation.Gap)
		}
	}
	if s := r.Stats(); s.Nodes != 3 || s.NodesEvicted != 7 || r.Nodes()[0].Addr != netip.MustParseAddr("203.0.113.9") {
		t.Errorf("stats %+v, nodes %+v", s, r.Nodes())
	}
}

func TestANotificationThatIsRefusedIsNotMissing(t *testing.T) {
	r := newRig(t, nil)
	r.one(notification(7, 1), 0)
	short := notification(7, 2)
	short.Payload, short.Length = short.Payload[:3], 3
	r.one(short, 0)
	foreign := notification(7, 9)
	foreign.TTL = 3 // may be forged: does not move the numbers
	r.one(foreign, 0)
	if rec := r.one(notification(7, 4), time.Second); rec.Translation.Gap != 1 {
		t.Errorf("gap %d, want 1 (number 3)", rec.Translation.Gap)
	}
}

func TestEventNumbersAreFollowedAnewAfterBeingOff(t *testing.T) {
	r := newRig(t, nil)
	r.one(notification(7, 1), 0)
	r.SetEnabled(false)
	r.SetEnabled(true)
	if rec := r.one(notification(7, 500), time.Second); rec.Translation.Gap != 0 {
		t.Errorf("gap %d of what was sent while we were off", rec.Translation.Gap)
	}
}
