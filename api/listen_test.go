package api_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pncd/api"
	"pncd/api/apitest"
)

func listen(t *testing.T, c api.ListenConfig) net.Listener {
	t.Helper()
	l, err := c.Listen(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestSplitAddress(t *testing.T) {
	for _, tt := range []struct{ in, network, address, err string }{
		{"", "unix", api.DefaultSocket, ""},
		{"/run/x.sock", "unix", "/run/x.sock", ""},
		{"./x.sock", "unix", "./x.sock", ""},
		{"unix:///run/x.sock", "unix", "/run/x.sock", ""},
		{"unix:/run/x.sock", "unix", "/run/x.sock", ""},
		{"unix:x.sock", "unix", "x.sock", ""},
		{"unix:", "", "", "names no path"},
		{"192.0.2.1:9339", "tcp", "192.0.2.1:9339", ""},
		{"tcp:[2001:db8::1]:9339", "tcp", "[2001:db8::1]:9339", ""},
		{"tcp://pe1.example.net:9339", "tcp", "pe1.example.net:9339", ""},
		{":9339", "tcp", ":9339", ""},
		{"pe1", "", "", "neither"},
		{"192.0.2.1:99999", "", "", "port"},
		{"192.0.2.1:http", "", "", "port"},
		{"http://x/y:1", "", "", "neither"},
		{"a b:1", "", "", "host"},
	} {
		network, address, err := api.SplitAddress(tt.in)
		if network != tt.network || address != tt.address || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("SplitAddress(%q) = %q, %q, %v, want %q, %q, %q", tt.in, network, address, err, tt.network, tt.address, tt.err)
		}
	}
}

func TestSocketHasItsModeAndGroupAndGoesWithTheListener(t *testing.T) {
	for _, tt := range []struct {
		name string
		mode fs.FileMode
		want fs.FileMode
	}{{"default", 0, 0o660}, {"chosen", 0o600, 0o600}} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(apitest.SocketDir(t), "pncd.sock")
			gid := os.Getgid()
			if os.Geteuid() == 0 {
				gid = 12345 // root may give the socket to any group
			}
			l := listen(t, api.ListenConfig{Address: "unix://" + path, Mode: tt.mode, Group: strconv.Itoa(gid)})
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if st.Mode().Perm() != tt.want {
				t.Errorf("mode = %v, want %v", st.Mode().Perm(), tt.want)
			}
			if got := st.Sys().(*syscall.Stat_t).Gid; int(got) != gid {
				t.Errorf("group = %d, want %d", got, gid)
			}
			l.Close()
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the socket is still there after Close: %v", err)
			}
		})
	}
}

func TestStaleSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	path := filepath.Join(apitest.SocketDir(t), "pncd.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close() // what a run that was killed leaves behind
	live := listen(t, api.ListenConfig{Address: path})

	_, err = api.ListenConfig{Address: path}.Listen(context.Background())
	if !errors.Is(err, api.ErrAddressTaken) || !strings.Contains(err.Error(), "a pncd is running") {
		t.Errorf("Listen(live socket) = %v, want ErrAddressTaken and what to do", err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the live socket was harmed: %v", err)
	}
	conn.Close()
	live.Close()
}

func TestOnlyASocketIsEverRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, link} {
		if _, err := (api.ListenConfig{Address: p}).Listen(context.Background()); !errors.Is(err, api.ErrAddressTaken) {
			t.Errorf("Listen(%s) = %v, want ErrAddressTaken", p, err)
		}
		if _, err := os.Lstat(p); err != nil {
			t.Errorf("%s is gone: %v", p, err)
		}
	}
}

func TestListenErrorsSayWhatToDo(t *testing.T) {
	dir := apitest.SocketDir(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cert, key, _ := apitest.Certificate(t, dir, "127.0.0.1")
	tls := &api.TLSConfig{CertFile: cert, KeyFile: key}
	for _, tt := range []struct {
		name string
		cfg  api.ListenConfig
		want []string
	}{
		{"no directory", api.ListenConfig{Address: dir + "/none/pncd.sock"}, []string{"api.listen", "does not exist", "RuntimeDirectory"}},
		{"long path", api.ListenConfig{Address: "/tmp/" + strings.Repeat("x", 120)}, []string{"api.listen", "107"}},
		{"no such group", api.ListenConfig{Address: dir + "/s", Group: "no-such-group"}, []string{"api.group", "groupadd"}},
		{"TLS on a socket", api.ListenConfig{Address: dir + "/s", TLS: tls}, []string{"api.tls", "TCP"}},
		{"TCP without TLS", api.ListenConfig{Address: "127.0.0.1:0"}, []string{"api.tls", "required"}},
		{"no address", api.ListenConfig{Address: "pe1"}, []string{"api.listen", "host:port"}},
		{"port taken", api.ListenConfig{Address: taken.Addr().String(), TLS: tls}, []string{"api.listen", "ss -ltnp"}},
		{"foreign address", api.ListenConfig{Address: "192.0.2.1:9339", TLS: tls}, []string{"api.listen", "no interface"}},
		{"no key", api.ListenConfig{Address: "127.0.0.1:0", TLS: &api.TLSConfig{CertFile: cert}}, []string{"api.tls", "required"}},
		{"missing file", api.ListenConfig{Address: "127.0.0.1:0", TLS: &api.TLSConfig{CertFile: dir + "/none", KeyFile: key}}, []string{"api.tls", "none"}},
		{"missing CA", api.ListenConfig{Address: "127.0.0.1:0", TLS: &api.TLSConfig{CertFile: cert, KeyFile: key, ClientCAFile: dir + "/none"}}, []string{"api.tls.client_ca", "none"}},
		{"CA without certificate", api.ListenConfig{Address: "127.0.0.1:0", TLS: &api.TLSConfig{CertFile: cert, KeyFile: key, ClientCAFile: key}}, []string{"api.tls.client_ca", "no PEM certificate"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := tt.cfg.Listen(context.Background())
			if err == nil {
				l.Close()
				t.Fatal("Listen succeeded")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error = %v, want %q in it", err, w)
				}
			}
		})
	}
}
