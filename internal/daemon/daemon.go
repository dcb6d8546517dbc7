package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/api"
	"pncd/bgp"
	"pncd/dataplane/boundary"
	"pncd/dataplane/detect"
	"pncd/dataplane/detect/qdisc"
	"pncd/dataplane/host"
	tapkernel "pncd/dataplane/tap/kernel"
	"pncd/internal/config"
	"pncd/internal/telemetry"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

// Daemon is one running pncd.
type Daemon struct {
	log     *logrus.Logger
	path    string // of the configuration file
	node    string
	boot    string
	started time.Time
	now     func() time.Time
	pins    string                   // where an earlier run's tap may have left something
	probe   func() tapkernel.Support // what the kernel offers, asked once and when it matters: it loads a program to try

	table    *pnc.Table
	recorder *evidence.Recorder
	tracker  *host.Tracker
	routes   *host.Routes // which senders' prefixes there are, for those that follow the kernel
	speaker  *bgp.Speaker // nil: no BGP
	igps     []*igpPart   // those that are configured
	isis     *isisPart    // nil: no IS-IS
	ospf     []*ospfPart  // OSPFv2 before OSPFv3
	ospfapi  *ospfapiPart // nil: nothing is learned through FRR's API
	attach   *attachment  // of the IGPs
	boundary *borderFilter
	api      *api.Server
	rings    *ringBook
	contexts *contextBook
	lost     lostEvents

	samplers    linkBook[*detect.Sampler]
	pollers     linkBook[*qdisc.Poller]
	qdiscs      qdiscCounts
	reportGates linkBook[*reportGate] // of no link
	reports     reportCounts

	sender  senderSwitch
	senders *senderReadiness
	paths   *host.Tracker // whether CNPs to the senders have a route

	notRoCEv2 atomic.Uint64 // packets seen by taps that don't parse
	config    atomic.Pointer[config.Config]
	routeBook atomic.Pointer[routeBook]
	appliedAt atomic.Int64 // Unix nanoseconds
	parts     atomic.Pointer[parts]
	enabled   atomic.Bool
	starting  atomic.Bool // the mechanism is about to be enabled for the first time
	marking   atomic.Bool // the IGPs may mark prefixes: from enabling until just before disabling

	control  sync.Mutex // held while the configuration or the switch changes
	stopping bool       // the switch stays off from now on
	units    *unitSet
}

// New makes a daemon from a configuration; nothing is opened yet.
func New(cfg *config.Config, path string, log *logrus.Logger) (*Daemon, error) {
	d := &Daemon{log: log, path: path, node: cfg.Node, boot: bootID(), started: time.Now(), now: time.Now, pins: tapkernel.DefaultPins, probe: sync.OnceValue(tapkernel.Probe), rings: newRingBook(), contexts: newContextBook()}
	if d.node == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("node: no name in the configuration, and the host has none: %w", err)
		}
		d.node = name
	}
	var err error
	if d.recorder, err = evidence.NewRecorder(evidence.Config{Node: d.node, Boot: d.boot, Capacity: cfg.Evidence.Records}); err != nil {
		return nil, err
	}
	d.table = pnc.New(tableSettings(cfg))
	d.table.SetStatic(d.now(), staticRoutes(cfg))
	d.tracker = host.NewTracker(host.Config{AllowDefault: cfg.Resolve.ProxyViaDefaultRoute, OnChange: d.reachChanged}, log.WithField("part", "routes"))
	d.routes = host.NewRoutes(host.RoutesConfig{OnChange: d.routesChanged}, log.WithField("part", "sources"))
	d.routes.Follow(routeSources(cfg)...)
	// A CNP goes by any route, the default one included.
	d.paths = host.NewTracker(host.Config{AllowDefault: true}, log.WithField("part", "sender-paths"))
	d.senders = newSenderReadiness(newSenderPaths(d.paths))
	d.contexts.inForce(cfg)
	d.config.Store(cfg)
	d.appliedAt.Store(d.now().UnixNano())
	d.parts.Store(&parts{})
	p, err := d.partsFor(cfg)
	if err != nil {
		return nil, err
	}
	d.parts.Store(p)
	if cfg.BGP != nil {
		settings, err := bgpSettings(cfg)
		if err != nil {
			return nil, err
		}
		if settings, err = withOwn(settings); err != nil {
			return nil, err
		}
		settings.Restart.Restarted = leftBehind(&cfg.BGP.GracefulRestart)
		if d.speaker, err = bgp.NewSpeaker(settings, d.table, d.now, log.WithField("part", "bgp")); err != nil {
			return nil, err
		}
	}
	d.boundary = &borderFilter{Filter: boundary.New(boundary.Config{OnChange: d.boundaryChanged}, log.WithField("part", "boundary"))}
	d.attach = newAttachment(veths(cfg), log.WithField("part", "interfaces"))
	d.attach.onChange = d.hostChanged
	if cfg.ISIS != nil {
		if err = d.newISIS(cfg); err != nil {
			return nil, err
		}
	}
	if err = d.newOSPF(cfg); err != nil {
		return nil, err
	}
	if cfg.OSPFAPI != nil {
		if err = d.newOSPFAPI(cfg); err != nil {
			return nil, err
		}
	}
	d.api = api.New(d.backends(), api.Options{Log: log.WithField("part", "api")})
	return d, nil
}

// bootID identifies this run: records of different runs never mix.
func bootID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// Run opens everything, serves until ctx ends, and stops in order. A value on reload applies the
// configuration file again. The error says what could not be opened, or which service failed.
func (d *Daemon) Run(ctx context.Context, reload <-chan os.Signal) error {
	cfg := d.config.Load()
	d.warn(cfg)
	d.starting.Store(cfg.Enabled)
	listener, err := (&api.ListenConfig{
		Address: cfg.API.Listen, Group: cfg.API.Group, TLS: tlsSettings(cfg.API.TLS),
	}).Listen(ctx)
	if err != nil {
		return err
	}
	var exporter *telemetry.Server
	if cfg.Telemetry.Listen != "" {
		exporter, err = telemetry.Listen(telemetry.Config{
			Address: cfg.Telemetry.Listen, AllowRemote: cfg.Telemetry.AllowRemote,
		}, exported{d}, d, d.log.WithField("part", "telemetry"))
		if err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	if err := d.openBoundary(cfg); err != nil {
		err = errors.Join(err, listener.Close())
		if exporter != nil {
			err = errors.Join(err, exporter.Close())
		}
		return err
	}
	if !cfg.Enabled || cfg.Proxy == nil { // else the learner does it, which may take it over
		removeLeft(d.pins, false, d.log.WithField("part", "learner"))
	}
	unitsCtx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.units = newUnitSet(unitsCtx, d.log)
	services := newServices(d.log)
	defer services.stop()

	// In the order in which they start; they stop in the reverse one.
	services.start("api", func(ctx context.Context) error { return d.api.Serve(ctx, listener) })
	if exporter != nil {
		services.start("telemetry", exporter.Run)
	}
	services.start("boundary", d.boundary.Run) // stops after everything that has a socket
	services.start("routes", d.tracker.Run)
	services.start("reachability", d.followProxies)
	services.start("sources", d.routes.Run)
	services.start("sender paths", d.paths.Run)
	services.start("clock", d.tick)
	services.start("readiness", d.keepReadiness)
	if d.speaker != nil {
		services.start("bgp", d.runSpeaker)
	}
	if len(d.igps) > 0 {
		services.start("interfaces", d.attach.run) // removes them when what was announced is purged
		services.start("igp", d.runIGPs)
	}
	if d.ospfapi != nil {
		services.start(d.ospfapi.name, d.ospfapi.Run)
	}
	return d.serve(ctx, services, reload)
}

// warn logs what of a configuration does nothing.
func (d *Daemon) warn(c *config.Config) {
	for _, w := range c.Warnings() {
		d.log.WithFields(logrus.Fields{"key": w.Key, "line": w.Line}).Warn("the configuration: " + w.Rule)
	}
}

// serve is Run once the services run.
func (d *Daemon) serve(ctx context.Context, services *services, reload <-chan os.Signal) error {
	defer d.stopMechanism() // from here on: the API answers already, and can enable
	if d.speaker != nil {
		select {
		case <-d.speaker.Ready():
		case err := <-services.failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
	if d.config.Load().Enabled {
		d.control.Lock()
		err := d.enable()
		d.control.Unlock()
		if err != nil {
			return err
		}
	}
	d.starting.Store(false)
	notifySystemd(d.log, "READY=1")
	d.log.WithFields(logrus.Fields{"node": d.node, "boot": d.boot, "enabled": d.Enabled()}).Info("running")
	for {
		select {
		case <-ctx.Done():
			notifySystemd(d.log, "STOPPING=1")
			d.log.Info("stopping")
			return nil
		case err := <-services.failed:
			return err
		case <-reload:
			notifySystemd(d.log, reloading())
			_, _ = d.Reload(ctx) // which logs its error; the running configuration stays
			notifySystemd(d.log, "READY=1")
		}
	}
}

// stopMechanism withdraws first and closes then, for good; the services stop after it.
func (d *Daemon) stopMechanism() {
	d.control.Lock()
	defer d.control.Unlock()
	d.stopping = true
	if d.enabled.Load() && !d.keepsOnStop() {
		d.disable()
	}
}

// tick does what is due by the clock: entries of the Source-QP map age, and health follows readiness.
func (d *Daemon) tick(ctx context.Context) error {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		if l, p := d.parts.Load().learner, d.config.Load().Proxy; l != nil && p != nil {
			l.tick(d.rings.list(), p.Map.Age.Duration)
		}
		d.countBoundary()
		d.countKernel()
		ready, _ := d.Ready()
		d.api.SetReady(ready)
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}
