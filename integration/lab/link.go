package lab

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// inNode calls fn with a netlink handle in the node's network namespace.
func inNode(n *node, fn func(ns netns.NsHandle, h *netlink.Handle) error) error {
	ns, err := netns.GetFromName(n.netns)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", n.netns, err)
	}
	defer func() { _ = ns.Close() }()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("netlink in %s: %w", n.netns, err)
	}
	defer h.Close()
	return fn(ns, h)
}

// addLink makes a veth pair, each end in its node from the start, so that nothing of it is ever in the
// machine's own namespace.
func (l *Lab) addLink(link Link) error {
	a, b := l.nodes[link.A.Node], l.nodes[link.B.Node]
	err := inNode(a, func(_ netns.NsHandle, ha *netlink.Handle) error {
		return inNode(b, func(nsb netns.NsHandle, _ *netlink.Handle) error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.MTU = link.A.Interface, link.MTU
			return ha.LinkAdd(&netlink.Veth{
				LinkAttrs: attrs, PeerName: link.B.Interface, PeerMTU: uint32(link.MTU),
				PeerNamespace: netlink.NsFd(int(nsb)),
			})
		})
	})
	if err != nil {
		return fmt.Errorf("add veth pair: %w", err)
	}
	for _, end := range []Endpoint{link.A, link.B} {
		if err := l.nodes[end.Node].attach(end.Interface, link.MTU); err != nil {
			return fmt.Errorf("%s: %w", end, err)
		}
	}
	return nil
}

// attach sets an end up, and makes it a port in a bridge node.
func (n *node) attach(name string, mtu int) error {
	return inNode(n, func(_ netns.NsHandle, h *netlink.Handle) error {
		link, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		if err := h.LinkSetMTU(link, mtu); err != nil {
			return fmt.Errorf("set MTU %d: %w", mtu, err)
		}
		if n.def.Kind == kindBridge {
			br, err := h.LinkByName(n.def.Name)
			if err != nil {
				return err
			}
			if err := h.LinkSetMaster(link, br); err != nil {
				return fmt.Errorf("add to bridge: %w", err)
			}
		}
		return h.LinkSetUp(link)
	})
}

// addBridge makes the bridge of a bridge node, named after the node. Multicast snooping is off: it
// would hold back the routing protocols' hellos until it has seen a querier.
func addBridge(n *node) error {
	return inNode(n, func(_ netns.NsHandle, h *netlink.Handle) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = n.def.Name
		off := false
		br := &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &off}
		if err := h.LinkAdd(br); err != nil {
			return fmt.Errorf("add bridge: %w", err)
		}
		return h.LinkSetUp(br)
	})
}
