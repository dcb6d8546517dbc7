package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// filterName is the name of the filter, as `tc filter show` has it.
const filterName = "pncd"

// The filter's handle says whether pncd made the qdisc that it is on, and so whether it is to be removed: also a later
// process finds it there. They are none that others choose: a filter that is added under another's handle takes its place.
const (
	onTheirQdisc = 0x706E6301
	onOurQdisc   = 0x706E6302
)

// filterPriority is the first: a filter that drops or redirects must not hide packets.
const filterPriority = 1

// filterHook is a classifier in direct-action mode on the ingress of a clsact qdisc. Unlike a bpf_link it stays when
// the process ends.
type filterHook struct {
	nl     *netlink.Handle // of the interface's network namespace
	filter *netlink.BpfFilter
	progID ebpf.ProgramID
}

func clsactOf(ifIndex int) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifIndex, Handle: netlink.MakeHandle(0xFFFF, 0), Parent: netlink.HANDLE_CLSACT}}
}

func filterOf(ifIndex int, handle uint32) *netlink.BpfFilter {
	return &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: ifIndex, Parent: netlink.HANDLE_MIN_INGRESS, Handle: handle, Priority: filterPriority, Protocol: unix.ETH_P_ALL,
		},
		Name: filterName, DirectAction: true,
	}
}

// attachFilter puts the program on an interface. A filter of pncd's that is there is replaced, without a gap: of another
// tap of this process, or of an earlier one's where RemoveLeft has not been called.
func attachFilter(ifIndex int, prog *ebpf.Program) (hook, error) {
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	h := &filterHook{nl: nl}
	if err := h.attach(ifIndex, prog); err != nil {
		nl.Close()
		return nil, err
	}
	return h, nil
}

func (h *filterHook) attach(ifIndex int, prog *ebpf.Program) error {
	info, err := prog.Info()
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	h.progID, _ = info.ID()
	handle := uint32(onTheirQdisc)
	switch err := h.nl.QdiscAdd(clsactOf(ifIndex)); {
	case err == nil:
		handle = onOurQdisc
	case errors.Is(err, unix.EEXIST):
		old, err := h.ours(ifIndex)
		if err != nil {
			return err
		}
		if old != nil {
			handle = old.Handle
		}
	default:
		return fmt.Errorf("add the clsact qdisc: %w", Explain(err))
	}
	h.filter = filterOf(ifIndex, handle)
	h.filter.Fd = prog.FD()
	if err := h.nl.FilterReplace(h.filter); err != nil {
		err = fmt.Errorf("add the filter: %w", Explain(err))
		if handle == onOurQdisc {
			err = errors.Join(err, h.nl.QdiscDel(clsactOf(ifIndex)))
		}
		return err
	}
	return nil
}

// ours is the filter that pncd has put on an interface, nil without one.
func (h *filterHook) ours(ifIndex int) (*netlink.BpfFilter, error) {
	all, err := h.filters(ifIndex, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if b, ok := f.(*netlink.BpfFilter); ok && b.Name == filterName {
			return b, nil
		}
	}
	return nil, nil
}

// listAttempts is how often a list is asked for that a change meanwhile has made incomplete.
const listAttempts = 5

func dump[T any](list func() ([]T, error)) (all []T, err error) {
	for range listAttempts {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

func (h *filterHook) filters(ifIndex int, parent uint32) (list []netlink.Filter, err error) {
	at := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: ifIndex}}
	list, err = dump(func() ([]netlink.Filter, error) { return h.nl.FilterList(at, parent) })
	if err != nil {
		return nil, fmt.Errorf("list the filters: %w", err)
	}
	return list, nil
}

func (h *filterHook) check(ifIndex int) error {
	f, err := h.ours(ifIndex)
	switch {
	case err != nil:
		return err
	case f == nil || ebpf.ProgramID(f.Id) != h.progID:
		return ErrDetached
	}
	return nil
}

// close removes the filter, and the qdisc when pncd made it and no one else's filter is on it.
func (h *filterHook) close() error {
	defer h.nl.Close()
	f, err := h.ours(h.filter.LinkIndex)
	switch {
	case absent(err):
		return nil
	case err != nil:
		return err
	case f != nil && ebpf.ProgramID(f.Id) != h.progID:
		return nil // another tap of this process has replaced it
	}
	return h.remove()
}

func (h *filterHook) remove() error {
	ifIndex := h.filter.LinkIndex
	if err := h.nl.FilterDel(h.filter); err != nil && !absent(err) {
		return fmt.Errorf("remove the filter: %w", err)
	}
	if h.filter.Handle != onOurQdisc {
		return nil
	}
	for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		if left, err := h.filters(ifIndex, parent); absent(err) {
			return nil
		} else if err != nil || len(left) > 0 {
			return err
		}
	}
	if err := h.nl.QdiscDel(clsactOf(ifIndex)); err != nil && !absent(err) {
		return fmt.Errorf("remove the clsact qdisc: %w", err)
	}
	return nil
}

// absent says whether the kernel has no more of what was to be removed: the interface went, or someone else
// removed it.
func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL)
}

// filtersLeft lists pncd's filters in the network namespace of nl: those of an earlier process, while this one has attached
// nothing yet.
func filtersLeft(nl *netlink.Handle) (out []*netlink.BpfFilter, err error) {
	qdiscs, err := dump(func() ([]netlink.Qdisc, error) { return nl.QdiscList(nil) })
	if err != nil {
		return nil, fmt.Errorf("list the qdiscs: %w", err)
	}
	for _, q := range qdiscs {
		if q.Type() != "clsact" {
			continue
		}
		f, err := (&filterHook{nl: nl}).ours(q.Attrs().LinkIndex)
		if absent(err) {
			continue // the interface went meanwhile
		}
		if err != nil {
			return out, err
		}
		if f != nil {
			out = append(out, f)
		}
	}
	return out, nil
}
