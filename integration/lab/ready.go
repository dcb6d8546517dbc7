package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// readiness hears a program say that it is ready, as a service manager does (sd_notify(3)). It listens as
// long as the lab is up: a program that can't tell its news might wait, or complain.
type readiness struct {
	conn  *net.UnixConn
	ready chan struct{} // closed at the first READY=1
	ended chan struct{}
}

// readySocket is the socket's path as the node sees it.
const readySocket = "/run/notify"

// readyPatience bounds how long a program may take to be ready.
const readyPatience = 20 * time.Second

func (l *Lab) listenReady(node string) (*readiness, error) {
	path := filepath.Join(l.RunDir(node), filepath.Base(readySocket))
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listen for readiness: %w", err)
	}
	r := &readiness{conn: conn, ready: make(chan struct{}), ended: make(chan struct{})}
	go r.listen()
	l.mu.Lock()
	l.listeners = append(l.listeners, r)
	l.mu.Unlock()
	return r, nil
}

// listen ends when the socket is closed.
func (r *readiness) listen() {
	defer close(r.ended)
	said := false
	buf := make([]byte, 4096)
	for {
		n, err := r.conn.Read(buf)
		if err != nil {
			return
		}
		if !said && slices.Contains(strings.Split(string(buf[:n]), "\n"), "READY=1") {
			said = true
			close(r.ready)
		}
	}
}

func (r *readiness) close() error {
	err := r.conn.Close()
	<-r.ended
	return err
}

var errNotReady = errors.New("it does not say that it is ready")

// startNotifying starts a program that says when it is ready, and waits for that.
func (l *Lab) startNotifying(ctx context.Context, def *Node, pr Proc) error {
	r, err := l.listenReady(def.Name)
	if err != nil {
		return err
	}
	pr.Env = append(pr.Env, "NOTIFY_SOCKET="+readySocket)
	if err := l.startOwn(ctx, def, pr); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	err = l.WaitFor(wait, func(context.Context) error {
		select {
		case <-r.ready:
			return nil
		default:
			return errNotReady
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(pr.Argv[0]), err)
	}
	return nil
}
