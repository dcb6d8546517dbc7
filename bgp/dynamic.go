package bgp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/bgp/engine"
)

// DefaultRangeLimit is how many neighbours a range takes at once, as in FRR's `bgp listen limit`.
const DefaultRangeLimit = 100

// maxRangeLimit is far below what the engine has addresses for.
const maxRangeLimit = 10000

// dynamicWait is how long a neighbour of a range may be without a session before it is forgotten.
const dynamicWait = 60 * time.Second

// RangeConfig takes neighbours that come by themselves from a prefix. Of several that hold an address the longest
// counts, and a configured neighbour counts before all of them.
type RangeConfig struct {
	// Prefix is required, without host bits, of more than one address, and never holds one of our own: see
	// Config.Own.
	Prefix netip.Prefix
	Limit  int // neighbours at once; 0: DefaultRangeLimit
	// Neighbor is what each of them gets. Address, Port, LocalAddress, ConnectRetry and Shutdown stay empty; they
	// are always passive.
	Neighbor NeighborConfig
}

// neighbor is the configuration of one that has come. The range is complete.
func (r *RangeConfig) neighbor(a netip.Addr) NeighborConfig {
	n := r.Neighbor
	n.Address, n.dynamic = a, true
	return n
}

func (r *RangeConfig) complete(c Config) {
	if r.Limit == 0 {
		r.Limit = DefaultRangeLimit
	}
	r.Neighbor.Passive = true
	if !r.Prefix.IsValid() {
		return
	}
	n := r.neighbor(r.Prefix.Addr())
	n.complete(c)
	r.Neighbor, r.Neighbor.Address = n, netip.Addr{}
}

// own are the addresses that no range may hold.
func (c *Config) own() (list []netip.Addr) {
	add := func(some ...netip.Addr) {
		for _, a := range some {
			if a.IsValid() && !a.IsUnspecified() {
				list = append(list, a.Unmap().WithZone(""))
			}
		}
	}
	add(c.RouterID, c.LocalAddress)
	add(c.ListenAddresses...)
	add(c.Own...)
	for i := range c.Neighbors {
		add(c.Neighbors[i].LocalAddress)
	}
	return list
}

func (c *Config) checkRanges() (errs []error) {
	own, seen := c.own(), map[netip.Prefix]bool{}
	for i := range c.Ranges {
		r := &c.Ranges[i]
		p, at := r.Prefix, "listen range "+r.Prefix.String()
		bad := func(rule string, args ...any) { errs = append(errs, wrong(at, rule, args...)) }
		switch {
		case !p.IsValid(), p != p.Masked(), p.Addr().Is4In6():
			bad("must be a prefix without host bits")
			continue
		case p.Addr().IsLinkLocalUnicast(), p.Addr().IsMulticast():
			bad("must be a prefix of unicast addresses that aren't link-local: those need an interface")
			continue
		case p.IsSingleIP():
			bad("holds one address: configure it as a neighbour")
		case seen[p]:
			bad("is configured twice")
		}
		seen[p] = true
		for _, a := range own {
			if p.Contains(a) {
				bad("holds %s, which is our own address: a range never holds one of ourselves; divide it", a)
				break
			}
		}
		if r.Limit < 1 || r.Limit > maxRangeLimit {
			bad("limit %d must be from 1 to %d", r.Limit, maxRangeLimit)
		}
		t := r.Neighbor
		if t.Shutdown != "" || t.Address.IsValid() || t.LocalAddress.IsValid() && t.LocalAddress != c.LocalAddress {
			bad("its neighbours have no address, local address or shutdown by configuration")
		}
		n := r.neighbor(p.Addr().Next())
		for _, err := range append(n.check(c), n.checkPolicy()...) {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
		if t.Password == "" {
			continue
		}
		// The kernel takes the key of the longest prefix that has one: inside of it nobody can be without.
		for j := range c.Neighbors {
			if o := &c.Neighbors[j]; o.Password == "" && p.Contains(o.Address) {
				bad("has a password and holds neighbour %s, which must have one, too", o.Address)
			}
		}
		for j := range c.Ranges {
			if o := &c.Ranges[j]; o.Neighbor.Password == "" && o.Prefix.Bits() > p.Bits() && p.Contains(o.Prefix.Addr()) {
				bad("has a password and holds range %s, which must have one, too", o.Prefix)
			}
		}
	}
	return errs
}

// rangeOf is the longest range that holds an address; nil without.
func (c *Config) rangeOf(a netip.Addr) (best *RangeConfig) {
	for i := range c.Ranges {
		if r := &c.Ranges[i]; r.Prefix.Contains(a) && (best == nil || r.Prefix.Bits() > best.Prefix.Bits()) {
			best = r
		}
	}
	return best
}

// engineRanges are the ranges as the engine wants them.
func (c *Config) engineRanges() (out []engine.Range) {
	for i := range c.Ranges {
		r := &c.Ranges[i]
		out = append(out, engine.Range{Prefix: r.Prefix, Password: r.Neighbor.Password, TTLMin: r.Neighbor.TTLMin})
	}
	return out
}

// dynamic is a neighbour that has come from a range.
type dynamic struct {
	NeighborConfig
	from netip.Prefix
	idle time.Time // since when it has had no session
	up   bool      // it has had one
}

// neighbor is the configuration of a neighbour, also of one that came from a range. It needs s.mu, as everything
// below.
func (s *Speaker) neighbor(a netip.Addr) *NeighborConfig {
	if d := s.dynamic[a]; d != nil {
		return &d.NeighborConfig
	}
	return s.cfg.neighbor(a)
}

// fromRange counts the neighbours that have come from a range.
func (s *Speaker) fromRange(p netip.Prefix) (n int) {
	for _, d := range s.dynamic {
		if d.from == p {
			n++
		}
	}
	return n
}

// admit begins a session with somebody who has come from a range, or sends him away.
func (s *Speaker) admit(ctx context.Context, a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.cfg.rangeOf(a)
	if !s.running || r == nil || s.neighbor(a) != nil {
		s.eng.Refuse(a)
		return
	}
	log := s.log.WithFields(logrus.Fields{"neighbor": a.String(), "range": r.Prefix.String()})
	if s.fromRange(r.Prefix) >= r.Limit {
		s.turnAway(a, r.Prefix, log.WithError(fmt.Errorf("the limit of %d neighbours is reached", r.Limit)))
		return
	}
	n := r.neighbor(a)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := s.addPeers(ctx, s.cfg, []NeighborConfig{n}); err != nil {
		s.turnAway(a, r.Prefix, log.WithError(err))
		return
	}
	s.dynamic[a] = &dynamic{NeighborConfig: n, from: r.Prefix, idle: s.clock()}
	log.Info("bgp: a neighbour has come from a range")
}

func (s *Speaker) turnAway(a netip.Addr, from netip.Prefix, log *logrus.Entry) {
	s.eng.Refuse(a)
	s.turnedAway[from]++
	if now := s.clock(); now.Sub(s.turnedAt) >= time.Second { // it is for the others to decide how often
		s.turnedAt = now
		log.Warn("bgp: a neighbour of a range was not taken")
	}
}

// reap forgets neighbours of ranges whose session has ended, unless they restart and routes of theirs stay, and
// those that don't bring one up.
func (s *Speaker) reap(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, gone := s.clock(), false
	for a, d := range s.dynamic {
		p := s.rib.peers[a]
		if p != nil && p.state == engine.StateEstablished {
			d.up, d.idle = true, now
			continue
		}
		if p != nil && p.stale > 0 || !d.up && now.Sub(d.idle) < dynamicWait {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		err := s.dismiss(ctx, d)
		cancel()
		if err != nil {
			s.log.WithError(err).WithField("neighbor", a.String()).Warn("bgp: a neighbour of a range was not removed; trying again")
		}
		gone = true
	}
	if gone {
		s.noteSessions() // removal takes in what the engine has to say of others, too
	}
}

func (s *Speaker) dismiss(ctx context.Context, d *dynamic) error {
	if err := s.removePeer(ctx, d.NeighborConfig); err != nil {
		return err
	}
	delete(s.dynamic, d.Address)
	s.log.WithFields(logrus.Fields{"neighbor": d.Address.String(), "range": d.from.String()}).Info("bgp: a neighbour of a range is gone")
	return nil
}

// swapRanges puts other ranges into force and ends the sessions of those whose range or its configuration is
// another then. They may come again.
func (s *Speaker) swapRanges(ctx context.Context, from, to Config) error {
	if len(from.Ranges) == 0 && len(to.Ranges) == 0 {
		return nil
	}
	if err := s.eng.SetRanges(to.engineRanges()); err != nil {
		return err
	}
	var errs []error
	for a, d := range s.dynamic {
		if r := to.rangeOf(a); r != nil && r.Prefix == d.from && to.neighbor(a) == nil {
			if n := r.neighbor(a); from.same(d.NeighborConfig, to, n) {
				d.NeighborConfig = n
				continue
			}
		}
		errs = append(errs, s.dismiss(ctx, d))
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, s.eng.SetRanges(from.engineRanges()))
	}
	return nil
}

// RangeStatus is what is known about a range.
type RangeStatus struct {
	Prefix    netip.Prefix
	Limit     int
	Neighbors int    // that have come and are there
	Refused   uint64 // connections that were not taken: the limit was reached, or the session couldn't be begun
}

// Ranges gives the ranges, sorted by prefix.
func (s *Speaker) Ranges() (out []RangeStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.cfg.Ranges {
		out = append(out, RangeStatus{Prefix: r.Prefix, Limit: r.Limit, Neighbors: s.fromRange(r.Prefix), Refused: s.turnedAway[r.Prefix]})
	}
	slices.SortFunc(out, func(a, b RangeStatus) int { return a.Prefix.Compare(b.Prefix) })
	return out
}
