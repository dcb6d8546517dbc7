package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"pncd/dataplane/emit"
	"pncd/dataplane/host"
)

// vpn is one VPN on this host. Its sockets exist while the mechanism is on and its place is closed.
type vpn struct {
	sendMeter
	name  string
	id    uint32 // in the Source-QP map
	place host.Place
	open  atomic.Pointer[vpnSockets]
}

// vpnSockets is how CNPs leave into a VPN.
type vpnSockets struct {
	vpn     *vpn
	sender  *emit.Sender
	watch   *host.PlaceWatch
	changed func() // is called when they open, when they close, and when the place may be another
}

// table gives the routing table by which CNPs may leave into the VPN; 0 while its sockets are closed, and when it has none in this
// network namespace.
func (v *vpn) table() uint32 {
	s := v.open.Load()
	if s == nil {
		return 0
	}
	return s.watch.Table()
}

// Send implements translator.Sender.
func (v *vpn) Send(pkts [][]byte) (int, error) {
	s := v.open.Load()
	if s == nil {
		return 0, fmt.Errorf("context %s is not open: 'pncctl status' says why", v.name)
	}
	sent, err := s.sender.Send(pkts)
	v.note(pkts, sent, err)
	return sent, err
}

// IsLocal implements translator.LocalAddresses.
func (v *vpn) IsLocal(a netip.Addr) bool {
	s := v.open.Load()
	return s != nil && s.watch.IsLocal(a)
}

// opener opens the sockets for a unit, for senders with these prefixes.
func (v *vpn) opener(served []netip.Prefix, changed func(), log logrus.FieldLogger) func() (runner, error) {
	return func() (runner, error) {
		w, err := host.WatchPlace(v.place, families(served), log)
		if err != nil {
			return nil, err
		}
		w.OnLook = changed
		s := &vpnSockets{vpn: v, watch: w, changed: changed}
		err = host.Inside(v.place.Namespace, func() error {
			s.sender, err = emit.Open(emit.Config{Interface: v.place.Device, Mark: v.place.Mark})
			return err
		})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// families lists those of some prefixes.
func families(list []netip.Prefix) (out []int) {
	has := func(four bool) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Addr().Is4() == four })
	}
	if has(true) {
		out = append(out, unix.AF_INET)
	}
	if has(false) {
		out = append(out, unix.AF_INET6)
	}
	return out
}

// Begin implements beginner.
func (s *vpnSockets) Begin() {
	s.vpn.open.Store(s)
	s.changed()
}

// shut ends sending.
func (s *vpnSockets) shut() {
	s.vpn.open.CompareAndSwap(s, nil)
	s.changed()
}

// Run implements runner: it ends when the place is no longer what it was.
func (s *vpnSockets) Run(ctx context.Context) error {
	err := s.watch.Run(ctx)
	s.shut() // at once: nothing more may leave
	return err
}

// Close implements runner.
func (s *vpnSockets) Close() error {
	s.shut()
	return s.sender.Close()
}
