package api

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	pncv1 "pncd/api/pnc/v1"
)

// maxCode is the highest code of gRPC (UNAUTHENTICATED).
const maxCode = codes.Unauthenticated

// stats are the server's own counters.
type stats struct {
	byCode  [maxCode + 1]atomic.Uint64
	panics  atomic.Uint64
	dropped atomic.Uint64
	streams atomic.Int64
}

// Stats are the server's own counters since it was made.
type Stats struct {
	Calls         map[string]uint64 // finished calls and streams by gRPC code, as in OK or NotFound
	Panics        uint64            // handlers that panicked; each answered INTERNAL
	StreamDropped uint64            // items that watching clients were too slow for
	Streams       int               // streams open now
}

// Stats reads the counters. Every code is there, so that a reader sees a zero and not nothing.
func (s *Server) Stats() Stats {
	st := Stats{
		Calls:         make(map[string]uint64, len(s.stats.byCode)),
		Panics:        s.stats.panics.Load(),
		StreamDropped: s.stats.dropped.Load(),
		Streams:       int(s.stats.streams.Load()),
	}
	for c := range s.stats.byCode {
		st.Calls[codes.Code(c).String()] = s.stats.byCode[c].Load()
	}
	return st
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (res any, err error) {
	start := s.opts.Now()
	defer func() {
		err = s.finish(ctx, info.FullMethod, start, recover(), err)
		if err != nil {
			res = nil
		}
	}()
	return next(ctx, req)
}

func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	start := s.opts.Now()
	s.stats.streams.Add(1)
	ctx, cancel := context.WithCancelCause(ss.Context())
	detach := context.AfterFunc(s.life, func() { cancel(Stopping()) })
	defer func() {
		detach()
		cancel(nil)
		s.stats.streams.Add(-1)
		err = s.finish(ss.Context(), info.FullMethod, start, recover(), err)
	}()
	return next(srv, stoppable{ss, ctx})
}

// stoppable is a stream whose context also ends when the server stops. Without it every client that
// follows something, health included, would hold up the stop.
type stoppable struct {
	grpc.ServerStream
	ctx context.Context
}

// Context is the stream's context.
func (s stoppable) Context() context.Context { return s.ctx }

// changing are the calls that change what the node does: an operator finds them in the log.
var changing = map[string]bool{
	pncv1.CapabilityService_Advertise_FullMethodName: true,
	pncv1.CapabilityService_Withdraw_FullMethodName:  true,
	pncv1.NodeService_Enable_FullMethodName:          true,
	pncv1.NodeService_Disable_FullMethodName:         true,
	pncv1.NodeService_Reload_FullMethodName:          true,
	pncv1.NodeService_SetLogLevel_FullMethodName:     true,
}

// finish turns what a handler ended with into a status and counts it. A panic is a bug of ours: the
// client learns only that, the log has the stack, and the daemon goes on.
func (s *Server) finish(ctx context.Context, method string, start time.Time, panicked any, err error) error {
	log := s.opts.Log.WithField("method", method)
	if p, ok := peer.FromContext(ctx); ok && p.Addr.Network() == "tcp" {
		log = log.WithField("client", p.Addr.String()) // clients of a unix socket have no address
	}
	if panicked != nil {
		s.stats.panics.Add(1)
		log.WithFields(logrus.Fields{"panic": panicked, "stack": string(debug.Stack())}).Error("api: a handler panicked")
		err = status.Error(codes.Internal, "internal error: see the log of pncd")
	}
	err = toStatus(err)
	code := status.Code(err)
	if code <= maxCode {
		s.stats.byCode[code].Add(1)
	}
	log = log.WithFields(logrus.Fields{"code": code.String(), "took": s.opts.Now().Sub(start)})
	switch {
	case code == codes.Internal && panicked == nil:
		log.WithError(err).Warn("api: a call failed")
	case changing[method] && err != nil:
		log.WithError(err).Info("api: call refused")
	case changing[method]:
		log.Info("api: call")
	default:
		log.Debug("api: call")
	}
	return err
}
