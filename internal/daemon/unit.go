package daemon

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	pncv1 "pncd/api/pnc/v1"
)

// A runner is an opened part of the mechanism: a ring, a socket. Run returns nil when ctx ends and an
// error when the part can't go on. Close is called once, after Run has returned.
type runner interface {
	Run(ctx context.Context) error
	Close() error
}

// A beginner is a runner that takes the place of another, or changes what others do: Begin is called once, before Run. It is not
// when the runner was opened: the change that it was opened for can still be refused.
type beginner interface{ Begin() }

// A detailer is a runner that says more about itself to an operator: in which mode it runs, and why.
type detailer interface{ Detail() string }

// An owner is a runner that has objects in the kernel, for as long as it is open.
type owner interface{ Objects() []*pncv1.HostObject }

// unitSpec describes a part that should run. Specs with equal keys are the same part: it is left
// alone when the configuration around it changes.
type unitSpec struct {
	name string // as shown to an operator: tap:eth0
	key  string // the name and every setting that needs a new one when it changes
	open func() (runner, error)
	from string // the key of the configuration that asks for it; empty: no one key does
	// health says what is wrong although the part runs: a link that is down, an address that is gone. Nil:
	// nothing can be.
	health func() error
	// detail tells an operator more while nothing is wrong. Nil: there is nothing more.
	detail func() string
}

// unitState says what a unit is doing.
type unitState int

const (
	unitRunning unitState = iota
	unitFailed            // waiting to be opened again
)

// unitStatus is the state of one unit for an operator.
type unitStatus struct {
	name  string
	state unitState
	err   error     // why it failed last; kept nil while it runs
	since time.Time // of the state

	// While it runs:
	detail  func() string       // of a detailer; nil without
	objects []*pncv1.HostObject // of an owner
}

// Restart delays of a failed unit: doubled from the first to the last.
const (
	firstRestart = 250 * time.Millisecond
	lastRestart  = 15 * time.Second
	// steady is how long a unit must have run for its next failure to count as the first again.
	steady = time.Minute
)

// unit is one running part and the goroutine that owns it.
type unit struct {
	spec   unitSpec
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	status unitStatus
}

// unitSet runs the units of the mechanism. A change is prepared first, which may fail and then leaves
// everything as it was, and committed afterwards, which can't fail.
type unitSet struct {
	log   logrus.FieldLogger
	ctx   context.Context // ends every unit
	first time.Duration   // restart delay, turned down by tests

	mu    sync.Mutex
	units map[string]*unit // by key
}

func newUnitSet(ctx context.Context, log logrus.FieldLogger) *unitSet {
	return &unitSet{log: log, ctx: ctx, first: firstRestart, units: map[string]*unit{}}
}

// change is a prepared step from the running units to those wanted.
type change struct {
	set    *unitSet
	opened map[string]runner // new ones, by key
	specs  []unitSpec
}

// prepare opens what the wanted units need and the running ones don't have yet. When one can't be
// opened, those opened for this change are closed again. One change at a time: the caller holds the
// daemon's control lock.
func (s *unitSet) prepare(specs []unitSpec) (*change, error) {
	c := &change{set: s, opened: map[string]runner{}, specs: specs}
	for _, spec := range specs {
		if s.has(spec.key) {
			continue
		}
		r, err := spec.open()
		if err != nil {
			c.abort()
			return nil, fmt.Errorf("%s: %w", cmp.Or(spec.from, spec.name), err)
		}
		c.opened[spec.key] = r
	}
	return c, nil
}

func (s *unitSet) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.units[key] != nil
}

// abort closes what prepare opened.
func (c *change) abort() {
	for _, r := range c.opened {
		_ = r.Close() // nothing ran on it; there is nobody to tell
	}
	c.opened = nil
}

// commit starts the new units and then stops those that are not wanted any more, so that a part that
// is replaced is never missing. It returns when the stopped ones are closed.
func (c *change) commit() {
	s := c.set
	for _, spec := range c.specs {
		begin(c.opened[spec.key]) // all of them, before one of them runs
	}
	s.mu.Lock()
	wanted := map[string]bool{}
	for _, spec := range c.specs {
		wanted[spec.key] = true
		if r := c.opened[spec.key]; r != nil {
			s.units[spec.key] = s.start(spec, r)
		}
	}
	var old []*unit
	for key, u := range s.units {
		if !wanted[key] {
			old = append(old, u)
			delete(s.units, key)
		}
	}
	s.mu.Unlock()
	for _, u := range old {
		u.cancel()
	}
	for _, u := range old {
		<-u.done
	}
}

func (s *unitSet) start(spec unitSpec, r runner) *unit {
	ctx, cancel := context.WithCancel(s.ctx)
	u := &unit{spec: spec, cancel: cancel, done: make(chan struct{})}
	u.set(unitRunning, nil, r)
	go func() {
		defer close(u.done)
		defer cancel()
		u.supervise(ctx, r, s.first, s.log.WithField("part", spec.name))
	}()
	return u
}

// begin tells r that it takes over, when that is of interest to it; nil is not.
func begin(r runner) {
	if b, ok := r.(beginner); ok {
		b.Begin()
	}
}

// supervise runs r, and when it fails opens and runs another, until ctx ends.
func (u *unit) supervise(ctx context.Context, r runner, first time.Duration, log logrus.FieldLogger) {
	delay := first
	for {
		began := time.Now()
		err := r.Run(ctx)
		if cerr := r.Close(); cerr != nil {
			log.WithError(cerr).Warn("closing failed")
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = fmt.Errorf("ended without being told to")
		}
		if time.Since(began) > steady {
			delay = first
		}
		log.WithError(err).Error("failed; will be started again")
		for r = nil; r == nil; {
			u.set(unitFailed, err, nil)
			if !pause(ctx, delay) {
				return
			}
			delay = min(2*delay, lastRestart)
			if r, err = u.spec.open(); err != nil {
				r = nil
				log.WithError(err).Warn("still can't be started")
			}
		}
		u.set(unitRunning, nil, r)
		begin(r)
		log.Info("started again")
	}
}

// pause waits and says whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (u *unit) set(state unitState, err error, r runner) {
	s := unitStatus{name: u.spec.name, state: state, err: err, since: time.Now()}
	if d, ok := r.(detailer); ok {
		s.detail = d.Detail
	}
	if o, ok := r.(owner); ok {
		s.objects = o.Objects()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status = s
}

// unitsByName are the states of the units.
type unitsByName map[string]unitStatus

func (s *unitSet) byName() unitsByName {
	out := unitsByName{}
	for _, u := range s.statuses() {
		out[u.name] = u
	}
	return out
}

// wrong says why a unit does not run, or runs in vain; empty when it does its part.
func (u unitsByName) wrong(spec unitSpec) string {
	s, there := u[spec.name]
	switch {
	case !there:
		return "does not run"
	case s.state == unitFailed:
		return s.err.Error()
	case spec.health != nil:
		if err := spec.health(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// statuses lists the units by name.
func (s *unitSet) statuses() []unitStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]unitStatus, 0, len(s.units))
	for _, u := range s.units {
		u.mu.Lock()
		out = append(out, u.status)
		u.mu.Unlock()
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out
}
