package roce

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// vector is one packet of testdata/roce.json.
type vector struct {
	Name, Layer, Hex, ICRC string

	frame, ip []byte
}

func vectors(tb testing.TB) map[string]vector {
	tb.Helper()
	raw, err := os.ReadFile("testdata/roce.json")
	if err != nil {
		tb.Fatal(err)
	}
	var file struct{ Packets []vector }
	if err := json.Unmarshal(raw, &file); err != nil {
		tb.Fatal(err)
	}
	out := make(map[string]vector)
	for _, v := range file.Packets {
		if v.frame, err = hex.DecodeString(v.Hex); err != nil {
			tb.Fatal(err)
		}
		v.ip = v.frame
		switch v.Layer {
		case "ethernet":
			v.ip = v.frame[etherLen:]
		case "ipv4":
			v.frame = append(etherHeader(etherIPv4), v.ip...)
		case "ipv6":
			v.frame = append(etherHeader(etherIPv6), v.ip...)
		default:
			tb.Fatalf("vector %s: layer %q", v.Name, v.Layer)
		}
		out[v.Name] = v
	}
	if len(out) != 6 {
		tb.Fatalf("%d vectors, want 6", len(out))
	}
	return out
}

// etherHeader is an Ethernet header with the given EtherType and tags before it, outermost first.
func etherHeader(typ uint16, tags ...[2]uint16) []byte {
	b := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
	for _, t := range tags {
		b = binary.BigEndian.AppendUint16(b, t[0])
		b = binary.BigEndian.AppendUint16(b, t[1])
	}
	return binary.BigEndian.AppendUint16(b, typ)
}

func TestVectorsHaveTheirICRC(t *testing.T) {
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			want, err := hex.DecodeString(v.ICRC)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ICRC(v.ip)
			if err != nil {
				t.Fatal(err)
			}
			if g := binary.LittleEndian.AppendUint32(nil, got); !bytes.Equal(g, want) {
				t.Errorf("ICRC %x, want %x", g, want)
			}
			if ok, err := VerifyICRC(v.ip); !ok || err != nil {
				t.Errorf("VerifyICRC: %v, %v", ok, err)
			}
		})
	}
}

func TestFixICRCRestoresEveryVector(t *testing.T) {
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			b := bytes.Clone(v.ip)
			clear(b[len(b)-ICRCLen:])
			if b[0]>>4 == 4 {
				b[10] ^= 0x55
			}
			if ok, err := VerifyICRC(b); ok || err != nil {
				t.Fatalf("VerifyICRC of a zeroed ICRC: %v, %v", ok, err)
			}
			if err := FixICRC(b); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b, v.ip) {
				t.Errorf("got  %x\nwant %x", b, v.ip)
			}
		})
	}
}

func TestCNPIsRebuiltByteForByteFromItsFields(t *testing.T) {
	vs := vectors(t)
	for _, name := range []string{"cnp-cx4lx-hardware", "cnp-v4-ours", "cnp-v6-ours"} {
		t.Run(name, func(t *testing.T) {
			v := vs[name]
			c, err := ParseCNP(v.ip)
			if err != nil {
				t.Fatal(err)
			}
			got, err := AppendCNP(nil, &c)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, v.ip) {
				t.Errorf("%+v\ngot  %x\nwant %x", c, got, v.ip)
			}
		})
	}
}

func TestEveryVectorIsRebuiltByThePacketBuilder(t *testing.T) {
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			var p Packet
			if err := ParseEthernet(v.frame, &p); err != nil {
				t.Fatal(err)
			}
			s := specOf(&p)
			got, err := AppendPacket(nil, &s)
			if err != nil {
				t.Fatal(err)
			}
			want := bytes.Clone(v.ip)
			if name == "cnp-software-v4" { // the one vector without Don't Fragment, which the builder sets
				want[6] |= 0x40
				if err := FixICRC(want); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got  %x\nwant %x", got, want)
			}
		})
	}
}

// specOf is the builder's description of a whole parsed packet.
func specOf(p *Packet) PacketSpec {
	s := PacketSpec{
		Src: p.Src, Dst: p.Dst, TOS: p.TOS, TTL: p.TTL, FlowLabel: p.FlowLabel, SrcPort: p.SrcPort, BTH: p.BTH, Body: p.Body,
	}
	if p.Src.Is4() {
		s.IPID = binary.BigEndian.Uint16(p.IP[4:])
		udp := int(p.IP[0]&0x0F) * 4
		s.Options = p.IP[ipv4MinLen:udp]
		s.UDPChecksum = p.IP[udp+6]|p.IP[udp+7] != 0
	}
	return s
}
