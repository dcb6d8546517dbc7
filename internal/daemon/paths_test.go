package daemon

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pncd/dataplane/emit"
	"pncd/dataplane/host"
	"pncd/dataplane/roce"
)

func TestThePathIsThatOfOneAddress(t *testing.T) {
	tracked := &routes{}
	s := newSenderPaths(tracked)
	p, q := netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.7/32")
	a, b := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.9")
	if s.wrong(p) == "" {
		t.Error("a prefix that is not followed has a path")
	}
	s.follow(map[netip.Prefix]netip.Addr{p: a, q: {}})
	if !slices.Contains(tracked.watched, a) {
		t.Errorf("watched %v", tracked.watched)
	}
	tracked.unknown = true
	if s.wrong(p) == "" {
		t.Error("there is a path before the kernel was asked")
	}
	tracked.unknown = false
	if why := s.wrong(p); why != "" {
		t.Error(why)
	}
	if why := s.wrong(q); why != "203.0.113.7/32 holds only addresses of this node" {
		t.Error(why)
	}
	// Another address: until the kernel has answered, what was known holds.
	s.follow(map[netip.Prefix]netip.Addr{p: b})
	tracked.unknown = true
	if why := s.wrong(p); why != "" || !slices.Equal(tracked.watched, []netip.Addr{b}) {
		t.Errorf("%q, watched %v", why, tracked.watched)
	}
	tracked.set(b.String(), host.Status{Detail: "no route"})
	if why := s.wrong(p); why != "198.51.100.9: no route" {
		t.Error(why)
	}
	tracked.watched = nil
	s.follow(map[netip.Prefix]netip.Addr{p: b})
	if tracked.watched != nil {
		t.Error("the tracker was told the same again")
	}
	s.follow(nil)
	if len(tracked.watched) != 0 || len(s.paths) != 0 {
		t.Errorf("left: watched %v, %v", tracked.watched, s.paths)
	}
}

func TestFirstHosts(t *testing.T) {
	for p, want := range map[string][]string{
		"198.51.100.0/24": {"198.51.100.1", "198.51.100.2"}, "198.51.100.4/31": {"198.51.100.4", "198.51.100.5"},
		"198.51.100.4/32": {"198.51.100.4"}, "2001:db8::/64": {"2001:db8::1", "2001:db8::2"}, "2001:db8::8/128": {"2001:db8::8"},
	} {
		var got []string
		for _, a := range firstHosts(netip.MustParsePrefix(p)) {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", p, got, want)
		}
	}
}

func TestWhatIsSentIsCountedByPrefix(t *testing.T) {
	packet := func(to string) []byte {
		dst := netip.MustParseAddr(to)
		src := netip.MustParseAddr("192.0.2.1")
		if dst.Is6() {
			src = netip.MustParseAddr("2001:db8:9::1")
		}
		b, err := roce.AppendCNP(nil, &roce.CNP{Src: src, Dst: dst, SrcPort: 50000, DestQP: 7, TOS: roce.DefaultCNPTOS})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	wide, narrow, six := netip.MustParsePrefix("198.51.0.0/16"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8::/48")
	var s senderSwitch
	if sent, failed := s.counted(narrow); sent != 0 || failed != 0 {
		t.Error("counted before anything")
	}
	s.count([]netip.Prefix{wide, narrow, six})
	pkts := [][]byte{packet("198.51.100.1"), packet("2001:db8::1"), packet("198.51.7.1"), packet("192.0.2.9"), packet("198.51.100.2")}
	s.note(pkts, 4, &emit.PacketError{Index: 4, Dst: netip.MustParseAddr("198.51.100.2"), Err: errors.New("no buffer space")})
	s.note(pkts[:1], 0, errors.New("closed")) // about no packet
	for p, want := range map[netip.Prefix][2]uint64{wide: {1, 0}, narrow: {1, 1}, six: {1, 0}} {
		if sent, failed := s.counted(p); sent != want[0] || failed != want[1] {
			t.Errorf("%s: %d sent, %d failed, want %v", p, sent, failed, want)
		}
	}
	before := s.counts.Load()
	s.count([]netip.Prefix{six, wide, narrow})
	if s.counts.Load() != before {
		t.Error("the same prefixes made other counts")
	}
	s.count([]netip.Prefix{narrow})
	if sent, failed := s.counted(narrow); sent != 1 || failed != 1 {
		t.Errorf("a prefix that stays lost its counts: %d, %d", sent, failed)
	}
	s.count([]netip.Prefix{narrow, wide})
	if sent, _ := s.counted(wide); sent != 0 {
		t.Errorf("a prefix that came back has %d", sent)
	}
	var off senderSwitch
	off.count([]netip.Prefix{narrow})
	if _, err := off.Send(pkts); !errors.Is(err, errNoSender) {
		t.Errorf("while off: %v", err)
	}
	if sent, failed := off.counted(narrow); sent != 0 || failed != 0 {
		t.Error("while off something was counted")
	}
}
