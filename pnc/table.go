package pnc

import (
	"net/netip"
	"time"
)

// Config is what an operator can choose. The zero value is the default.
type Config struct {
	Preference   []Source // order of the sources, best first; those left out follow in default order
	Share        Share
	AllowDefault bool     // senders may resolve through 0.0.0.0/0 or ::/0
	Contexts     []string // configured contexts; the default one ("") always is
	History      int      // events kept of learned, changed and withdrawn routes; 0 means 4096
	Rejected     int      // events kept of disregarded capabilities; 0 means 1024
}

type proxyIndex uint32

// Table is the capability route table: one writer at a time (the methods take a lock), any number of
// readers through Snapshot.
type Table struct{}

// New makes an empty table.
func New(cfg Config) *Table { return &Table{} }

// Apply applies a batch of updates as one change.
func (t *Table) Apply(now time.Time, updates ...Update) {}

// Disregard records that a capability was seen and not believed: e.Route, e.Reason and e.Detail.
func (t *Table) Disregard(now time.Time, e Event) {}

// SetReachability tells what is known about proxy addresses; those not named keep what they had.
// A proxy of which nothing was told yet counts as unreachable.
func (t *Table) SetReachability(now time.Time, reach map[netip.Addr]Reach) {}

// SetStatic replaces all static routes.
func (t *Table) SetStatic(now time.Time, routes []Route) {}

// Reconfigure changes the configuration; the sizes of the history stay as they were.
func (t *Table) Reconfigure(now time.Time, cfg Config) {}

// Proxies lists the addresses of all believed proxies in the table, sorted: the ones whose
// reachability the table wants to be told.
func (t *Table) Proxies() []netip.Addr { return nil }

// ProxiesChanged gets a value after the set that Proxies returns has changed; several changes may
// give one value.
func (t *Table) ProxiesChanged() <-chan struct{} { return nil }

// Snapshot gives the current state to read; it never changes.
func (t *Table) Snapshot() *Snapshot { return nil }

// Resolve asks the current snapshot.
func (t *Table) Resolve(context string, sender netip.Addr, hash uint64) Resolution {
	return Resolution{}
}

// History gives the events of learned, changed and withdrawn routes that are kept, oldest first.
func (t *Table) History() []Event { return nil }

// Rejected gives the events of disregarded capabilities that are kept, oldest first.
func (t *Table) Rejected() []Event { return nil }

// Counters gives the exact counts since the table was made.
func (t *Table) Counters() Counters { return Counters{} }

// Counters are exact counts since the table was made.
type Counters struct {
	Learned, Changed, Withdrawn uint64
	Disregarded                 map[DisregardReason]uint64 // every reason is there
	Invalid                     uint64                     // updates refused: bad prefix or source
	WatchDropped                uint64                     // events that watchers were too slow for
}
