package translate

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"

	"pncd/dataplane/roce"
)

// finish does what the program does, with the rest of the CNP from the codec.
func finish(t testing.TB, v *translateReady, c roce.CNP) []byte {
	t.Helper()
	port, id := c.SrcPort, c.IPID
	c.PKey, c.TOS, c.TTL, c.DestQP = v.Pkey, v.Tos, v.Ttl, v.SourceQp
	c.SrcPort, c.IPID, c.FlowLabel = 0, 0, 0
	b, err := roce.AppendCNP(nil, &c)
	if err != nil {
		t.Fatal(err)
	}
	be, tables := binary.BigEndian, icrcTables()
	icrc := v.Icrc ^ tables[2][port>>8] ^ tables[3][port&0xFF]
	if c.Src.Is4() {
		icrc ^= tables[0][id>>8] ^ tables[1][id&0xFF]
		be.PutUint16(b[atIPv4ID:], id)
		be.PutUint16(b[atIPv4Port:], port)
		be.PutUint16(b[atIPv4Sum:], foldOf(v.Sum+uint32(id)))
	} else {
		be.PutUint16(b[atIPv6Port:], port)
	}
	binary.LittleEndian.PutUint32(b[len(b)-icrcLen:], icrc)
	if c.Src.Is6() {
		word := be.Uint32(b[len(b)-icrcLen:])
		be.PutUint16(b[atIPv6Sum:], foldOf(v.Sum+uint32(port)+word>>16+word&0xFFFF))
	}
	return b
}

func foldOf(sum uint32) uint16 {
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return ^uint16(sum)
}

// Each CNP that was seen on a wire comes out of a template of it, whatever port and identification it has.
func TestTemplatesMakeTheCNPsThatWereSeen(t *testing.T) {
	b, err := os.ReadFile("../roce/testdata/roce.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Packets []struct{ Name, Layer, Hex string }
	}
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, p := range vectors.Packets {
		frame, err := hex.DecodeString(p.Hex)
		if err != nil {
			t.Fatal(err)
		}
		if p.Layer == "ethernet" {
			frame = frame[14:]
		}
		c, err := roce.ParseCNP(frame)
		if err != nil {
			continue // not a CNP
		}
		var v translateReady
		if err := v.template(c); err != nil {
			t.Fatal(err)
		}
		if got := finish(t, &v, c); !bytes.Equal(got[len(got)-icrcLen:], frame[len(got)-icrcLen:len(got)]) {
			t.Errorf("%s: ICRC %x, want %x", p.Name, got[len(got)-icrcLen:], frame[len(got)-icrcLen:len(got)])
		}
		seen++
	}
	if seen < 2 {
		t.Errorf("%d CNPs among the vectors", seen)
	}
}

func TestTemplatesMakeWhatTheCodecMakes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	octets := func(n int) (b [16]byte) {
		for i := range n {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for range 20_000 {
		c := roce.CNP{TOS: uint8(r.Uint32()), TTL: uint8(r.Uint32()), PKey: uint16(r.Uint32()), DestQP: r.Uint32() & 0xFFFFFF,
			SrcPort: uint16(r.Uint32()), IPID: uint16(r.Uint32())}
		src, dst := octets(16), octets(16)
		if r.IntN(2) == 0 {
			c.Src, c.Dst = netip.AddrFrom4([4]byte(src[:4])), netip.AddrFrom4([4]byte(dst[:4]))
		} else {
			src[0], dst[0] = 0x20, 0x20 // not IPv4-mapped
			c.Src, c.Dst = netip.AddrFrom16(src), netip.AddrFrom16(dst)
			c.IPID = 0
		}
		want, err := roce.AppendCNP(nil, &c)
		if err != nil {
			t.Fatal(err)
		}
		var v translateReady
		if err := v.template(c); err != nil {
			t.Fatal(err)
		}
		got := finish(t, &v, c)
		if c.Src.Is6() && got[atIPv6Sum]|got[atIPv6Sum+1] == 0 {
			got[atIPv6Sum], got[atIPv6Sum+1] = 0xFF, 0xFF
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%+v:\ngot  %x\nwant %x", c, got, want)
		}
	}
}
