package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// VethConfig is a veth pair that this program makes: one end here, the other one where a router is.
type VethConfig struct {
	Namespace     string // of this end, a path; empty: the process's own
	Name          string // of this end
	Peer          string // name of the other end
	PeerNamespace string // of the other end, as NamespacePath reads it; empty: that of this end
	Bridge        string // in the other end's namespace, which gets the other end as a port; empty: none
	Addresses     []netip.Prefix
	// PeerAddresses of the other end; none: its addresses are the other namespace's affair.
	PeerAddresses []netip.Prefix
	MTU           int // of both ends, octets; 0: 1500
	// Owner is written to this end as its alias: a pair with it is this program's, maybe of a life before.
	Owner string
}

// ErrNotOurs is wrapped by the error for an interface that has the name and was made by somebody else.
var ErrNotOurs = errors.New("the interface is there already and was not made by this program")

// NamespacePath gives the file of a network namespace that is named as in ip-netns(8), or by the ID of a
// process in it, or by the path of its file.
func NamespacePath(s string) string {
	switch _, err := strconv.ParseUint(s, 10, 31); {
	case s == "" || strings.Contains(s, "/"):
		return s
	case err == nil:
		return filepath.Join("/proc", s, "ns/net")
	}
	return filepath.Join("/run/netns", s)
}

// EnsureVeth makes the pair, or adopts one of an earlier life that is as it should be; one that isn't is
// replaced. made says that it wasn't adopted. It needs CAP_NET_ADMIN, and for another namespace CAP_SYS_ADMIN.
func EnsureVeth(c VethConfig) (made bool, err error) {
	if c.MTU == 0 {
		c.MTU = 1500
	}
	v, err := openVeth(c)
	if err != nil {
		return false, fmt.Errorf("veth pair %s: %w", c.Name, err)
	}
	defer v.close()
	if made, err = v.ensure(); err != nil {
		return false, fmt.Errorf("veth pair %s: %w%s", c.Name, err, hint(err))
	}
	return made, nil
}

// RemoveVeth removes the pair if it is there and this program's.
func RemoveVeth(c VethConfig) error {
	h, err := Open(c.Namespace)
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := h.nl.LinkByName(c.Name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil && (l.Type() != "veth" || l.Attrs().Alias != c.Owner) {
		err = ErrNotOurs
	}
	if err == nil {
		err = h.nl.LinkDel(l) // the other end goes with it
	}
	if err != nil {
		return fmt.Errorf("remove the veth pair %s: %w", c.Name, err)
	}
	return nil
}

func hint(err error) string {
	if errors.Is(err, unix.EPERM) && !errors.Is(err, ErrNamespacePermission) {
		return " (the capability CAP_NET_ADMIN is missing)"
	}
	return ""
}

// veth is the two namespaces of a pair.
type veth struct {
	VethConfig
	here, there *Host
	fd          netns.NsHandle // of the other end's namespace; closed when it is this one
}

func openVeth(c VethConfig) (*veth, error) {
	v := &veth{VethConfig: c, fd: netns.None()}
	var err error
	if v.here, err = Open(c.Namespace); err != nil {
		return nil, err
	}
	path := NamespacePath(c.PeerNamespace)
	if path == "" {
		path = c.Namespace
	} else if v.fd, err = openNamespace(path); err != nil {
		v.here.Close()
		return nil, err
	}
	if v.there, err = Open(path); err != nil {
		v.here.Close()
		v.closeFD()
		return nil, err
	}
	return v, nil
}

func (v *veth) close() {
	v.here.Close()
	v.there.Close()
	v.closeFD()
}

func (v *veth) closeFD() {
	if v.fd.IsOpen() {
		_ = v.fd.Close()
	}
}

func (v *veth) ensure() (made bool, err error) {
	ours, peer, err := v.find()
	if err != nil {
		return false, err
	}
	if ours != nil && peer == nil { // the other end was renamed or moved: begin anew
		if err := v.here.nl.LinkDel(ours); err != nil {
			return false, fmt.Errorf("remove what is left of an earlier pair: %w", err)
		}
		ours = nil
	}
	if made = ours == nil; made {
		if ours, peer, err = v.create(); err != nil {
			return false, err
		}
	}
	err = v.settle(ours, peer)
	if err != nil && made {
		_ = v.here.nl.LinkDel(ours) // nothing is left of an attempt that failed
	}
	return made, err
}

// find gives the ends of a pair of this program; peer is nil when the other end isn't where it should be.
func (v *veth) find() (ours, peer netlink.Link, err error) {
	ours, err = v.here.nl.LinkByName(v.Name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	peer, err = v.there.nl.LinkByName(v.Peer)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		peer, err = nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if peer != nil && (peer.Type() != "veth" || peer.Attrs().ParentIndex != ours.Attrs().Index || ours.Attrs().ParentIndex != peer.Attrs().Index) {
		peer = nil
	}
	a := ours.Attrs()
	// Killed between the making of a pair and its alias: as made, down, and its other end where it should be.
	interrupted := a.Alias == "" && a.Flags&net.FlagUp == 0 && peer != nil
	if ours.Type() != "veth" || a.Alias != v.Owner && !interrupted {
		return nil, nil, ErrNotOurs
	}
	return ours, peer, nil
}

func (v *veth) create() (ours, peer netlink.Link, err error) {
	l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: v.Name, MTU: v.MTU}, PeerName: v.Peer, PeerMTU: uint32(v.MTU)}
	if v.fd.IsOpen() {
		l.PeerNamespace = netlink.NsFd(int(v.fd))
	}
	if err := v.here.nl.LinkAdd(l); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return nil, nil, fmt.Errorf("there is an interface %s already: %w", v.Peer, err)
		}
		return nil, nil, fmt.Errorf("make the pair: %w", err)
	}
	if ours, err = v.here.nl.LinkByName(v.Name); err != nil {
		return nil, nil, err
	}
	if peer, err = v.there.nl.LinkByName(v.Peer); err != nil {
		return nil, nil, err
	}
	return ours, peer, nil
}

// settle brings both ends to what is configured, this one last: as long as it is down nothing is sent.
func (v *veth) settle(ours, peer netlink.Link) error {
	if ours.Attrs().Alias != v.Owner {
		if err := v.here.nl.LinkSetAlias(ours, v.Owner); err != nil {
			return fmt.Errorf("set the alias: %w", err)
		}
	}
	if err := v.join(peer); err != nil {
		return err
	}
	for _, end := range v.ends(ours, peer) {
		name := end.link.Attrs().Name
		if end.link.Attrs().MTU != v.MTU {
			if err := end.h.nl.LinkSetMTU(end.link, v.MTU); err != nil {
				return fmt.Errorf("set the MTU of %s: %w", name, err)
			}
		}
		if end.link == ours || len(end.addrs) > 0 { // a router may give its end addresses by itself
			if err := setAddresses(end.h.nl, end.link, end.addrs); err != nil {
				return err
			}
		}
		if err := end.h.nl.LinkSetUp(end.link); err != nil {
			return fmt.Errorf("set %s up: %w", name, err)
		}
	}
	return nil
}

// join makes the other end a port of the bridge, or of none.
func (v *veth) join(peer netlink.Link) error {
	master := 0
	if v.Bridge != "" {
		b, err := v.there.nl.LinkByName(v.Bridge)
		if err != nil {
			return fmt.Errorf("bridge %s: %w", v.Bridge, err)
		}
		if b.Type() != "bridge" {
			return fmt.Errorf("bridge %s: it is a %s", v.Bridge, b.Type())
		}
		master = b.Attrs().Index
	}
	if peer.Attrs().MasterIndex == master {
		return nil
	}
	if err := v.there.nl.LinkSetMasterByIndex(peer, master); err != nil {
		return fmt.Errorf("join bridge %q: %w", v.Bridge, err)
	}
	return nil
}

// setAddresses gives an interface these addresses and no other ones, but link-local ones of the kernel.
func setAddresses(nl *netlink.Handle, l netlink.Link, want []netip.Prefix) error {
	name := l.Attrs().Name
	have, err := dump(func() ([]netlink.Addr, error) { return nl.AddrList(l, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list the addresses of %s: %w", name, err)
	}
	var is []netip.Prefix
	for i := range have {
		p := addrPrefix(&have[i])
		if is = append(is, p); slices.Contains(want, p) || p.Addr().IsLinkLocalUnicast() {
			continue
		}
		if err := nl.AddrDel(l, &have[i]); err != nil {
			return fmt.Errorf("remove address %s of %s: %w", p, name, err)
		}
	}
	_, err = addMissing(nl, l, is, want)
	return err
}

// addMissing gives an interface that has the addresses is the wanted ones that it lacks, and says which.
func addMissing(nl *netlink.Handle, l netlink.Link, is, want []netip.Prefix) (added []netip.Prefix, err error) {
	for _, p := range want {
		if slices.Contains(is, p) {
			continue
		}
		if err := addAddress(nl, l, p); err != nil {
			return added, err
		}
		added = append(added, p)
	}
	return added, nil
}

func addAddress(nl *netlink.Handle, l netlink.Link, p netip.Prefix) error {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD // a link of two ends, both configured here
	}
	if err := nl.AddrAdd(l, a); err != nil {
		return fmt.Errorf("add address %s to %s: %w", p, l.Attrs().Name, err)
	}
	return nil
}
