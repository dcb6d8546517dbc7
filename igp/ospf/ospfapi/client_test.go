package ospfapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pncd/igp/ospf/ospfapi/learner"
	"pncd/igp/ospf/ospfapi/message"
	"pncd/internal/testwait"
)

func TestTheDatabaseIsReadAgainAfterARestart(t *testing.T) {
	d := startDaemon(t, 0, someLSA(t, 1), someLSA(t, 2))
	c := client(t, d.at, nil)
	becomes(t, c, learner.Synced, 2)
	d.stop()
	becomes(t, c, learner.Down, 2)
	startDaemon(t, d.at.Port(), someLSA(t, 1))
	becomes(t, c, learner.Synced, 1)
}

func TestADaemonThatIsNotThereIsWaitedFor(t *testing.T) {
	d := startDaemon(t, 0)
	d.stop()
	c := client(t, d.at, nil)
	testwait.Until(t, "the connection to be refused", func() bool {
		st, err := c.Status(context.Background())
		return err == nil && st.Error != nil && strings.Contains(st.Error.Error(), "connection refused")
	})
	startDaemon(t, d.at.Port(), someLSA(t, 1))
	becomes(t, c, learner.Synced, 1)
}

func TestADaemonThatHungUpIsNotCalledAgain(t *testing.T) {
	d := startDaemon(t, 0, someLSA(t, 1))
	dials := make(chan struct{}, 1000)
	c := client(t, d.at, func(c *Config) {
		c.Dial = func(ctx context.Context, e Endpoints, avoid []uint64) (*Link, error) {
			defer func() { dials <- struct{}{} }()
			return Dial(ctx, e, avoid)
		}
	})
	becomes(t, c, learner.Synced, 1)
	d.hangUp()
	becomes(t, c, learner.Down, 1)
	for range 5 {
		<-dials
	}
	if st, err := c.Status(context.Background()); err != nil || !errors.Is(st.Error, ErrEnded) {
		t.Errorf("%v, %v", st.Error, err)
	}
	if n := d.calls(); n != 1 {
		t.Errorf("called %d times", n)
	}
	d.stop()
	startDaemon(t, d.at.Port())
	becomes(t, c, learner.Synced, 0)
}

func TestOnlyTheRouterMayConnectBack(t *testing.T) {
	d := startDaemon(t, 0, someLSA(t, 1))
	d.mu.Lock()
	d.stranger = loopback
	d.mu.Unlock()
	c := client(t, d.at, nil)
	becomes(t, c, learner.Synced, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.refused {
		t.Error("a stranger was not refused")
	}
}

func TestOnlyOneMayConnectBack(t *testing.T) {
	d := startDaemon(t, 0)
	l, err := Dial(context.Background(), Endpoints{Router: d.at, Local: itsAddress}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	second, err := net.Dial("tcp4", l.news.LocalAddr().String())
	if err == nil {
		second.Close()
		t.Error("it is still listened on")
	}
	if a := l.news.LocalAddr().(*net.TCPAddr); !a.IP.IsLoopback() {
		t.Errorf("listened at %s", a)
	}
}

func TestADaemonThatDoesNotConnectBackIsLeftWhenTheContextEnds(t *testing.T) {
	silent, err := net.Listen("tcp4", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if c, err := silent.Accept(); err == nil {
			cancel()
			defer c.Close()
			_, _ = c.Read(make([]byte, 1)) // until the other end closes
		}
	}()
	_, err = Dial(ctx, Endpoints{Router: silent.Addr().(*net.TCPAddr).AddrPort(), Local: itsAddress}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNoMessageEndsTheConnectionAndABadBodyDoesNot(t *testing.T) {
	d := startDaemon(t, 0, someLSA(t, 1))
	d.mu.Lock()
	d.unwelcome = []byte{message.Version, uint8(message.TypeReachable), 0, 1, 0, 0, 0, 0, 9}
	d.mu.Unlock()
	c := client(t, d.at, nil)
	testwait.Until(t, "a bad body to be counted", func() bool {
		st, err := c.Status(context.Background())
		return err == nil && st.State == learner.Synced && st.Counters.Dropped[learner.Unreadable] == 1
	})
	d.stop()
	next := startDaemon(t, d.at.Port(), someLSA(t, 1))
	next.mu.Lock()
	next.unwelcome = []byte{message.Version + 1, 0, 0, 0, 0, 0, 0, 0}
	next.mu.Unlock()
	testwait.Until(t, "another version to end the connection again and again", func() bool { return next.calls() > 3 })
}

func TestAReaderThatNobodyListensToEnds(t *testing.T) {
	news, there := net.Pipe()
	requests, other := net.Pipe()
	defer other.Close()
	r := run(&Link{requests: requests, news: news})
	defer r.stop()
	b, err := message.Message{Body: message.RouterID{ID: 1}}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer there.Close()
		for range queueLen + 2 {
			if _, err := there.Write(b); err != nil {
				return
			}
		}
	}()
	err = <-r.ended
	// The daemon is free again although nobody takes the messages.
	if _, rerr := other.Read(make([]byte, 1)); rerr != io.EOF {
		t.Errorf("read at the other end: %v", rerr)
	}
	if !errors.Is(err, errStalled) && !peerClosed(err) {
		t.Errorf("got %v", err)
	} else if len(r.events) != queueLen {
		t.Errorf("%d messages wait", len(r.events))
	} else if peerClosed(err) {
		t.Error("the reader waited for longer than it may")
	}
}

func TestADaemonThatEndsWhenItIsAskedIsLeftAlone(t *testing.T) {
	const rest = 300 * time.Millisecond
	begin := func(port uint16) *daemon {
		d := startDaemon(t, port, someLSA(t, 1))
		d.mu.Lock()
		d.fragile = true
		d.mu.Unlock()
		return d
	}
	d := begin(0)
	c := client(t, d.at, func(c *Config) { c.Suspect = rest })
	for n := 1; ; n++ {
		testwait.Until(t, "it to be called", func() bool { return d.calls() == 1 })
		d.work.Wait()
		if n == suspicious {
			break
		}
		d = begin(d.at.Port())
	}
	ended := time.Now()
	d = startDaemon(t, d.at.Port(), someLSA(t, 1)) // another release, at last
	becomes(t, c, learner.Synced, 1)
	if took := time.Since(ended); took < rest/2 {
		t.Errorf("called again after %s", took)
	}
}

func TestConfigErrorsNameTheField(t *testing.T) {
	for want, c := range map[string]Config{
		"router: must be an IPv4 address":                              {Router: netip.MustParseAddr("::1")},
		"local: must be set when the router is not on loopback":        {Router: netip.MustParseAddr("192.0.2.1")},
		"local: must be an own IPv4 address":                           {Router: netip.MustParseAddr("192.0.2.1"), Local: netip.IPv4Unspecified()},
		"local: must be on loopback exactly when the router is":        {Local: netip.MustParseAddr("192.0.2.2")},
		"local: must be on loopback exactly when the router is, again": {Router: netip.MustParseAddr("192.0.2.1"), Local: loopback},
		"suspect: -1s": {Suspect: -time.Second},
		"hold: -1s":    {Learner: learner.Config{Hold: -time.Second}},
	} {
		want, _, _ = strings.Cut(want, ", again")
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := (Config{}).Check(); err != nil {
		t.Errorf("the zero configuration: %v", err)
	}
	if c := (Config{}).WithDefaults(); !c.Router.IsLoopback() || !c.Local.IsLoopback() || c.Port != 2607 {
		t.Errorf("%+v", c)
	}
}

func TestQuestionsEndWithTheClient(t *testing.T) {
	c, err := NewClient(Config{Router: itsAddress, Port: 1}, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(context.Background()); !errors.Is(err, ErrStopped) {
		t.Errorf("got %v", err)
	}
}
