package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

const owner = "pncd test"

func (n *namespace) pair(more func(*VethConfig)) VethConfig {
	c := VethConfig{Namespace: n.path, Name: "isis0", Peer: "isis-r", Owner: owner,
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/31")}, PeerAddresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.11/31"), netip.MustParsePrefix("2001:db8::1/64")}}
	if more != nil {
		more(&c)
	}
	return c
}

// ensure makes the pair, or adopts it.
func (n *namespace) ensure(c VethConfig) (made bool) {
	n.t.Helper()
	made, err := EnsureVeth(c)
	n.ok(err)
	return made
}

func (n *namespace) has(name string) bool {
	_, err := n.nl.LinkByName(name)
	return err == nil
}

// addresses are those of an interface, without link-local ones.
func (n *namespace) addresses(name string) (all []string) {
	n.t.Helper()
	list, err := n.nl.AddrList(n.link(name), netlink.FAMILY_ALL)
	n.ok(err)
	for _, a := range list {
		if !a.IP.IsLinkLocalUnicast() {
			all = append(all, a.IPNet.String())
		}
	}
	slices.Sort(all)
	return all
}

func TestAVethPairIntoANamespace(t *testing.T) {
	here, router := newNamespace(t), newNamespace(t)
	c := here.pair(func(c *VethConfig) { c.PeerNamespace, c.MTU = router.path, 9000 })
	if !here.ensure(c) {
		t.Error("nothing was made")
	}
	ours, peer := here.link("isis0").Attrs(), router.link("isis-r").Attrs()
	if ours.MTU != 9000 || peer.MTU != 9000 || ours.Flags&net.FlagUp == 0 || peer.Flags&net.FlagUp == 0 || ours.Alias != owner {
		t.Errorf("%+v %+v", ours, peer)
	}
	if a, b := here.addresses("isis0"), router.addresses("isis-r"); !slices.Equal(a, []string{"192.0.2.10/31"}) || !slices.Equal(b, []string{"192.0.2.11/31", "2001:db8::1/64"}) {
		t.Errorf("%v %v", a, b)
	}
	if here.has("isis-r") || router.has("isis0") {
		t.Error("both ends are in one namespace")
	}
	// Again, as after kill -9: the same pair, with what is configured now.
	c.MTU, c.Addresses = 1500, []netip.Prefix{netip.MustParsePrefix("198.51.100.0/31")}
	if here.ensure(c) {
		t.Error("made again, not adopted")
	}
	if again := here.link("isis0").Attrs(); again.Index != ours.Index || again.MTU != 1500 || !slices.Equal(here.addresses("isis0"), []string{"198.51.100.0/31"}) {
		t.Errorf("not adopted: %+v", again)
	}
	// The other end was renamed: the pair is replaced.
	router.down("isis-r")
	router.ok(router.nl.LinkSetName(router.link("isis-r"), "elsewhere"))
	here.ensure(c)
	if here.link("isis0").Attrs().Index == ours.Index || router.has("elsewhere") || !router.has("isis-r") {
		t.Error("not replaced")
	}
	// It vanished, and comes back.
	router.ok(router.nl.LinkDel(router.link("isis-r")))
	if here.has("isis0") {
		t.Fatal("one end is left")
	}
	here.ensure(c)
	here.ok(RemoveVeth(c))
	here.ok(RemoveVeth(c)) // nothing is there
	if here.has("isis0") || router.has("isis-r") {
		t.Error("something is left")
	}
}

func TestAVethPairIntoABridge(t *testing.T) {
	n := newNamespace(t)
	for _, name := range []string{"br0", "br1"} {
		n.ok(n.nl.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}))
	}
	c := n.pair(func(c *VethConfig) { c.Bridge, c.PeerAddresses = "br0", nil })
	for _, bridge := range []string{"br0", "br1", ""} {
		c.Bridge = bridge
		n.ensure(c)
		master := 0
		if bridge != "" {
			master = n.link(bridge).Attrs().Index
		}
		if got := n.link("isis-r").Attrs().MasterIndex; got != master {
			t.Errorf("%q: master %d, want %d", bridge, got, master)
		}
	}
	c.Bridge = "isis0"
	if _, err := EnsureVeth(c); err == nil || !strings.Contains(err.Error(), "bridge isis0: it is a veth") {
		t.Errorf("no bridge: %v", err)
	}
	n.ok(RemoveVeth(c))
	c.Bridge = "br9"
	if _, err := EnsureVeth(c); err == nil || !strings.Contains(err.Error(), "bridge br9") {
		t.Errorf("a bridge that isn't there: %v", err)
	}
	if n.has("isis0") || n.has("isis-r") {
		t.Error("an attempt that failed left something")
	}
}

func TestAddressesThatARouterGivesItsEndStay(t *testing.T) {
	n := newNamespace(t)
	c := n.pair(func(c *VethConfig) { c.PeerAddresses = nil })
	n.ensure(c)
	a, err := netlink.ParseAddr("198.51.100.1/24")
	n.ok(err)
	n.ok(n.nl.AddrAdd(n.link("isis-r"), a))
	n.ensure(c) // as after kill -9
	if got := n.addresses("isis-r"); !slices.Equal(got, []string{"198.51.100.1/24"}) {
		t.Errorf("the router's end has %v", got)
	}
}

func TestInterfacesOfOthersAreLeftAlone(t *testing.T) {
	n := newNamespace(t)
	c := n.pair(nil)
	n.veth("isis0", "isis-r") // up, without the alias
	if _, err := EnsureVeth(c); !errors.Is(err, ErrNotOurs) {
		t.Errorf("made by another: %v", err)
	}
	if err := RemoveVeth(c); !errors.Is(err, ErrNotOurs) {
		t.Errorf("removed: %v", err)
	}
	n.ok(n.nl.LinkDel(n.link("isis0")))
	n.ok(n.nl.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "isis0"}}))
	if _, err := EnsureVeth(c); !errors.Is(err, ErrNotOurs) {
		t.Errorf("another kind: %v", err)
	}
	n.ok(n.nl.LinkDel(n.link("isis0")))
	n.veth("isis-r", "x")
	if _, err := EnsureVeth(c); err == nil || !strings.Contains(err.Error(), "interface isis-r already") {
		t.Errorf("the peer's name: %v", err)
	}
	if n.has("isis0") {
		t.Error("something is left")
	}
}

func TestAPairWhoseMakingWasInterruptedIsAdopted(t *testing.T) {
	n := newNamespace(t)
	n.ok(n.nl.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "isis0"}, PeerName: "isis-r"}))
	index := n.link("isis0").Attrs().Index
	c := n.pair(nil)
	n.ensure(c)
	if a := n.link("isis0").Attrs(); a.Index != index || a.Alias != owner {
		t.Errorf("%+v", a)
	}
}

func TestAddressesThatSomebodyTookComeBack(t *testing.T) {
	here, router := newNamespace(t), newNamespace(t)
	c := here.pair(func(c *VethConfig) {
		c.PeerNamespace = router.path
		c.Addresses = append(c.Addresses, netip.MustParsePrefix("2001:db8::2/64"))
	})
	mend := func() string {
		t.Helper()
		added, err := MendVeth(c)
		here.ok(err)
		return fmt.Sprint(added)
	}
	if got := mend(); got != "[]" || here.has("isis0") {
		t.Errorf("without a pair: %s", got)
	}
	here.ensure(c)
	if got := mend(); got != "[]" {
		t.Errorf("a sound pair: %s", got)
	}
	drop := func(n *namespace, name string) {
		t.Helper()
		list, err := n.nl.AddrList(n.link(name), netlink.FAMILY_ALL)
		n.ok(err)
		for _, a := range list {
			n.ok(n.nl.AddrDel(n.link(name), &a))
		}
	}
	drop(here, "isis0")
	drop(router, "isis-r")
	router.addr("isis-r", "198.51.100.1/24") // another's: it stays
	if got := mend(); got != "[{isis-r 192.0.2.11/31} {isis-r 2001:db8::1/64} {isis0 192.0.2.10/31} {isis0 2001:db8::2/64}]" {
		t.Errorf("mended %s", got)
	}
	if a, b := here.addresses("isis0"), router.addresses("isis-r"); len(a) != 2 || len(b) != 3 {
		t.Errorf("%v %v", a, b)
	}
	here.down("isis0") // an operator's wish; the kernel takes the IPv6 address
	if got := mend(); got != "[]" {
		t.Errorf("down: mended %s", got)
	}
	here.up("isis0")
	if got := mend(); got != "[{isis0 2001:db8::2/64}]" {
		t.Errorf("up again: mended %s", got)
	}
}

func TestNamespacePath(t *testing.T) {
	for s, want := range map[string]string{"": "", "r1": "/run/netns/r1", "42": "/proc/42/ns/net", "/run/x": "/run/x"} {
		if got := NamespacePath(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	if _, err := EnsureVeth(VethConfig{Name: "isis0", Peer: "isis-r", PeerNamespace: "pncd-no-such"}); err == nil || !strings.Contains(err.Error(), "/run/netns/pncd-no-such") {
		t.Errorf("a namespace that isn't there: %v", err)
	}
}
