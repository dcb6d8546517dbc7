package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/osrg/gobgp/v3/pkg/server"
	"google.golang.org/grpc"
)

// ErrSocket is wrapped when the socket of GoBGP's own API can't be had.
var ErrSocket = errors.New("bgp.gobgp_socket")

// socketTimeout is how long GoBGP may take to listen, and another process to answer.
const socketTimeout = 5 * time.Second

// apiSocket is the unix socket of GoBGP's own gRPC API. GoBGP opens it itself, as soon as it exists, with
// the mode that the umask leaves. So it does that in a directory that nobody else can enter; open then
// moves the socket to its place.
type apiSocket struct {
	path string      // its place
	dir  string      // holds it before
	err  error       // of the preparation
	file fs.FileInfo // what is in its place, once it is
}

// newAPISocket prepares the socket. The options are for GoBGP; none after an error, which open gives.
func newAPISocket(path string, guard apiGuard) (*apiSocket, []server.ServerOption) {
	s := &apiSocket{path: path}
	if s.err = s.prepare(); s.err != nil {
		return s, nil
	}
	return s, []server.ServerOption{
		server.GrpcListenAddress("unix://" + s.inner()),
		server.GrpcOption([]grpc.ServerOption{grpc.UnaryInterceptor(guard.unary), grpc.StreamInterceptor(guard.stream)}),
	}
}

func (s *apiSocket) inner() string { return filepath.Join(s.dir, "s") }

func (s *apiSocket) prepare() error {
	if !filepath.IsAbs(s.path) || strings.Contains(s.path, ",") {
		return fmt.Errorf("%w: %q: the path must be absolute and without a comma", ErrSocket, s.path)
	}
	if err := s.free(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(s.path), ".gobgp-")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the directory %s does not exist: create it, or set RuntimeDirectory=pncd in the systemd unit: %w", ErrSocket, filepath.Dir(s.path), err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: no permission to create %s: run pncd as the owner of %s, or choose another path: %w", ErrSocket, s.path, filepath.Dir(s.path), err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrSocket, err)
	}
	s.dir = dir
	// sun_path of unix(7) holds 108 octets with the final zero.
	if longest := max(len(s.path), len(s.inner())); longest > 107 {
		os.Remove(dir)
		s.dir = ""
		return fmt.Errorf("%w: %s is too long for a unix socket (107 octets, which its directory and 20 more must fit too)", ErrSocket, s.path)
	}
	return nil
}

// free reports whether the place is free or holds a socket that a run which ended badly left behind.
func (s *apiSocket) free() error {
	st, err := os.Lstat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrSocket, err)
	case st.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%w: %s is there and is not a socket; move it away or choose another path", ErrSocket, s.path)
	}
	conn, err := net.DialTimeout("unix", s.path, socketTimeout)
	if err == nil {
		conn.Close()
		return fmt.Errorf("%w: somebody answers on %s already; stop that process or choose another path", ErrSocket, s.path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: cannot tell whether somebody listens on %s: %w", ErrSocket, s.path, err)
	}
	return nil
}

// open waits until GoBGP listens and puts the socket in its place.
func (s *apiSocket) open(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	ctx, cancel := context.WithTimeout(ctx, socketTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", s.inner())
		if err == nil {
			conn.Close()
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: GoBGP does not listen (the log says why): %w", ErrSocket, err)
		case <-tick.C:
		}
	}
	if err := s.place(); err != nil {
		return fmt.Errorf("%w: %w", ErrSocket, err)
	}
	return nil
}

func (s *apiSocket) place() error {
	if err := os.Chmod(s.inner(), 0o600); err != nil {
		return err
	}
	st, err := os.Lstat(s.inner())
	if err != nil {
		return err
	}
	if err := os.Rename(s.inner(), s.path); err != nil {
		return err
	}
	s.file = st
	return os.Remove(s.dir)
}

// close removes what is in the file system, if it is still this one's.
func (s *apiSocket) close() {
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
	if st, err := os.Lstat(s.path); err == nil && s.file != nil && os.SameFile(st, s.file) {
		os.Remove(s.path)
	}
}
