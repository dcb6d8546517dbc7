package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxDump bounds what is read of one of the telemetry's pages.
const maxDump = 64 << 20

// telemetry adds the metrics and the goroutine dump, when pncd's telemetry can be reached from here.
func (b *bundle) telemetry(ctx context.Context, address string) {
	pages := []struct{ name, path string }{
		{"metrics.txt", "/metrics"},
		{"readyz.txt", "/readyz"},
		{"goroutines.txt", "/debug/pprof/goroutine?debug=2"},
	}
	if address == "" {
		b.problem(pages[0].name, errors.New("pncd serves no telemetry (telemetry.listen is empty)"))
		return
	}
	client := &http.Client{Timeout: b.app.timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, p := range pages {
		data, err := fetch(ctx, client, "http://"+address+p.path)
		if err != nil {
			b.problem(p.name, err)
			continue
		}
		b.add(p.name, data)
	}
}

// fetch reads a page. 503 is an answer too: it is how /readyz says that the node is not ready.
func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable {
		return nil, fmt.Errorf("GET %s: %s", url, res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxDump))
}
