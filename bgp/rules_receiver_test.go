package bgp

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"pncd/bgp/engine"
	"pncd/pnc"
)

// The receiver's rules of draft-ietf-idr-nhc, held on the table that package pnc gets. What the codec reads is
// in package nhc.

// faults has a path for each reason to disregard a PNC.
var faults = map[pnc.DisregardReason]struct {
	nhc  string
	edit func(*table, *engine.Path)
}{
	pnc.DisregardNextHopMismatch:       {"0001 01 04 c6336402" + pnc7, nil},
	pnc.DisregardMalformedAttribute:    {"0001 01 05 c633640100" + pnc7, nil},
	pnc.DisregardMalformedTLV:          {head4 + "ff78 0009 c000", nil},
	pnc.DisregardUnknownLength:         {head4 + "ff78 0005 c000020700", nil},
	pnc.DisregardDuplicatePNC:          {head4 + pnc7 + pnc8, nil},
	pnc.DisregardInvalidProxyAddress:   {head4 + "ff78 0004 e0000001", nil},
	pnc.DisregardEBGPNotAllowed:        {head4 + pnc7, func(tb *table, _ *engine.Path) { tb.r.peers[peer1].in.border = true }},
	pnc.DisregardProxyNotAccepted:      {head4 + pnc7, func(tb *table, _ *engine.Path) { tb.r.policy.accept = prefixes("10.0.0.0/8") }},
	pnc.DisregardOriginatorNotAccepted: {head4 + pnc7, func(tb *table, _ *engine.Path) { tb.r.policy.from = prefixes("10.0.0.0/8") }},
	pnc.DisregardCommunityMissing: {head4 + pnc7, func(tb *table, _ *engine.Path) {
		tb.r.peers[peer1].in.communities = []Community{community("1:2")}
	}},
}

// hearFault lets peer1 announce the test prefix with a fault, as a path that is better than peer2's.
func hearFault(t *testing.T, reason pnc.DisregardReason) *table {
	t.Helper()
	f, ok := faults[reason]
	if !ok {
		t.Fatalf("no case for %s: a reason was added", reason)
	}
	tb := newTable(t)
	tb.apply(pathEvent(t, peer2, 0, func(p *engine.Path) { p.HasNHC = false }))
	ev := pathEvent(t, peer1, 0, func(p *engine.Path) { p.NHC, p.LocalPref = unhex(t, f.nhc), 200 })
	if f.edit != nil {
		f.edit(tb, &ev.Path)
	}
	tb.apply(ev)
	return tb
}

func TestReceiverCountsAndRecordsEveryDisregardWithItsReason(t *testing.T) {
	for _, reason := range pnc.DisregardReasons() {
		tb := hearFault(t, reason)
		if tb.r.total[reason] != 1 || tb.r.peers[peer1].disregarded[reason] != 1 || len(tb.r.total) != 1 {
			t.Errorf("%s: counted %v, at the neighbour %v", reason, tb.r.total, tb.r.peers[peer1].disregarded)
		}
		if len(tb.events) != 1 {
			t.Fatalf("%s: recorded %+v", reason, tb.events)
		}
		if e := tb.events[0]; e.Kind != pnc.EventDisregarded || e.Reason != reason || e.Detail == "" || e.Route.Prefix != pfx || e.Route.Peer != peer1.String() {
			t.Errorf("%s: recorded %+v", reason, e)
		}
	}
}

func TestReceiverKeepsTheRouteWhateverIsWrongWithItsNHC(t *testing.T) {
	for _, reason := range pnc.DisregardReasons() {
		tb := hearFault(t, reason)
		r := tb.get(peer1, 0)
		if r == nil || !r.Best || r.NextHop != addr("198.51.100.1") || tb.get(peer2, 0) == nil {
			t.Errorf("%s: attribute discard keeps the route as it is: %+v", reason, tb.routes)
			continue
		}
		// Of several PNCs the first is used; all other faults leave none.
		if used := reason == pnc.DisregardDuplicatePNC; r.Believed() != used {
			t.Errorf("%s: believed %v", reason, r.Believed())
		}
		// The next announcement without a fault is believed: nothing of the fault stays.
		tb.r.policy, tb.r.peers[peer1].in = testLearning(), inbound{}
		tb.apply(pathEvent(t, peer1, 0, nil))
		if r := tb.get(peer1, 0); !r.Believed() || r.Disregarded != pnc.DisregardNone {
			t.Errorf("%s: mended, and not believed: %+v", reason, r)
		}
	}
}

// Of two tables that hear the same paths, one with NHC on some of them, both select the same.
func TestReceiverSelectsAsIfThereWereNoNHC(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	attrs := []string{"", head4 + pnc7, head4 + pnc8, head4 + unknown, "0001 01 04 c6336402" + pnc7, "0001"}
	differ := 0
	for range 500 {
		with, without := newTable(t), newTable(t)
		var marked, best *pnc.Route
		for i := range 6 {
			peer := []netip.Addr{peer1, peer2}[rnd.IntN(2)]
			nhc := attrs[rnd.IntN(len(attrs))]
			ev := pathEvent(t, peer, uint32(i), func(p *engine.Path) {
				p.LocalPref, p.ASPathLen, p.Origin, p.MED = uint32(100+rnd.IntN(2)), rnd.IntN(2), uint8(rnd.IntN(2)), uint32(rnd.IntN(2))
				p.HasNHC, p.NHC = nhc != "", unhex(t, nhc)
			})
			with.apply(ev)
			ev.Path.HasNHC, ev.Path.NHC = false, nil
			without.apply(ev)
		}
		for id, r := range with.routes {
			if r.Best != without.routes[id].Best {
				t.Fatalf("%+v is best %v, without NHC %v", r, r.Best, !r.Best)
			}
			if r.Best {
				best = &r
			} else if r.Believed() {
				marked = &r
			}
		}
		if best == nil {
			t.Fatal("no best path")
		}
		if marked != nil && !best.Believed() {
			differ++
		}
	}
	if differ == 0 {
		t.Error("no case in which a PNC could have moved the choice")
	}
}

func TestReceiverReadsVPNHeadersWithAndWithoutRD(t *testing.T) {
	for name, nhc := range map[string]string{"without": vpnHead4, "with": vpnRD4} {
		tb := newVPNTable(t)
		tb.apply(vpnEvent(t, "65000:1", "65000:100", func(ev *engine.Event) { ev.Path.NHC = unhex(t, nhc+pnc7) }))
		tb.expect(t, name, map[string]string{"blue": "65000:1+"})
	}
}
