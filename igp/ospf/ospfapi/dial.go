package ospfapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// DefaultPort is where ospfd listens for clients of its API, unless /etc/services has another for `ospfapi`.
const DefaultPort = 2607

// ErrEnded is given when the daemon that ended the last connection still listens. Its configuration has lost its
// `router ospf` then, and the API of FRR 8.4.4 is not usable again after that: whoever connects next makes the
// daemon crash, until it is started anew.
var ErrEnded = errors.New("ospf api: the daemon has closed its API (no router ospf?), and would crash at another connection; it must be restarted")

// Endpoints are the two ends.
type Endpoints struct {
	Router netip.AddrPort // where ospfd listens
	Local  netip.Addr     // the own address that it connects back to
}

// Link is a connection with ospfd, which consists of two.
type Link struct {
	requests, news net.Conn
	addresses      []netip.Addr // of interfaces here, when the router is this host
	listeners      []uint64     // of the daemon, when the router is this host
}

// portTries is how often a pair of free ports is looked for.
const portTries = 16

// backTimeout is how long the daemon may take to connect back: it does so before it does anything else.
const backTimeout = 5 * time.Second

// Dial connects with ospfd. The daemon connects back to the port behind the one that it is called from, so that one
// is listened on first, for one connection of the router's. A daemon that has one of the listening sockets to avoid
// is not called: that is ErrEnded.
//
// It works in the network namespace of the calling thread.
func Dial(ctx context.Context, e Endpoints, avoid []uint64) (*Link, error) {
	l := &Link{}
	if e.Router.Addr().IsLoopback() {
		var err error
		if l.listeners, err = listeners(e.Router); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(l.listeners, func(i uint64) bool { return slices.Contains(avoid, i) }) {
			return nil, ErrEnded
		}
		if l.addresses, err = interfaceAddresses(); err != nil {
			return nil, err
		}
	}
	var err error
	for range portTries {
		if err = l.dial(ctx, e); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// errPortTaken says that the ports aren't free, or are none that the daemon connects back to.
var errPortTaken = errors.New("ospf api: no two free ports, one behind the other")

func (l *Link) dial(ctx context.Context, e Endpoints) error {
	back, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: e.Local.AsSlice()})
	if err != nil {
		return fmt.Errorf("ospf api: listen for the daemon: %w", err)
	}
	defer func() { _ = back.Close() }() // one connection is enough
	port := back.Addr().(*net.TCPAddr).Port
	if listens := int(e.Router.Port()); port == listens || port == listens+1 || port <= 1 {
		return errPortTaken // ospfd doesn't connect back to its own port
	}
	d := net.Dialer{Timeout: backTimeout, LocalAddr: &net.TCPAddr{IP: e.Local.AsSlice(), Port: port - 1}}
	c, err := d.DialContext(ctx, "tcp4", e.Router.String())
	if err != nil {
		if isAddrInUse(err) {
			return errPortTaken
		}
		return fmt.Errorf("ospf api: connect: %w", err)
	}
	l.requests = c
	if l.news, err = accept(ctx, back, e.Router.Addr()); err != nil {
		_ = c.Close()
		return err
	}
	return nil
}

// accept takes the connection of the router. Others are closed.
func accept(ctx context.Context, back *net.TCPListener, router netip.Addr) (net.Conn, error) {
	defer context.AfterFunc(ctx, func() { _ = back.SetDeadline(time.Unix(1, 0)) })()
	_ = back.SetDeadline(time.Now().Add(backTimeout))
	for {
		c, err := back.AcceptTCP()
		if err != nil {
			return nil, fmt.Errorf("ospf api: the daemon doesn't connect back: %w", errors.Join(ctx.Err(), err))
		}
		if from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(); from == router {
			return c, nil
		}
		_ = c.Close()
	}
}

// interfaceAddresses are the IPv4 addresses of this network namespace.
func interfaceAddresses() (list []netip.Addr, err error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("ospf api: own addresses: %w", err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap().Is4() {
				list = append(list, ip.Unmap())
			}
		}
	}
	return list, nil
}

func (l *Link) close() {
	_ = l.requests.Close()
	_ = l.news.Close()
}
