package daemon

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/host"
	"pncd/internal/config"
)

// attachment makes the veth pairs of the IGPs, makes those again that vanish, as with the router's namespace, and
// removes them at the end.
type attachment struct {
	log    logrus.FieldLogger
	ensure func(host.VethConfig) error
	remove func(host.VethConfig) error
	retry  time.Duration
	wake   chan struct{}

	mu     sync.Mutex
	wanted map[string]host.VethConfig // by interface
	due    map[string]bool            // to be made, or brought to what is configured
	gone   []host.VethConfig          // to be removed
	errs   map[string]error
}

// retryAttach is the pause after a pair that couldn't be made: what it needs, a namespace or a bridge, may come.
const retryAttach = time.Second

func newAttachment(wanted map[string]host.VethConfig, log logrus.FieldLogger) *attachment {
	a := &attachment{log: log, ensure: host.EnsureVeth, remove: host.RemoveVeth, retry: retryAttach, wake: make(chan struct{}, 1),
		wanted: map[string]host.VethConfig{}, due: map[string]bool{}, errs: map[string]error{}}
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
			delete(a.errs, name)
		}
	}
	for name, v := range next {
		if old, had := a.wanted[name]; !had || !reflect.DeepEqual(old, v) {
			a.due[name] = true
		}
	}
	a.wanted = maps.Clone(next)
	a.mu.Unlock()
	a.poke()
}

// linksChanged makes pairs again that aren't there of those that are looked at. One that is down or has lost a port
// is left alone: that may be an operator's wish.
func (a *attachment) linksChanged(names []string, now map[string]host.Interface) {
	a.mu.Lock()
	for _, name := range names {
		_, wanted := a.wanted[name]
		if _, there := now[name]; wanted && !there {
			a.due[name] = true
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
	for {
		select {
		case <-ctx.Done():
			return a.removeAll()
		case <-a.wake:
		case <-timer.C:
		}
		if !a.round() {
			timer.Reset(a.retry)
		}
	}
}

// round does what is due, and reports whether nothing failed.
func (a *attachment) round() bool {
	a.mu.Lock()
	gone, due := a.gone, map[string]host.VethConfig{}
	a.gone = nil
	for name := range a.due {
		due[name] = a.wanted[name]
	}
	clear(a.due)
	a.mu.Unlock()
	for _, v := range gone {
		if err := a.remove(v); err != nil {
			a.log.WithError(err).Warn("a veth pair is left")
		}
	}
	done := true
	for name, v := range due {
		err := a.ensure(v)
		a.mu.Lock()
		if _, still := a.wanted[name]; err != nil && still {
			done, a.due[name] = false, true
			if old := a.errs[name]; old == nil || old.Error() != err.Error() {
				a.log.WithError(err).WithField("interface", name).Error("the interface can't be made, trying again")
			}
		}
		a.errs[name] = err
		a.mu.Unlock()
	}
	return done
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
