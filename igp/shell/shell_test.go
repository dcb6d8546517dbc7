package shell

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logs "github.com/sirupsen/logrus/hooks/test"

	"pncd/igp"
)

// frame is what the tests send: a link and a number.
type frame struct {
	link string
	n    int
}

// machine notes what it is told. It is used in the goroutine of Run, and by tests when that waits.
type machine struct {
	ads      [][]igp.Advertisement
	received []int
	ticks    []time.Time
	toSend   []frame
	wake     time.Time
	learned  []igp.Learned
	stopped  time.Time
	stopErr  error
	purged   bool
	inStep   []int // how many frames each Tick found
	taken    int

	onReceive, onTick, onStop func() // nil: nothing more
}

func (m *machine) Receive(_ time.Time, f frame) {
	m.received, m.taken = append(m.received, f.n), m.taken+1
	call(m.onReceive)
}

func call(f func()) {
	if f != nil {
		f()
	}
}

func (m *machine) Advertise(_ time.Time, ads []igp.Advertisement) { m.ads = append(m.ads, ads) }
func (m *machine) Wake() time.Time                                { return m.wake }
func (m *machine) Purged() bool                                   { return m.purged }

func (m *machine) Tick(now time.Time) (out []frame) {
	if !m.wake.IsZero() && !now.Before(m.wake) {
		m.wake = time.Time{}
	}
	m.ticks, m.inStep, m.taken = append(m.ticks, now), append(m.inStep, m.taken), 0
	call(m.onTick)
	out, m.toSend = m.toSend, nil
	return out
}

func (m *machine) Learned() (l []igp.Learned) {
	l, m.learned = m.learned, nil
	return l
}

func (m *machine) Stop(now time.Time) error {
	m.stopped = now
	call(m.onStop)
	return m.stopErr
}

// sock is a socket whose frames the test makes.
type sock struct {
	in      chan frame
	sent    []int
	sendErr error
	readErr chan error
	dropped uint64 // by the kernel, not told yet
	closed  chan struct{}
}

func newSock() *sock {
	return &sock{in: make(chan frame), readErr: make(chan error), closed: make(chan struct{})}
}

func (s *sock) Receive([]byte) (frame, error) {
	select {
	case f := <-s.in:
		return f, nil
	case err := <-s.readErr:
		return frame{}, err
	case <-s.closed:
		return frame{}, ErrClosed
	}
}

func (s *sock) Send(f frame) error {
	if s.sendErr == nil {
		s.sent = append(s.sent, f.n)
	}
	return s.sendErr
}

func (s *sock) Lost() (n uint64) {
	n, s.dropped = s.dropped, 0
	return n
}

func (s *sock) Close() { close(s.closed) }

// bed is a shell with a fake machine, in a bubble, where the clock goes on only when all wait.
type bed struct {
	*testing.T
	*Shell[frame]
	m       *machine
	learned []igp.Learned
	log     *logs.Hook
	stop    context.CancelFunc
	ended   chan struct{}
}

// inBubble gives a bed whose Run the test starts, or not.
func inBubble(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log, hook := logs.NewNullLogger()
		log.SetLevel(logrus.DebugLevel)
		b := &bed{T: t, m: &machine{}, log: hook, stop: func() {}, ended: make(chan struct{})}
		b.Shell = New(Config[frame]{
			Protocol: "test", LinkWord: "wire", StopTimeout: 3 * time.Second, Machine: b.m, Log: log, LinkOf: func(f frame) string { return f.link },
			Learn: func(l []igp.Learned) { b.learned = append(b.learned, l...) },
		})
		test(t, b)
	})
}

// running gives a bed that runs, and ends it when the test has not.
func running(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	inBubble(t, func(t *testing.T, b *bed) {
		b.start()
		test(t, b)
		b.stop()
		<-b.ended
	})
}

func (b *bed) start() {
	ctx, cancel := context.WithCancel(context.Background())
	b.stop = cancel
	go func() {
		defer close(b.ended)
		if err := b.Shell.Run(ctx); err != nil {
			b.Errorf("Run: %v", err)
		}
	}()
	synctest.Wait()
}

// ask runs f in the goroutine of Run, and waits until that waits.
func (b *bed) ask(f func(now time.Time)) {
	b.Helper()
	if err := b.Ask(b.Context(), f); err != nil {
		b.Fatalf("Ask: %v", err)
	}
	synctest.Wait()
}

// open gives a link a socket.
func (b *bed) open(name string) *sock {
	b.Helper()
	s := newSock()
	b.ask(func(time.Time) { b.OpenLink(name, s) })
	return s
}

func ads(prefix string) []igp.Advertisement {
	return []igp.Advertisement{{Prefix: netip.MustParsePrefix(prefix)}}
}

func TestTheLastAdvertisementBeforeRunIsTaken(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.Advertise(ads("10.0.0.0/24"))
		b.Advertise(ads("10.0.1.0/24"))
		b.start()
		if len(b.m.ads) != 1 || !slices.Equal(b.m.ads[0], ads("10.0.1.0/24")) {
			t.Errorf("the machine was told %v", b.m.ads)
		}
		b.Advertise(nil)
		synctest.Wait()
		if len(b.m.ads) != 2 || b.m.ads[1] != nil {
			t.Errorf("the machine was told %v", b.m.ads)
		}
		b.stop()
		<-b.ended
	})
}

func TestAQuestionIsAnsweredOnlyWhileRunRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		no := func(time.Time) { t.Error("the question was answered") }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.Ask(ctx, no); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before Run: %v", err)
		}
		b.start()
		answered := false
		b.ask(func(now time.Time) { answered = now.Equal(time.Now()) })
		if !answered {
			t.Error("not answered, or at another time")
		}
		b.m.purged = true
		b.stop()
		<-b.ended
		if err := b.Ask(t.Context(), no); !errors.Is(err, ErrStopped) || err.Error() != "test: the speaker doesn't run" {
			t.Errorf("after Run: %v", err)
		}
	})
}

func TestFramesThatWaitAreOneStep(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		s := b.open("a")
		b.ask(func(time.Time) {
			b.m.inStep = nil
			for n := range 3 { // while the goroutine of Run is here
				s.in <- frame{"a", n}
			}
			synctest.Wait() // the reader has queued them
		})
		if !slices.Equal(b.m.received, []int{0, 1, 2}) || !slices.Equal(b.m.inStep, []int{0, 3}) {
			t.Errorf("received %d, %d in the steps", b.m.received, b.m.inStep)
		}
	})
}

func TestABurstLeavesTimersTheirTurn(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		first := true
		b.m.onReceive = func() {
			if first || len(b.frames) < queueLen-1 { // more come than are taken, until the first step
				b.frames <- frame{"a", 0}
			}
			first = false
		}
		b.m.onTick = func() { b.m.onReceive = nil }
		b.frames <- frame{"a", 0}
		synctest.Wait()
		if i := slices.IndexFunc(b.m.inStep, func(n int) bool { return n > 0 }); i < 0 || b.m.inStep[i] != queueLen {
			t.Errorf("%d frames in the steps, want at most %d", b.m.inStep, queueLen)
		}
	})
}

func TestFramesBeyondTheQueueAreCountedWithThoseOfTheKernel(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		a, other := b.open("a"), b.open("b")
		b.ask(func(time.Time) {
			for n := range queueLen + 3 {
				a.in <- frame{"a", n}
			}
			synctest.Wait() // the reader has taken them all
		})
		if b.Overflow() != 3 || len(b.m.received) != queueLen {
			t.Errorf("%d lost, %d received", b.Overflow(), len(b.m.received))
		}
		a.dropped, other.dropped = 5, 7
		b.ask(func(time.Time) { b.CountLost() })
		if b.Overflow() != 15 {
			t.Errorf("%d lost", b.Overflow())
		}
		b.ask(func(time.Time) { b.CountLost() })
		a.dropped = 11 // told when the link closes
		b.ask(func(time.Time) { b.CloseLink("a") })
		if b.Overflow() != 26 {
			t.Errorf("%d lost", b.Overflow())
		}
	})
}

func TestFramesAreSentOnTheirLink(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		a, bad := b.open("a"), b.open("b")
		bad.sendErr = errors.New("the cable is cut")
		b.ask(func(time.Time) { b.m.toSend = []frame{{"a", 1}, {"b", 2}, {"no such link", 3}, {"a", 4}} })
		if !slices.Equal(a.sent, []int{1, 4}) || b.SendErrors() != 1 {
			t.Errorf("sent %d, %d errors", a.sent, b.SendErrors())
		}
		if e := b.log.LastEntry(); e == nil || e.Message != "test: frame not sent" || e.Data["wire"] != "b" {
			t.Errorf("logged %+v", e)
		}
	})
}

func TestTheMachineIsWokenWhenItWants(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		at := time.Now().Add(7 * time.Second)
		b.ask(func(time.Time) { b.m.wake, b.m.ticks = at, nil })
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if n := len(b.m.ticks); n != 2 || !b.m.ticks[1].Equal(at) { // the first is that of the question
			t.Errorf("ticks at %v, want one at %v", b.m.ticks, at)
		}
	})
}

func TestWhatIsLearnedIsTold(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		b.ask(func(time.Time) { b.m.learned = []igp.Learned{{Originator: "one"}, {Originator: "two"}} })
		if len(b.learned) != 2 || b.learned[1].Originator != "two" {
			t.Errorf("told %v", b.learned)
		}
	})
}

func TestACleanStopWaitsForThePurges(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		s := b.open("a")
		began := time.Now()
		b.m.stopErr = errors.New("one is left")
		b.m.onStop = func() { b.m.toSend = []frame{{"a", 1}} }
		b.stop()
		synctest.Wait()
		if !b.m.stopped.Equal(began) || !slices.Equal(s.sent, []int{1}) {
			t.Errorf("stopped at %v, sent %d", b.m.stopped, s.sent)
		}
		if e := b.log.LastEntry(); e == nil || e.Message != "test: not everything was purged" {
			t.Errorf("logged %+v", e)
		}
		time.Sleep(time.Second)
		b.m.onReceive = func() { b.m.purged = true }
		s.in <- frame{"a", 1} // the acknowledgement
		<-b.ended
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		<-s.closed
	})
}

func TestACleanStopDoesNotWaitForever(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		s := b.open("a")
		began := time.Now()
		b.stop()
		<-b.ended
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		if e := b.log.LastEntry(); e == nil || e.Message != "test: not every neighbour acknowledged the purges" {
			t.Errorf("logged %+v", e)
		}
		<-s.closed
	})
}

func TestLinksOpenAndClose(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		a, other := b.open("a"), b.open("b")
		b.ask(func(time.Time) {
			b.CloseLinks(func(name string) bool { return name == "a" })
			b.CloseLink("never opened")
			if b.HasLink("a") || !b.HasLink("b") {
				t.Errorf("links %v", b.links)
			}
		})
		<-a.closed
		select {
		case <-other.closed:
			t.Error("the other link is closed, too")
		default:
		}
		if e := b.log.LastEntry(); e != nil {
			t.Errorf("a link that is closed is no error: %+v", e)
		}
		again := b.open("a")
		again.in <- frame{"a", 9}
		synctest.Wait()
		if !slices.Equal(b.m.received, []int{9}) {
			t.Errorf("received %d", b.m.received)
		}
	})
}

func TestALinkThatCannotBeReadIsLogged(t *testing.T) {
	running(t, func(t *testing.T, b *bed) {
		s := b.open("a")
		s.readErr <- errors.New("the cable burns")
		synctest.Wait()
		if e := b.log.LastEntry(); e == nil || e.Message != "test: the wire can't be read any more" || e.Data["wire"] != "a" || e.Level != logrus.ErrorLevel {
			t.Errorf("logged %+v", e)
		}
	})
}
