package translate

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/kernel"
)

// Attachment is the program on one interface. It goes with the process: a bpf_link is not kept without its owner.
type Attachment struct {
	t       *Translator
	name    string
	ifIndex int
	mac     [6]byte
	native  bool
	inVRF   bool
	link    link.Link
}

// Attach puts the program on an interface of the network namespace of the calling thread: in the driver, or where that
// has no XDP, in the stack. Notifications that come in by it are decided when accepted, else they are not of the
// domain; CNPs may leave by it. By an interface of a VRF none are accepted: nothing that comes in there is for a socket
// outside of it.
//
// Errors wrap kernel.ErrNoInterface, ErrPermission, ErrNotSupported and ErrBusy, and ErrVLAN and ErrClosed.
func (t *Translator) Attach(name string, accepted bool) (*Attachment, error) {
	fail := func(err error) (*Attachment, error) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return fail(fmt.Errorf("%w: create it, or correct its name in the configuration", kernel.ErrNoInterface))
	}
	if err != nil {
		return fail(fmt.Errorf("look up the interface: %w", err))
	}
	attrs := l.Attrs()
	if len(attrs.HardwareAddr) != 6 {
		return fail(fmt.Errorf("%w: it is no Ethernet interface", kernel.ErrNotSupported))
	}
	if err := hiddenVLANs(attrs.Index, name); err != nil {
		return fail(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fail(ErrClosed)
	}
	a := &Attachment{t: t, name: name, ifIndex: attrs.Index, mac: [6]byte(attrs.HardwareAddr)}
	if attrs.MasterIndex != 0 {
		master, err := netlink.LinkByIndex(attrs.MasterIndex)
		if err != nil {
			return fail(fmt.Errorf("look up what it is part of: %w", err))
		}
		a.inVRF = master.Type() == "vrf"
	}
	if a.link, a.native, err = attach(t.programs.Translate, attrs.Index); err != nil {
		return fail(err)
	}
	// Only now: the program may send by an interface that it is on.
	if err := a.write(accepted); err != nil {
		return fail(errors.Join(err, a.link.Close()))
	}
	t.attached[attrs.Index] = a
	return a, nil
}

// write tells the program of the interface.
func (a *Attachment) write(accepted bool) error {
	port := translatePort{Mac: a.mac}
	if accepted && !a.inVRF {
		port.Accepted = 1
	}
	return a.t.maps.Ports.Update(uint32(a.ifIndex), &port, ebpf.UpdateAny)
}

// SetAccepted changes whether notifications may come in by the interface.
func (a *Attachment) SetAccepted(accepted bool) error {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if a.t.attached[a.ifIndex] != a {
		return fmt.Errorf("kernel translator: %s: %w", a.name, ErrClosed)
	}
	if err := a.write(accepted); err != nil {
		return fmt.Errorf("kernel translator: %s: %w", a.name, err)
	}
	return nil
}

func attach(prog *ebpf.Program, ifIndex int) (l link.Link, native bool, err error) {
	for _, mode := range []link.XDPAttachFlags{link.XDPDriverMode, link.XDPGenericMode} {
		l, err = link.AttachXDP(link.XDPOptions{Interface: ifIndex, Program: prog, Flags: mode})
		switch {
		case err == nil:
			return l, mode == link.XDPDriverMode, nil
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
			return nil, false, fmt.Errorf("%w, and there can be one only: 'ip link show' names it, 'ip link set ... xdp off' or the end of its program takes it off; a learner in mode xdp is one, too (%w)", kernel.ErrBusy, err)
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ERANGE):
			// No XDP in the driver, or not with these settings (MTU, offloads): in the stack, then.
		default:
			return nil, false, kernel.Explain(err)
		}
	}
	return nil, false, fmt.Errorf("%w: neither its driver nor the stack takes the program (%w)", kernel.ErrNotSupported, err)
}

// Attachments lists where the program is, in no order.
func (t *Translator) Attachments() []*Attachment {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.attached))
}

// Interface returns the interface's name as given to Attach.
func (a *Attachment) Interface() string { return a.name }

// Native reports whether the program is in the driver, or else in the stack.
func (a *Attachment) Native() bool { return a.native }

// IfIndex returns the interface's index.
func (a *Attachment) IfIndex() int { return a.ifIndex }

// Object is the program on the interface, for people.
func (a *Attachment) Object() (kernel.Object, error) {
	how := "the stack"
	if a.native {
		how = "the driver"
	}
	o := kernel.Object{Name: ProgramName, Detail: fmt.Sprintf("XDP in %s of %s", how, a.name)}
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if a.t.attached[a.ifIndex] != a {
		return o, ErrClosed
	}
	info, err := a.link.Info()
	if err != nil {
		return o, fmt.Errorf("kernel translator: %s: link: %w", a.name, err)
	}
	o.Detail = fmt.Sprintf("id %d, %s by link %d", info.Program, o.Detail, info.ID)
	return o, nil
}

// Close takes the program off the interface, and CNPs leave by it no more. A second Close does nothing.
func (a *Attachment) Close() error {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if a.t.attached[a.ifIndex] != a {
		return nil
	}
	delete(a.t.attached, a.ifIndex)
	err := a.t.maps.Ports.Delete(uint32(a.ifIndex))
	if err = errors.Join(err, a.link.Close()); err != nil {
		return fmt.Errorf("kernel translator: %s: detach: %w", a.name, err)
	}
	return nil
}

// Check returns nil while the program is on the interface, and an error that wraps kernel.ErrInterfaceGone once that was deleted or has left
// the calling thread's network namespace, and kernel.ErrDetached once the program was taken off.
func (a *Attachment) Check() error {
	info, err := a.link.Info()
	if err != nil {
		return fmt.Errorf("kernel translator: %s: link: %w", a.name, err)
	}
	if xdp := info.XDP(); xdp != nil && xdp.Ifindex == uint32(a.ifIndex) {
		return nil
	}
	err = kernel.ErrInterfaceGone
	if _, there := net.InterfaceByIndex(a.ifIndex); there == nil {
		err = kernel.ErrDetached
	}
	return fmt.Errorf("kernel translator: %s: %w", a.name, err)
}
