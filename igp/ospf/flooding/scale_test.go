package flooding

import (
	"fmt"
	"testing"
	"time"

	"pncd/igp/ospf/packet"
)

// The size that a speaker must bear.
const (
	manyLSAs = 100_000
	manyOwn  = 10_000
)

var area0 = Where{Scope: packet.ScopeArea}

// other makes an LSA of another router, as an area border router's summary.
func other(tb testing.TB, n int, sequence int32) packet.LSA {
	tb.Helper()
	l, err := packet.NewLSA(packet.V2, packet.Header{
		Age: 1, Key: packet.Key{Type: packet.V2Summary, ID: packet.ID(n), Adv: packet.ID(10 + n%500)}, Sequence: sequence,
	}, make([]byte, 8))
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// updates of others' LSAs, as an Ethernet link carries them.
func updates(tb testing.TB, n int, sequence int32) []*packet.Update {
	tb.Helper()
	var list []packet.LSA
	for i := range n {
		list = append(list, other(tb, i, sequence))
	}
	return packet.Updates(list, 1456)
}

// scene is a machine between two routers: 2, which tells it of the network, and 3.
func scene(tb testing.TB) *Machine {
	tb.Helper()
	m := New(Config{Version: packet.V2, Router: 1})
	for id := range InterfaceID(2) {
		m.SetInterface(id, Area{}, 1456)
		m.SetPeer(id, &fakePeer{id: packet.ID(id + 2), full: true, opaque: true})
	}
	return m
}

// settle has everything that is sent acknowledged at once, until nothing is left to be done soon. It gives the
// time then, and how many updates of how many LSAs were sent.
func settle(tb testing.TB, m *Machine, now time.Time) (end time.Time, packets, lsas int) {
	tb.Helper()
	for range 1_000_000 {
		for _, s := range m.Tick(now) {
			u, ok := s.Body.(*packet.Update)
			if !ok {
				continue
			}
			packets++
			ack := &packet.Ack{}
			for _, l := range u.LSAs {
				ack.Headers = append(ack.Headers, l.Header)
				lsas++
			}
			if err := m.ReceiveAck(now, s.Interface, packet.ID(s.Interface+2), ack); err != nil {
				tb.Fatal(err)
			}
		}
		at := m.Wake()
		if at.IsZero() || at.After(now.Add(time.Minute)) {
			return now, packets, lsas
		}
		now = later(now, at)
	}
	tb.Fatal("there is always something to do")
	return now, 0, 0
}

func receiveAll(tb testing.TB, m *Machine, now time.Time, list []*packet.Update) {
	tb.Helper()
	for _, u := range list {
		if err := m.ReceiveUpdate(now, 0, 2, u); err != nil {
			tb.Fatal(err)
		}
	}
}

func originateAll(tb testing.TB, m *Machine, now time.Time, n uint32) {
	tb.Helper()
	for n := range n {
		if err := m.Originate(now, area0, packet.V2OpaqueArea, packet.OpaqueID(packet.OpaqueExtendedPrefix, n), 0, make([]byte, 32)); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestAGreatNetworkIsTakenPassedOnAndLeft(t *testing.T) {
	const others, own = manyLSAs / 5, manyOwn / 5 // all of it is for the benchmarks
	now, m := time.Unix(0, 0), scene(t)
	list := updates(t, others, 1)
	receiveAll(t, m, now, list)
	now, packets, lsas := settle(t, m, now)
	if most := len(list) * 3 / 2; lsas != others || packets > most {
		t.Errorf("%d LSAs were passed on in %d updates, want %d in %d at most", lsas, packets, others, most)
	}
	originateAll(t, m, now, own)
	now, _, lsas = settle(t, m, now)
	if lsas != 2*own || m.DB(area0).Len() != others+own {
		t.Errorf("%d own LSAs went out, %d LSAs are there", lsas, m.DB(area0).Len())
	}
	if c := m.Counters(); c.Retransmitted > 0 {
		t.Errorf("%d LSAs were sent again, though all were acknowledged at once", c.Retransmitted)
	}
	m.WithdrawAll(now)
	if !m.Pending() {
		t.Error("nothing is pending")
	}
	begin := now
	now, _, lsas = settle(t, m, now)
	if lsas != 2*own || m.Pending() || m.DB(area0).Len() != others {
		t.Errorf("%d flushed LSAs went out, %d LSAs are there", lsas, m.DB(area0).Len())
	}
	if took := now.Sub(begin); took > 5*time.Second {
		t.Errorf("leaving takes %s", took)
	}
}

// A neighbour that is full but silent gets no more than a burst in each interval, and all once it answers.
func TestASilentNeighborGetsABurstInEachInterval(t *testing.T) {
	now, m := time.Unix(0, 0), scene(t)
	receiveAll(t, m, now, updates(t, 5000, 1))
	sent := map[int64]int{}
	for now.Before(time.Unix(30, 0)) {
		for _, s := range m.Tick(now) {
			if u, ok := s.Body.(*packet.Update); ok && s.To != 0 {
				sent[now.Unix()/5] += len(u.LSAs)
			}
		}
		now = later(now, m.Wake())
	}
	for at := range int64(6) {
		if got := sent[at]; got > 256 || at > 0 && got == 0 {
			t.Errorf("%d LSAs were sent again from %d s on", got, 5*at)
		}
	}
	if got := m.Waiting(1, 3); got != 5000 {
		t.Errorf("%d wait", got)
	}
	end, _, _ := settle(t, m, now)
	if took := end.Sub(now); took > 6*time.Second || m.Pending() {
		t.Errorf("when it answers all is there after %s, pending: %t", took, m.Pending())
	}
}

func BenchmarkReceive(b *testing.B) {
	list := updates(b, manyLSAs, 1)
	b.ReportAllocs()
	for b.Loop() {
		now, m := time.Unix(0, 0), scene(b)
		for _, u := range list {
			if err := m.ReceiveUpdate(now, 0, 2, u); err != nil {
				b.Fatal(err)
			}
			m.Tick(now)
			m.Wake()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/manyLSAs, "ns/LSA")
}

// BenchmarkTick is a Tick without anything to do, as after each packet, for networks of two sizes: it must not
// depend on them.
func BenchmarkTick(b *testing.B) {
	for _, small := range []bool{true, false} {
		lsas, name := manyLSAs, "100k"
		if small {
			lsas, name = 100, "100"
		}
		b.Run(fmt.Sprintf("LSAs=%s", name), func(b *testing.B) {
			now, m := time.Unix(0, 0), scene(b)
			receiveAll(b, m, now, updates(b, lsas, 1))
			if !small {
				originateAll(b, m, now, manyOwn)
			}
			now, _, _ = settle(b, m, now)
			b.ReportAllocs()
			for b.Loop() {
				m.Tick(now)
				m.Wake()
			}
		})
	}
}

func BenchmarkWithdrawAll(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		now, m := time.Unix(0, 0), scene(b)
		originateAll(b, m, now, manyOwn)
		now, _, _ = settle(b, m, now)
		b.StartTimer()
		m.WithdrawAll(now)
		settle(b, m, now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/manyOwn, "ns/LSA")
}
