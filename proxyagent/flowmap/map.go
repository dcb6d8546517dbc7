package flowmap

import (
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"pncd/dataplane/roce"
)

// Observation is one packet that a tap saw.
type Observation struct {
	Packet  *roce.Packet // valid only during the call
	Context uint32       // VPN context of the interface; 0 is the default one
	IfIndex int          // interface that the packet came in by
	At      time.Time    // when the tap saw it
	// Before is what a tap that selects knew of the flow before the packet; nil from a tap that shows all. Its Sight
	// is that from the packet on.
	Before *Progress
}

const shardCount = 64 // a power of two, well above the number of tap goroutines

// Map is the Source-QP map. All methods may be called from several goroutines.
type Map struct {
	shards      [shardCount]shard
	flows       *xsync.Map[flowKey, slot]
	tuples      *xsync.Map[tupleKey, slot] // in VPN contexts only
	claims      claims
	settled     settledStore
	settleAfter int64       // tests settle sooner
	tagged      atomic.Bool // some pair has a VLAN
	version     atomic.Uint64
	known       atomic.Int64
	total       atomic.Int64

	maxEntries  atomic.Int64
	ageAfter    atomic.Int64
	tapComplete atomic.Bool
	ignoreVLAN  atomic.Bool
	icrcSample  atomic.Int64

	followed atomic.Pointer[followed]
	tap      atomic.Pointer[Tap]
	due      atomic.Uint64 // shards with something due, a bit each
	rocev1   atomic.Uint64
	watchers watchers
	onAnswer atomic.Pointer[func(Key)]
}

// New makes an empty map. It panics on a configuration that Validate refuses.
func New(cfg Config) *Map {
	m := &Map{flows: xsync.NewMap[flowKey, slot](), tuples: xsync.NewMap[tupleKey, slot](), settleAfter: settleAfter}
	m.settled.questions.perTick = questionsPerTick
	if err := m.Reconfigure(cfg); err != nil {
		panic(err)
	}
	for i := range m.shards {
		sh := &m.shards[i]
		sh.m, sh.id = m, uint8(i)
		sh.streams = make(map[streamKey]*stream)
		sh.pairs = make(map[pairKey]*addrPair)
	}
	return m
}

// Reconfigure applies a changed configuration to the running map; entries stay, up to a lower bound. The
// error is that of Config.Validate, and then nothing has changed.
func (m *Map) Reconfigure(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.withDefaults()
	m.maxEntries.Store(int64(cfg.MaxEntries))
	m.ageAfter.Store(int64(cfg.AgeAfter))
	m.tapComplete.Store(cfg.TapComplete)
	m.ignoreVLAN.Store(cfg.IgnoreVLAN)
	m.icrcSample.Store(int64(cfg.ICRCSample))
	return nil
}

// Version is the map's version: it steps with each change of any entry.
func (m *Map) Version() uint64 { return m.version.Load() }

// Len returns how many entries have a known Source QP, and how many there are.
func (m *Map) Len() (known, total int) { return int(m.known.Load()), int(m.total.Load()) }

// maxPending bounds the unfinished CM exchanges of one shard.
func (m *Map) maxPending() int { return max(int(m.maxEntries.Load())/shardCount, 16) }

// shardOf chooses a pair's shard from the low halves of its addresses, where addresses differ.
func (m *Map) shardOf(k *pairKey) *shard {
	h := le64(k.low[8:])*0x9E3779B97F4A7C15 ^ le64(k.high[8:])*0xC2B2AE3D27D4EB4F ^ uint64(k.context)
	h ^= h >> 32
	h *= 0x9E3779B97F4A7C15
	return &m.shards[h>>58]
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// Tick ages the entries; call it about once a second.
func (m *Map) Tick(now time.Time) {
	at, ageAfter := now.UnixNano(), m.ageAfter.Load()
	for i := range m.shards {
		sh := &m.shards[i]
		sh.mu.Lock()
		sh.ageSettled(at, ageAfter)
		sh.age(at, ageAfter)
		sh.settleDue(at)
		sh.expireExchanges(at)
		sh.mu.Unlock()
	}
	m.settled.askMore()
	m.sweep(at)
	m.claims.shrink()
	m.evict(at)
}

// sweep ends the links that lost a QP to another address pair and have had no packet since.
func (m *Map) sweep(at int64) {
	m.sweepSettled()
	for _, l := range m.claims.takeRevoked() {
		sh := m.shardOf(&l.streams[0].pair.key)
		sh.mu.Lock()
		if l.streams[0].link == l {
			sh.swept(l.streams[0], at)
		}
		sh.mu.Unlock()
	}
}

// evict removes the least recently seen entries until the bound holds.
func (m *Map) evict(at int64) {
	for m.total.Load() > m.maxEntries.Load() {
		var oldest *shard
		var stale int64
		for i := range m.shards {
			sh := &m.shards[i]
			if at := sh.stale.Load(); at != 0 && (oldest == nil || at < stale) {
				oldest, stale = sh, at
			}
		}
		if oldest == nil {
			return
		}
		oldest.mu.Lock()
		if m.total.Load() > m.maxEntries.Load() {
			oldest.evictOne(at)
		}
		oldest.mu.Unlock()
	}
}

// CountRoCEv1 counts packets of RoCEv1 (EtherType 0x8915), which is not decoded: it has no IP addresses.
func (m *Map) CountRoCEv1(n uint64) { m.rocev1.Add(n) }
