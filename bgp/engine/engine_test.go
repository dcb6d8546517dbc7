package engine

import (
	"encoding/hex"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	api "github.com/osrg/gobgp/v3/api"
	gobgplog "github.com/osrg/gobgp/v3/pkg/log"
	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"pncd/bgp/guard"
	"pncd/bgp/relay"
)

var (
	pfx  = netip.MustParsePrefix("203.0.113.0/24")
	peer = struct{ a, b netip.Addr }{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	addr = netip.MustParseAddr
)

func event(p netip.Addr, id, med uint32) Event {
	return Event{Kind: EventPath, Peer: p, Path: Path{Prefix: pfx, PathID: id, MED: med}}
}

func TestTheQueueKeepsTheLastStateOfAPathAndTheOrderAroundSessions(t *testing.T) {
	q := newQueue()
	for _, ev := range []Event{
		event(peer.a, 0, 1), event(peer.b, 0, 2), event(peer.a, 0, 3), event(peer.a, 7, 4),
		{Kind: EventState, Peer: peer.a, State: StateIdle},
		event(peer.a, 0, 5), event(peer.a, 0, 6),
	} {
		q.add(&ev)
	}
	select {
	case <-q.ready:
	default:
		t.Error("nobody was told")
	}
	var meds []uint32
	for _, ev := range q.take() {
		meds = append(meds, ev.Path.MED)
	}
	if want := []uint32{2, 0, 6}; !slices.Equal(meds, want) || q.coalesced != 4 {
		t.Errorf("got %v, %d coalesced, want %v", meds, q.coalesced, want)
	}
	ev := event(peer.a, 0, 9)
	q.add(&ev)
	if got := q.take(); len(got) != 1 || len(q.take()) != 0 {
		t.Errorf("after a take: %+v", got)
	}
}

func quiet() (*logrus.Logger, *strings.Builder) {
	var b strings.Builder
	l := logrus.New()
	l.SetOutput(&b)
	l.ExitFunc = func(int) { panic("the logger ended the process") }
	return l, &b
}

func TestGoBGPsLoggerNeverEndsTheProcess(t *testing.T) {
	out, text := quiet()
	l := newLogger(out, func(string, gobgplog.Fields) {}, strings.ToUpper)
	l.Panic("code logic bug", gobgplog.Fields{"Key": "x"})
	l.Fatal("can't go on", nil)
	if l.panics.Load() != 2 || !strings.Contains(text.String(), "code logic bug") || !strings.Contains(text.String(), "can't go on") {
		t.Errorf("%d, %s", l.panics.Load(), text)
	}
	l.Debug("not written", nil)
	if strings.Contains(text.String(), "not written") {
		t.Error("debug was written at level info")
	}
	out.SetLevel(logrus.DebugLevel)
	l.Debug("written", nil)
	l.SetLevel(gobgplog.PanicLevel)
	if !strings.Contains(text.String(), "written") || out.GetLevel() != logrus.DebugLevel {
		t.Error("the level is the program's")
	}
}

// withPeer is an engine without GoBGP, with one peer.
func withPeer() *GoBGP {
	out, _ := quiet()
	out.SetOutput(io.Discard)
	e := &GoBGP{cfg: Config{AS: 65000, Log: out}, peers: map[netip.Addr]*peerState{}, queue: newQueue(), inside: newInside()}
	at, _ := e.inside.take(peer.a)
	e.peers[peer.a] = &peerState{cfg: Peer{Address: peer.a, LocalAS: 65000}, inside: at, state: StateIdle}
	return e
}

func TestTheLastErrorComesFromGoBGPsLog(t *testing.T) {
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"session lost":         {[]string{"Peer Down|Reason|read-failed"}, "session down: read-failed"},
		"notification":         {[]string{"sent notification|Data|bad peer AS"}, "sent notification: bad peer AS"},
		"notification is more": {[]string{"received notification|Data|cease", "Peer Down|Reason|notification-received"}, "received notification: cease"},
		"of no interest":       {[]string{"Peer Up|Data|x"}, ""},
	} {
		e := withPeer()
		for _, line := range tt.lines {
			f := strings.Split(line, "|")
			e.noteLog(f[0], gobgplog.Fields{"Key": insideFirst.String(), f[1]: f[2]})
		}
		e.noteLog("Peer Down", gobgplog.Fields{"Key": "not an address", "Reason": "x"})
		e.noteLog("Peer Down", gobgplog.Fields{"Key": peer.a.String(), "Reason": "not of an address inside"})
		if got := e.peers[peer.a].lastError; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The reason that a NOTIFICATION gives is shown when there is one.
func TestANotificationsReasonIsShownWhenThereIsOne(t *testing.T) {
	e := withPeer()
	for want, f := range map[string]gobgplog.Fields{
		"received notification: code 3(update) subcode 2(unrecognized well known attribute)":   {"Code": uint8(3), "Subcode": uint8(2), "Data": []byte{1}},
		"received notification: code 6(cease) subcode 2(administrative shutdown): maintenance": {"Code": uint8(6), "Subcode": uint8(2), "Communicated-Reason": "maintenance"},
	} {
		f["Key"] = insideFirst.String()
		e.noteLog("received notification", f)
		if got := e.peers[peer.a].lastError; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What the relay found is not what GoBGP makes of the end that it was given.
func TestAFaultIsTheLastErrorUntilTheNextAttempt(t *testing.T) {
	e := withPeer()
	key := insideFirst.String()
	e.noteRelay(peer.a, relay.Note{Fault: &guard.Fault{Code: 1, Subcode: 3, Reason: "type 9 is none"}})
	e.noteLog("received notification", gobgplog.Fields{"Key": key, "Code": uint8(6), "Subcode": uint8(9)})
	e.noteLog("Peer Down", gobgplog.Fields{"Key": key, "Reason": "notification-received"})
	want := "sent notification: code 1(header) subcode 3(bad message type): type 9 is none"
	if got := e.peers[peer.a].lastError; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.watch(stateEvent(api.PeerState_ACTIVE))
	e.noteRelay(peer.a, relay.Note{Text: "connect: refused"})
	e.noteLog("Peer Down", gobgplog.Fields{"Key": key, "Reason": "read-failed"})
	if got := e.peers[peer.a].lastError; got != "connect: refused" {
		t.Errorf("%q: the loss of the connection says more", got)
	}
}

func stateEvent(s api.PeerState_SessionState) *api.WatchEventResponse {
	return &api.WatchEventResponse{Event: &api.WatchEventResponse_Peer{Peer: &api.WatchEventResponse_PeerEvent{
		Type: api.WatchEventResponse_PeerEvent_STATE,
		Peer: &api.Peer{State: &api.PeerState{NeighborAddress: insideFirst.String(), SessionState: s}},
	}}}
}

func TestGracefulRestartIsToldWithTheSessionsState(t *testing.T) {
	e := withPeer()
	restart := func() { e.noteLog("peer graceful restart", gobgplog.Fields{"Key": insideFirst.String()}) }
	for _, step := range []struct {
		before func()
		state  api.PeerState_SessionState
		want   Event
	}{
		{nil, api.PeerState_ESTABLISHED, Event{State: StateEstablished}},
		{restart, api.PeerState_IDLE, Event{State: StateIdle, Keep: true}},
		{nil, api.PeerState_ACTIVE, Event{State: StateActive, Keep: true}},
		{nil, api.PeerState_ESTABLISHED, Event{State: StateEstablished, Keep: true}},
		{nil, api.PeerState_IDLE, Event{State: StateIdle}}, // without a restart
		{nil, api.PeerState_ESTABLISHED, Event{State: StateEstablished}},
		{restart, api.PeerState_IDLE, Event{State: StateIdle, Keep: true}},
		{nil, api.PeerState_OPENSENT, Event{State: StateOpenSent, Keep: true}},
		{nil, api.PeerState_IDLE, Event{State: StateIdle, Keep: true}}, // an attempt failed, or the restart time is over
		{nil, api.PeerState_ESTABLISHED, Event{State: StateEstablished, Keep: true}},
	} {
		if step.before != nil {
			step.before()
		}
		e.watch(stateEvent(step.state))
		got := e.Take()
		step.want.Kind, step.want.Peer = EventState, peer.a
		if len(got) != 1 || got[0].State != step.want.State || got[0].Keep != step.want.Keep {
			t.Errorf("%s: got %+v, want %+v", step.state, got, step.want)
		}
	}
	if n := e.peers[peer.a].flaps; n != 4 {
		t.Errorf("established %d times, want 4", n)
	}
}

func pack(t *testing.T, ms ...proto.Message) (out []*anypb.Any) {
	t.Helper()
	for _, m := range ms {
		a, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

func apiPath(t *testing.T, attrs ...proto.Message) *api.Path {
	return &api.Path{
		Family: IPv4Unicast.api(), Nlri: pack(t, &api.IPAddressPrefix{Prefix: "203.0.113.0", PrefixLen: 24})[0],
		Pattrs: pack(t, attrs...), Identifier: 7, SourceAsn: 65001, SourceId: "192.0.2.9", NeighborIp: insideFirst.String(),
	}
}

func TestAPathIsReadWithWhatTheDecisionNeeds(t *testing.T) {
	p, err := new(pathReader).read(apiPath(t,
		&api.OriginAttribute{Origin: 2},
		&api.AsPathAttribute{Segments: []*api.AsSegment{
			{Type: api.AsSegment_AS_CONFED_SEQUENCE, Numbers: []uint32{64512}},
			{Type: api.AsSegment_AS_SEQUENCE, Numbers: []uint32{65001, 65000}},
			{Type: api.AsSegment_AS_SET, Numbers: []uint32{65003, 65000, 65005}}}},
		&api.NextHopAttribute{NextHop: "198.51.100.1"},
		&api.MultiExitDiscAttribute{Med: 50}, &api.LocalPrefAttribute{LocalPref: 200},
		&api.OriginatorIdAttribute{Id: "192.0.2.5"}, &api.ClusterListAttribute{Ids: []string{"192.0.2.6", "192.0.2.7"}},
		&api.UnknownAttribute{Flags: 0xc0, Type: 99, Value: []byte{1}},
		&api.UnknownAttribute{Flags: 0xe0, Type: 39, Value: []byte{1, 2}},
		&api.UnknownAttribute{Flags: 0xc0, Type: 39, Value: []byte{3}}, // the first counts
	))
	if err != nil {
		t.Fatal(err)
	}
	if p.Prefix != pfx || p.PathID != 7 || p.PeerAS != 65001 || p.PeerID != addr("192.0.2.9") || p.Origin != 2 || p.ASPathLen != 3 ||
		p.NeighborAS != 65001 || p.count(65000) != 2 || p.NextHop != addr("198.51.100.1") || p.MED != 50 || p.LocalPref != 200 ||
		p.OriginatorID != addr("192.0.2.5") || len(p.ClusterList) != 2 || !p.HasNHC || p.NHCFlags != 0xe0 || hex.EncodeToString(p.NHC) != "0102" {
		t.Errorf("%+v", p)
	}
	p, err = new(pathReader).read(apiPath(t, &api.OriginAttribute{}, &api.MpReachNLRIAttribute{Family: IPv6Unicast.api(), NextHops: []string{"2001:db8::1", "fe80::1"}}))
	if err != nil || p.NextHop != addr("2001:db8::1") || p.LocalPref != DefaultLocalPref || p.HasNHC {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAPathThatGoBGPCannotConvertIsCountedAndStaysARoute(t *testing.T) {
	e := withPeer()
	bare := apiPath(t) // as with two AS_PATHs: no attribute at all
	broken := apiPath(t, &api.NextHopAttribute{NextHop: "nowhere"})
	noPrefix := apiPath(t)
	noPrefix.Nlri = pack(t, &api.IPAddressPrefix{Prefix: "203.0.113.0", PrefixLen: 99})[0]
	gone := apiPath(t)
	gone.IsWithdraw = true
	table := func(ps ...*api.Path) *api.WatchEventResponse {
		return &api.WatchEventResponse{Event: &api.WatchEventResponse_Table{Table: &api.WatchEventResponse_TableEvent{Paths: ps}}}
	}
	e.watch(table(bare))
	e.watch(table(noPrefix))
	if got := e.Take(); len(got) != 1 || got[0].Path.NextHop.IsValid() || got[0].Path.Prefix != pfx {
		t.Errorf("%+v", got)
	}
	e.watch(table(broken))
	e.watch(table(gone))
	if got := e.Take(); len(got) != 1 || !got[0].Path.Withdrawn {
		t.Errorf("the withdrawal replaces what came before: %+v", got)
	}
	if c := e.conversionErrors.Load(); c != 3 {
		t.Errorf("%d counted, want 3", c)
	}
	// Two peers' paths, and End-of-RIB, which has no NLRI.
	other := apiPath(t, &api.NextHopAttribute{NextHop: "198.51.100.1"})
	other.NeighborIp = "192.0.2.1" // not inside
	e.watch(table(other, &api.Path{Family: IPv6Unicast.api(), NeighborIp: insideFirst.String()}))
	if got := e.Take(); len(got) != 1 || got[0].Kind != EventEndOfRIB || got[0].Family != IPv6Unicast {
		t.Errorf("%+v", got)
	}
}

func TestAPanicInACallbackIsCountedAndNothingEnds(t *testing.T) {
	e := withPeer()
	e.queue.peers = nil // makes the callback panic
	e.watch(&api.WatchEventResponse{Event: &api.WatchEventResponse_Table{Table: &api.WatchEventResponse_TableEvent{
		Paths: []*api.Path{apiPath(t, &api.NextHopAttribute{NextHop: "198.51.100.1"})}}}})
	if n := e.callbackPanics.Load(); n != 1 {
		t.Errorf("%d panics counted", n)
	}
	if !e.mu.TryLock() {
		t.Error("the panic left the engine locked")
	}
}

func TestRawAttributesAreCheckedBeforeTheyAreRead(t *testing.T) {
	for in, want := range map[string]string{
		"40010100": "00", "c0200c000000000000000000000000": "000000000000000000000000", "d0270002abcd": "abcd",
		"": "error", "4001": "error", "400102": "error", "d02700": "error", "d0270003abcd": "error", "4001010000": "error",
	} {
		b, err := hex.DecodeString(in)
		if err != nil {
			t.Fatal(err)
		}
		v, err := RawAttribute(b).Value()
		got := hex.EncodeToString(v)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestAnAnnouncementNeedsAnExplicitNextHopAndAnOrigin(t *testing.T) {
	e := withPeer()
	origin := RawAttribute{0x40, 1, 1, 0}
	for name, tt := range map[string]struct {
		a    Announcement
		want string
	}{
		"no next hop":          {Announcement{Prefix: pfx, Attributes: []RawAttribute{origin}}, "next hop"},
		"unspecified next hop": {Announcement{Prefix: pfx, NextHop: addr("0.0.0.0"), Attributes: []RawAttribute{origin}}, "next hop"},
		"no prefix":            {Announcement{NextHop: addr("192.0.2.1"), Attributes: []RawAttribute{origin}}, "prefix"},
		"no origin":            {Announcement{Prefix: pfx, NextHop: addr("192.0.2.1")}, "ORIGIN"},
	} {
		if _, err := e.toAPIPath(tt.a); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := e.toAPIPath(Announcement{Prefix: netip.MustParsePrefix("2001:db8:7::/48"), NextHop: addr("2001:db8::1"), Attributes: []RawAttribute{origin}})
	if err != nil || hex.EncodeToString(p.PattrsBinary[1]) != "800e1c"+"000201"+"10"+"20010db8000000000000000000000001"+"00"+"3020010db80007" {
		t.Errorf("%x, %v", p.GetPattrsBinary(), err)
	}
}
