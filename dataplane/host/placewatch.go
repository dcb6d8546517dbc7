package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
)

var errReplaced = errors.New("another one has its name now")

// PlaceWatch holds a VPN's place to what it must be while packets are sent into it, and knows this host's addresses
// there.
type PlaceWatch struct {
	follower
	place    Place
	families []int
	first    string // the identity at the first look
	broken   atomic.Pointer[error]
	end      context.CancelFunc // of Run's follower

	local atomic.Pointer[map[netip.Addr]struct{}] // replaced, never modified
	table atomic.Uint32

	// OnLook, when set before Run, is called after each look at the place that Run takes.
	OnLook func()
}

// WatchPlace looks at a place for the first time. families are those of the addresses sent to, unix.AF_INET and
// AF_INET6. Errors: ErrOpen, ErrNoInterface, ErrNamespacePermission, or what else keeps it from being a VPN's.
func WatchPlace(p Place, families []int, log logrus.FieldLogger) (*PlaceWatch, error) {
	w := &PlaceWatch{follower: newFollower(NamespacePath(p.Namespace), log), place: p, families: families}
	w.follower.round = w.round
	w.follower.relevant = func(m *syscall.NetlinkMessage) bool {
		return relevant(m, func(p netip.Prefix) bool { return p.Bits() == 0 })
	}
	h, err := Open(NamespacePath(p.Namespace))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	l, err := p.look(h, families)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	w.first = l.id
	w.seen(&l)
	return w, nil
}

func (w *PlaceWatch) seen(l *look) {
	w.local.Store(&l.local)
	w.table.Store(l.table)
}

// Table gives the place's routing table at the last look; 0 for a namespace.
func (w *PlaceWatch) Table() uint32 { return w.table.Load() }

// IsLocal reports whether an address was one of this host's own in the VPN at the last look.
func (w *PlaceWatch) IsLocal(a netip.Addr) bool {
	_, own := (*w.local.Load())[a.Unmap()]
	return own || a.IsLoopback()
}

// Run follows the place until ctx ends (nil), or the place is no longer what it was: then nothing may be sent into
// it.
func (w *PlaceWatch) Run(ctx context.Context) error {
	inner, end := context.WithCancel(ctx)
	defer end()
	w.end = end
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		w.poll(inner)
	}()
	err := w.follower.Run(inner)
	end()
	<-polled
	if err != nil {
		return err
	}
	if err := w.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// poll looks whether the name still stands for the namespace: nothing tells of that inside it.
func (w *PlaceWatch) poll(ctx context.Context) {
	if w.place.Namespace == "" {
		return
	}
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if id, err := NamespaceID(w.place.Namespace); err != nil || id != w.first {
			w.fail(cmp.Or(err, errReplaced))
			return
		}
	}
}

// fail ends Run with an error.
func (w *PlaceWatch) fail(err error) {
	err = fmt.Errorf("%s: %w", w.place, err)
	w.broken.Store(&err)
	w.end()
}

func (w *PlaceWatch) round(h *Host) error {
	l, err := w.place.look(h, w.families)
	switch {
	case err == nil && l.id != w.first:
		err = errReplaced
	case err == nil:
		w.seen(&l)
		if w.OnLook != nil {
			w.OnLook()
		}
		return nil
	case errors.Is(err, netlink.ErrDumpInterrupted):
		return err // once more, later
	}
	w.fail(err)
	return nil
}
