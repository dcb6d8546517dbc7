package host

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// MendVeth gives the ends of a pair the configured addresses that somebody took from them, and says which. It
// makes no pair, and passes over an end that is down: that may be an operator's wish, and the kernel takes IPv6
// addresses from such an end by itself. Capabilities as for EnsureVeth.
func MendVeth(c VethConfig) (added []Address, err error) {
	fail := func(err error) ([]Address, error) {
		return added, fmt.Errorf("addresses of the veth pair %s: %w%s", c.Name, err, hint(err))
	}
	v, err := openVeth(c)
	if err != nil {
		return fail(err)
	}
	defer v.close()
	ours, peer, err := v.find()
	if err != nil {
		return fail(err)
	}
	if ours == nil || peer == nil {
		return nil, nil // to be made again, not mended
	}
	for _, end := range v.ends(ours, peer) {
		if end.link.Attrs().Flags&net.FlagUp == 0 {
			continue
		}
		is, err := prefixesOf(end.h.nl, end.link)
		if err != nil {
			return fail(err)
		}
		missing, err := addMissing(end.h.nl, end.link, is, end.addrs)
		for _, p := range missing {
			added = append(added, Address{Interface: end.link.Attrs().Name, Prefix: p})
		}
		if err != nil {
			return fail(err)
		}
	}
	return added, nil
}

// vethEnd is an end of a pair with the addresses it is to have.
type vethEnd struct {
	h     *Host
	link  netlink.Link
	addrs []netip.Prefix
}

// ends are the other end, then this one.
func (v *veth) ends(ours, peer netlink.Link) [2]vethEnd {
	return [2]vethEnd{{v.there, peer, v.PeerAddresses}, {v.here, ours, v.Addresses}}
}

func prefixesOf(nl *netlink.Handle, l netlink.Link) (is []netip.Prefix, err error) {
	have, err := dump(func() ([]netlink.Addr, error) { return nl.AddrList(l, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s: %w", l.Attrs().Name, err)
	}
	for i := range have {
		is = append(is, addrPrefix(&have[i]))
	}
	return is, nil
}

func addrPrefix(a *netlink.Addr) netip.Prefix {
	ip, _ := netip.AddrFromSlice(a.IP)
	bits, _ := a.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), bits)
}
