package pnc

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what an operator can choose. The zero value is the default.
type Config struct {
	Preference   []Source // order of the sources, best first; those left out follow in default order
	Share        Share
	AllowDefault bool     // senders may resolve through 0.0.0.0/0 or ::/0
	Contexts     []string // configured contexts; the default one ("") always is
	History      int      // events kept of learned, changed and withdrawn routes; 0 means DefaultHistory
	Rejected     int      // events kept of disregarded capabilities; 0 means DefaultRejected
}

// Defaults of Config.
const (
	DefaultHistory  = 16384
	DefaultRejected = 16384
)

// Table is the capability route table. Its methods may be called from several goroutines: writers
// take turns behind a lock, readers of Snapshot and Resolve never wait.
type Table struct {
	snapshot atomic.Pointer[Snapshot]
	signal   chan struct{} // ProxiesChanged

	mu       sync.Mutex // guards what follows
	cfg      Config
	rank     ranking
	proxies  proxySet
	interner interner
	statics  map[string]map[netip.Prefix]int // context, prefix: number of static routes
	history  ring[event]
	rejected ring[Event]
	counters counters
	watchers map[*Watcher]struct{}
}

// New makes an empty table.
func New(cfg Config) *Table {
	if cfg.History <= 0 {
		cfg.History = DefaultHistory
	}
	if cfg.Rejected <= 0 {
		cfg.Rejected = DefaultRejected
	}
	t := &Table{
		signal:   make(chan struct{}, 1),
		interner: newInterner(),
		statics:  map[string]map[netip.Prefix]int{},
		history:  ring[event]{limit: cfg.History},
		rejected: ring[Event]{limit: cfg.Rejected},
		watchers: map[*Watcher]struct{}{},
	}
	t.proxies.init()
	t.snapshot.Store(&Snapshot{base: newView(true), proxies: t.proxies.states})
	t.configure(cfg)
	return t
}

// Snapshot gives the current state to read; it never changes.
func (t *Table) Snapshot() *Snapshot { return t.snapshot.Load() }

// Resolve asks the current snapshot.
func (t *Table) Resolve(context string, sender netip.Addr, hash uint64) Resolution {
	return t.snapshot.Load().Resolve(context, sender, hash)
}

// Reconfigure changes the configuration; the sizes of the history stay as they were made. Routes in
// contexts that are no longer configured stay until their source withdraws them, but don't resolve.
func (t *Table) Reconfigure(now time.Time, cfg Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.configure(cfg)
}

func (t *Table) configure(cfg Config) {
	t.cfg = cfg
	old := t.snapshot.Load()
	s := old.successor()
	s.allowDefault = cfg.AllowDefault
	s.share = cfg.Share
	s.rank = newRanking(cfg.Preference)

	for name, v := range s.all() {
		if name == "" {
			continue
		}
		configured := slices.Contains(cfg.Contexts, name)
		if v.configured != configured {
			v = v.clone()
			v.configured = configured
			s.setView(name, v)
		}
	}
	for _, name := range cfg.Contexts {
		if s.view(name) == nil {
			s.setView(name, newView(true))
		}
	}

	rank := newRanking(cfg.Preference)
	reorder := rank != t.rank
	t.rank = rank
	for name, v := range s.all() {
		v = v.clone()
		if reorder {
			v.reorder(&t.rank)
		}
		v.hide(t.statics[name], &t.rank, s.allowDefault)
		s.setView(name, v)
	}
	t.publish(s)
}

// SetReachability tells what is known about proxy addresses; those not named keep what they had, and
// those that are no proxy in the table are ignored. A proxy of which nothing was told yet counts as
// unreachable. The cost doesn't depend on the number of routes.
func (t *Table) SetReachability(_ time.Time, reach map[netip.Addr]Reach) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := false
	for addr, r := range reach {
		if t.proxies.setReach(addr.Unmap(), r) {
			changed = true
		}
	}
	if changed {
		t.publish(t.snapshot.Load().successor())
	}
}

// Proxies lists the addresses of all believed proxies in the table, sorted: the ones whose
// reachability the table wants to be told.
func (t *Table) Proxies() []netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.proxies.addrs()
}

// ProxiesChanged gets a value after the set that Proxies returns has changed; several changes may
// give one value. It is made for one receiver.
func (t *Table) ProxiesChanged() <-chan struct{} { return t.signal }

// publish makes s the current snapshot. The caller holds the lock.
func (t *Table) publish(s *Snapshot) {
	s.proxies = t.proxies.publish()
	t.snapshot.Store(s)
	if t.proxies.takeChanged() {
		select {
		case t.signal <- struct{}{}:
		default: // one is waiting already
		}
	}
}
