package qdisc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Bounds of Config.Interval.
const (
	MinInterval = time.Millisecond
	MaxInterval = time.Minute
)

// Config describes the poller of one link.
type Config struct {
	Interface string
	Interval  time.Duration // MinInterval to MaxInterval
	Backlog   uint32        // so many octets in a discipline are congestion; 0: marks alone are
	Counters  *Counters     // goes on counting there; nil: in counts of its own
}

// Errors of Open and Run, matched with errors.Is.
var (
	ErrNoInterface   = errors.New("no such interface")
	ErrInterfaceGone = errors.New("interface is gone")
)

// Counters count what pollers of a link did, one after the other.
type Counters struct {
	Polls     atomic.Uint64 // looks at the statistics
	Congested atomic.Uint64 // of them, those that found the queue congested
	Failed    atomic.Uint64 // of them, those that the kernel did not answer, or not in one piece; the next one makes up for it
	Marks     atomic.Uint64 // packets that the disciplines marked CE meanwhile
}

// Poller looks at the queueing disciplines of one link. Its socket belongs to the network namespace of the thread that
// called Open; Run and the other methods work from any.
type Poller struct {
	name     string
	ifIndex  int
	interval time.Duration
	socket   *nl.SocketHandle
	watch    watch // Run's own
	counters *Counters

	mu       sync.Mutex
	kinds    []string // as the last look found them
	counting bool     // one of them counts its marks
	failed   error    // of the last look
}

// Open opens the socket and takes a first look. Errors wrap ErrNoInterface, or name the field of c that is out of range.
func Open(c Config) (*Poller, error) {
	if c.Interval < MinInterval || c.Interval > MaxInterval {
		return nil, fmt.Errorf("%s: interval %v: not within %v to %v", c.Interface, c.Interval, MinInterval, MaxInterval)
	}
	ifc, err := net.InterfaceByName(c.Interface)
	if failed := (*os.SyscallError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: look up the interface: %w", c.Interface, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: create it, or correct its name in the configuration", c.Interface, ErrNoInterface)
	}
	s, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE) // in the thread's own namespace
	if err != nil {
		return nil, fmt.Errorf("%s: netlink socket: %w", c.Interface, err)
	}
	p := &Poller{name: c.Interface, ifIndex: ifc.Index, interval: c.Interval, socket: &nl.SocketHandle{Socket: s}, watch: watch{backlog: c.Backlog}, counters: c.Counters}
	if p.counters == nil {
		p.counters = new(Counters)
	}
	err = errors.Join(s.SetSendTimeout(&nl.SocketTimeoutTv), s.SetReceiveTimeout(&nl.SocketTimeoutTv))
	if err == nil {
		_, _, err = p.look()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Run calls fn for each look that finds the queue congested, until ctx ends (nil) or the interface is gone
// (ErrInterfaceGone).
func (p *Poller) Run(ctx context.Context, fn func(Congestion)) error {
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		switch c, congested, err := p.look(); {
		case errors.Is(err, ErrInterfaceGone):
			return err
		case congested:
			fn(c)
		}
	}
}

// look reads the statistics and takes the next step.
func (p *Poller) look() (c Congestion, congested bool, err error) {
	all, err := p.read()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counters.Polls.Add(1)
	if p.failed = err; err != nil {
		p.counters.Failed.Add(1)
		return c, false, err
	}
	c, congested = p.watch.step(all)
	p.counters.Marks.Add(c.Marks)
	if congested {
		p.counters.Congested.Add(1)
	}
	p.kinds, p.counting = p.kinds[:0], false
	for i := range all {
		p.counting = p.counting || all[i].CountsMarks
		if !slices.Contains(p.kinds, all[i].Kind) {
			p.kinds = append(p.kinds, all[i].Kind)
		}
	}
	return c, congested, nil
}

// read asks for the disciplines of the link. The kernel lists those of all links: the answer to a question about one has
// its root only.
func (p *Poller) read() (out []Stats, err error) {
	msgs, err := p.ask(unix.NLM_F_DUMP, 0)
	for n := 0; n < 3 && errors.Is(err, netlink.ErrDumpInterrupted); n++ { // some link's changed meanwhile
		msgs, err = p.ask(unix.NLM_F_DUMP, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("qdisc: %s: %w", p.name, err)
	}
	for _, m := range msgs {
		index, s, err := parse(m)
		if err != nil {
			return nil, fmt.Errorf("qdisc: %s: %w", p.name, err)
		}
		if index == p.ifIndex {
			out = append(out, s)
		}
	}
	if len(out) == 0 { // as of a link that is down, or not there
		if _, err := p.ask(0, netlink.HANDLE_ROOT); errors.Is(err, unix.ENODEV) {
			return nil, fmt.Errorf("qdisc: %s: %w", p.name, ErrInterfaceGone)
		}
	}
	return out, nil
}

func (p *Poller) ask(flags int, parent uint32) ([][]byte, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETQDISC, flags)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: p.socket}
	req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(p.ifIndex), Parent: parent})
	return req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
}

// Kinds names the disciplines of the link as the last look found them.
func (p *Poller) Kinds() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.kinds, ", ")
}

// Check says why the poller finds nothing although it runs: the last look failed, or there is nothing to look at.
func (p *Poller) Check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.failed != nil:
		return p.failed
	case p.watch.backlog == 0 && !p.counting:
		return fmt.Errorf("qdisc: %s: none of its queueing disciplines (%s) counts marks: give a backlog", p.name, strings.Join(p.kinds, ", "))
	}
	return nil
}

// Close closes the socket; Run must have ended.
func (p *Poller) Close() error {
	p.socket.Close()
	return nil
}
