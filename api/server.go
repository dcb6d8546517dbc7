package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	pncv1 "pncd/api/pnc/v1"
)

// ReadinessService is the name under which the health service tells whether the node can do its part
// now. The names of the gRPC services tell only that they answer.
const ReadinessService = "pncd.readiness"

// Defaults of Options.
const (
	DefaultWatchBuffer = 1024
	DefaultMaxWatchers = 64
	DefaultStopTimeout = 3 * time.Second
)

// Options are what the server needs beside its backends. Zero values mean the defaults.
type Options struct {
	Log         logrus.FieldLogger // required
	Now         func() time.Time   // the clock; time.Now
	WatchBuffer int                // items that a watching client may lag behind before items are dropped
	MaxWatchers int                // streams at one time; one more gets RESOURCE_EXHAUSTED
	StopTimeout time.Duration      // how long Serve waits for calls that are under way when it stops
}

// Limits of a connection. They keep a client from holding the server's memory, and find dead peers.
const (
	maxRequestBytes     = 1 << 20
	maxStreamsPerClient = 128
	connectionTimeout   = 10 * time.Second
	keepaliveTime       = 30 * time.Second
	keepaliveTimeout    = 10 * time.Second
	keepaliveMinTime    = 10 * time.Second
)

// Server answers all services of pnc.v1, the health service and server reflection.
type Server struct {
	backends Backends
	opts     Options
	grpc     *grpc.Server
	health   *health.Server
	stats    stats
	life     context.Context // ends when Serve begins to stop, and the streams with it
	end      context.CancelFunc
	watchers chan struct{} // a slot for each stream
}

// New returns a server that is not yet serving.
func New(b Backends, o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.WatchBuffer <= 0 {
		o.WatchBuffer = DefaultWatchBuffer
	}
	if o.MaxWatchers <= 0 {
		o.MaxWatchers = DefaultMaxWatchers
	}
	if o.StopTimeout <= 0 {
		o.StopTimeout = DefaultStopTimeout
	}
	s := &Server{
		backends: b,
		opts:     o,
		health:   health.NewServer(),
		watchers: make(chan struct{}, o.MaxWatchers),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.ChainUnaryInterceptor(s.unary),
		grpc.ChainStreamInterceptor(s.stream),
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxConcurrentStreams(maxStreamsPerClient),
		grpc.ConnectionTimeout(connectionTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
	)
	pncv1.RegisterCapabilityServiceServer(s.grpc, capabilityService{srv: s})
	pncv1.RegisterFlowServiceServer(s.grpc, flowService{srv: s})
	pncv1.RegisterRecordServiceServer(s.grpc, recordService{srv: s})
	pncv1.RegisterNodeServiceServer(s.grpc, nodeService{srv: s})
	pncv1.RegisterIsisServiceServer(s.grpc, isisService{isis: b.ISIS})
	pncv1.RegisterNrpServiceServer(s.grpc, nrpService{nrps: b.NRPs})
	pncv1.RegisterCongestionServiceServer(s.grpc, congestionService{srv: s})
	pncv1.RegisterOspfServiceServer(s.grpc, ospfService{ospf: b.OSPF})
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	s.SetReady(false)
	healthv1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s
}

// SetReady says what the health service answers for ReadinessService. It begins as not ready.
func (s *Server) SetReady(ready bool) {
	st := healthv1.HealthCheckResponse_NOT_SERVING
	if ready {
		st = healthv1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(ReadinessService, st)
}

// Serve answers on l until ctx ends, then ends the streams with UNAVAILABLE, waits for calls that are
// under way up to the stop timeout, and closes l. It returns nil when ctx ended, else why serving
// failed. A server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- s.grpc.Serve(l) }()
	var err error
	select {
	case err = <-failed:
		failed <- nil
		err = fmt.Errorf("serve the API on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.end()
	s.health.Shutdown()
	s.stop()
	if e := <-failed; e != nil && !errors.Is(e, grpc.ErrServerStopped) && err == nil {
		err = fmt.Errorf("serve the API on %s: %w", l.Addr(), e)
	}
	return err
}

func (s *Server) stop() {
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		s.grpc.GracefulStop()
	}()
	timeout := time.NewTimer(s.opts.StopTimeout)
	defer timeout.Stop()
	select {
	case <-graceful:
	case <-timeout.C:
		s.opts.Log.WithField("timeout", s.opts.StopTimeout).Warn("api: closing calls that are still under way")
		s.grpc.Stop()
		<-graceful
	}
}
