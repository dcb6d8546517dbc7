package tap

import (
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
)

// packet is a sound RoCEv2 packet of one family with the given TOS and IPv4 options.
func packet(tb testing.TB, v6 bool, tos uint8, options int) []byte {
	tb.Helper()
	s := roce.PacketSpec{
		Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), TOS: tos, SrcPort: 50000,
		Options: make([]byte, options), BTH: roce.BTH{Opcode: 0x0A, PKey: 0xFFFF, DestQP: 0x123, PSN: 7}, Body: make([]byte, 32),
	}
	if v6 {
		s.Src, s.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	}
	b, err := roce.AppendPacket(nil, &s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// edited returns a copy of b with octet i changed by f.
func edited(b []byte, i int, v byte) []byte {
	c := append([]byte(nil), b...)
	c[i] = v
	return c
}

func TestFilterAdmitsOnlyRoCE(t *testing.T) {
	v4, v6 := packet(t, false, 0, 0), packet(t, true, 0, 0)
	q, ad := [2]uint16{0x8100, 5}, [2]uint16{0x88A8, 6}
	tests := []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"IPv4", taptest.Ethernet(v4), true},
		{"IPv6", taptest.Ethernet(v6), true},
		{"IPv4 with options", taptest.Ethernet(packet(t, false, 0, 12)), true},
		{"802.1Q, IPv4", taptest.Ethernet(v4, q), true},
		{"802.1Q, IPv6", taptest.Ethernet(v6, q), true},
		{"802.1ad and 802.1Q, IPv4", taptest.Ethernet(v4, ad, q), true},
		{"802.1ad and 802.1Q, IPv6", taptest.Ethernet(v6, ad, q), true},
		{"RoCEv1", edited(edited(taptest.Ethernet(v4), 12, 0x89), 13, 0x15), true},
		{"802.1Q, RoCEv1", edited(edited(taptest.Ethernet(v4, q), 16, 0x89), 17, 0x15), true},
		{"three tags", taptest.Ethernet(v4, ad, q, q), false},
		{"IPv4 first fragment", taptest.Ethernet(edited(v4, 6, 0x20)), false},
		{"IPv4 later fragment", taptest.Ethernet(edited(v4, 7, 1)), false},
		{"IPv4 TCP", taptest.Ethernet(edited(v4, 9, 6)), false},
		{"IPv4 other port", taptest.Ethernet(edited(v4, 23, 0xB6)), false},
		{"IPv4 source port 4791 only", taptest.Ethernet(edited(edited(edited(v4, 20, 0x12), 21, 0xB7), 23, 0)), false},
		{"IPv6 fragment header", taptest.Ethernet(edited(v6, 6, 44)), false},
		{"IPv6 other port", taptest.Ethernet(edited(v6, 43, 0xB6)), false},
		{"ARP", edited(edited(taptest.Ethernet(v4), 12, 8), 13, 6), false},
		{"cut inside the UDP header", taptest.Ethernet(v4)[:36], false},
	}
	for _, ce := range []bool{false, true} {
		prog := frameFilter(ce, 0, 256)
		vm, err := bpf.NewVM(prog)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range tests {
			got, err := vm.Run(tt.frame)
			if err != nil {
				t.Fatal(tt.name, err)
			}
			if want := tt.want && !ce; (got > 0) != want {
				t.Errorf("%s, CE only %v: kept %d octets, want admitted %v", tt.name, ce, got, want)
			}
		}
	}
}

func TestFilterAdmitsOuterHeaders(t *testing.T) {
	for tunnels := range roce.AllTunnels + 1 {
		vm, err := bpf.NewVM(frameFilter(false, tunnels, 256))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range taptest.Wraps() {
			for _, six := range []bool{false, true} {
				got, err := vm.Run(taptest.Ethernet(w.Wrap(packet(t, six, 0, 0)), [2]uint16{0x8100, 5}))
				if err != nil {
					t.Fatal(err)
				}
				want := tunnels&w.Of != 0 || tunnels != 0 && strings.Contains(w.Name, "options") // of any kind
				if (got > 0) != want {
					t.Errorf("%s, tunnels %s: kept %d octets, want admitted %v", w.Name, tunnels, got, want)
				}
			}
		}
		if got, err := vm.Run(taptest.Ethernet(packet(t, true, 0, 0))); got == 0 || err != nil {
			t.Errorf("tunnels %s: without one: %d, %v", tunnels, got, err)
		}
	}
}

func TestFilterWithCEOnlyAdmitsBothECNBitsSet(t *testing.T) {
	vm, err := bpf.NewVM(frameFilter(true, 0, 256))
	if err != nil {
		t.Fatal(err)
	}
	for _, six := range []bool{false, true} {
		for tos := range 256 {
			for _, tags := range [][][2]uint16{nil, {{0x8100, 1}}, {{0x88A8, 1}, {0x8100, 2}}} {
				frame := taptest.Ethernet(packet(t, six, uint8(tos), 0), tags...)
				got, err := vm.Run(frame)
				if err != nil {
					t.Fatal(err)
				}
				if want := tos&3 == 3; (got > 0) != want {
					t.Fatalf("IPv6 %v, TOS 0x%02x, %d tags: kept %d octets, want admitted %v", six, tos, len(tags), got, want)
				}
			}
		}
	}
}

func TestFilterOfEveryDirectionAssembles(t *testing.T) {
	for _, d := range []Direction{Incoming, Outgoing} {
		for _, ce := range []bool{false, true} {
			prog, err := assemble(Config{Direction: d, CEOnly: ce, SnapLen: 256})
			if err != nil || len(prog) == 0 || len(prog) > 4096 {
				t.Errorf("%v, CE only %v: %d instructions, %v", d, ce, len(prog), err)
			}
		}
	}
}
