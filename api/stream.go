package api

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/codes"

	"pncd/pnc"
	"pncd/proxyagent/evidence"
)

// watch opens a feed and hands its items to send until ctx ends (the client goes, or the server stops) or
// the feed ends. send returns false for an item that the client did not ask for: what was dropped before it is
// reported with the next one.
func watch[T any](s *Server, ctx context.Context, open func() (Stream[T], error), send func(item T, dropped uint64) (sent bool, err error)) error {
	free, err := s.watcher()
	if err != nil {
		return err
	}
	defer free()
	feed, err := open()
	if err != nil {
		return err
	}
	defer feed.Close()

	defer context.AfterFunc(ctx, feed.Close)() // wakes a feed that does not follow its context

	var dropped uint64
	for {
		item, lost, err := feed.Next(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, evidence.ErrClosed) {
				return &Error{Code: codes.Unavailable, Reason: ReasonStopping, Msg: "what is watched was switched off or stopped; watch again"}
			}
			return err
		}
		s.stats.dropped.Add(lost)
		dropped += lost
		sent, err := send(item, dropped)
		if err != nil {
			return err
		}
		if sent {
			dropped = 0
		}
	}
}

// watcher takes a place among the clients that have a stream.
func (s *Server) watcher() (free func(), err error) {
	select {
	case s.watchers <- struct{}{}:
		return func() { <-s.watchers }, nil
	default:
		return nil, TooMany("too many clients have a stream; end one of them")
	}
}

// tableFeed makes the table's watcher a Stream: the history first, then what happens.
type tableFeed struct{ w *pnc.Watcher }

func (f *tableFeed) Next(ctx context.Context) (e pnc.Event, dropped uint64, err error) {
	if h := f.w.History; len(h) > 0 {
		f.w.History = h[1:]
		return h[0], 0, nil
	}
	select {
	case d, ok := <-f.w.C:
		if !ok {
			return e, 0, io.EOF
		}
		return d.Event, d.Dropped, nil
	case <-ctx.Done():
		return e, 0, ctx.Err()
	}
}

func (f *tableFeed) Close() { f.w.Close() }
