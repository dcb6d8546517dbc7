package learner

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pncd/igp/ospf/ospfapi/message"
	"pncd/igp/ospf/packet"
)

func TestTheDatabaseIsAskedForOnlyWhenThereIsAnInstance(t *testing.T) {
	d := newDaemon(t, Config{})
	d.instance = false
	d.connect()
	d.pass(10 * time.Minute) // the daemon fails the test when it is asked
	if st := d.m.Status().State; st != Probing {
		t.Fatalf("state %s", st)
	}
	probes := len(d.asked) - 1
	// 0.5, 1, 2 ... 30 s apart, two addresses each.
	if probes < 40 || probes > 60 {
		t.Errorf("%d probes in ten minutes", probes)
	}
	d.instance = true
	d.news(0, message.InterfaceState{Interface: itsAddr, State: 3})
	d.answer()
	if st := d.m.Status(); st.State != Synced || st.RouterID != ownRouter {
		t.Errorf("after an interface came up: %+v", st)
	}
	if want := []message.Type{message.TypeOriginate, message.TypeSyncLSDB, message.TypeSyncRouterID}; !slices.Equal(d.asked[len(d.asked)-3:], want) {
		t.Errorf("asked %v at the end", d.asked[len(d.asked)-5:])
	}
}

func TestAnInterfaceThatTheDaemonNamesIsProbedFor(t *testing.T) {
	d := newDaemon(t, Config{})
	d.instance = false
	d.m.Connected(d.now, 1, nil) // the router is another host
	d.answer()
	d.pass(time.Minute)
	if want := []message.Type{message.TypeRegisterEvent}; !slices.Equal(d.asked, want) {
		t.Fatalf("asked %v", d.asked)
	}
	d.instance = true
	d.news(0, message.NewInterface{Interface: itsAddr})
	d.answer()
	if st := d.m.Status().State; st != Synced {
		t.Errorf("state %s", st)
	}
}

func TestAConfiguredAddressIsProbedFor(t *testing.T) {
	d := newDaemon(t, Config{Addresses: []netip.Addr{itsAddr}})
	d.m.Connected(d.now, 1, nil)
	d.answer()
	if st := d.m.Status().State; st != Synced {
		t.Errorf("state %s", st)
	}
}

func TestTheEndOfTheDatabaseMayComeBeforeOrAfterTheReply(t *testing.T) {
	for _, last := range []bool{false, true} {
		d := newDaemon(t, Config{})
		d.markLast = last
		d.lsas = []packet.LSA{routerLSA(t, ownRouter, 0, router2)}
		d.connect()
		if st := d.m.Status(); st.State != Synced || st.Counters.Syncs != 1 {
			t.Errorf("last %v: %+v", last, st)
		}
		d.has("synced", d.lsas...)
	}
}

func TestAnotherRouterIDDoesNotEndTheDatabase(t *testing.T) {
	d := newDaemon(t, Config{})
	d.m.Connected(d.now, 1000, []netip.Addr{itsAddr})
	for d.m.Status().State != Syncing || d.m.markAt == 0 {
		out, err := d.m.Tick(d.now)
		if err != nil || len(out) != 1 {
			t.Fatal(out, err)
		}
		d.news(0, message.RouterID{ID: router2})                 // it changed
		d.news(out[0].Sequence+1, message.RouterID{ID: router2}) // not ours
		code := message.OK
		if out[0].Request.Type() == message.TypeOriginate {
			code = message.OpaqueNotRegistered
		}
		if err := d.m.Reply(d.now, message.Message{Sequence: out[0].Sequence, Body: message.Reply{Code: code}}); err != nil {
			t.Fatal(err)
		}
	}
	d.pass(DefaultReplyTimeout - time.Millisecond)
	if st := d.m.Status().State; st != Syncing {
		t.Fatalf("state %s", st)
	}
	d.now = d.now.Add(time.Millisecond)
	if _, err := d.m.Tick(d.now); !errors.Is(err, ErrSilent) {
		t.Errorf("a database without an end: %v", err)
	}
}

func TestAConfiguredRouterIDStays(t *testing.T) {
	d := newDaemon(t, Config{RouterID: router2})
	d.connect()
	if id := d.m.Status().RouterID; id != router2 {
		t.Errorf("router ID %s", id)
	}
}

func TestADaemonThatIsSilentIsLeft(t *testing.T) {
	d := newDaemon(t, Config{})
	d.connect()
	d.pass(time.Minute) // it answers: a question each DefaultKeepalive
	if n := len(d.asked); n < 8 || n > 11 {
		t.Errorf("%d requests in a minute: %v", n, d.asked)
	}
	d.now = d.m.Wake()
	out, err := d.m.Tick(d.now)
	if err != nil || len(out) != 1 || out[0].Request.Type() != message.TypeRegisterEvent {
		t.Fatalf("%v, %v", out, err)
	}
	d.now = d.now.Add(DefaultReplyTimeout)
	if at := d.m.Wake(); at.After(d.now) {
		t.Errorf("wakes only at %s", at)
	}
	if _, err := d.m.Tick(d.now); !errors.Is(err, ErrSilent) {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNoReplyToWhatWasAskedEndsTheConnection(t *testing.T) {
	reply := func(sequence uint32, b message.Body) error {
		d := newDaemon(t, Config{})
		d.m.Connected(d.now, 1000, []netip.Addr{itsAddr})
		out, err := d.m.Tick(d.now)
		if err != nil || len(out) != 1 || out[0].Sequence != 1000 {
			t.Fatalf("%v, %v", out, err)
		}
		return d.m.Reply(d.now, message.Message{Sequence: sequence, Body: b})
	}
	if err := reply(1000, message.Reply{}); err != nil {
		t.Error(err)
	}
	if err := reply(1001, message.Reply{}); !errors.Is(err, ErrProtocol) {
		t.Errorf("another sequence number: %v", err)
	}
	if err := reply(1000, message.RouterID{}); !errors.Is(err, ErrProtocol) {
		t.Errorf("no reply: %v", err)
	}
	var refused *RefusedError
	if err := reply(1000, message.Reply{Code: message.NoMemory}); !errors.As(err, &refused) || refused.Code != message.NoMemory {
		t.Errorf("refused: %v", err)
	}
	d := newDaemon(t, Config{})
	d.connect()
	if err := d.m.Notify(d.now, message.Message{Sequence: 1, Body: message.Reply{}}); !errors.Is(err, ErrProtocol) {
		t.Errorf("a reply among the news: %v", err)
	}
	if err := d.m.Reply(d.now, message.Message{Sequence: 1, Body: message.Reply{}}); !errors.Is(err, ErrProtocol) {
		t.Errorf("a reply to nothing: %v", err)
	}
}

func TestSequenceNumbersStayInTheirRange(t *testing.T) {
	d := newDaemon(t, Config{})
	d.m.Connected(d.now, ^uint32(0), []netip.Addr{itsAddr})
	var seen []uint32
	for range 3 {
		out, err := d.m.Tick(d.now)
		if err != nil || len(out) != 1 {
			t.Fatal(out, err)
		}
		seen = append(seen, out[0].Sequence)
		d.request(out[0])
	}
	if want := []uint32{message.MaxSequence, message.MinSequence, 2}; !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
	d.m.Connected(d.now, 0, nil)
	if out, err := d.m.Tick(d.now); err != nil || out[0].Sequence != message.MinSequence {
		t.Errorf("%v, %v", out, err)
	}
}

func TestConfigErrorsNameTheField(t *testing.T) {
	for want, c := range map[string]Config{
		"ospf api: hold: -1s, must not be below zero":           {Hold: -time.Second},
		"ospf api: most LSAs: -1, must not be below zero":       {MaxLSAs: -1},
		"ospf api: addresses: 2001:db8::1 is no IPv4 address":   {Addresses: []netip.Addr{netip.MustParseAddr("2001:db8::1")}},
		"ospf api: reply timeout: -1ns, must not be below zero": {ReplyTimeout: -1},
	} {
		if _, err := New(c); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
