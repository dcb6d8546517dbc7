package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/host"
	"pncd/igp"
	"pncd/internal/config"
	"pncd/pnc"
)

// protocol is what the daemon knows of an IGP beside its speaker.
type protocol struct {
	name   string // of its section in the configuration, of its part and of its counters
	link   string // what it calls an interface towards routers
	source pnc.Source
	policy func(*config.Config) *igpPolicy // nil: not configured
	// carries reports whether it can mark a prefix of a family with a proxy's address of a family.
	carries func(prefix, proxy netip.Addr) bool
}

// igpPolicy is what the configuration says of an IGP's capabilities.
type igpPolicy struct {
	advertise bool
	accept    []config.Prefix // proxies that are believed
}

// igpSpeaker is what all speakers have.
type igpSpeaker interface {
	Run(ctx context.Context) error
	Advertise(ads []igp.Advertisement)
	Replay(ctx context.Context) error
}

// igpPart is the speaker of an IGP, and what brings it the state of its interfaces.
type igpPart struct {
	protocol
	speaker igpSpeaker
	// changed tells the speaker the state of an interface; nil: it can't be used, or isn't there.
	changed func(ctx context.Context, name string, i *host.Interface) error
	stopped error // what it answers when the speaker doesn't run
	links   *host.Interfaces
	attach  *attachment
	log     logrus.FieldLogger

	mu        sync.Mutex
	marked    []igp.Advertisement
	notMarked int              // senders of a prefix that could be marked, if the proxy's address were of the other family
	names     []string         // of the interfaces
	errs      map[string]error // why one whose link is up isn't used
}

// newIGP makes a part without its speaker.
func (d *Daemon) newIGP(p protocol, names []string) *igpPart {
	log := d.log.WithField("part", p.name)
	part := &igpPart{protocol: p, log: log, attach: d.attach, names: names, errs: map[string]error{}}
	part.links = host.NewInterfaces(host.InterfacesConfig{Names: names, OnChange: part.linksChanged}, log)
	d.igps = append(d.igps, part)
	return part
}

// Run follows the interfaces as long as the speaker purges what it announced.
func (p *igpPart) Run(ctx context.Context) error {
	following, stop := context.WithCancel(context.Background())
	followed := make(chan error, 1)
	go func() { followed <- p.links.Run(following) }()
	spoke := make(chan error, 1)
	speaking, hush := context.WithCancel(ctx)
	defer hush()
	go func() { spoke <- p.speaker.Run(speaking) }()
	select {
	case err := <-spoke:
		stop()
		return errors.Join(err, <-followed)
	case err := <-followed: // not told to: nothing is known of the interfaces any more
		stop()
		hush()
		return errors.Join(err, <-spoke)
	}
}

// runIGPs runs all of them until ctx ends. They stop together: each may have to wait for its neighbours.
func (d *Daemon) runIGPs(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(d.igps))
	for _, p := range d.igps {
		go func() {
			defer stop()
			err := p.Run(running)
			if err == nil && running.Err() == nil {
				err = errors.New("ended without being told to")
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", p.name, err)
			}
			ended <- err
		}()
	}
	var errs []error
	for range d.igps {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// follow changes which interfaces there are.
func (p *igpPart) follow(names []string) {
	p.mu.Lock()
	p.names = names
	maps.DeleteFunc(p.errs, func(name string, _ error) bool { return !slices.Contains(names, name) })
	p.mu.Unlock()
	p.links.Follow(names)
}

// linksChanged tells the speaker the state of its interfaces; one that isn't there is down.
func (p *igpPart) linksChanged(now map[string]host.Interface) {
	p.mu.Lock()
	names := p.names
	p.mu.Unlock()
	p.attach.linksChanged(names, now)
	for _, name := range names {
		i, there := now[name]
		state := &i
		if !there || !i.Up || !i.Carrier {
			state = nil
		}
		err := p.changed(context.Background(), name, state)
		if errors.Is(err, p.stopped) {
			return
		}
		if err != nil {
			p.log.WithError(err).WithField(p.link, name).Errorf("the %s can't be used", p.link)
		}
		if !there {
			err = cmp.Or(p.attach.err(name), errors.New("there is no such interface"))
		}
		p.mu.Lock()
		p.errs[name] = err
		p.mu.Unlock()
	}
}

// linkError says why an interface isn't used; nil when it is, or is down. Why its pair can't be made counts also
// while an interface of that name is there.
func (p *igpPart) linkError(name string) error {
	err := p.attach.err(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(err, p.errs[name])
}

// protocols are the IGPs that there are.
var protocols = []protocol{isisProtocol, ospfv2Protocol, ospfv3Protocol, ospfapiProtocol}
