package boundary

import (
	"errors"
	"fmt"
	"sync"
	"time"

	mdnetlink "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// watcher hears of every change of nf_tables and of the interfaces. What changed doesn't matter: the whole is
// compared each time.
type watcher struct {
	changed chan struct{}
	conns   []*mdnetlink.Conn
	done    chan struct{}
	running sync.WaitGroup
}

// watch subscribes; close must be called.
func (k kernel) watch() (*watcher, error) {
	w := &watcher{changed: make(chan struct{}, 1), done: make(chan struct{})}
	for _, g := range []struct {
		protocol int
		group    uint32
	}{{unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES}, {unix.NETLINK_ROUTE, unix.RTNLGRP_LINK}} {
		c, err := mdnetlink.Dial(g.protocol, &mdnetlink.Config{NetNS: k.netns})
		if err == nil {
			w.conns = append(w.conns, c)
			err = c.JoinGroup(g.group)
		}
		if err != nil {
			w.close()
			return nil, fmt.Errorf("boundary: subscribe to netlink protocol %d: %w", g.protocol, err)
		}
	}
	for _, c := range w.conns {
		w.running.Add(1)
		go w.listen(c)
	}
	w.tell() // what changed before
	return w, nil
}

func (w *watcher) tell() {
	select {
	case w.changed <- struct{}{}:
	default: // told already
	}
}

// listen tells of whatever arrives. An overrun (ENOBUFS) means that something did.
func (w *watcher) listen(c *mdnetlink.Conn) {
	defer w.running.Done()
	for {
		_, err := c.Receive()
		select {
		case <-w.done:
			return
		default:
		}
		w.tell()
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			select {
			case <-w.done:
				return
			case <-time.After(time.Second): // the periodic check goes on meanwhile
			}
		}
	}
}

// close ends the subscriptions and waits for their goroutines.
func (w *watcher) close() {
	close(w.done)
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.running.Wait()
}
