package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pncd/internal/testwait"
)

func (n *namespace) open() *Host {
	n.t.Helper()
	h, err := Open(n.path)
	n.ok(err)
	n.t.Cleanup(h.Close)
	return h
}

func TestInterfaceExistsNamesWhatDoes(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	h := n.open()
	if err := h.InterfaceExists("va"); err != nil {
		t.Error(err)
	}
	err := h.InterfaceExists("eth9")
	if !errors.Is(err, ErrNoInterface) {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{`"eth9"`, "lo, va, vb", "create it or name one"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

func TestNoInterfaceListsTwentyNamesAtMost(t *testing.T) {
	var have []string
	for i := range 300 {
		have = append(have, fmt.Sprintf("veth%d", i))
	}
	msg := noInterface("x", have).Error()
	if !strings.Contains(msg, "veth19 and 280 more") || strings.Contains(msg, "veth20") {
		t.Error(msg)
	}
}

func TestLinksAndAddresses(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	n.addr("va", "192.0.2.1/24")
	n.addr("va", "2001:db8::1/64")
	n.down("vb")
	h := n.open()
	links, err := h.Links()
	n.ok(err)
	got := map[string]Link{}
	for _, l := range links {
		got[l.Name] = l
	}
	if len(links) != 3 || links[0].Name != "lo" {
		t.Errorf("links %+v", links)
	}
	if l := got["va"]; l.Kind != "veth" || !l.Up || l.Carrier || l.MTU != 1500 || len(l.MAC) != 6 || l.Index == 0 {
		t.Errorf("va is %+v", l)
	}
	if got["vb"].Up {
		t.Error("vb is up")
	}
	addrs, err := h.Addresses()
	n.ok(err)
	has := func(name, prefix string) {
		t.Helper()
		for _, a := range addrs {
			if a.Interface == name && a.Prefix == netip.MustParsePrefix(prefix) {
				return
			}
		}
		t.Errorf("%s %s is not in %v", name, prefix, addrs)
	}
	has("lo", "127.0.0.1/8")
	has("va", "192.0.2.1/24")
	has("va", "2001:db8::1/64")
}

func TestIsLocal(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	n.addr("va", "192.0.2.1/24")
	n.addr("va", "2001:db8::1/64")
	h := n.open()
	for a, want := range map[string]bool{
		"192.0.2.1": true, "192.0.2.2": false, "2001:db8::1": true, "2001:db8::2": false,
		"127.0.0.1": true, "::1": true, "::ffff:192.0.2.1": true, "203.0.113.1": false,
	} {
		// The kernel makes an IPv6 address usable a little later.
		testwait.Until(t, fmt.Sprintf("IsLocal(%s) is %v", a, want), func() bool {
			got, err := h.IsLocal(addr(a))
			return err == nil && got == want
		})
	}
	if _, err := h.IsLocal(netip.Addr{}); err == nil {
		t.Error("no error for a missing address")
	}
}

func TestLookup(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	n.veth("down", "peer")
	n.addr("va", "192.0.2.1/24")
	n.addr("va", "2001:db8::1/64")
	n.addr("down", "198.18.0.1/24")
	n.addr("down", "2001:db8:18::1/64")
	n.route("10.1.0.0/16", "192.0.2.9", "va")
	n.route("2001:db8:1::/48", "2001:db8::9", "va")
	for _, f := range []struct {
		name string
		typ  int
		v4   string
		v6   string
	}{
		{"blackhole", unix.RTN_BLACKHOLE, "10.2.0.0/16", "2001:db8:2::/48"},
		{"unreachable", unix.RTN_UNREACHABLE, "10.3.0.0/16", "2001:db8:3::/48"},
		{"prohibit", unix.RTN_PROHIBIT, "10.4.0.0/16", "2001:db8:4::/48"},
	} {
		n.route(f.v4, "", "", kind(f.typ))
		n.route(f.v6, "", "", kind(f.typ))
	}
	n.route("10.5.0.0/16", "198.18.0.9", "down")
	n.route("2001:db8:5::/48", "2001:db8:18::9", "down")
	n.route("10.6.0.0/16", "", "", func(r *netlink.Route) {
		r.MultiPath = []*netlink.NexthopInfo{
			{LinkIndex: n.link("down").Attrs().Index, Gw: net.ParseIP("198.18.0.9")},
			{LinkIndex: n.link("va").Attrs().Index, Gw: net.ParseIP("192.0.2.8")},
		}
	})
	n.down("peer") // the carrier of down goes

	h := n.open()
	// The kernel tells its route tables of a carrier, and of an IPv6 address, a little later.
	testwait.Until(t, "the kernel is done", func() bool {
		local, err := h.IsLocal(addr("2001:db8::1"))
		n.ok(err)
		down := true
		for _, a := range []string{"10.5.0.1", "2001:db8:5::1"} {
			s, err := h.lookup(addr(a), nil)
			n.ok(err)
			down = down && !s.Reachable
		}
		return local && down
	})
	names, err := h.names()
	n.ok(err)
	tests := []struct {
		name, addr string
		want       Status
		detail     string // part of it
	}{
		{"by a gateway", "10.1.2.3", Status{Reachable: true, Interface: "va", NextHop: addr("192.0.2.9")}, ""},
		{"by a gateway, IPv6", "2001:db8:1::3", Status{Reachable: true, Interface: "va", NextHop: addr("2001:db8::9")}, ""},
		{"on the link", "192.0.2.77", Status{Reachable: true, Interface: "va"}, ""},
		{"on the link, IPv6", "2001:db8::77", Status{Reachable: true, Interface: "va"}, ""},
		{"our own", "192.0.2.1", Status{Reachable: true, Self: true, Interface: "va"}, ""},
		{"our own, IPv6", "2001:db8::1", Status{Reachable: true, Self: true}, ""},
		{"no route", "203.0.113.1", Status{}, "no route"},
		{"no route, IPv6", "2001:db8:ffff::1", Status{}, "no route"},
		{"blackhole", "10.2.0.1", Status{}, "blackhole"},
		{"blackhole, IPv6", "2001:db8:2::1", Status{}, "blackhole"},
		{"unreachable", "10.3.0.1", Status{}, "unreachable"},
		{"unreachable, IPv6", "2001:db8:3::1", Status{}, "unreachable"},
		{"prohibit", "10.4.0.1", Status{}, "prohibit"},
		{"prohibit, IPv6", "2001:db8:4::1", Status{}, "prohibit"},
		{"link without carrier", "10.5.0.1", Status{}, "link down is down"},
		{"link without carrier, IPv6", "2001:db8:5::1", Status{}, "link down is down"},
		{"one of two links without carrier", "10.6.0.1", Status{Reachable: true, Interface: "va", NextHop: addr("192.0.2.8")}, ""},
		{"broadcast", "192.0.2.255", Status{}, "broadcast"},
		{"multicast", "224.0.0.5", Status{}, ""},
	}
	for _, tt := range tests {
		got, err := h.lookup(addr(tt.addr), names)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if !strings.Contains(got.Detail, tt.detail) {
			t.Errorf("%s: detail %q lacks %q", tt.name, got.Detail, tt.detail)
		}
		if tt.want.Self {
			got.Interface, tt.want.Interface = "", "" // IPv4 says va, IPv6 lo or va
		}
		got.Detail = ""
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestOpenUnknownNamespaceSaysWhatToDo(t *testing.T) {
	_, err := Open("/run/netns/pncd-t-none")
	if err == nil || !strings.Contains(err.Error(), "ip netns list") {
		t.Errorf("error %v", err)
	}
}

func TestOwnNamespace(t *testing.T) {
	links, err := Links()
	if err != nil || len(links) == 0 {
		t.Fatalf("links %v, %v", links, err)
	}
	if err := InterfaceExists(links[0].Name); err != nil {
		t.Error(err)
	}
	if err := InterfaceExists("pncd-t-none"); !errors.Is(err, ErrNoInterface) {
		t.Error(err)
	}
	if _, err := Addresses(); err != nil {
		t.Error(err)
	}
	if local, err := IsLocal(addr("127.0.0.1")); err != nil || !local {
		t.Errorf("127.0.0.1 local: %v, %v", local, err)
	}
}

func TestDumpIsRetriedWhenInterrupted(t *testing.T) {
	calls := 0
	got, err := dump(func() ([]int, error) {
		if calls++; calls < 3 {
			return []int{1}, fmt.Errorf("list: %w", netlink.ErrDumpInterrupted)
		}
		return []int{1, 2}, nil
	})
	if err != nil || len(got) != 2 || calls != 3 {
		t.Errorf("%v, %v after %d calls", got, err, calls)
	}
	if _, err := dump(func() ([]int, error) { return nil, netlink.ErrDumpInterrupted }); !errors.Is(err, netlink.ErrDumpInterrupted) {
		t.Errorf("always interrupted: %v", err)
	}
}
