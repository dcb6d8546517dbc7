package ospfapi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/ospf/ospfapi/learner"
	"pncd/igp/ospf/packet"
)

// Config is one client.
type Config struct {
	// Router is where ospfd is: loopback when it is not set, else an address that the configuration names.
	Router netip.Addr
	Port   uint16 // 0: DefaultPort
	// Local is the own address that the router reaches this host by. It is needed when the router is not on
	// loopback; then it is listened on for a moment while a connection is made.
	Local   netip.Addr
	Learner learner.Config
	Connect backoff.Config // of the attempts to connect; zero: 1 s after the first, 10 s at most
	// Suspect is how long no attempt is made when the daemon has ended three connections, one after the other, in
	// place of an answer: it may be a release that crashes at what is asked. Each further one doubles it, up to
	// an hour; 0: a minute.
	Suspect time.Duration

	// Dial connects; nil is Dial of this package. Tests dial in another namespace.
	Dial func(context.Context, Endpoints, []uint64) (*Link, error)
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// WithDefaults gives the configuration with the defaults in place of what is zero.
func (c Config) WithDefaults() Config {
	if !c.Router.IsValid() {
		c.Router = loopback
	}
	if c.Port == 0 {
		c.Port = DefaultPort
	}
	if !c.Local.IsValid() && c.Router.IsLoopback() {
		c.Local = c.Router
	}
	if c.Connect == (backoff.Config{}) {
		c.Connect = backoff.Config{Second: time.Second, Max: 10 * time.Second}
	}
	if c.Suspect == 0 {
		c.Suspect = time.Minute
	}
	if c.Dial == nil {
		c.Dial = Dial
	}
	c.Learner = c.Learner.WithDefaults()
	if !c.Router.IsLoopback() && !slices.Contains(c.Learner.Addresses, c.Router) {
		c.Learner.Addresses = append(slices.Clone(c.Learner.Addresses), c.Router)
	}
	return c
}

// Check says what is wrong with a configuration, naming the field.
func (c Config) Check() error {
	c = c.WithDefaults()
	switch {
	case !c.Router.Is4():
		return errors.New("ospf api: router: must be an IPv4 address")
	case !c.Local.IsValid():
		return errors.New("ospf api: local: must be set when the router is not on loopback")
	case !c.Local.Is4() || c.Local.IsUnspecified() || c.Local.IsMulticast():
		return errors.New("ospf api: local: must be an own IPv4 address")
	case c.Router.IsLoopback() != c.Local.IsLoopback():
		return errors.New("ospf api: local: must be on loopback exactly when the router is")
	}
	if c.Suspect < 0 {
		return fmt.Errorf("ospf api: suspect: %s, must not be below zero", c.Suspect)
	}
	if err := c.Connect.Check(); err != nil {
		return fmt.Errorf("ospf api: connect: %w", err)
	}
	return c.Learner.Check()
}

// ErrStopped is what a question gets when nobody is there to answer.
var ErrStopped = errors.New("ospf api: the client doesn't run")

// Client keeps a connection with ospfd and runs a learner. Its methods are safe for concurrent use, and answer
// only while Run runs.
type Client struct {
	cfg     Config
	log     logrus.FieldLogger
	machine *learner.Machine
	learn   func([]igp.Learned)

	do   chan func(now time.Time)
	done chan struct{} // closed when Run has returned

	link   *running
	avoid  []uint64 // listening sockets not to call
	pace   backoff.State
	dialed chan dialed
	dialer sync.WaitGroup
	last   error // why there is no connection
	broken int   // connections, one after the other, that the daemon ended in place of an answer
}

type dialed struct {
	link *Link
	err  error
}

// NewClient makes a client; learn is told, from the goroutine of Run, what was learned.
func NewClient(c Config, learn func([]igp.Learned), log logrus.FieldLogger) (*Client, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	m, err := learner.New(c.Learner)
	if err != nil {
		return nil, err
	}
	return &Client{
		cfg: c, log: log.WithField("router", c.Router.String()), machine: m, learn: learn,
		do: make(chan func(time.Time)), done: make(chan struct{}), dialed: make(chan dialed, 1),
	}, nil
}

// Run reads ospfd's database until ctx ends. It is called once.
func (c *Client) Run(ctx context.Context) error {
	defer close(c.done)
	dialCtx, cancel := context.WithCancel(ctx)
	defer c.leave()
	defer cancel()
	timer := time.NewTimer(0) // the first attempt
	defer timer.Stop()
	connectAt, dialing := time.Now(), false
	for {
		var events <-chan event
		var ended <-chan error
		if c.link != nil {
			events, ended = c.link.events, c.link.ended
		}
		select {
		case <-ctx.Done():
			return nil
		case f := <-c.do:
			f(time.Now())
		case d := <-c.dialed:
			dialing = false
			c.connected(d)
		case e := <-events:
			c.receive(e)
		case err := <-ended:
			c.lost(err)
		case <-timer.C:
		}
		now := time.Now()
		c.step(now)
		switch {
		case c.link != nil || dialing:
			connectAt = time.Time{}
		case connectAt.IsZero():
			connectAt = c.pace.Next(now, c.cfg.Connect)
			if rest := now.Add(c.rest()); rest.After(connectAt) {
				connectAt = rest
			}
			fallthrough
		default:
			if !connectAt.After(now) {
				dialing = true
				c.pace.Ran(now, c.cfg.Connect)
				c.dial(dialCtx)
			}
		}
		timer.Reset(c.wait(connectAt, dialing))
	}
}

// suspicious is how many connections the daemon may end early before it is left alone.
const suspicious = 3

// longestRest bounds how long it is left alone.
const longestRest = time.Hour

// rest is how long the daemon is left alone.
func (c *Client) rest() time.Duration {
	if c.broken < suspicious {
		return 0
	}
	return min(c.cfg.Suspect<<min(c.broken-suspicious, 10), longestRest)
}

// wait is how long nothing is to be done.
func (c *Client) wait(connectAt time.Time, dialing bool) time.Duration {
	next := time.Hour
	if at := c.machine.Wake(); !at.IsZero() {
		next = time.Until(at)
	}
	if !connectAt.IsZero() && !dialing {
		next = min(next, time.Until(connectAt))
	}
	return max(next, 0)
}

func (c *Client) dial(ctx context.Context) {
	avoid := c.avoid
	c.dialer.Go(func() {
		l, err := c.cfg.Dial(ctx, Endpoints{Router: netip.AddrPortFrom(c.cfg.Router, c.cfg.Port), Local: c.cfg.Local}, avoid)
		c.dialed <- dialed{l, err}
	})
}

// connected takes what an attempt gave.
func (c *Client) connected(d dialed) {
	if d.err != nil {
		if c.last == nil || c.last.Error() != d.err.Error() {
			c.log.WithError(d.err).Warn("ospf api: no connection")
		}
		c.last = d.err
		return
	}
	c.link, c.last, c.avoid = run(d.link), nil, nil
	c.machine.Connected(time.Now(), rand.Uint32(), d.link.addresses)
}

// receive takes a message and those that wait behind it, so that a burst is one step.
func (c *Client) receive(e event) {
	for taken := 1; ; taken++ {
		if err := c.take(e); err != nil {
			c.drop(err)
			return
		}
		if taken == queueLen { // timers have their turn, too
			return
		}
		select {
		case e = <-c.link.events:
		default:
			return
		}
	}
}

func (c *Client) take(e event) error {
	switch {
	case e.err != nil:
		c.machine.Unreadable()
		c.log.WithError(e.err).Debug("ospf api: message not read")
		return nil
	case e.news:
		return c.machine.Notify(time.Now(), e.message)
	}
	return c.machine.Reply(time.Now(), e.message)
}

// step lets the machine do what is due.
func (c *Client) step(now time.Time) {
	out, err := c.machine.Tick(now)
	for _, o := range out {
		err = errors.Join(err, c.link.send(o.Message()))
	}
	if err != nil {
		c.drop(err)
	}
	if l := c.machine.Learned(); len(l) > 0 && c.learn != nil {
		c.learn(l)
	}
}

// lost says that a reader has ended. What the daemon said before still counts.
func (c *Client) lost(err error) {
	if peerClosed(err) {
		c.avoid = c.link.listeners
		switch owed := c.machine.Owed(); {
		case c.machine.State() == learner.Synced:
			c.broken = 0
		case owed:
			c.broken++
		}
		if c.rest() > 0 {
			c.log.Errorf("ospf api: the daemon has ended %d connections in place of an answer; the next attempt is in %s", c.broken, c.rest())
		}
	}
	for len(c.link.events) > 0 {
		if terr := c.take(<-c.link.events); terr != nil {
			break
		}
	}
	c.drop(err)
}

// drop ends the connection.
func (c *Client) drop(err error) {
	if c.link == nil {
		return
	}
	c.log.WithError(err).Warn("ospf api: the connection is lost")
	c.last = err
	c.link.stop()
	c.link = nil
	c.machine.Disconnected(time.Now())
}

// leave ends everything that runs.
func (c *Client) leave() {
	c.dialer.Wait()
	select {
	case d := <-c.dialed:
		if d.link != nil {
			d.link.close()
		}
	default:
	}
	if c.link != nil {
		c.link.stop()
	}
}

// ask runs f in the goroutine of Run.
func (c *Client) ask(ctx context.Context, f func(now time.Time)) error {
	finished := make(chan struct{})
	select {
	case c.do <- func(now time.Time) { defer close(finished); f(now) }:
		<-finished
		return nil
	case <-c.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Status is what an operator asks for.
type Status struct {
	learner.Status
	Router netip.Addr
	Error  error // why there is no connection, or the last one ended
}

// Status reads the state.
func (c *Client) Status(ctx context.Context) (st Status, err error) {
	err = c.ask(ctx, func(time.Time) { st = Status{Status: c.machine.Status(), Router: c.cfg.Router, Error: c.last} })
	return st, err
}

// Replay tells everything that is known once more.
func (c *Client) Replay(ctx context.Context) error {
	return c.ask(ctx, func(time.Time) { c.machine.Replay() })
}

// Database reads the mirror of an area, in the order of the LSAs' keys. The LSAs must not be changed.
func (c *Client) Database(ctx context.Context, area packet.ID) (list []learner.LSAStatus, err error) {
	err = c.ask(ctx, func(now time.Time) { list = c.machine.LSAs(now, area) })
	return list, err
}
