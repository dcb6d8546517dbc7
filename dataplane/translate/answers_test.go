package translate

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"pncd/dataplane/roce"
	"pncd/proxyagent/message"
)

// flowOf is the flow of a Destination QP between two hosts; its Source QP is 0x1000 more.
func flowOf(qp uint32) Flow { return Flow{Sender: here4, Receiver: receiver4, DestQP: qp} }

func putFlow(k *Translator, qp uint32) error {
	return k.Put(flowOf(qp), Answer{CNP: roce.CNP{Src: receiver4, Dst: here4, DestQP: 0x1000 + qp}, Until: time.Now().Add(time.Hour), Version: 1})
}

// notify puts a notification about a flow through the program.
func (b *bench) notify(t *testing.T, qp uint32) (action uint32) {
	t.Helper()
	n := message.Notification{Src: here4, Dst: receiver4, SrcPort: 50000, DstPort: roce.UDPPort, Proto: 17, DestQP: qp}
	payload, err := n.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := outer{from: node4, to: own4, port: testPort, fromPort: message.EventPort(uint64(qp)), ttl: 255, mac: b.place.macs[b.place.inner]}
	if err := b.place.ns.Do(func() error {
		action, _, err = b.run(o.frame(payload), make([]byte, 512), b.place.inner)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return action
}

func (b *bench) counters(t *testing.T) Counters {
	t.Helper()
	c, err := b.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswersBeyondTheBoundAreRefusedUntilOneIsEvicted(t *testing.T) {
	b := newBench(t, Config{MaxAnswers: 2}, false)
	if err := errors.Join(putFlow(b.Translator, 1), putFlow(b.Translator, 2)); err != nil {
		t.Fatal(err)
	}
	if err := putFlow(b.Translator, 3); !errors.Is(err, ErrFull) {
		t.Fatalf("a third answer: %v", err)
	}
	if err := putFlow(b.Translator, 2); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if err := b.Evict(flowOf(3)); err != nil || b.Answers() != 1 {
		t.Fatalf("%v, %d answers", err, b.Answers())
	}
	if err := putFlow(b.Translator, 3); err != nil {
		t.Fatalf("after room was made: %v", err)
	}
	answered := 0
	for qp := range uint32(3) {
		_, has := b.Has(flowOf(qp + 1))
		if decided := b.notify(t, qp+1) == xdpTx; decided != has {
			t.Errorf("QP %d: has an answer: %v, is answered: %v", qp+1, has, decided)
		} else if decided {
			answered++
		}
	}
	if answered != 2 {
		t.Errorf("%d flows are answered", answered)
	}
}

func TestEvictFindsNothingInNoAnswers(t *testing.T) {
	b := newBench(t, Config{}, false)
	if err := b.Evict(flowOf(1)); err != nil || b.Answers() != 0 {
		t.Errorf("%v, %d answers", err, b.Answers())
	}
}

// The place of the Source QP that was idle for longest goes to a new one, which starts with nothing used.
func TestPacingPlacesAreGivenAwayAndStartAnew(t *testing.T) {
	b := newBench(t, Config{MaxAnswers: 1}, true)
	p := testPolicy()
	p.Window, p.PerSecond = time.Minute, 1
	if err := b.SetPolicy(p); err != nil {
		t.Fatal(err)
	}
	take := func(qp uint32, want Outcome) {
		t.Helper()
		if got, _, err := b.Take(0, here4, qp); got != want || err != nil {
			t.Errorf("QP %d: %d, %v; want %d", qp, got, err, want)
		}
	}
	take(1, Translated)
	take(2, Translated)
	take(1, Paced) // and is not the longest idle one any more
	take(3, Translated)
	take(1, Paced)
	take(2, Translated) // its place was given to 3, and this one is 3's
	take(1, Paced)
	take(3, Translated)
	if n := len(b.answers.paces); n != 2 || b.answers.idle.Len() != 2 {
		t.Errorf("%d places, %d idle", n, b.answers.idle.Len())
	}
}

// A Source QP whose place could not be cleared must not go on from what was used there before.
func TestAPacingPlaceThatCouldNotBeClearedIsNobodys(t *testing.T) {
	b := newBench(t, Config{MaxAnswers: 1}, true)
	for qp := range uint32(2) {
		if _, _, err := b.Take(0, here4, qp); err != nil {
			t.Fatal(err)
		}
	}
	a := b.answers
	broken := *a.maps
	closed, err := a.maps.Paces.Clone()
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	broken.Paces = closed
	good := a.maps
	a.maps = &broken
	_, _, err = b.Take(0, here4, 9)
	a.maps = good
	if err == nil {
		t.Fatal("no error")
	}
	if a.paces[sourceQP{0, here4, 9}] != nil || a.paces[sourceQP{0, here4, 0}] == nil || len(a.paces) != 2 || a.idle.Len() != 2 {
		t.Errorf("places %v, %d idle", a.paces, a.idle.Len())
	}
}

// processors: each counts for itself which decision is one of the sample.
var processors = uint64(runtime.NumCPU())

// With each decision recorded, what there is no room for goes to user space; of a sample the record is lost.
func TestDecisionsWithoutRoomForTheirRecord(t *testing.T) {
	for _, tt := range []struct {
		name        string
		recordOneIn int
	}{{"each", 1}, {"a sample", 2}} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, Config{RingSize: os.Getpagesize()}, true)
			p := testPolicy()
			p.RecordOneIn = tt.recordOneIn
			if err := errors.Join(b.SetPolicy(p), putFlow(b.Translator, 1)); err != nil {
				t.Fatal(err)
			}
			const sent = 100 // more than twice the ring
			actions := map[uint32]uint64{}
			for range sent {
				actions[b.notify(t, 1)]++
			}
			c := b.counters(t)
			decided := c.Outcomes[Translated] + c.Outcomes[Paced]
			events, err := b.read(time.Now(), func(*Event) {})
			if err != nil || events == 0 {
				t.Fatalf("%d events, %v", events, err)
			}
			if tt.recordOneIn == 1 {
				if decided != uint64(events) || c.Up[UpRing] != sent-decided || c.Up[UpRing] == 0 || actions[xdpPass] != c.Up[UpRing] || c.Lost != 0 {
					t.Errorf("%d events of %d decisions; counters %+v, actions %v", events, decided, c, actions)
				}
			} else if due := c.Lost + uint64(events); decided != sent || c.Up != [reasons]uint64{} || c.Lost == 0 || due < sent/2 || due > sent/2+processors {
				t.Errorf("%d events of %d decisions; counters %+v, actions %v", events, decided, c, actions)
			}
			for range processors + 1 { // two on one of them, at least
				b.notify(t, 1)
			}
			if n, err := b.read(time.Now(), func(*Event) {}); err != nil || n == 0 {
				t.Errorf("with room again: %d events, %v", n, err)
			}
		})
	}
}
