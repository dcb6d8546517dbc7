package kernel

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Attachment is the program on one interface. It goes with the process: a bpf_link is not kept without its owner.
type Attachment struct {
	t       *Tap
	name    string
	ifIndex int
	link    link.Link
}

// Attach puts the program on an interface of the network namespace of the calling thread.
//
// Errors wrap ErrNoInterface, ErrPermission, ErrNotSupported, ErrBusy and ErrClosed.
func (t *Tap) Attach(name string) (*Attachment, error) {
	ifc, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("kernel tap: %s: %w: create it, or correct its name in the configuration (%w)", name, ErrNoInterface, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("kernel tap: %s: %w", name, ErrClosed)
	}
	l, err := t.attach(ifc.Index)
	if err != nil {
		return nil, fmt.Errorf("kernel tap: %s: attach to %v: %w", name, t.mode, err)
	}
	a := &Attachment{t: t, name: name, ifIndex: ifc.Index, link: l}
	t.attached[a] = struct{}{}
	return a, nil
}

func (t *Tap) attach(ifIndex int) (link.Link, error) {
	var l link.Link
	var err error
	if t.mode == TCX {
		// In front: a program that drops or redirects must not hide packets.
		l, err = link.AttachTCX(link.TCXOptions{Interface: ifIndex, Program: t.prog, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
	} else {
		var flags link.XDPAttachFlags
		switch t.mode {
		case XDPNative:
			flags = link.XDPDriverMode
		case XDPGeneric:
			flags = link.XDPGenericMode
		}
		l, err = link.AttachXDP(link.XDPOptions{Interface: ifIndex, Program: t.prog, Flags: flags})
		switch {
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
			return nil, fmt.Errorf("%w (%w)", ErrBusy, err)
		case errors.Is(err, unix.EOPNOTSUPP):
			return nil, fmt.Errorf("%w: the driver has no XDP (%w)", ErrNotSupported, err)
		}
	}
	if err != nil {
		return nil, explain(err)
	}
	return l, nil
}

// Interface returns the interface's name as given to Attach.
func (a *Attachment) Interface() string { return a.name }

// IfIndex returns the interface's index.
func (a *Attachment) IfIndex() int { return a.ifIndex }

// Check returns nil while the program is on the interface, and an error that wraps ErrInterfaceGone once that was
// deleted or has left the namespace.
func (a *Attachment) Check() error {
	info, err := a.link.Info()
	if err != nil {
		return fmt.Errorf("kernel tap: %s: link: %w", a.name, err)
	}
	var at uint32
	if tcx := info.TCX(); tcx != nil {
		at = tcx.Ifindex
	} else if xdp := info.XDP(); xdp != nil {
		at = xdp.Ifindex
	}
	if at != uint32(a.ifIndex) {
		return fmt.Errorf("kernel tap: %s: %w", a.name, ErrInterfaceGone)
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
	if err := a.link.Close(); err != nil {
		return fmt.Errorf("kernel tap: %s: detach: %w", a.name, err)
	}
	return nil
}
