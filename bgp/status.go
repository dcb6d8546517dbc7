package bgp

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"pncd/bgp/engine"
	"pncd/pnc"
)

// MessageCounts counts messages of one direction by type.
type MessageCounts = engine.MessageCounts

// NeighborStatus is what is known about a session.
type NeighborStatus struct {
	engine.PeerStatus
	Description string
	MD5         bool  // TCP MD5 is in force
	TTLMin      uint8 // minimum TTL in force; 0 without
	Passive     bool
	SendNHC     bool // announcements go there

	NHCReceived int // paths that carry an NHC attribute now
	PNCBelieved int // paths whose PNC is believed now
	Stale       int // paths kept through a restart and not yet announced again
	// StaleUntil is when they go at the latest, or come to be kept as long-lived ones; zero without any.
	StaleUntil time.Time
	// RestartTime is how long its paths stay when it restarts, LongLivedTime how long beyond that; zero when
	// its last OPEN did not ask for that, or the configuration doesn't have it.
	RestartTime, LongLivedTime time.Duration
	// Refused counts announcements that its prefix list didn't take, since the session was configured.
	Refused uint64
	// Shutdown is why the configuration keeps the session down; empty when it does not.
	Shutdown string
	// Range is where a neighbour has come from that isn't configured; invalid for one that is.
	Range netip.Prefix
	// Disregarded counts what was seen and not believed since the session was configured, by reason.
	Disregarded map[pnc.DisregardReason]uint64
}

// Neighbors gives the sessions, sorted by address. Before Run, and after it, none is there.
func (s *Speaker) Neighbors() []NeighborStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	status, err := s.eng.Status(ctx)
	if err != nil {
		s.log.WithError(err).Warn("bgp: state of the sessions")
	}
	var out []NeighborStatus
	for _, st := range status {
		n, p := s.neighbor(st.Address), s.rib.peers[st.Address]
		if n == nil || p == nil {
			continue
		}
		restart, long := p.outlive()
		var from netip.Prefix
		if d := s.dynamic[st.Address]; d != nil {
			from = d.from
		}
		out = append(out, NeighborStatus{
			Range:      from,
			PeerStatus: st, Description: n.Description, MD5: n.Password != "", TTLMin: n.TTLMin,
			Passive: n.Passive, SendNHC: *n.SendNHC, NHCReceived: p.nhc, PNCBelieved: p.believed, Refused: p.refused, Shutdown: n.Shutdown,
			Stale: p.stale, StaleUntil: p.keptUntil(), RestartTime: restart, LongLivedTime: long,
			Disregarded: maps.Clone(p.disregarded),
		})
	}
	return out
}

// Sessions gives how many sessions are established, of how many. Unlike Neighbors it never waits, so
// that whoever looks every second isn't held up by a change of many routes.
func (s *Speaker) Sessions() (established, configured int) {
	return int(s.established.Load()), int(s.configured.Load())
}

// noteSessions needs s.mu.
func (s *Speaker) noteSessions() {
	up, wanted := 0, 0
	for a, p := range s.rib.peers {
		if p.state == engine.StateEstablished {
			up++
			if s.dynamic[a] != nil {
				wanted++ // nobody waits for one that isn't there
			}
		}
	}
	s.established.Store(int32(up))
	for i := range s.cfg.Neighbors {
		if s.cfg.Neighbors[i].Shutdown == "" {
			wanted++
		}
	}
	s.configured.Store(int32(wanted))
}

// StationStatus is what is known about a BMP station.
type StationStatus = engine.StationStatus

// Stations gives the BMP stations, sorted by address. Before Run, and after it, none is there.
func (s *Speaker) Stations() []StationStatus { return s.eng.Stations() }

// AdvertisementStatus is one prefix that this node announces or would announce.
type AdvertisementStatus struct {
	OriginateConfig
	// NextHop is the one announced: the router's, in the modes that follow one.
	NextHop netip.Addr
	// Active reports whether the PNC is announced now.
	Active bool
	// Announced reports whether the prefix is announced now: an inline one is also without PNC.
	Announced bool
	// InactiveReason says in words why the PNC is not announced.
	InactiveReason string
	// Configured tells configuration from a request at run time.
	Configured bool
	// Expires is when the lease of a request ends; zero without a lease.
	Expires time.Time
	// RD is the route distinguisher with which it is announced, or would be where that is known; empty
	// outside of VPNs.
	RD string
}

// Advertisements gives what is announced, sorted by context and prefix.
func (s *Speaker) Advertisements() []AdvertisementStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []AdvertisementStatus
	for p, it := range s.orig.items {
		a, announced := s.orig.current[p]
		announced = announced && s.running
		why := s.orig.status[p]
		if !s.running {
			why = inactive(ErrNotRunning.Error())
		}
		st := AdvertisementStatus{
			OriginateConfig: it.OriginateConfig, NextHop: it.NextHop, Announced: announced,
			Active: announced && why == active, InactiveReason: string(why), Configured: !it.requested, Expires: it.expires,
		}
		switch {
		case announced:
			st.NextHop = a.NextHop
			if a.VPN != nil {
				st.RD = a.VPN.RD.String()
			}
		case p.Context != "" && it.Mode == ModeOriginate:
			st.RD = s.orig.contexts[p.Context].RD.String()
		}
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b AdvertisementStatus) int { return a.key().compare(b.key()) })
	return out
}

// Counters are sums over the speaker's life.
type Counters struct {
	Engine      engine.Counters
	Paths       int // in the RIB now
	Prefixes    int // in the RIB now
	Disregarded map[pnc.DisregardReason]uint64
	Unmatched   uint64 // announcements of VPN routes that no context imports, and which are not kept
}

// Counters reads the counters.
func (s *Speaker) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Counters{Engine: s.eng.Counters(), Prefixes: s.rib.prefixes.len() + s.rib.vpnPrefixes(), Unmatched: s.rib.unmatched, Disregarded: maps.Clone(s.rib.total)}
	for _, p := range s.rib.peers {
		c.Paths += p.paths
	}
	return c
}
