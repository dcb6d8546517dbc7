package boundary

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// checkInterval is how often the kernel is looked at without being told of a change, so that a missed
// notification heals.
const checkInterval = 5 * time.Second

// Config says where a Filter works.
type Config struct {
	// Namespace is a file descriptor of the network namespace; 0: the process's own. It stays open.
	Namespace int
	// OnChange is told what somebody else changed, by table, and what became of it, from the goroutine of Run. It
	// must not block, nor call the Filter. May be nil.
	OnChange func(Change)
}

// Change is a table of ours that somebody else changed.
type Change struct {
	Table string // as nft names it: inet pncd
	What  string // removed, changed
	Err   error  // why it could not be put back, the first time; nil: it was
}

// Filter keeps one policy in the kernel. Its methods may be called from any goroutine.
type Filter struct {
	kernel   kernel
	log      logrus.FieldLogger
	onChange func(Change)

	mu     sync.Mutex
	policy *Policy // nil: nothing is to be there
	has    Support
	probed bool
	owned  map[int]bool // by family: made or adopted by us, so ours without its mark, too
	counts tally
	absent []string // interfaces of the policy that don't exist
	err    error    // of the last check
	mended uint64

	applied chan struct{} // tells Run
}

// New makes a filter with nothing in it.
func New(cfg Config, log logrus.FieldLogger) *Filter {
	return &Filter{kernel: kernel{netns: cfg.Namespace}, log: log, onChange: cfg.OnChange, owned: map[int]bool{}, counts: newTally(), applied: make(chan struct{}, 1)}
}

// Apply puts a policy into the kernel in one transaction, or with nil removes everything that is ours there,
// also what another run left behind. An error leaves the kernel as it was.
func (f *Filter) Apply(p *Policy) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.policy
	if p != nil && !f.probed {
		has, err := f.kernel.probe()
		if err != nil {
			return err
		}
		f.has, f.probed = has, true
	}
	f.policy = p
	did, absent, err := f.sync()
	if err != nil {
		f.policy = old
		return err
	}
	f.absent, f.err = absent, nil
	if p != nil {
		select {
		case f.applied <- struct{}{}:
		default:
		}
	}
	if len(did) > 0 {
		f.log.WithField("tables", did.String()).Info("the border filter is programmed")
	}
	if p != nil {
		for _, l := range p.lacks(f.has) {
			f.log.Warn("border filter: " + l)
		}
	}
	return nil
}

// sync makes the kernel's tables what they should be, and says what it found and did; none: nothing was to do. An
// error is about what was found. absent are the policy's interfaces that don't exist.
func (f *Filter) sync() (found differences, absent []string, err error) {
	have, err := f.kernel.read()
	if err != nil {
		return nil, nil, err
	}
	if err := f.checkOwner(have); err != nil {
		return nil, nil, err
	}
	f.counts.adopt(have)
	f.counts.add(have)
	var want Ruleset
	if f.policy != nil {
		exists, err := f.kernel.links()
		if err != nil {
			return nil, nil, err
		}
		if want, err = Build(f.policy, f.has, exists); err != nil {
			return nil, nil, err
		}
		absent = f.policy.missing(exists)
	}
	if found = compare(want, have); len(found) > 0 {
		if err := f.kernel.program(want, have); err != nil {
			return found, absent, err
		}
		f.counts.programmed(want, have)
	}
	for _, family := range families {
		f.owned[int(family)] = want.table(family) != nil
	}
	return found, absent, nil
}

// checkOwner refuses to touch a table of somebody else.
func (f *Filter) checkOwner(have Ruleset) error {
	for i := range have {
		t := &have[i]
		if !t.marked() && !f.owned[int(t.Family)] {
			return fmt.Errorf("boundary: table %s %s is there already and was %w: delete it ('nft delete table %s %s') or leave the boundary section out",
				familyName(t.Family), t.Name, ErrForeign, familyName(t.Family), t.Name)
		}
	}
	return nil
}

// difference is a table that isn't what it should be.
type difference struct{ table, found, did string }

type differences []difference

// String names the tables that were made, replaced or removed.
func (d differences) String() string {
	var out []string
	for _, x := range d {
		out = append(out, x.table+" "+x.did)
	}
	return strings.Join(out, ", ")
}

func compare(want, have Ruleset) (out differences) {
	for _, family := range families {
		w, h := want.table(family), have.table(family)
		name := tableName(family)
		switch {
		case w == nil && h == nil:
		case h == nil:
			out = append(out, difference{name, "removed", "made"})
		case w == nil:
			out = append(out, difference{name, "added", "removed"})
		case (Ruleset{*w}).stateless() != (Ruleset{*h}).stateless():
			out = append(out, difference{name, "changed", "replaced"})
		}
	}
	return out
}

// Run puts back what somebody changes until ctx ends, and removes everything then. Without a policy it asks the
// kernel for nothing, so that it needs no capability.
func (f *Filter) Run(ctx context.Context) error {
	t := time.NewTicker(checkInterval)
	defer t.Stop()
	var w *watcher
	var changed chan struct{}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-f.applied:
			if w == nil {
				var err error
				if w, err = f.kernel.watch(); err != nil {
					f.log.WithError(err).Errorf("changes of the border filter are noticed only every %s", checkInterval)
					continue
				}
				changed = w.changed
			}
		case <-changed:
			f.check()
		case <-t.C:
			f.check()
		}
	}
	if w != nil {
		w.close()
	}
	if !f.inForce() {
		return nil
	}
	return f.Apply(nil)
}

func (f *Filter) inForce() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.policy != nil
}

// check compares the kernel with the policy and mends it.
func (f *Filter) check() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.policy == nil {
		return
	}
	f.note(f.sync())
}

// note logs and tells what a check found. Where other interfaces exist than before, the difference is theirs and not
// somebody's change, also when it can't be followed.
func (f *Filter) note(found differences, absent []string, err error) {
	follows := !slices.Equal(absent, f.absent)
	switch {
	case err != nil:
		if f.err == nil || f.err.Error() != err.Error() {
			f.log.WithError(err).Error("the border filter is not what it should be")
			if !follows {
				f.tell(found, err)
			}
		}
	case len(found) > 0 && !follows:
		f.mended++
		f.log.WithField("tables", found.String()).Warn("somebody changed the border filter; it is put back")
		f.tell(found, nil)
	case len(found) > 0:
		f.log.WithFields(logrus.Fields{"tables": found.String(), "absent": absent}).Info("the border filter follows the interfaces")
	}
	if f.err = err; err == nil {
		f.absent = absent
	}
}

func (f *Filter) tell(found differences, err error) {
	if f.onChange == nil {
		return
	}
	for _, x := range found {
		f.onChange(Change{Table: x.table, What: x.found, Err: err})
	}
}
