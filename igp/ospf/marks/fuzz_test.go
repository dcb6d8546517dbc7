package marks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pncd/igp/internal/recorded"
	"pncd/igp/ospf/packet"
)

// recordedLSAs are the LSAs of a version that were seen on the wire.
func recordedLSAs(t testing.TB, v packet.Version) (list []packet.LSA) {
	t.Helper()
	kind := map[packet.Version]string{packet.V2: "ospf2-4", packet.V3: "ospf3-4"}[v]
	for _, pdu := range recorded.PDUs(t, kind, 5) {
		p, err := packet.Parse(v, recorded.Unhex(t, pdu.PDU))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p.Body.(*packet.Update).LSAs...)
	}
	return list
}

func TestLSAsSeenOnTheWire(t *testing.T) {
	v2 := []string{
		"10.100.0.0/24 by 10.255.0.51: true false 10.255.0.1",
		"10.255.0.2/32 by 10.255.0.2: false false invalid IP",
		"10.255.0.3/32 by 10.255.0.3: false false invalid IP",
	}
	for _, c := range []struct {
		config Config
		want   []string
	}{
		{bit2, v2},
		{Config{packet.V2, Carrier{TLVFlags: 0x08}}, v2}, // the speaker set both
		{bit2v3, []string{"fd00:99::/64 by 10.255.0.51: true false invalid IP"}},
	} {
		got := map[string]bool{}
		for _, l := range recordedLSAs(t, c.config.Version) {
			s, err := Read(c.config, l.Adv, []packet.LSA{l})
			if err != nil {
				t.Error(err)
			}
			for p, e := range s.Prefixes {
				got[fmt.Sprintf("%s by %s: %t %t %s", p, l.Adv, e.P, e.Leaked, e.Proxy)] = true
			}
		}
		if list := slices.Sorted(maps.Keys(got)); !slices.Equal(list, c.want) {
			t.Errorf("%v: got\n%s", c.config, strings.Join(list, "\n"))
		}
	}
}

// FuzzRead holds that LSAs of any octets don't panic, that only what is marked has a proxy, which is an address that
// a packet can be sent to, and that what can't be read is counted and changes nothing else.
func FuzzRead(f *testing.F) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		for _, l := range recordedLSAs(f, v) {
			f.Add(uint8(v), uint8(2), l.Raw)
		}
	}
	f.Add(uint8(packet.V2), uint8(0), slices.Concat(
		extended(f, packet.V2OpaqueArea, 1, of(1, 8, marked, address(proxy), sourceRouter(7)), of(3, 0x80)).Raw,
		te(f, packet.V2OpaqueArea, 1, proxy).Raw, stub(f, self, ^uint32(0)).Raw))
	f.Add(uint8(packet.V3), uint8(0), slices.Concat(
		intra(f, 1, ownRouter, of6(packet.V3TLVIntraAreaPrefix, prefix6, packet.PrefixNU, marked6, address6(proxy6))).Raw,
		bare(f, packet.V3EInterAreaPrefix, 1, of6(packet.V3TLVInterAreaPrefix, prefix6, 0, marked6)).Raw,
		legacy(f, 1, ownRouter, proxy6, 128, packet.PrefixLA).Raw))
	f.Fuzz(func(t *testing.T, version, mask uint8, b []byte) {
		c := Config{packet.V2 + packet.Version(version&1), Carrier{TLVFlags: mask, Bit: 2}}
		var list []packet.LSA
		for len(b) > 0 {
			l, err := packet.ParseLSA(c.Version, b)
			if err != nil {
				break
			}
			b = b[len(l.Raw):]
			list = append(list, l)
		}
		if len(list) == 0 {
			return
		}
		router := list[0].Adv
		s, err := Read(c, router, list)
		if (err != nil) != (s.Unreadable > 0) {
			t.Fatalf("%d unreadable, %v", s.Unreadable, err)
		}
		for p, e := range s.Prefixes {
			if !p.IsValid() || p != p.Masked() || p.Addr().Is4() != (c.Version == packet.V2) {
				t.Errorf("prefix %s", p)
			}
			if e.Proxy.IsValid() && (!e.P || e.Proxy != e.Proxy.Unmap() || e.Proxy.IsUnspecified() || e.Proxy.IsMulticast()) {
				t.Errorf("%s: %+v", p, e)
			}
		}
		var readable []packet.LSA
		for _, l := range list {
			if _, err := Read(c, router, []packet.LSA{l}); err == nil {
				readable = append(readable, l)
			}
		}
		again, err := Read(c, router, readable)
		if err != nil || !maps.Equal(again.Prefixes, s.Prefixes) || len(readable)+s.Unreadable != len(list) {
			t.Errorf("%v without the unreadable: %v, %v", s, again, err)
		}
	})
}
