package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"
)

// ErrNotLoopback is the error for an address that others could reach without leave.
var ErrNotLoopback = errors.New("not a loopback address")

// Config is where and what to serve.
type Config struct {
	// Address is host:port. The host must be a loopback address or localhost: metrics and profiles tell
	// much about a node and have no login.
	Address string
	// AllowRemote lets Address be any address.
	AllowRemote bool
	// DisableProfiles leaves /debug/pprof/ out.
	DisableProfiles bool
}

// Timeouts of the HTTP server. Writing is unbounded on purpose: a CPU profile or trace lasts as long as
// its reader asks for.
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	stopTimeout       = 3 * time.Second
	maxHeaderBytes    = 64 << 10
)

// Server serves /metrics, /healthz, /readyz and /debug/pprof/ on one address. It owns its registry, its
// mux and its listener.
type Server struct {
	log      logrus.FieldLogger
	listener net.Listener
	http     *http.Server
}

// Listen opens the address of cfg. Errors: ErrNotLoopback, or the system's with what to do about it.
func Listen(cfg Config, source Source, ready Readiness, log logrus.FieldLogger) (*Server, error) {
	if err := checkAddress(cfg); err != nil {
		return nil, fmt.Errorf("telemetry.listen %q: %w", cfg.Address, err)
	}
	handler, err := Handler(cfg, source, ready, log)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("telemetry.listen %q: %w (choose another port, or stop what holds it: 'ss -ltnp' shows it)", cfg.Address, err)
	}
	return &Server{
		log:      log,
		listener: l,
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: readHeaderTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
		},
	}, nil
}

// Addr returns the address listened to, with the port that the system chose for port 0.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes a server that was never run. It may be called more than once, and after Run.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Run serves until ctx ends and waits for what is under way, a few seconds at most. It returns nil when
// ctx ended, else why serving failed.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve telemetry on %s: %w", s.listener.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := s.http.Shutdown(stop); err != nil {
		// A profile may run for minutes: its reader loses it.
		s.log.WithError(err).Info("telemetry: closing requests that are still under way")
		_ = s.http.Close()
	}
	<-failed
	return nil
}

// Handler returns the handler that Server serves, on a mux and a registry of its own.
func Handler(cfg Config, source Source, ready Readiness, log logrus.FieldLogger) (http.Handler, error) {
	reg := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		NewCollector(source),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorLog:            promLog{log},
		ErrorHandling:       promhttp.ContinueOnError, // one bad series must not hide the others
		Registry:            reg,
		MaxRequestsInFlight: 4,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ok, reasons := ready.Ready(); !ok {
			answer(w, http.StatusServiceUnavailable, append([]string{"not ready"}, reasons...)...)
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	if !cfg.DisableProfiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol) // what `go tool pprof` uses
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux, nil
}

func answer(w http.ResponseWriter, status int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(strings.Join(lines, "\n") + "\n"))
}

// checkAddress holds the loopback rule. A name other than localhost is refused, because what it resolves
// to is not ours to say.
func checkAddress(cfg Config) error {
	host, _, err := net.SplitHostPort(cfg.Address)
	if err != nil {
		return fmt.Errorf("want host:port: %w", err)
	}
	if cfg.AllowRemote || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: metrics and profiles have no login; use 127.0.0.1 or [::1], or allow it with telemetry.allow_remote", ErrNotLoopback)
}

// promLog gives the metrics handler's errors to the daemon's log.
type promLog struct{ log logrus.FieldLogger }

// Println satisfies promhttp.Logger.
func (p promLog) Println(v ...any) { p.log.Warn(append([]any{"telemetry: "}, v...)...) }
