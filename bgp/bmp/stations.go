package bmp

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// Station is who is told.
type Station struct {
	Address    netip.AddrPort
	Statistics time.Duration // between reports (RFC 7854 section 4.8), whole seconds; 0: none
}

// Status is what is known about a station. The counters are since it was configured.
type Status struct {
	Station
	Connected bool      // what happens is being passed on
	Since     time.Time // of the connection; zero without
	LastError string    // why the last connection ended or couldn't be made

	Connects uint64 // connections that were made
	Messages uint64 // passed on
	Dropped  uint64 // not passed on: about a neighbour that isn't known, or of an unknown type
	Broken   uint64 // connections ended by a message that broke the framing
	Slow     uint64 // connections ended because the station didn't read fast enough
}

// Source is the speaker.
type Source interface {
	// Open has the speaker connect to a port of 127.0.0.1 and report there, with a name as sysName.
	Open(ctx context.Context, port uint16, name string, statistics time.Duration) error
	// Close takes that back. It doesn't wait for the connection's end.
	Close(port uint16) error
}

// Config is what Stations need to know.
type Config struct {
	Source      Source
	Lookup      Lookup
	Name, Descr string // sysName and sysDescr (RFC 1213)
	Log         logrus.FieldLogger

	limits limits // zero fields: the defaults
}

// limits bound time and memory of a station.
type limits struct {
	dial, write       time.Duration
	behind            time.Duration // how long a station may be behind what happens
	last              time.Duration // for the Termination message
	retry, retryMax   time.Duration // between connections; doubles
	lasting           time.Duration // after a connection of that length, retry begins anew
	queue, writeChunk int           // octets
}

func (l *limits) complete() {
	l.dial = cmp.Or(l.dial, 10*time.Second)
	l.write = cmp.Or(l.write, 30*time.Second)
	l.behind = cmp.Or(l.behind, 5*time.Minute)
	l.last = cmp.Or(l.last, time.Second)
	l.retry = cmp.Or(l.retry, time.Second)
	l.retryMax = cmp.Or(l.retryMax, time.Minute)
	l.lasting = cmp.Or(l.lasting, time.Minute)
	l.queue = cmp.Or(l.queue, 4<<20)
	l.writeChunk = cmp.Or(l.writeChunk, 64<<10)
}

// Stations keeps the connections with all stations. It is safe for concurrent use.
type Stations struct {
	cfg Config

	mu     sync.Mutex
	closed bool
	all    map[netip.AddrPort]*station
}

// New makes one without stations.
func New(cfg Config) *Stations {
	cfg.limits.complete()
	return &Stations{cfg: cfg, all: map[netip.AddrPort]*station{}}
}

// Set says which stations there are, in place of those of before. One that stays the same keeps its connection.
func (s *Stations) Set(list []Station) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	var gone []*station
	for a, st := range s.all {
		if !slices.Contains(list, st.cfg) {
			gone = append(gone, st)
			delete(s.all, a)
		}
	}
	stopAll(gone)
	for _, c := range list {
		if s.all[c.Address] == nil {
			s.all[c.Address] = s.start(c)
		}
	}
}

// Status reads the state of all stations, sorted by address.
func (s *Stations) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Status
	for _, st := range s.all {
		out = append(out, st.get())
	}
	slices.SortFunc(out, func(a, b Status) int { return a.Address.Compare(b.Address) })
	return out
}

// Gone says that the neighbour that the speaker knows by an address isn't configured any more. Lookup must not find it
// by then. It waits for no connection but those that Set or Close is ending.
func (s *Stations) Gone(inside netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.all {
		st.mu.Lock()
		l := st.live
		st.mu.Unlock()
		if l != nil {
			l.gone(inside, time.Now())
		}
	}
}

// Close ends all connections, each with a Termination message, and waits for every goroutine.
func (s *Stations) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var gone []*station
	for _, st := range s.all {
		gone = append(gone, st)
	}
	clear(s.all)
	stopAll(gone)
}

func stopAll(list []*station) {
	for _, st := range list {
		st.stop()
	}
	for _, st := range list {
		<-st.over
	}
}

// station is one of them, with a goroutine of its own.
type station struct {
	cfg  Station
	all  *Config
	log  logrus.FieldLogger
	stop context.CancelFunc
	over chan struct{} // closed at the goroutine's end

	mu     sync.Mutex
	status Status
	live   *live // nil without a connection
}

func (s *Stations) start(c Station) *station {
	ctx, stop := context.WithCancel(context.Background())
	st := &station{
		cfg: c, all: &s.cfg, log: s.cfg.Log.WithField("station", c.Address.String()), stop: stop, over: make(chan struct{}),
		status: Status{Station: c},
	}
	go st.run(ctx)
	return st
}

func (s *station) get() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *station) setLive(l *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = l
}

func (s *station) note(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status)
}

func (s *station) run(ctx context.Context) {
	defer close(s.over)
	l := &s.all.limits
	wait := l.retry
	for ctx.Err() == nil {
		begin := time.Now()
		err := s.session(ctx)
		if ctx.Err() != nil {
			return
		}
		s.ended(err)
		if time.Since(begin) >= l.lasting {
			wait = l.retry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait - rand.N(wait/4+1)):
		}
		wait = min(2*wait, l.retryMax)
	}
}

// ended notes why a connection isn't there. The same reason again, as of a station that stays away, is for
// debugging only.
func (s *station) ended(err error) {
	text := err.Error()
	again := false
	s.note(func(st *Status) {
		again = !st.Connected && st.LastError == text
		st.Connected, st.Since, st.LastError = false, time.Time{}, text
		switch {
		case errors.Is(err, ErrSlow):
			st.Slow++
		case errors.Is(err, ErrFrame):
			st.Broken++
		}
	})
	if again {
		s.log.WithError(err).Debug("bmp: not connected with the station")
		return
	}
	s.log.WithError(err).Warn("bmp: not connected with the station; trying again")
}
