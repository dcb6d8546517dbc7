package api_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/test/bufconn"

	"pncd/api"
	"pncd/api/apitest"
	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/testwait"
)

// syncBuffer is a log that a test reads while the server writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestPanicInAHandlerIsInternalCountedLoggedAndSurvived(t *testing.T) {
	var out syncBuffer
	log := logrus.New()
	log.SetOutput(&out)
	b, srv, c := sample(t, api.Options{Log: log})
	b.Node.Panic("secret detail")
	_, err := c.node.GetStatus(deadline(t), &pncv1.GetStatusRequest{})
	wantCode(t, err, codes.Internal, "")
	if strings.Contains(err.Error(), "secret detail") {
		t.Errorf("the client sees the panic: %v", err)
	}
	if st := srv.Stats(); st.Panics != 1 || st.Calls["Internal"] != 1 {
		t.Errorf("stats = %+v, want one panic", st)
	}
	if got := out.String(); !strings.Contains(got, "secret detail") || !strings.Contains(got, "apitest.(*Node).Status") {
		t.Errorf("the log has no panic with its stack: %s", got)
	}
	b.Node.Panic(nil)
	if _, err := c.node.GetStatus(deadline(t), &pncv1.GetStatusRequest{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if st := srv.Stats(); st.Calls["OK"] != 1 {
		t.Errorf("stats = %+v, want one call that was answered", st)
	}
}

func TestMissingBackendsAnswerFailedPrecondition(t *testing.T) {
	l := bufconn.Listen(1 << 16)
	apitest.Serve(t, api.Backends{Node: apitest.New(t).Node}, api.Options{}, l)
	c := dial(t, "passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	ctx := deadline(t)
	calls := map[string]func() error{
		"list":    func() error { _, err := c.caps.ListCapabilities(ctx, &pncv1.ListCapabilitiesRequest{}); return err },
		"resolve": func() error { _, err := c.caps.Resolve(ctx, &pncv1.ResolveRequest{Sender: "192.0.2.1"}); return err },
		"advertise": func() error {
			_, err := c.caps.Advertise(ctx, &pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", NextHop: "192.0.2.1"})
			return err
		},
		"withdraw": func() error {
			_, err := c.caps.Withdraw(ctx, &pncv1.WithdrawRequest{Prefix: "192.0.2.0/24"})
			return err
		},
		"flows": func() error { _, err := c.flows.ListFlows(ctx, &pncv1.ListFlowsRequest{}); return err },
		"flow": func() error {
			_, err := c.flows.GetFlow(ctx, &pncv1.GetFlowRequest{Sender: "192.0.2.1", Receiver: "192.0.2.2"})
			return err
		},
		"IS-IS": func() error {
			_, err := pncv1.NewIsisServiceClient(c.conn).GetIsis(ctx, &pncv1.GetIsisRequest{})
			return err
		},
		"OSPF": func() error {
			_, err := pncv1.NewOspfServiceClient(c.conn).GetOspf(ctx, &pncv1.GetOspfRequest{})
			return err
		},
		"OSPF's databases": func() error {
			_, err := pncv1.NewOspfServiceClient(c.conn).ListLsas(ctx, &pncv1.ListLsasRequest{})
			return err
		},
		"records": func() error { _, err := c.recs.ListRecords(ctx, &pncv1.ListRecordsRequest{}); return err },
		"watch capabilities": func() error {
			s, err := c.caps.WatchCapabilities(ctx, &pncv1.WatchCapabilitiesRequest{})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
		"watch flows": func() error {
			s, err := c.flows.WatchFlows(ctx, &pncv1.WatchFlowsRequest{})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
		"watch records": func() error {
			s, err := c.recs.WatchRecords(ctx, &pncv1.WatchRecordsRequest{})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { wantCode(t, call(), codes.FailedPrecondition, api.ReasonNotConfigured) })
	}
}

func TestHealthAnswersPerServiceAndForReadiness(t *testing.T) {
	_, srv, c := sample(t, api.Options{})
	ctx := deadline(t)
	h := healthv1.NewHealthClient(c.conn)
	check := func(service string) healthv1.HealthCheckResponse_ServingStatus {
		t.Helper()
		res, err := h.Check(ctx, &healthv1.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatalf("Check(%q): %v", service, err)
		}
		return res.GetStatus()
	}
	for _, s := range []string{"", "pnc.v1.CapabilityService", "pnc.v1.FlowService", "pnc.v1.RecordService", "pnc.v1.NodeService"} {
		if got := check(s); got != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q = %v, want SERVING", s, got)
		}
	}
	for _, want := range []healthv1.HealthCheckResponse_ServingStatus{healthv1.HealthCheckResponse_NOT_SERVING, healthv1.HealthCheckResponse_SERVING, healthv1.HealthCheckResponse_NOT_SERVING} {
		if got := check(api.ReadinessService); got != want {
			t.Errorf("readiness = %v, want %v", got, want)
		}
		srv.SetReady(want == healthv1.HealthCheckResponse_NOT_SERVING)
	}
}

func TestReflectionListsTheServices(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	stream, err := reflectionv1.NewServerReflectionClient(c.conn).ServerReflectionInfo(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	res, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range res.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	for _, want := range []string{"pnc.v1.CapabilityService", "pnc.v1.FlowService", "pnc.v1.NodeService", "pnc.v1.RecordService", "grpc.health.v1.Health"} {
		if !slices.Contains(names, want) {
			t.Errorf("reflection lists %v, %s is missing", names, want)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
}

func TestTooManyWatchersAreRefusedUntilOneLeaves(t *testing.T) {
	b, _, c := sample(t, api.Options{MaxWatchers: 1})
	ctx, cancel := context.WithCancel(deadline(t))
	if _, err := c.flows.WatchFlows(ctx, &pncv1.WatchFlowsRequest{}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the first watch", func() bool { return b.Flows.Watchers() == 1 })
	second, err := c.recs.WatchRecords(deadline(t), &pncv1.WatchRecordsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = second.Recv()
	wantCode(t, err, codes.ResourceExhausted, api.ReasonTooMany)
	cancel()
	testwait.Until(t, "the first watch to end", func() bool { return b.Flows.Watchers() == 0 })
	testwait.Until(t, "room for another watch", func() bool {
		s, err := c.recs.WatchRecords(deadline(t), &pncv1.WatchRecordsRequest{IncludeHistory: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Recv()
		return err == nil
	})
}

func TestStopEndsStreamsWithUnavailable(t *testing.T) {
	b := apitest.New(t)
	l := bufconn.Listen(1 << 16)
	log := logrus.New()
	log.SetOutput(&syncBuffer{})
	srv := api.New(b.API(), api.Options{Log: log})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	c := dial(t, "passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	flows, err := c.flows.WatchFlows(deadline(t), &pncv1.WatchFlowsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	caps, err := c.caps.WatchCapabilities(deadline(t), &pncv1.WatchCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	recs, err := c.recs.WatchRecords(deadline(t), &pncv1.WatchRecordsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the streams to be open", func() bool { return srv.Stats().Streams == 3 && b.Flows.Watchers() == 1 })
	stop()
	_, err = flows.Recv()
	wantCode(t, err, codes.Unavailable, api.ReasonStopping)
	_, err = caps.Recv()
	wantCode(t, err, codes.Unavailable, api.ReasonStopping)
	_, err = recs.Recv()
	wantCode(t, err, codes.Unavailable, api.ReasonStopping)
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Serve() = %v, want nil", err)
		}
	case <-time.After(patience):
		t.Fatal("Serve did not return")
	}
}

// slowNode holds Reload until its call is cancelled.
type slowNode struct {
	*apitest.Node
	entered chan struct{}
}

func (s slowNode) Reload(ctx context.Context) ([]string, error) {
	close(s.entered)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestStopDoesNotWaitLongerThanItsTimeout(t *testing.T) {
	b := apitest.New(t)
	backends := b.API()
	slow := slowNode{b.Node, make(chan struct{})}
	backends.Node = slow
	l := bufconn.Listen(1 << 16)
	var out syncBuffer
	log := logrus.New()
	log.SetOutput(&out)
	srv := api.New(backends, api.Options{Log: log, StopTimeout: 50 * time.Millisecond})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	c := dial(t, "passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	called := make(chan error, 1)
	go func() { _, err := c.node.Reload(deadline(t), &pncv1.ReloadRequest{}); called <- err }()
	<-slow.entered
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Serve() = %v, want nil", err)
		}
	case <-time.After(patience):
		t.Fatal("Serve did not return")
	}
	if err := <-called; err == nil {
		t.Error("the call that was cut off succeeded")
	}
	if !strings.Contains(out.String(), "still under way") {
		t.Errorf("the log does not say that a call was cut off: %s", out.String())
	}
}

func TestServeSaysWhyItFailed(t *testing.T) {
	l := bufconn.Listen(1)
	l.Close()
	log := logrus.New()
	log.SetOutput(&syncBuffer{})
	srv := api.New(apitest.New(t).API(), api.Options{Log: log})
	if err := srv.Serve(context.Background(), l); err == nil || !strings.Contains(err.Error(), "serve the API") {
		t.Errorf("Serve(closed listener) = %v, want an error", err)
	}
}

func TestOversizedRequestIsRefused(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	_, err := c.caps.Resolve(deadline(t), &pncv1.ResolveRequest{Sender: strings.Repeat("1", 2<<20)})
	wantCode(t, err, codes.ResourceExhausted, "")
}

func TestCallsThatChangeTheNodeAreInTheLog(t *testing.T) {
	var out syncBuffer
	log := logrus.New() // at level info
	log.SetOutput(&out)
	_, _, c := sample(t, api.Options{Log: log})
	ctx := deadline(t)
	if _, err := c.node.GetStatus(ctx, &pncv1.GetStatusRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.node.Disable(ctx, &pncv1.DisableRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.caps.Advertise(ctx, &pncv1.AdvertiseRequest{Prefix: "192.0.2.0/24", NextHop: "192.0.2.1"}); err == nil {
		t.Fatal("Advertise while disabled succeeded")
	}
	got := out.String()
	for _, want := range []string{"NodeService/Disable", "code=OK", "CapabilityService/Advertise", "code=FailedPrecondition", "the mechanism is disabled"} {
		if !strings.Contains(got, want) {
			t.Errorf("log = %s, want %q in it", got, want)
		}
	}
	if strings.Contains(got, "GetStatus") {
		t.Errorf("log = %s, want no reading calls at level info", got)
	}
}

func TestStopDoesNotWaitForThoseWhoFollowTheHealth(t *testing.T) {
	l := bufconn.Listen(1 << 16)
	var out syncBuffer
	log := logrus.New()
	log.SetOutput(&out)
	srv := api.New(apitest.New(t).API(), api.Options{Log: log, StopTimeout: patience})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	c := dial(t, "passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	w, err := healthv1.NewHealthClient(c.conn).Watch(deadline(t), &healthv1.HealthCheckRequest{Service: api.ReadinessService})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Recv(); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Serve() = %v, want nil", err)
	}
	if strings.Contains(out.String(), "still under way") {
		t.Errorf("the stop waited for a stream: %s", out.String())
	}
}

// panicFlows panics when it is watched.
type panicFlows struct{ *apitest.Flows }

func (panicFlows) WatchFlows(int) (api.Stream[*pncv1.Flow], error) { panic("bug") }

func TestPanicInAStreamIsInternalAndSurvived(t *testing.T) {
	b := apitest.New(t)
	backends := b.API()
	backends.Flows = panicFlows{b.Flows}
	l := bufconn.Listen(1 << 16)
	srv := apitest.Serve(t, backends, api.Options{MaxWatchers: 1}, l)
	c := dial(t, "passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	for range 2 { // twice: the watcher's place is given back
		s, err := c.flows.WatchFlows(deadline(t), &pncv1.WatchFlowsRequest{})
		if err == nil {
			_, err = s.Recv()
		}
		wantCode(t, err, codes.Internal, "")
	}
	if st := srv.Stats(); st.Panics != 2 || st.Streams != 0 {
		t.Errorf("stats = %+v, want two panics and no open stream", st)
	}
}
