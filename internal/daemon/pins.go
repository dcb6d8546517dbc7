package daemon

import (
	"errors"
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
	why  error // why there are none
}

// take returns the pins, nil where they can't be had: then the programs go on without them.
func (s *pinStore) take(mode kernel.Mode) *kernel.Pins {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mode == kernel.Clsact {
		s.why = errors.New("a filter stays by itself, and the next start removes it")
		return nil
	}
	if s.pins == nil {
		var err error
		if s.pins, err = kernel.OpenPins(s.root); err != nil {
			s.pins, s.why = nil, err
			s.log.WithError(err).Warn("nothing can be pinned: pairs that are learned don't outlive a crash")
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
	case s.pins != nil:
		return "pinned in " + s.pins.Dir()
	case s.why != nil:
		return "not pinned: " + s.why.Error()
	}
	return ""
}
