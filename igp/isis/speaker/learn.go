package speaker

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/isis/flooding"
	"pncd/igp/isis/origin"
	"pncd/igp/isis/packet"
	"pncd/igp/isis/spf"
)

// level is one level's database with what follows from it.
type level struct {
	n      uint8
	flood  *flooding.Machine
	pack   *origin.Packer
	graphs map[packet.MTID]*spf.Graph
	spfDue time.Time
	spfRan time.Time
	pace   backoff.State                           // of SPF
	nodes  map[packet.NodeID]*said                 // what each system says, without pseudonodes and this one
	out    map[packet.NodeID]map[netip.Prefix]told // what was told
	named  map[packet.NodeID]string                // with which host name
	dirty  map[packet.NodeID]bool                  // to be told anew

	notFitting int
	packErr    error
	unreadable uint64 // TLVs of LSPs that couldn't be read
}

// told is what of igp.Learned differs between the prefixes of a system.
type told struct {
	proxy     netip.Addr
	cost      uint32
	p, leaked bool
}

// said is what a system says that is of interest here.
type said struct {
	prefixes map[netip.Prefix]entry
	name     string
	v4, v6   netip.Addr // TE router IDs
	router   netip.Addr // router ID of the capability TLV
}

type entry struct {
	topology packet.MTID
	p        bool
	leaked   bool
	metric   uint32
	v4, v6   netip.Addr // source router IDs
}

func newLevel(c Config, n uint8) *level {
	l := &level{
		n:      n,
		flood:  flooding.New(c.flooding(n)),
		pack:   origin.New(c.LSPSize - c.Authentication[n].Overhead()),
		graphs: map[packet.MTID]*spf.Graph{},
		nodes:  map[packet.NodeID]*said{}, out: map[packet.NodeID]map[netip.Prefix]told{}, named: map[packet.NodeID]string{}, dirty: map[packet.NodeID]bool{},
	}
	for _, mt := range []packet.MTID{packet.MTStandard, packet.MTIPv6} {
		l.graphs[mt] = spf.New(c.System.Node(0))
	}
	return l
}

// flooding is the configuration of a level's update process.
func (c Config) flooding(n uint8) flooding.Config {
	return flooding.Config{
		System: c.System, Level: int(n), LSPLifetime: c.LSPLifetime, Refresh: c.Refresh, Generation: c.Generation,
		Retransmit: c.Retransmit, PSNPInterval: c.PSNP, CSNPInterval: c.CSNP, MaxLSPs: c.MaxLSPs,
		Sign: c.Authentication[n].Sign, Jitter: c.Jitter,
	}
}

// learn brings changed LSPs to the graphs and gives what is different for the rest of the program.
func (l *level) learn(c Config, now time.Time) []igp.Learned {
	changed := map[packet.NodeID]bool{}
	for _, id := range l.flood.Changed() {
		changed[id.Node()] = true
	}
	links := false
	for id := range changed {
		lsps := l.nodeLSPs(id)
		for mt, g := range l.graphs {
			n, err := spf.FromLSPs(lsps, mt)
			if err != nil {
				l.unreadable++
			}
			links = g.Set(id, n) || links
		}
		if id.Pseudonode() != 0 || id.System() == c.System {
			continue
		}
		if len(lsps) == 0 {
			delete(l.nodes, id)
		} else {
			l.nodes[id] = l.read(c, lsps)
		}
		l.dirty[id] = true
	}
	if links && l.spfDue.IsZero() {
		l.spfDue = l.pace.Next(now, c.SPF) // links that flap must not keep the processor busy
	}
	if !l.spfDue.IsZero() && !l.spfDue.After(now) {
		l.spfDue, l.spfRan = time.Time{}, now
		l.pace.Ran(now, c.SPF)
		for _, g := range l.graphs {
			g.Run()
		}
		for id := range l.nodes {
			l.dirty[id] = true
		}
	}
	return l.tell()
}

// read takes what a system says from its LSPs.
func (l *level) read(c Config, lsps []packet.LSP) *said {
	s := &said{prefixes: map[netip.Prefix]entry{}}
	for _, p := range lsps {
		s.name = cmp.Or(s.name, p.TLVs.Hostname())
		v4, v6 := p.TLVs.TERouterIDs()
		s.v4, s.v6 = firstValid(s.v4, v4), firstValid(s.v6, v6)
		if v, ok := p.TLVs.First(packet.TLVRouterCapability); ok && len(v) >= 4 {
			s.router = firstValid(s.router, netip.AddrFrom4([4]byte(v)))
		}
		for _, t := range p.TLVs {
			value, mt, six, err := t.Value, packet.MTStandard, t.Type == packet.TLVIPv6Reach || t.Type == packet.TLVMTIPv6Reach, error(nil)
			switch t.Type {
			case packet.TLVExtendedIPReach, packet.TLVIPv6Reach:
			case packet.TLVMTIPReach, packet.TLVMTIPv6Reach:
				if mt, _, value, err = packet.ParseMT(value); err == nil && mt == packet.MTStandard {
					continue // RFC 5120 section 7.3: ignored
				}
			default:
				continue
			}
			var all []packet.Prefix
			if err == nil {
				all, err = packet.ParsePrefixes(value, six)
			}
			if err != nil {
				l.unreadable++
			}
			for i := range all {
				s.add(c, mt, &all[i])
			}
		}
	}
	return s
}

func firstValid(a, b netip.Addr) netip.Addr {
	if a.IsValid() {
		return a
	}
	return b
}

// add takes an entry; of several for the same prefix one with the P flag wins, then the least metric.
func (s *said) add(c Config, mt packet.MTID, p *packet.Prefix) {
	flags := p.Attributes()
	e := entry{topology: mt, p: flags.Has(c.Flag), leaked: p.Down || flags.Has(packet.FlagReadvertised), metric: p.Metric}
	e.v4, e.v6 = p.SourceRouterIDs()
	if old, ok := s.prefixes[p.Prefix]; ok && (old.p && !e.p || old.p == e.p && old.metric <= e.metric) {
		return
	}
	s.prefixes[p.Prefix] = e
}

// proxy is the address of the proxy that a marked prefix names: what it says itself, of the prefix's family
// first, then the TE router ID, then the router ID if it is a host prefix of the same system.
func (s *said) proxy(p netip.Prefix, e entry) netip.Addr {
	candidates := []netip.Addr{e.v4, e.v6, s.v4, s.v6}
	if p.Addr().Is6() {
		candidates = []netip.Addr{e.v6, e.v4, s.v6, s.v4}
	}
	for _, a := range candidates {
		if a.IsValid() && !a.IsUnspecified() {
			return a
		}
	}
	if s.router.IsValid() {
		if _, ok := s.prefixes[netip.PrefixFrom(s.router, 32)]; ok {
			return s.router
		}
	}
	return netip.Addr{}
}

// tell compares what the dirty systems say, and whether they are reachable, with what was told.
func (l *level) tell() (out []igp.Learned) {
	for id := range l.dirty {
		before, now := l.out[id], l.says(id)
		originator := id.System().String()
		for p := range before {
			if _, still := now[p]; !still {
				out = append(out, igp.Learned{Prefix: p, Originator: originator, Level: l.n, Gone: true})
			}
		}
		name := ""
		if s := l.nodes[id]; s != nil {
			name = s.name
		}
		renamed := l.named[id] != name
		for p, v := range now {
			if old, ok := before[p]; !ok || renamed || old != v {
				out = append(out, igp.Learned{Prefix: p, Originator: originator, Level: l.n, Name: name, Cost: v.cost, Leaked: v.leaked, P: v.p, Proxy: v.proxy})
			}
		}
		l.out[id], l.named[id] = now, name
		if len(now) == 0 {
			delete(l.out, id)
			delete(l.named, id)
		}
	}
	clear(l.dirty)
	slices.SortFunc(out, func(a, b igp.Learned) int {
		return cmp.Or(a.Prefix.Compare(b.Prefix), cmp.Compare(a.Originator, b.Originator))
	})
	return out
}

// says is what a system says as long as it is reachable.
func (l *level) says(id packet.NodeID) map[netip.Prefix]told {
	s := l.nodes[id]
	if s == nil {
		return nil
	}
	now := make(map[netip.Prefix]told, len(s.prefixes))
	for p, e := range s.prefixes {
		g := l.graphs[e.topology]
		if g == nil || g.Cost(id) == spf.Unreachable {
			continue
		}
		v := told{cost: g.Cost(id), leaked: e.leaked, p: e.p}
		if e.p {
			v.proxy = s.proxy(p, e)
		}
		now[p] = v
	}
	return now
}
