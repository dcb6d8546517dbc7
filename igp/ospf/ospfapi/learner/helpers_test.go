package learner

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pncd/igp/ospf/ospfapi/message"
	"pncd/igp/ospf/packet"
)

var (
	start     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ownRouter = packet.ID(0x0AFF0001)
	router2   = packet.ID(0x0AFF0002)
	itsAddr   = netip.MustParseAddr("10.9.0.1")
	otherAddr = netip.MustParseAddr("10.8.0.1")
)

// daemon is an ospfd that answers a machine at once. It fails the test when it is asked what would crash it.
type daemon struct {
	t        *testing.T
	m        *Machine
	now      time.Time
	instance bool // with an interface of itsAddr
	lsas     []packet.LSA
	asked    []message.Type
	markLast bool // the end of the database is told after the reply to the last question
}

func newDaemon(t *testing.T, c Config) *daemon {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &daemon{t: t, m: m, now: start, instance: true}
}

func (d *daemon) connect() {
	d.m.Connected(d.now, 1000, []netip.Addr{otherAddr, itsAddr})
	d.answer()
}

// pass lets time pass, in steps that the machine asks for.
func (d *daemon) pass(by time.Duration) {
	d.t.Helper()
	d.answer()
	for end := d.now.Add(by); ; {
		at := d.m.Wake()
		if at.IsZero() || at.After(end) {
			d.now = end
			break
		}
		if at.After(d.now) {
			d.now = at
		}
		d.answer()
	}
	d.answer()
}

// answer takes what the machine sends, until it sends no more.
func (d *daemon) answer() {
	d.t.Helper()
	for {
		out, err := d.m.Tick(d.now)
		if err != nil {
			d.t.Fatal(err)
		}
		if len(out) == 0 {
			return
		}
		for _, o := range out {
			d.request(o)
		}
	}
}

func (d *daemon) request(o Out) {
	d.t.Helper()
	d.asked = append(d.asked, o.Request.Type())
	code := message.OK
	mark := func() { d.news(o.Sequence, message.RouterID{ID: ownRouter}) }
	switch r := o.Request.(type) {
	case message.InstanceProbe:
		code = message.NoSuchInterface
		if d.instance && r.Interface == itsAddr {
			code = message.OpaqueNotRegistered
		}
	case message.SyncLSDB:
		d.alive(r)
		for _, l := range d.lsas {
			d.news(o.Sequence, message.LSAChange{LSA: l})
		}
	case message.SyncRouterID:
		d.alive(r)
		if !d.markLast {
			mark()
		}
	}
	if err := d.m.Reply(d.now, message.Message{Sequence: o.Sequence, Body: message.Reply{Code: code}}); err != nil {
		d.t.Fatal(err)
	}
	if o.Request.Type() == message.TypeSyncRouterID && d.markLast {
		mark()
	}
}

func (d *daemon) alive(r message.Request) {
	d.t.Helper()
	if !d.instance {
		d.t.Fatalf("%s crashes a daemon without an instance", r.Type())
	}
}

func (d *daemon) news(sequence uint32, b message.Body) {
	d.t.Helper()
	if err := d.m.Notify(d.now, message.Message{Sequence: sequence, Body: b}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemon) update(l packet.LSA) { d.t.Helper(); d.news(0, message.LSAChange{LSA: l}) }
func (d *daemon) delete(l packet.LSA) {
	d.t.Helper()
	d.news(0, message.LSAChange{Deleted: true, LSA: l})
}

// has fails the test when the mirror of the backbone is not these LSAs.
func (d *daemon) has(when string, want ...packet.LSA) {
	d.t.Helper()
	var got, keys []string
	for _, e := range d.m.Database(packet.Backbone) {
		got = append(got, e.Key.String())
	}
	for _, l := range want {
		keys = append(keys, l.Key.String())
	}
	slices.Sort(got)
	slices.Sort(keys)
	if !slices.Equal(got, keys) {
		d.t.Errorf("%s: the mirror has %v, not %v", when, got, keys)
	}
}

// lsa makes an LSA; number tells instances apart.
func lsa(t testing.TB, typ packet.LSType, id, adv packet.ID, number int32, body []byte) packet.LSA {
	t.Helper()
	l, err := packet.NewLSA(packet.V2, packet.Header{Key: packet.Key{Type: typ, ID: id, Adv: adv}, Sequence: packet.InitialSequence + number}, body)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// routerLSA is one with point-to-point links.
func routerLSA(t testing.TB, of packet.ID, number int32, to ...packet.ID) packet.LSA {
	t.Helper()
	var r packet.V2RouterLSA
	for _, n := range to {
		r.Links = append(r.Links, packet.V2Link{ID: n, Kind: packet.LinkPointToPoint, Metric: 10})
	}
	return lsa(t, packet.V2Router, of, of, number, r.Append(nil))
}
