package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// slots is how many interfaces can be attached to one tap.
const slots = 256

// Attachment is the program on one interface. A bpf_link goes with the process unless it is pinned; a filter stays until
// it is closed or replaced.
type Attachment struct {
	t       *Tap
	name    string
	ifIndex int
	slot    uint32
	hook    hook
	watch   *linkWatch
	base    Counters // of the slot, when it was taken
	adopted bool     // an earlier process had attached it, and it has been there since
	last    Counters // when it was closed; t.mu is held
}

// hook is what holds the program on an interface.
type hook interface {
	check(ifIndex int) error // wraps ErrInterfaceGone or ErrDetached
	close() error
}

// Attach puts the program on an interface of the network namespace of the calling thread.
//
// Errors wrap ErrNoInterface, ErrPermission, ErrNotSupported, ErrBusy, ErrTooMany and ErrClosed.
func (t *Tap) Attach(name string) (*Attachment, error) {
	ifc, err := net.InterfaceByName(name)
	if failed := (*os.SyscallError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: look up the interface: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: create it, or correct its name in the configuration", name, ErrNoInterface)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("%s: %w", name, ErrClosed)
	}
	a := &Attachment{t: t, name: name, ifIndex: ifc.Index}
	if err := t.attach(a); err != nil {
		return nil, fmt.Errorf("%s: attach to %v: %w", name, t.mode, err)
	}
	t.attached[a] = struct{}{}
	return a, nil
}

func (t *Tap) attach(a *Attachment) (err error) {
	if a.watch, err = watchLink(a.ifIndex); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			a.watch.close()
		}
	}()
	if l, ok := t.before.claim(a.ifIndex); ok {
		a.slot, a.hook, a.adopted = l.slot, &linkHook{l.link}, true
		a.base, err = t.countersOf(a.slot)
		return err
	}
	if a.slot, err = t.freeSlot(); err != nil {
		return err
	}
	if a.base, err = t.countersOf(a.slot); err != nil {
		return err
	}
	prog, err := t.program(a.slot)
	if err != nil {
		return err
	}
	if t.mode == Clsact {
		a.hook, err = attachFilter(a.ifIndex, prog)
		return err
	}
	h, err := attachLink(t.mode, a.ifIndex, prog)
	if err != nil {
		return err
	}
	if t.dir != "" {
		if err := h.Pin(filepath.Join(t.dir, linkPin(a.ifIndex, a.slot))); err != nil {
			return errors.Join(fmt.Errorf("pin the link: %w", err), h.Close())
		}
	}
	a.hook = h
	return nil
}

// freeSlot returns the first slot that no attachment has; t.mu is held.
func (t *Tap) freeSlot() (uint32, error) {
	taken := t.before.slots()
	for a := range t.attached {
		taken[a.slot] = true
	}
	for s := range uint32(slots) {
		if !taken[s] {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%w: %d are", ErrTooMany, slots)
}

// linkHook is a bpf_link.
type linkHook struct{ link.Link }

func attachLink(mode Mode, ifIndex int, prog *ebpf.Program) (*linkHook, error) {
	var l link.Link
	var err error
	if mode == TCX {
		// In front: a program that drops or redirects must not hide packets.
		l, err = link.AttachTCX(link.TCXOptions{Interface: ifIndex, Program: prog, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
	} else {
		var flags link.XDPAttachFlags
		switch mode {
		case XDPNative:
			flags = link.XDPDriverMode
		case XDPGeneric:
			flags = link.XDPGenericMode
		}
		l, err = link.AttachXDP(link.XDPOptions{Interface: ifIndex, Program: prog, Flags: flags})
		switch {
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
			return nil, fmt.Errorf("%w: take it off, or choose another mode (%w)", ErrBusy, err)
		case errors.Is(err, unix.EOPNOTSUPP):
			return nil, fmt.Errorf("%w: the driver has no XDP (%w)", ErrNotSupported, err)
		}
	}
	if err != nil {
		return nil, Explain(err)
	}
	return &linkHook{l}, nil
}

func (h *linkHook) check(ifIndex int) error {
	info, err := h.Info()
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	var at uint32
	if tcx := info.TCX(); tcx != nil {
		at = tcx.Ifindex
	} else if xdp := info.XDP(); xdp != nil {
		at = xdp.Ifindex
	}
	if at == uint32(ifIndex) {
		return nil
	}
	// The kernel clears the index for a link that was detached, whatever the reason.
	return ErrDetached
}

func (h *linkHook) close() error {
	err := h.Unpin() // of one that is not pinned too
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, h.Close())
}

// Interface returns the interface's name as given to Attach.
func (a *Attachment) Interface() string { return a.name }

// IfIndex returns the interface's index.
func (a *Attachment) IfIndex() int { return a.ifIndex }

// checkInterval is how often Run looks whether the program is still where it was put.
const checkInterval = time.Second

// Run returns when ctx ends (nil), when the interface is deleted or leaves the namespace (ErrInterfaceGone), when the
// program was taken off it (ErrDetached), and when the tap or the attachment is closed (ErrClosed). While the
// interface is down it waits.
func (a *Attachment) Run(ctx context.Context) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.t.closing:
			return fmt.Errorf("kernel tap: %s: %w", a.name, ErrClosed)
		case <-a.watch.ended:
			if err := a.watch.err(); err != nil {
				return fmt.Errorf("kernel tap: %s: %w", a.name, err)
			}
			return fmt.Errorf("kernel tap: %s: %w", a.name, ErrClosed)
		case <-tick.C:
			if err := a.Check(); err != nil {
				return err
			}
		}
	}
}

// Check returns nil while the program is on the interface, and an error that wraps ErrInterfaceGone once that was
// deleted or has left the namespace, or ErrDetached.
func (a *Attachment) Check() error {
	if err := a.watch.err(); err != nil {
		return fmt.Errorf("kernel tap: %s: %w", a.name, err)
	}
	if err := a.hook.check(a.ifIndex); err != nil {
		return fmt.Errorf("kernel tap: %s: %w", a.name, err)
	}
	return nil
}

// Close takes the program off the interface. A second Close does nothing.
func (a *Attachment) Close() error {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if _, ok := a.t.attached[a]; !ok {
		return nil
	}
	delete(a.t.attached, a)
	return a.release()
}

// release detaches, and keeps the counts: who reads them may do so when all is closed. a.t.mu is held.
func (a *Attachment) release() error {
	a.watch.close()
	err := a.hook.close()
	if err != nil {
		err = fmt.Errorf("kernel tap: %s: detach: %w", a.name, err)
	}
	last, err2 := a.counted()
	a.last = last
	return errors.Join(err, err2)
}
