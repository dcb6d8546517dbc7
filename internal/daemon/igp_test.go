package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pncd/dataplane/host"
	"pncd/internal/config"
)

// scripted is a speaker that runs as a test tells it to.
type scripted struct {
	igpSpeaker
	run func(context.Context) error
}

func (r scripted) Run(ctx context.Context) error { return r.run(ctx) }

func TestTheCheckReadsTheKeysOfIGPs(t *testing.T) {
	cfg, err := config.Parse([]byte(`node: leaf1
isis: {net: 49.0001.1921.6800.1001.00, level_2_keys: [{algorithm: hmac-md5, password_file: /nonexistent/isis}]}
ospfv2: {router_id: 192.0.2.1, links: [{interface: ospf0, keys: [{algorithm: md5, password_file: /nonexistent/v2}]}]}
ospfv3: {router_id: 192.0.2.1, links: [{interface: ospf0, keys: [{algorithm: hmac-sha-1, password_file: /nonexistent/v3}]}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	err = Check(cfg)
	for _, file := range []string{"isis", "v2", "v3"} {
		if err == nil || !strings.Contains(err.Error(), "/nonexistent/"+file) {
			t.Errorf("%v, want /nonexistent/%s in it", err, file)
		}
	}
}

func TestWhenOneIGPEndsTheOthersDoToo(t *testing.T) {
	cfg, err := config.Parse([]byte("node: leaf1\nisis: {net: 49.0001.1921.6800.1001.00}\nospfv2: {router_id: 192.0.2.1}\nospfv3: {router_id: 192.0.2.1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	told := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for _, tc := range []struct {
		name string
		ends func(context.Context) error // IS-IS
		stop bool                        // all are told to
		want string
	}{
		{"with an error", func(context.Context) error { return errors.New("broken") }, false, "isis: broken"},
		{"by itself", func(context.Context) error { return nil }, false, "isis: ended without being told to"},
		{"told to", told, true, ""},
		{"told to, not cleanly", func(ctx context.Context) error { <-ctx.Done(); return errors.New("left something") }, true, "isis: left something"},
	} {
		d := quietDaemon(t, cfg)
		for _, p := range d.igps {
			p.speaker = scripted{run: told}
			p.changed = func(context.Context, string, *host.Interface) error { return nil }
		}
		d.igps[0].speaker = scripted{run: tc.ends}
		ctx, cancel := context.WithCancel(context.Background())
		if tc.stop {
			cancel()
		}
		got := ""
		if err := d.runIGPs(ctx); err != nil {
			got = err.Error()
		}
		cancel()
		if strings.TrimSpace(got) != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
