package daemon

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/host"
	"pncd/internal/config"
)

// attachment makes the veth pairs of the IGPs, makes those again that vanish, as with the router's namespace, and
// removes them at the end.
type attachment struct {
	log    logrus.FieldLogger
	ensure func(host.VethConfig) (made bool, err error)
	mend   func(host.VethConfig) (added []host.Address, err error)
	remove func(host.VethConfig) error
	// onChange is told what somebody else changed, and why it could not be undone.
	onChange func(kind pncv1.HostObjectKind, name, change string, err error)
	retry    time.Duration
	look     time.Duration
	wake     chan struct{}

	mu     sync.Mutex
	wanted map[string]host.VethConfig // by interface
	due    map[string]bool            // to be made, or brought to what is configured
	there  map[string]bool            // was made or adopted: if it isn't there, somebody removed it
	short  map[string]bool            // lacks an address
	gone   []host.VethConfig          // to be removed
	errs   map[string]error
}

const (
	// retryAttach is the pause after a pair that couldn't be made: what it needs, a namespace or a bridge, may come.
	retryAttach = time.Second
	// lookAtPeers is how often the other ends are looked at. A subscription would hear of their changes at once, but
	// its socket keeps the router's namespace, and with it the router's end, alive when the router is gone.
	lookAtPeers = 5 * time.Second
)

func newAttachment(wanted map[string]host.VethConfig, log logrus.FieldLogger) *attachment {
	a := &attachment{log: log, ensure: host.EnsureVeth, mend: host.MendVeth, remove: host.RemoveVeth,
		onChange: func(pncv1.HostObjectKind, string, string, error) {}, retry: retryAttach, look: lookAtPeers, wake: make(chan struct{}, 1),
		wanted: map[string]host.VethConfig{}, due: map[string]bool{}, there: map[string]bool{}, short: map[string]bool{}, errs: map[string]error{}}
	a.want(wanted)
	return a
}

// veths are the pairs that a configuration asks for. The owner is what marks them: of one pncd at most in a network
// namespace with this interface.
func veths(c *config.Config) map[string]host.VethConfig {
	out := map[string]host.VethConfig{}
	add := func(name string, v *config.Veth, owner string) {
		if v != nil {
			out[name] = host.VethConfig{
				Name: name, Peer: v.Peer, PeerNamespace: v.Namespace, Bridge: v.Bridge, MTU: v.MTU, Owner: owner,
				Addresses: prefixes(v.Addresses), PeerAddresses: prefixes(v.PeerAddresses),
			}
		}
	}
	if c.ISIS != nil {
		for _, x := range c.ISIS.Circuits {
			add(x.Interface, x.Veth, "pncd isis circuit")
		}
	}
	for _, o := range c.OSPFs() {
		for _, x := range o.Links {
			add(x.Interface, x.Veth, "pncd ospf link")
		}
	}
	return out
}

// want changes the pairs: what isn't wanted any more is removed.
func (a *attachment) want(next map[string]host.VethConfig) {
	a.mu.Lock()
	for name, v := range a.wanted {
		if _, still := next[name]; !still {
			a.gone = append(a.gone, v)
			delete(a.due, name)
			delete(a.there, name)
			delete(a.short, name)
			delete(a.errs, name)
		}
	}
	for name, v := range next {
		if old, had := a.wanted[name]; !had || !reflect.DeepEqual(old, v) {
			a.due[name] = true
			delete(a.there, name) // another pair than the one that was made: what is done to that is our doing
		}
	}
	a.wanted = maps.Clone(next)
	a.mu.Unlock()
	a.poke()
}

// linksChanged makes pairs again that aren't there of those that are looked at, and gives them addresses that they
// lack. One that is down or has lost a port is left alone: that may be an operator's wish.
func (a *attachment) linksChanged(names []string, now map[string]host.Interface) {
	a.mu.Lock()
	for _, name := range names {
		v, wanted := a.wanted[name]
		i, there := now[name]
		switch {
		case !wanted:
		case !there:
			a.due[name] = true
		case i.Up && slices.ContainsFunc(v.Addresses, func(p netip.Prefix) bool { return !slices.Contains(i.Addresses, p) }):
			a.short[name] = true
		}
	}
	a.mu.Unlock()
	a.poke()
}

func (a *attachment) poke() {
	select {
	case a.wake <- struct{}{}:
	default: // a round is due already
	}
}

// err says why an interface's pair isn't there.
func (a *attachment) err(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.errs[name]
}

// run makes pairs until ctx ends, then removes them.
func (a *attachment) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	look := time.NewTicker(a.look)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return a.removeAll()
		case <-a.wake:
		case <-timer.C:
		case <-look.C:
			a.lookAtPeers()
		}
		if !a.round() {
			timer.Reset(a.retry)
		}
	}
}

// lookAtPeers asks for a look at the pairs whose other end has addresses of ours.
func (a *attachment) lookAtPeers() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, v := range a.wanted {
		if len(v.PeerAddresses) > 0 && a.there[name] && !a.due[name] {
			a.short[name] = true
		}
	}
}

// round does what is due, and reports whether nothing failed.
func (a *attachment) round() bool {
	a.mu.Lock()
	gone, due, short := a.gone, map[string]host.VethConfig{}, map[string]host.VethConfig{}
	a.gone = nil
	for name := range a.due {
		due[name] = a.wanted[name]
	}
	for name := range a.short {
		if !a.due[name] {
			short[name] = a.wanted[name]
		}
	}
	clear(a.due)
	clear(a.short)
	a.mu.Unlock()
	for _, v := range gone {
		if err := a.remove(v); err != nil {
			a.log.WithError(err).Warn("a veth pair is left")
		}
	}
	done := true
	for name, v := range due {
		done = a.make(name, v) && done
	}
	for name, v := range short {
		done = a.readdress(name, v) && done
	}
	return done
}

// make makes a pair or adopts it, and reports whether that succeeded.
func (a *attachment) make(name string, v host.VethConfig) bool {
	made, err := a.ensure(v)
	removed := func(err error) { a.onChange(pncv1.HostObjectKind_HOST_OBJECT_KIND_VETH, name, "removed", err) }
	a.mu.Lock()
	if now, still := a.wanted[name]; !still || !reflect.DeepEqual(now, v) {
		a.mu.Unlock()
		return true // changed meanwhile: it is due again, or to be removed
	}
	was, old := a.there[name], a.errs[name]
	a.errs[name], a.there[name] = err, was || err == nil
	if err != nil {
		a.due[name] = true
	}
	a.mu.Unlock()
	switch {
	case err == nil && made && was:
		a.log.WithField("interface", name).Warn("somebody removed the veth pair; it is made again")
		removed(nil)
	case err != nil && (old == nil || old.Error() != err.Error()):
		a.log.WithError(err).WithField("interface", name).Error("the interface can't be made, trying again")
		if was {
			removed(err)
		}
	}
	return err == nil
}

// readdress gives a pair's ends the addresses that they lack, and reports whether that succeeded.
func (a *attachment) readdress(name string, v host.VethConfig) bool {
	added, err := a.mend(v)
	for _, x := range added {
		a.log.WithFields(logrus.Fields{"interface": x.Interface, "address": x.Prefix}).Warn("somebody removed the address; it is put back")
		a.onChange(pncv1.HostObjectKind_HOST_OBJECT_KIND_ADDRESS, x.Prefix.String()+" of "+x.Interface, "removed", nil)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, still := a.wanted[name]; !still {
		return true
	}
	old := a.errs[name]
	if a.errs[name] = err; err != nil {
		a.short[name] = true
		if old == nil || old.Error() != err.Error() {
			a.log.WithError(err).WithField("interface", name).Error("addresses can't be put back, trying again")
			a.onChange(pncv1.HostObjectKind_HOST_OBJECT_KIND_ADDRESS, name, "addresses are lacking", err)
		}
	}
	return err == nil
}

// objects lists the pairs and their addresses.
func (a *attachment) objects() (out []*pncv1.HostObject) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.wanted)) {
		v, problem := a.wanted[name], ""
		if err := a.errs[name]; err != nil {
			problem = err.Error()
		} else if !a.there[name] {
			problem = "not made yet"
		}
		peer := "the other end is " + v.Peer
		if v.PeerNamespace != "" {
			peer += " in namespace " + v.PeerNamespace
		}
		out = append(out, &pncv1.HostObject{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_VETH, Name: name, Detail: peer, Error: problem})
		for _, p := range v.Addresses {
			out = append(out, &pncv1.HostObject{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_ADDRESS, Name: p.String() + " of " + name, Error: problem})
		}
		for _, p := range v.PeerAddresses {
			out = append(out, &pncv1.HostObject{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_ADDRESS, Name: p.String() + " of " + v.Peer, Namespace: v.PeerNamespace, Error: problem})
		}
	}
	return out
}

func (a *attachment) removeAll() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for name, v := range a.wanted {
		if err := a.remove(v); err != nil && !(errors.Is(err, host.ErrNotOurs) && a.errs[name] != nil) {
			errs = append(errs, err)
		}
	}
	for _, v := range a.gone {
		errs = append(errs, a.remove(v))
	}
	return errors.Join(errs...)
}
