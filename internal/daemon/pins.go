package daemon

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/tap/kernel"
)

// pinStore is where programs keep maps and links over a crash. It is held while one of them is open.
type pinStore struct {
	root string
	log  logrus.FieldLogger

	mu   sync.Mutex
	pins *kernel.Pins
	uses int
	why  error // why nothing is pinned there
}

// errFilterOfAnother stands against a filter: it would take the place of the other one's.
var errFilterOfAnother = fmt.Errorf("clsact can't be had: %w: stop that one, or choose ring", kernel.ErrPinsHeld)

// removeLeft removes what an earlier run has left of its taps and nobody takes over. It says whether no other pncd was seen
// to have taps in this network namespace.
func removeLeft(root string, keepPins bool, log logrus.FieldLogger) (alone bool) {
	removed, err := kernel.RemoveLeft(root, keepPins)
	if len(removed) > 0 {
		log.WithField("removed", strings.Join(removed, ", ")).Info("an earlier run's tap was still in the kernel; it was removed")
	}
	if errors.Is(err, kernel.ErrPinsHeld) {
		log.WithError(err).Debug("what pncd's taps have in the kernel stays")
		return false
	}
	if err != nil {
		log.WithError(err).Warn("what an earlier run's tap has left in the kernel can't be removed")
	}
	return true
}

// take returns the pins, nil where they can't be had: then the programs go on without them. A filter needs none; but
// others must see that it is somebody's.
func (s *pinStore) take(mode kernel.Mode) *kernel.Pins {
	s.mu.Lock()
	defer s.mu.Unlock()
	filter := mode == kernel.Clsact
	if s.why = nil; filter {
		s.why = errors.New("a filter stays by itself, and the next start removes it")
	}
	if s.pins == nil {
		var err error
		if s.pins, err = kernel.OpenPins(s.root); err != nil {
			if s.pins = nil; !filter {
				s.why = err
				s.log.WithError(err).Warn("nothing can be pinned: pairs that are learned don't outlive a crash")
			}
			return nil
		}
	}
	s.uses++
	return s.pins
}

// leave gives back what take returned.
func (s *pinStore) leave(p *kernel.Pins) {
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses--; s.uses > 0 {
		return
	}
	if err := s.pins.Close(); err != nil {
		s.log.WithError(err).Warn("the folder of pinned objects was not removed")
	}
	s.pins = nil
}

// String says where the pins are, or why there are none.
func (s *pinStore) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.why != nil:
		return "not pinned: " + s.why.Error()
	case s.pins != nil:
		return "pinned in " + s.pins.Dir()
	}
	return ""
}
