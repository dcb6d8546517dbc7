package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"
)

// services run as long as the process does. They start in the order given and stop in the reverse one,
// each waited for, so that nothing loses what it depends on while it stops.
type services struct {
	log    logrus.FieldLogger
	list   []*service
	failed chan error // gets the first failure
}

type service struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
}

func newServices(log logrus.FieldLogger) *services {
	return &services{log: log, failed: make(chan error, 1)}
}

// start runs a service in its own goroutine. One that returns before it is told to has failed, and with
// it the process: the system starts it again.
func (s *services) start(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	svc := &service{name: name, cancel: cancel, done: make(chan struct{})}
	s.list = append(s.list, svc)
	go func() {
		defer close(svc.done)
		err := run(ctx)
		if ctx.Err() == nil {
			if err == nil {
				err = errors.New("ended without being told to")
			}
			select {
			case s.failed <- fmt.Errorf("%s: %w", name, err):
			default: // another one failed before; its error is the one to report
			}
			return
		}
		if err != nil {
			s.log.WithError(err).WithField("part", name).Warn("stopping was not clean")
		}
	}()
}

// stop ends all services.
func (s *services) stop() {
	for i := len(s.list) - 1; i >= 0; i-- {
		s.list[i].cancel()
		<-s.list[i].done
	}
	s.list = nil
}
