package flooding

import (
	"iter"
	"testing"
	"time"

	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
)

// router is a flooding machine with one interface and the neighbour machine there.
type router struct {
	*testing.T
	m     *Machine
	n     *neighbor.Machine
	known bool // the flooding machine knows the neighbour
}

func newRouter(t *testing.T, id, other packet.ID, maxLSAs int) *router {
	r := &router{T: t, m: New(Config{Version: packet.V2, Router: id, MaxLSAs: maxLSAs})}
	r.m.SetInterface(1, Area{}, 1400)
	r.n = neighbor.New(neighbor.Config{Version: packet.V2, Router: id, Options: packet.OptionE, MTU: 1500}, other, database{r.m})
	r.n.AdjOK(time.Unix(0, 0), true)
	return r
}

// pointToPoint is a neighbour where there is no Designated Router.
type pointToPoint struct{ *neighbor.Machine }

func (pointToPoint) Designated() bool { return false }

// database is what the exchange sees of the databases.
type database struct{ m *Machine }

func (d database) Summary(now time.Time) iter.Seq[packet.Header] {
	return func(yield func(packet.Header) bool) {
		for e := range d.m.DB(area0).All() {
			if !yield(e.HeaderNow(now)) {
				return
			}
		}
	}
}

func (d database) Lookup(now time.Time, k packet.Key) (packet.Header, bool) {
	e := d.m.DB(area0).Get(k)
	if e == nil {
		return packet.Header{}, false
	}
	return e.HeaderNow(now), true
}

func (d database) Append(dst []byte, now time.Time, k packet.Key) ([]byte, bool) {
	e := d.m.DB(area0).Get(k)
	if e == nil {
		return dst, false
	}
	return e.AppendTo(dst, now, 1), true
}

// follow tells the flooding machine of the neighbour, as far as it is.
func (r *router) follow(now time.Time) {
	if r.n.Flooding() != r.known {
		if r.known = !r.known; r.known {
			r.m.SetPeer(1, pointToPoint{r.n})
		} else {
			r.m.RemovePeer(1, r.n.Router())
		}
	}
	if keys := r.n.MaxAge(); keys != nil {
		if err := r.m.Retransmit(now, 1, r.n.Router(), keys); err != nil {
			r.Error(err)
		}
	}
}

func (r *router) receive(now time.Time, b packet.Body) {
	switch b := b.(type) {
	case *packet.Update:
		_ = r.m.ReceiveUpdate(now, 1, r.n.Router(), b)
	case *packet.Ack:
		_ = r.m.ReceiveAck(now, 1, r.n.Router(), b)
	default:
		r.n.Receive(now, b)
	}
	r.follow(now)
}

func (r *router) send(now time.Time) (out []packet.Body) {
	r.n.Hello(now)
	r.n.TwoWay(now)
	out = r.n.Tick(now)
	for _, s := range r.m.Tick(now) {
		if s.Interface == 1 {
			out = append(out, s.Body)
		}
	}
	return out
}

// run lets two routers talk for so long, with a step each 100 ms.
func run(now time.Time, d time.Duration, a, b *router) time.Time {
	for end := now.Add(d); now.Before(end); now = now.Add(100 * time.Millisecond) {
		for _, body := range a.send(now) {
			b.receive(now, body)
		}
		for _, body := range b.send(now) {
			a.receive(now, body)
		}
	}
	return now
}

// put has a router have an LSA that was made by another.
func (r *router) put(now time.Time, n packet.ID, age uint16) {
	r.Helper()
	l, err := packet.NewLSA(packet.V2, packet.Header{Age: age, Key: packet.Key{Type: packet.V2Router, ID: n, Adv: n}, Sequence: 5}, make([]byte, 4))
	if err != nil {
		r.Fatal(err)
	}
	e, change, err := r.m.DB(area0).Install(now, l, true)
	if err != nil {
		r.Fatal(err)
	}
	r.m.installed(area0, e, change, nil, nil)
}

func TestAnAdjacencyGetsFullWhenTheDatabaseIs(t *testing.T) {
	now := time.Unix(0, 0)
	small, great := newRouter(t, 1, 2, 30), newRouter(t, 2, 1, 0)
	for n := range packet.ID(100) {
		great.put(now, 10+n, 1)
	}
	run(now, 3*time.Second, small, great)
	if !small.n.Full() || !great.n.Full() || small.n.Requests() > 0 {
		t.Errorf("full: %t and %t, %d are asked for", small.n.Full(), great.n.Full(), small.n.Requests())
	}
	if c := small.m.Counters(); c.Full != 70 || c.Stored != 30 || small.m.DB(area0).Len() != 30 {
		t.Errorf("%+v, %d LSAs", c, small.m.DB(area0).Len())
	}
}

// Who joins with an LSA that has been flushed meanwhile is told so: descriptions leave it out.
func TestWhoJoinsLearnsWhatIsBeingFlushed(t *testing.T) {
	now := time.Unix(0, 0)
	here, joins := newRouter(t, 1, 2, 0), newRouter(t, 2, 1, 0)
	// Somebody else has yet to acknowledge the flush.
	here.m.SetInterface(2, Area{}, 1400)
	here.m.SetPeer(2, &fakePeer{id: 9, full: true})
	here.put(now, 50, packet.MaxAge)
	joins.put(now, 50, 100)
	k := packet.Key{Type: packet.V2Router, ID: 50, Adv: 50}
	now = run(now, 10*time.Second, here, joins)
	if !here.n.Full() || !joins.n.Full() {
		t.Fatal("no adjacency")
	}
	if joins.m.DB(area0).Get(k) != nil {
		t.Error("the router that joined keeps it")
	}
	if here.m.Waiting(1, 2) != 0 || here.m.DB(area0).Get(k) == nil {
		t.Errorf("%d wait here, while another has yet to acknowledge it", here.m.Waiting(1, 2))
	}
	if err := here.m.ReceiveAck(now, 2, 9, &packet.Ack{Headers: []packet.Header{here.m.DB(area0).Get(k).HeaderNow(now)}}); err != nil {
		t.Fatal(err)
	}
	here.m.Tick(now)
	if here.m.DB(area0).Get(k) != nil {
		t.Error("everybody knows, and it is kept")
	}
}
