package speaker

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"pncd/igp"
	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/packet"
)

// FuzzReceive holds that no packet ends the machine, makes it want ticks without end, or grows its databases beyond
// their bounds. The input is the version and packets, each after its length; they come from a neighbour, and
// packets and LSAs get right checksums, so that they are believed.
func FuzzReceive(f *testing.F) {
	const from, here = packet.ID(1), packet.ID(10)
	link := [2]int{10, 1}
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		seed := []byte{byte(v)}
		add := func(b packet.Body) {
			raw := (&packet.Packet{Version: v, Router: from, Body: b}).Append(nil)
			seed = append(binary.BigEndian.AppendUint16(seed, uint16(len(raw))), raw...)
		}
		typ := map[packet.Version]packet.LSType{packet.V2: packet.V2Router, packet.V3: packet.V3Router}[v]
		key := packet.Key{Type: typ, ID: 1, Adv: 1}
		lsa, err := packet.NewLSA(v, packet.Header{Key: key, Sequence: 5}, make([]byte, 4))
		if err != nil {
			f.Fatal(err)
		}
		mine, err := packet.NewLSA(v, packet.Header{Key: packet.Key{Type: typ, ID: here, Adv: here}, Sequence: packet.MaxSequence}, make([]byte, 4))
		if err != nil {
			f.Fatal(err)
		}
		add(&packet.Update{LSAs: []packet.LSA{lsa, mine}})
		add(&packet.Ack{Headers: []packet.Header{lsa.Header}})
		add(&packet.Request{Keys: []packet.Key{key}})
		add(&packet.Description{MTU: 1500, Options: packet.OptionE, Flags: 7, Sequence: 9})
		add(&packet.Hello{Interval: 1, Dead: 4, Options: packet.OptionE, Neighbors: []packet.ID{here}})
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		v := packet.V2 + packet.Version(b[0]&1)
		b = b[1:]
		n := build(t, v, func(_ int, c *Config) { c.MaxLSAs = 64 }, link)
		n.pass(5 * time.Second)
		m := n.systems[10]
		m.Advertise(n.now, []igp.Advertisement{mine(v, 1)})
		a := auth.Addresses{Source: unzoned(n.address(link, 1)), Destination: unzoned(n.address(link, 0))}
		for len(b) >= 2 {
			size := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
			raw := bytes.Clone(b[2 : 2+size])
			b = b[2+size:]
			if p, err := packet.Parse(v, raw); err == nil {
				if u, ok := p.Body.(*packet.Update); ok {
					for i, l := range u.LSAs {
						u.LSAs[i], _ = packet.NewLSA(v, l.Header, l.Body())
					}
				}
				p.Trailer = nil
				if sealed, err := (auth.Chain{}).Seal(p, a, &auth.Sequence{}, n.now); err == nil {
					raw = sealed
				}
			}
			m.Receive(n.now, Datagram{Link: name(link), Source: a.Source, Destination: a.Destination, Payload: raw})
			n.pass(100 * time.Millisecond)
		}
		n.pass(10 * time.Second)
		if got := m.Status(n.now); len(got.Areas) != 1 || got.Areas[0].LSAs > 64+2 {
			t.Fatalf("%+v", got.Areas)
		}
		m.Database(n.now)
	})
}
