package roce_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
)

// inside are IPv4 and IPv6 packets with a whole connection management datagram.
func inside(t testing.TB) [][]byte {
	t.Helper()
	var out [][]byte
	for _, hosts := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"2001:db8::1", "2001:db8::2"}} {
		ip, err := roce.AppendPacket(nil, &roce.PacketSpec{
			Src: netip.MustParseAddr(hosts[0]), Dst: netip.MustParseAddr(hosts[1]), TOS: 0x6A, TTL: 9, SrcPort: 50000,
			BTH: roce.BTH{Opcode: 0x64, DestQP: roce.QP1}, Body: make([]byte, roce.DETHLen+roce.MADLen),
		})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ip)
	}
	return out
}

func TestParseThroughFindsThePacketBehindEachOuterHeader(t *testing.T) {
	for _, ip := range inside(t) {
		var want roce.Packet
		if err := roce.ParseIP(ip, &want); err != nil {
			t.Fatal(err)
		}
		for _, w := range taptest.Wraps() {
			frame := taptest.Ethernet(w.Wrap(ip), [2]uint16{0x8100, 77})
			frame = append(frame, 0, 0, 0) // padding
			for t1 := range roce.AllTunnels + 1 {
				var p roce.Packet
				err := t1.ParseThrough(frame, &p)
				if t1&w.Of == 0 {
					if !errors.Is(err, roce.ErrNotRoCEv2) && !errors.Is(err, roce.ErrExtensionHeader) {
						t.Errorf("%s, %s: %v", w.Name, t1, err)
					}
					continue
				}
				if err != nil || !bytes.Equal(p.IP, ip) || p.Src != want.Src || p.BTH != want.BTH || p.TTL != 9 || p.TOS != 0x6A || p.VLAN != 77 || p.SrcMAC != [6]byte(frame[6:12]) || !p.IsMAD() {
					t.Errorf("%s, %s: %v, %+v", w.Name, t1, err, p)
				}
			}
		}
	}
}

// One outer header is taken off, and the frame's own packet comes first.
func TestParseThroughTakesOneHeaderOff(t *testing.T) {
	for _, ip := range inside(t) {
		var p roce.Packet
		if err := roce.AllTunnels.ParseThrough(taptest.Ethernet(ip), &p); err != nil || !bytes.Equal(p.IP, ip) {
			t.Errorf("no tunnel: %v", err)
		}
		for _, a := range taptest.Wraps() {
			for _, b := range taptest.Wraps() {
				if err := roce.AllTunnels.ParseThrough(taptest.Ethernet(a.Wrap(b.Wrap(ip))), &p); err == nil {
					t.Errorf("%s, and %s in it, was taken", a.Name, b.Name)
				}
			}
		}
	}
}

func TestParseThroughNamesWhatIsWrong(t *testing.T) {
	ip := inside(t)[0]
	named := func(name string) []byte {
		i := slices.IndexFunc(taptest.Wraps(), func(w taptest.Wrap) bool { return w.Name == name })
		return taptest.Ethernet(taptest.Wraps()[i].Wrap(ip))
	}
	const at4, at6 = 14 + 24, 14 + 40 // behind the outer IP header
	set := func(name string, at int, v ...byte) []byte {
		f := named(name)
		copy(f[at:], v)
		return f
	}
	shorter := func(name string, at, by int) []byte { // a length field of two octets
		f := named(name)
		binary.BigEndian.PutUint16(f[at:], binary.BigEndian.Uint16(f[at:])-uint16(by))
		return f
	}
	for _, tt := range []struct {
		name, text string
		frame      []byte
		is         error
	}{
		{"GRE with a routing field", "GRE offset 0: flags", set("GRE in IPv4", at4, 0x40), roce.ErrNotRoCEv2},
		{"GRE of version 1", "GRE offset 0: flags", set("GRE in IPv4", at4+1, 1), roce.ErrNotRoCEv2},
		{"GRE with something else", "neither IPv4 nor IPv6", set("GRE in IPv4", at4+2, 0x88, 0x47), roce.ErrNotRoCEv2},
		{"GRE that says IPv6", "differs from the EtherType", set("GRE in IPv4", at4+2, 0x86, 0xDD), roce.ErrMalformed},
		{"VXLAN without VNI", "VXLAN offset 0: flags", set("VXLAN in IPv4", at4+8, 0), roce.ErrNotRoCEv2},
		{"another port", "none that is looked behind", set("VXLAN in IPv4", at4+3, 0xB6), roce.ErrNotRoCEv2},
		{"VXLAN whose UDP length is short", "tunnel offset 0: length", shorter("VXLAN in IPv4", at4+4, 1), roce.ErrMalformed},
		{"VXLAN with a tag inside", "neither IPv4 nor IPv6", set("VXLAN in IPv4", at4+16+12, 0x81, 0), roce.ErrNotRoCEv2},
		{"a routing header that isn't SR", "not segment routing", set("IP behind a segment routing header", at6+2, 0), roce.ErrExtensionHeader},
		{"a second routing header", "none that is looked behind", set("IP behind a segment routing header", at6, 43), roce.ErrNotRoCEv2},
		{"UDP behind a segment routing header", "none that is looked behind", set("IP behind a segment routing header", at6, 17), roce.ErrNotRoCEv2},
		{"Ethernet without a routing header", "none that is looked behind", set("IP in IPv6", 14+6, 143), roce.ErrNotRoCEv2},
		{"a packet longer than the outer one", "tunnel offset 0: length", shorter("IP in IPv4", 14+2, 1), roce.ErrMalformed},
		{"a header longer than the outer packet", "tunnel offset 0: length", set("GRE in IPv4", 14+2, 0, 24+3), roce.ErrMalformed},
		{"an outer fragment", "fragment", set("IP in IPv4", 14+6, 0x20), roce.ErrFragment},
		{"an inner fragment", "fragment", set("IP in IPv4", at4+6, 0x20), roce.ErrFragment},
		{"something else inside", "not UDP", set("IP in IPv4", at4+9, 6), roce.ErrNotRoCEv2},
		{"cut in GRE", "tunnel offset 0: header", named("GRE in IPv4")[:at4+3], roce.ErrTruncated},
		{"cut behind it", "tunnel offset 0: header", named("GRE in IPv4")[:at4+4], roce.ErrTruncated},
		{"cut in the segment routing header", "tunnel offset 0: header", named("IP behind a segment routing header")[:at6+20], roce.ErrTruncated},
		{"cut in the frame inside", "tunnel offset 0: header", named("VXLAN in IPv4")[:at4+20], roce.ErrTruncated},
		{"cut inside", "shorter than 20 octets", named("IP in IPv4")[:at4+19], roce.ErrTruncated},
	} {
		var p roce.Packet
		if err := roce.AllTunnels.ParseThrough(tt.frame, &p); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestTunnelNames(t *testing.T) {
	var all roce.Tunnels
	for _, name := range roce.TunnelNames() {
		x, ok := roce.ParseTunnel(name)
		if !ok || x.String() != name {
			t.Errorf("%s: %s, %v", name, x, ok)
		}
		all |= x
	}
	if all != roce.AllTunnels || all.String() != "ip,gre,vxlan,srv6" || roce.Tunnels(0).String() != "none" {
		t.Errorf("%s, %s", all, roce.Tunnels(0))
	}
	if _, ok := roce.ParseTunnel("mpls"); ok {
		t.Error("mpls")
	}
}

// FuzzParseThrough: any frame is decoded or refused; what is decoded lies within the frame, and is what the IP parser makes of it.
func FuzzParseThrough(f *testing.F) {
	for _, ip := range inside(f) {
		for _, w := range taptest.Wraps() {
			f.Add(taptest.Ethernet(w.Wrap(ip)), uint8(roce.AllTunnels))
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte, tunnels uint8) {
		x := roce.Tunnels(tunnels) & roce.AllTunnels
		var p, q roce.Packet
		err := x.ParseThrough(frame, &p)
		if plain := roce.ParseEthernet(frame, &q); plain == nil && (err != nil || !bytes.Equal(p.IP, q.IP)) {
			t.Fatalf("the frame's own packet: %v", err)
		}
		if err != nil {
			return
		}
		if !bytes.Contains(frame, p.IP) {
			t.Fatal("not of the frame")
		}
		if err := roce.ParseIP(p.IP, &q); err != nil || q.BTH != p.BTH || q.Src != p.Src || q.Truncated != p.Truncated {
			t.Fatalf("%+v, ParseIP %+v, %v", p, q, err)
		}
	})
}
