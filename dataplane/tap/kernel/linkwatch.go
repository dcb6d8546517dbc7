package kernel

import (
	"fmt"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// linkWatch follows one interface by the kernel's notifications: how often it went down, and whether it is gone.
type linkWatch struct {
	ifIndex int
	stop    chan struct{}
	ended   chan struct{} // closed when nothing more is heard

	mu      sync.Mutex
	up      bool
	downs   uint64
	closing bool
	last    error // of the subscription
	why     error // why there is nothing more to watch
}

// watchBuffer is how much the socket may hold, in octets: an ordinary interface's message has about 1,500.
const watchBuffer = 1 << 20

// watchLink follows an interface of the network namespace of the calling thread until close.
func watchLink(ifIndex int) (*linkWatch, error) {
	w := &linkWatch{ifIndex: ifIndex, stop: make(chan struct{}), ended: make(chan struct{})}
	updates := make(chan netlink.LinkUpdate, 64)
	err := netlink.LinkSubscribeWithOptions(updates, w.stop, netlink.LinkSubscribeOptions{
		ReceiveBufferSize: watchBuffer, ErrorCallback: w.failed,
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to changes of the interface: %w", err)
	}
	// After the subscription, so that no change is missed.
	l, err := netlink.LinkByIndex(ifIndex)
	if err == nil {
		w.up = carries(l.Attrs())
	}
	go func() {
		defer close(w.ended)
		for u := range updates { // the library closes it, some time after stop
			w.heard(&u)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.closing && w.why == nil {
			w.why = fmt.Errorf("subscription to changes of the interface: %w", w.last)
		}
	}()
	if err != nil {
		w.close()
		return nil, fmt.Errorf("%w (%w)", ErrInterfaceGone, err)
	}
	return w, nil
}

func carries(l *netlink.LinkAttrs) bool {
	const both = unix.IFF_UP | unix.IFF_RUNNING
	return l.RawFlags&both == both
}

func (w *linkWatch) heard(u *netlink.LinkUpdate) {
	if int(u.Index) != w.ifIndex || u.Family == unix.AF_BRIDGE { // of a port that joins or leaves a bridge
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if u.Header.Type == unix.RTM_DELLINK {
		w.why = ErrInterfaceGone
		return
	}
	up := carries(u.Attrs())
	if w.up && !up {
		w.downs++
	}
	w.up = up
}

// failed is told the errors of the subscription; after ENOBUFS and others it ends.
func (w *linkWatch) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
}

func (w *linkWatch) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

func (w *linkWatch) wentDown() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.downs
}

// close ends the subscription and waits for it.
func (w *linkWatch) close() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	close(w.stop)
	<-w.ended
}
