package daemon

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/roce"
	"pncd/proxyagent/flowmap"
)

// learnedPair is a learner whose map knows one pair by connection management.
func learnedPair(t *testing.T) (l *learner, known func() bool) {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	flows := flowmap.New(flowmap.Config{})
	l = newLearner(flows, new(atomic.Uint64), func() time.Time { return now }, logrus.New())
	return l, learnPair(t, flows, &now)
}

// learnPair shows a map the connection management of a pair, from now on; known says whether the map answers for it now.
func learnPair(t *testing.T, flows *flowmap.Map, now *time.Time) (known func() bool) {
	t.Helper()
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	mad := func(src, dst netip.Addr, cm roce.CM) {
		t.Helper()
		m := roce.MAD{BaseVersion: 1, Class: 7, ClassVersion: 2, Method: 3, TransactionID: cm.TransactionID, AttrID: uint16(cm.Kind),
			DETH: roce.DETH{QKey: roce.GSIQKey, SrcQP: roce.QP1}, CM: cm}
		body, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		*now = now.Add(time.Millisecond)
		p := roce.Packet{Src: src, Dst: dst, SrcPort: 49152, Body: body, BTH: roce.BTH{Opcode: roce.OpcodeUDSendOnly, DestQP: roce.QP1, PKey: 0xFFFF}}
		flows.Observe(&flowmap.Observation{Packet: &p, At: *now})
	}
	gid := func(x netip.Addr) [16]byte { return x.As16() }
	mad(a, b, roce.CM{Kind: roce.CMREQ, TransactionID: 1, LocalCommID: 1, LocalQPN: 0x11, LocalGID: gid(a), RemoteGID: gid(b)})
	mad(b, a, roce.CM{Kind: roce.CMREP, TransactionID: 1, LocalCommID: 2, RemoteCommID: 1, LocalQPN: 0x22})
	known = func() bool {
		e, v := flows.Lookup(flowmap.Key{Sender: a, Receiver: b, DestQP: 0x22}, *now)
		return v == flowmap.Hit && e.SourceQP == 0x11
	}
	if !known() {
		t.Fatal("the pair was not learned")
	}
	return known
}

func TestAnswersWaitAfterTheTapsMissedTraffic(t *testing.T) {
	t.Run("enabled again", func(t *testing.T) {
		l, known := learnedPair(t)
		for i := range 2 {
			r, err := l.opener(tapSettings{})()
			if err != nil {
				t.Fatal(err)
			}
			if first := i == 0; known() != first {
				t.Errorf("opened %d times before: known %v", i, known())
			}
			begin(r)
			if known() {
				t.Errorf("begun %d times before: the answer stayed", i)
			}
		}
	})
	t.Run("a link was down", func(t *testing.T) {
		l, known := learnedPair(t)
		if l.tick([]ringStats{{Role: roleDetector, Downs: 1}}, time.Minute); !known() {
			t.Error("a detector's link hides nothing from the taps")
		}
		if l.tick([]ringStats{{Role: roleLearner, Downs: 1}}, time.Minute); known() {
			t.Error("the answer stayed")
		}
	})
	t.Run("a tap failed", func(t *testing.T) {
		requireRaw(t)
		l, known := learnedPair(t)
		open := l.tapOpener("lo", tapSettings{ringMiB: 1}, newRingBook())
		for i, want := range []bool{true, false} {
			r, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if known() != want {
				t.Errorf("opened %d times before: known %v", i, known())
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
