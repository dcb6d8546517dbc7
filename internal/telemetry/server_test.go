package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

func TestAddressMustBeLoopbackUnlessAllowed(t *testing.T) {
	tests := []struct {
		address string
		allow   bool
		want    string // part of the error; empty for none
	}{
		{"127.0.0.1:0", false, ""},
		{"127.8.9.10:0", false, ""},
		{"[::1]:0", false, ""},
		{"[::ffff:127.0.0.1]:0", false, ""},
		{"localhost:0", false, ""},
		{":9100", false, "loopback"},
		{"0.0.0.0:9100", false, "loopback"},
		{"[::]:9100", false, "loopback"},
		{"192.0.2.1:9100", false, "loopback"},
		{"metrics.example.net:9100", false, "loopback"},
		{"192.0.2.1:9100", true, ""},
		{"127.0.0.1", false, "host:port"},
	}
	for _, tt := range tests {
		t.Run(tt.address, func(t *testing.T) {
			err := checkAddress(Config{Address: tt.address, AllowRemote: tt.allow})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("checkAddress() = %v, want none", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("checkAddress() = %v, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := Listen(Config{Address: "0.0.0.0:0"}, fixed{}, ready{}, quiet()); !errors.Is(err, ErrNotLoopback) {
		t.Errorf("Listen(0.0.0.0) = %v, want ErrNotLoopback", err)
	}
}

func TestTakenAddressSaysWhatToDo(t *testing.T) {
	first, err := Listen(Config{Address: "127.0.0.1:0"}, fixed{}, ready{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = Listen(Config{Address: first.Addr().String()}, fixed{}, ready{}, quiet())
	if err == nil || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("Listen(taken) = %v, want what to do", err)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestRunServesUntilItsContextEnds(t *testing.T) {
	s, err := Listen(Config{Address: "127.0.0.1:0"}, fixed{sample()}, ready{"translator: starting"}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	base := "http://" + s.Addr().String()
	for _, tt := range []struct {
		path   string
		status int
		want   string
	}{
		{"/healthz", 200, "ok"},
		{"/readyz", 503, "translator: starting"},
		{"/metrics", 200, `pncd_outcomes_total{outcome="map-miss",part="proxy"} 3`},
		{"/metrics", 200, "go_goroutines"},
		{"/debug/pprof/goroutine?debug=2", 200, "goroutine"},
		{"/debug/pprof/", 200, "heap"},
		{"/", 404, ""},
	} {
		if status, body := get(t, base+tt.path); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("GET %s = %d %.80q, want %d with %q", tt.path, status, body, tt.status, tt.want)
		}
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Run() = %v, want nil after its context ended", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Run did not return after its context ended")
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close() after Run = %v, want nil", err)
	}
}

func TestProfilesCanBeLeftOut(t *testing.T) {
	h, err := Handler(Config{DisableProfiles: true}, fixed{}, ready{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/debug/pprof/": 404, "/readyz": 200} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("GET %s = %d, want %d", path, w.Code, want)
		}
	}
}

func TestHandlersAreNotOnTheDefaultMux(t *testing.T) {
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		if _, pattern := http.DefaultServeMux.Handler(httptest.NewRequest(http.MethodGet, path, nil)); pattern != "" {
			t.Errorf("DefaultServeMux serves %s (%s)", path, pattern)
		}
	}
}
