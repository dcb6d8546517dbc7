package bgp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"pncd/bgp/engine"
)

// requestTimeout bounds a request at run time: removing a session waits for its end.
const requestTimeout = 10 * time.Second

// MinLease is the shortest lease: leases are looked at once a second.
const MinLease = time.Second

// SetOriginating switches the mechanism on or off: with it off, `inline` prefixes go on without the PNC and
// all others are withdrawn. A speaker starts with it off. What fails is tried again every second.
func (s *Speaker) SetOriginating(on bool) error {
	s.mu.Lock()
	s.orig.setEnabled(on)
	s.mu.Unlock()
	return s.originate(context.Background())
}

// SetOriginated replaces the configured prefixes and leaves the rest of the configuration alone. All of
// them are good, or an error wraps ErrConfig and nothing changes. Announcements that fail are tried
// again every second.
func (s *Speaker) SetOriginated(list []OriginateConfig) error {
	if err := s.setOriginated(slices.Clone(list)); err != nil {
		return err
	}
	s.follow(context.Background())
	return nil
}

func (s *Speaker) setOriginated(list []OriginateConfig) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.cfg
	next.Originate = list
	if err := next.check(); err != nil {
		return err
	}
	s.cfg = next
	s.orig.configure(next)
	return nil
}

// Advertise announces the PNC for a prefix until Withdraw, the end of the program, or a configuration
// that has the prefix or no longer its context; with a lease, which is at least a second, also until that
// has passed. It replaces an earlier request for the prefix and its lease. With the mechanism off, an equal
// request is renewed and no other is taken. Errors wrap ErrConfig, ErrConfigured, ErrDisabled or
// ErrNotRunning. An announcement that fails is tried again every second; Advertisements says why.
func (s *Speaker) Advertise(o OriginateConfig, lease time.Duration) error {
	if err := s.request(o, lease); err != nil {
		return err
	}
	s.follow(context.Background())
	return nil
}

func (s *Speaker) request(o OriginateConfig, lease time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cfg.checkOriginate(o); err != nil {
		return err
	}
	at := o.key()
	if lease != 0 && lease < MinLease {
		return wrong("advertise "+at.String(), "lease %s is shorter than %s", lease, MinLease)
	}
	old, had := s.orig.items[at]
	switch {
	case !s.running:
		return ErrNotRunning
	case !s.orig.enabled && (!had || old.OriginateConfig != o):
		return ErrDisabled
	case had && !old.requested:
		return fmt.Errorf("%w: %s", ErrConfigured, at)
	}
	it := item{OriginateConfig: o, requested: true}
	if lease > 0 {
		it.expires = s.clock().Add(lease)
	}
	s.orig.items[at] = it
	s.orig.touch(at)
	return nil
}

// Withdraw takes back what Advertise announced, in a context or, with an empty name, outside of VPNs. Errors
// wrap ErrNotAdvertised, ErrConfigured or ErrNotRunning. A withdrawal that fails is tried again every second.
func (s *Speaker) Withdraw(vpn string, prefix netip.Prefix) error {
	if err := s.unrequest(PrefixKey{vpn, prefix}); err != nil {
		return err
	}
	s.follow(context.Background())
	return nil
}

func (s *Speaker) unrequest(at PrefixKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.orig.items[at]
	switch {
	case !s.running:
		return ErrNotRunning
	case !had:
		return fmt.Errorf("%w: %s", ErrNotAdvertised, at)
	case !old.requested:
		return fmt.Errorf("%w: %s", ErrConfigured, at)
	}
	delete(s.orig.items, at)
	s.orig.touch(at)
	return nil
}

// Reconfigure applies another configuration as a whole or not at all, and leaves sessions alone whose
// configuration is the same. The router ID, the AS and what is listened on can't change: ErrRestart.
// A description changes without touching the session.
func (s *Speaker) Reconfigure(cfg Config) error {
	next, err := cfg.complete()
	if err != nil {
		return err
	}
	again, err := s.reconfigure(next)
	if err != nil {
		return err
	}
	// The configuration is in force from here on.
	s.replay(again)
	s.follow(context.Background())
	return nil
}

// reconfigure gives the families whose paths have to be seen again.
func (s *Speaker) reconfigure(next Config) (again []Family, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cfg.fixed(next); err != nil {
		return nil, err
	}
	if s.running {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		if err := s.swapRanges(ctx, s.cfg, next); err != nil {
			return nil, err
		}
		if err := s.swapPeers(ctx, s.cfg, next); err != nil {
			return nil, errors.Join(err, s.swapRanges(ctx, next, s.cfg))
		}
	}
	if s.running && !slices.Equal(s.cfg.Stations, next.Stations) {
		if err := s.eng.SetStations(next.Stations); err != nil {
			s.log.WithError(err).Error("bgp: the BMP stations stay as they were")
		}
	}
	s.cfg = next
	if l := learnPolicy(next); !l.equal(s.rib.policy) {
		s.deliver(s.rib.rejudge(l))
	}
	s.orig.configure(next)
	out, more := s.rib.importing(next.Contexts)
	s.deliver(out)
	s.orig.touchFollowers()
	s.noteSessions()
	switch {
	case s.repolicy(next):
		again = []Family{IPv4Unicast, IPv6Unicast, IPv4VPN, IPv6VPN}
	case more:
		// A route that no context imported is not kept, so a context that imports more needs to see it again.
		again = []Family{IPv4VPN, IPv6VPN}
	}
	return again, nil
}

// replay has the neighbours' paths reported again, without a word to them.
func (s *Speaker) replay(families []Family) {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if !running || len(families) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if err := s.eng.Replay(ctx, families); err != nil {
		s.log.WithError(err).Error("bgp: what a changed policy or context says about routes holds for those that arrive from now on only, until the session starts anew")
	}
}

// fixed says what can't change while the program runs.
func (c *Config) fixed(next Config) error {
	refuse := func(field string, from, to any) error {
		return fmt.Errorf("%w: %s changes from %v to %v: %w", ErrConfig, field, from, to, ErrRestart)
	}
	switch {
	case c.RouterID != next.RouterID:
		return refuse("router ID", c.RouterID, next.RouterID)
	case c.AS != next.AS:
		return refuse("AS", c.AS, next.AS)
	case c.ListenPort != next.ListenPort:
		return refuse("listen port", c.ListenPort, next.ListenPort)
	case !slices.Equal(c.ListenAddresses, next.ListenAddresses):
		return refuse("listen addresses", c.ListenAddresses, next.ListenAddresses)
	case c.GobgpSocket != next.GobgpSocket:
		return refuse("socket of GoBGP's API", c.GobgpSocket, next.GobgpSocket)
	case !c.Restart.same(next.Restart):
		return refuse("graceful restart", c.Restart, next.Restart)
	}
	return nil
}

// swapPeers ends the sessions that go or change and begins those that come or change. When one can't
// begin, everything is put back.
func (s *Speaker) swapPeers(ctx context.Context, from, to Config) error {
	remove, add := diffPeers(from, to)
	for _, n := range remove {
		if m := to.neighbor(n.Address); m != nil && m.Shutdown != "" && n.Shutdown == "" {
			// The neighbour gets to know why; the session is added again as one that stays down.
			if err := s.eng.Shutdown(ctx, n.Address, m.Shutdown); err != nil {
				s.log.WithError(err).WithField("neighbor", n.Address.String()).Warn("bgp: the reason of a shutdown was not sent")
			}
		}
	}
	for i, n := range remove {
		if err := s.removePeer(ctx, n); err != nil {
			return errors.Join(err, s.addPeers(ctx, from, remove[:i]))
		}
	}
	for i, n := range add {
		if err := s.addPeers(ctx, to, add[i:i+1]); err != nil {
			err = fmt.Errorf("neighbor %s: %w; the old configuration stays", n.Address, err)
			for _, back := range add[:i] {
				err = errors.Join(err, s.removePeer(ctx, back))
			}
			return errors.Join(err, s.addPeers(ctx, from, remove))
		}
	}
	return nil
}

func (s *Speaker) addPeers(ctx context.Context, c Config, ns []NeighborConfig) error {
	for _, n := range ns {
		s.rib.addPeer(n.Address, c.info(n))
		if err := s.eng.AddPeer(ctx, c.peer(n)); err != nil {
			s.deliver(s.rib.removePeer(n.Address))
			return err
		}
	}
	return nil
}

func (s *Speaker) removePeer(ctx context.Context, n NeighborConfig) error {
	err := s.eng.RemovePeer(ctx, n.Address)
	if err != nil && !errors.Is(err, engine.ErrNoPeer) {
		return err
	}
	// What the engine still has of this session must not be taken for the next one's.
	events := s.eng.Take()
	s.deliver(s.rib.apply(s.clock(), events))
	s.logStates(events)
	s.deliver(s.rib.removePeer(n.Address))
	// Its paths are gone, also when the change ends with an error.
	s.orig.notice(events)
	s.orig.touchFollowers()
	return nil
}

// diffPeers lists the sessions to end and to begin. A changed one is in both.
func diffPeers(from, to Config) (remove, add []NeighborConfig) {
	for _, n := range from.Neighbors {
		if m := to.neighbor(n.Address); m == nil || !from.same(n, to, *m) {
			remove = append(remove, n)
		}
	}
	for _, n := range to.Neighbors {
		if m := from.neighbor(n.Address); m == nil || !from.same(*m, to, n) {
			add = append(add, n)
		}
	}
	return remove, add
}

// same reports whether a session can stay as it is.
func (c *Config) same(n NeighborConfig, to Config, m NeighborConfig) bool {
	p, q := c.peer(n), to.peer(m)
	p.Description, q.Description = "", ""
	x, y := c.info(n), to.info(m)
	return reflect.DeepEqual(p, q) && x.ebgp == y.ebgp && x.accept == y.accept && x.ownAS == y.ownAS
}
