package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// DefaultSocket is where pncd listens unless told otherwise.
const DefaultSocket = "/run/pncd/pncd.sock"

// DefaultSocketMode lets the owner and the group of the socket use the API. Whoever can open the socket
// can switch the mechanism on and off.
const DefaultSocketMode fs.FileMode = 0o660

// ErrAddressTaken is wrapped by Listen's error when somebody else listens there.
var ErrAddressTaken = errors.New("address taken")

// ListenConfig says where the API listens. The zero value is DefaultSocket.
type ListenConfig struct {
	// Address is the path of a unix socket, with or without unix: before it, or tcp:host:port (also
	// host:port). DefaultSocket when empty.
	Address string
	// Mode is the socket's mode; DefaultSocketMode when zero. Unix sockets only.
	Mode fs.FileMode
	// Group owns the socket, by name or number; the process's group when empty. Unix sockets only.
	Group string
	// TLS is required for TCP and not allowed for unix sockets.
	TLS *TLSConfig
}

// Listen opens the listener. Its errors name the field of the configuration and say what to do.
func (c ListenConfig) Listen(ctx context.Context) (net.Listener, error) {
	network, address, err := SplitAddress(c.Address)
	if err != nil {
		return nil, fmt.Errorf("api.listen: %w", err)
	}
	if network == "unix" {
		if c.TLS != nil {
			return nil, errors.New("api.tls: only for a TCP address; a unix socket is guarded by its mode and group")
		}
		return c.listenUnix(ctx, address)
	}
	return c.listenTCP(ctx, address)
}

// SplitAddress reads an address as ListenConfig.Address describes it: network is unix or tcp.
func SplitAddress(s string) (network, address string, err error) {
	switch {
	case s == "":
		return "unix", DefaultSocket, nil
	case strings.HasPrefix(s, "unix:"):
		network, address = "unix", strings.TrimPrefix(strings.TrimPrefix(s, "unix:"), "//")
	case strings.HasPrefix(s, "tcp:"):
		network, address = "tcp", strings.TrimPrefix(strings.TrimPrefix(s, "tcp:"), "//")
	case strings.HasPrefix(s, "/"), strings.HasPrefix(s, "."):
		network, address = "unix", s
	default:
		network, address = "tcp", s
	}
	if network == "unix" {
		if address == "" {
			return "", "", fmt.Errorf("%q names no path", s)
		}
		return network, address, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", fmt.Errorf("%q is neither the path of a socket (with a / in front) nor host:port", s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", fmt.Errorf("%q: the port must be a number up to 65535", s)
	}
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, "/ ") {
		return "", "", fmt.Errorf("%q: the host is no name or address", s)
	}
	return network, address, nil
}

func (c ListenConfig) listenTCP(ctx context.Context, address string) (net.Listener, error) {
	if c.TLS == nil {
		return nil, fmt.Errorf("api.tls: required for the TCP address %s: the API has no other login; or use a unix socket", address)
	}
	tc, err := c.TLS.server()
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("api.listen %s: %w: stop what holds the port ('ss -ltnp' shows it) or choose another one: %w", address, ErrAddressTaken, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("api.listen %s: no interface of this node has that address: %w", address, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("api.listen %s: a port under 1024 needs CAP_NET_BIND_SERVICE; choose a higher one: %w", address, err)
	case err != nil:
		return nil, fmt.Errorf("api.listen %s: %w", address, err)
	}
	return tls.NewListener(l, tc), nil
}

func (c ListenConfig) listenUnix(ctx context.Context, path string) (net.Listener, error) {
	mode := c.Mode.Perm()
	if mode == 0 {
		mode = DefaultSocketMode
	}
	gid := -1
	if c.Group != "" {
		var err error
		if gid, err = groupID(c.Group); err != nil {
			return nil, err
		}
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		// The file takes the mode of the socket (unix(7), minus the umask): nobody else can connect
		// before the group is set.
		var chmod error
		if err := raw.Control(func(fd uintptr) { chmod = syscall.Fchmod(int(fd), 0o600) }); err != nil {
			return err
		}
		return chmod
	}}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, unixError(path, err)
	}
	if gid >= 0 {
		err = os.Chown(path, -1, gid)
		if err != nil {
			err = fmt.Errorf("api.group: give %s to group %s (pncd must be root or in that group): %w", path, c.Group, err)
		}
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func unixError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("api.listen: the directory %s does not exist: create it, or set RuntimeDirectory=pncd in the systemd unit: %w", filepath.Dir(path), err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("api.listen: no permission to create %s: run pncd as the owner of %s, or choose another path: %w", path, filepath.Dir(path), err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("api.listen %s: %w: another pncd came first: %w", path, ErrAddressTaken, err)
	case errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("api.listen: the path %s is longer than a unix socket's may be (107 octets): %w", path, err)
	}
	return fmt.Errorf("api.listen %s: %w", path, err)
}

// staleTimeout is how long the owner of an existing socket may take to accept.
const staleTimeout = time.Second

// removeStale removes a socket that a run which ended badly left behind: only a socket, and only when
// nobody answers on it.
func removeStale(ctx context.Context, path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("api.listen %s: %w", path, err)
	case st.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("api.listen %s: %w: there is something that is not a socket; move it away or choose another path", path, ErrAddressTaken)
	}
	ctx, cancel := context.WithTimeout(ctx, staleTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("api.listen %s: %w: a pncd is running and answers there; stop it, or give this one another address", path, ErrAddressTaken)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("api.listen %s: %w: cannot tell whether somebody listens: %w", path, ErrAddressTaken, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("api.listen: remove the stale socket %s: %w", path, err)
	}
	return nil
}

func groupID(name string) (int, error) {
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n), nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("api.group: no group %q on this system: create it ('groupadd --system %s') or leave the key out: %w", name, name, err)
	}
	n, err := strconv.Atoi(g.Gid)
	if err != nil {
		return 0, fmt.Errorf("api.group: group %q has the number %q: %w", name, g.Gid, err)
	}
	return n, nil
}
