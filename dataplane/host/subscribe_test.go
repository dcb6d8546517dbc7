package host

import (
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// rtmsg builds the data of a route message.
func rtmsg(family, bits byte, dst []byte) []byte {
	b := make([]byte, unix.SizeofRtMsg)
	b[0], b[1] = family, bits
	if dst != nil {
		b = append(b, byte(4+len(dst)), 0, unix.RTA_DST, 0)
		b = append(b, dst...)
	}
	return b
}

func TestRoutePrefix(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		want string // "" when it can't be read
	}{
		{"IPv4", rtmsg(unix.AF_INET, 16, []byte{10, 1, 0, 0}), "10.1.0.0/16"},
		{"IPv6", rtmsg(unix.AF_INET6, 32, []byte{0x20, 1, 0xd, 0xb8, 15: 0}), "2001:db8::/32"},
		{"IPv4 default", rtmsg(unix.AF_INET, 0, nil), "0.0.0.0/0"},
		{"IPv6 default", rtmsg(unix.AF_INET6, 0, nil), "::/0"},
		{"another family", rtmsg(unix.AF_MPLS, 20, []byte{1, 2, 3, 4}), ""},
		{"too short", make([]byte, unix.SizeofRtMsg-1), ""},
		{"length of the prefix too long", rtmsg(unix.AF_INET, 33, []byte{10, 1, 0, 0}), ""},
		{"address of the other family", rtmsg(unix.AF_INET, 16, make([]byte, 16)), ""},
		{"attribute cut off", append(rtmsg(unix.AF_INET, 16, nil), 8, 0, unix.RTA_DST, 0, 10), ""},
		{"nothing", nil, ""},
	}
	for _, tt := range tests {
		p, ok := routePrefix(tt.data)
		if ok != (tt.want != "") || ok && p.String() != tt.want {
			t.Errorf("%s: %s, %v", tt.name, p, ok)
		}
	}
}

func TestRelevantWhenInDoubt(t *testing.T) {
	nobody := func(netip.Prefix) bool { return false }
	m := func(typ uint16, data []byte) *syscall.NetlinkMessage {
		return &syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: typ}, Data: data}
	}
	if relevant(m(unix.RTM_NEWROUTE, rtmsg(unix.AF_INET, 16, []byte{10, 1, 0, 0})), nobody) {
		t.Error("a route that concerns nobody is relevant")
	}
	for _, x := range []*syscall.NetlinkMessage{
		m(unix.RTM_DELROUTE, nil), m(unix.RTM_NEWLINK, nil), m(unix.RTM_DELADDR, nil),
		m(unix.RTM_NEWRULE, nil), m(unix.RTM_NEWNEXTHOP, nil),
	} {
		if !relevant(x, nobody) {
			t.Errorf("message type %d is not relevant", x.Header.Type)
		}
	}
}

func FuzzRoutePrefix(f *testing.F) {
	f.Add(rtmsg(unix.AF_INET, 16, []byte{10, 1, 0, 0}))
	f.Add(rtmsg(unix.AF_INET6, 128, make([]byte, 16)))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := routePrefix(b)
		if ok && (!p.IsValid() || p.Addr().Is4() != (b[0] == unix.AF_INET)) {
			t.Errorf("%x gives %s", b, p)
		}
	})
}
