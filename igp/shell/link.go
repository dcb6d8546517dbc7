package shell

import (
	"errors"
	"sync"
)

// Socket sends and receives on one link.
type Socket[F any] interface {
	// Receive waits for a frame, with buf to read it into. The frame keeps no part of buf, and takes no more
	// memory than its own length. It gives ErrClosed once the socket is closed.
	Receive(buf []byte) (F, error)
	Send(f F) error
	// Lost is how many frames the kernel has dropped since the last call because the socket's queue was full.
	Lost() uint64
	Close()
}

// link is the socket of a link that is up.
type link[F any] struct {
	Socket[F]
	readers sync.WaitGroup
}

// bufferLen is that of the longest frame: no interface has a greater MTU, and no IP datagram is longer.
const bufferLen = 1 << 16

// OpenLink gives a link, that has none, its socket.
func (s *Shell[F]) OpenLink(name string, sock Socket[F]) {
	l := &link[F]{Socket: sock}
	l.readers.Go(func() { s.read(l, name) })
	s.links[name] = l
}

// HasLink reports whether a link has a socket.
func (s *Shell[F]) HasLink(name string) bool { return s.links[name] != nil }

// CloseLink closes a link's socket, if there is one.
func (s *Shell[F]) CloseLink(name string) {
	if l := s.links[name]; l != nil {
		s.overflow.Add(l.Lost())
		l.Close()
		l.readers.Wait()
		delete(s.links, name)
	}
}

// CloseLinks closes the sockets of the links whose name is one of those.
func (s *Shell[F]) CloseLinks(one func(name string) bool) {
	for name := range s.links {
		if one(name) {
			s.CloseLink(name)
		}
	}
}

// CountLost adds to Overflow what the kernel has dropped.
func (s *Shell[F]) CountLost() {
	for _, l := range s.links {
		s.overflow.Add(l.Lost())
	}
}

// read brings frames to the machine until the socket is closed.
func (s *Shell[F]) read(l *link[F], name string) {
	buf := make([]byte, bufferLen)
	for {
		f, err := l.Receive(buf)
		if err != nil {
			if !errors.Is(err, ErrClosed) {
				s.Log.WithError(err).WithField(s.LinkWord, name).Errorf("%s: the %s can't be read any more", s.Protocol, s.LinkWord)
			}
			return
		}
		select {
		case s.frames <- f:
		default:
			s.overflow.Add(1)
		}
	}
}

// send sends a frame, if its link is up.
func (s *Shell[F]) send(f F) {
	name := s.LinkOf(f)
	l := s.links[name]
	if l == nil {
		return
	}
	if err := l.Send(f); err != nil {
		s.sendErrors.Add(1)
		s.Log.WithError(err).WithField(s.LinkWord, name).Debug(s.Protocol + ": frame not sent")
	}
}
