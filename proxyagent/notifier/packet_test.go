package notifier

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"

	"pncd/proxyagent/message"
)

// onesSum adds up b and more as RFC 1071 does, written apart from the code under test.
func onesSum(b []byte, more ...uint32) uint16 {
	var sum uint64
	for i, v := range b {
		if i%2 == 0 {
			sum += uint64(v) << 8
		} else {
			sum += uint64(v)
		}
	}
	for _, m := range more {
		sum += uint64(m)
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

func TestPacketOverIPv4(t *testing.T) {
	r := newRig(t, Config{})
	r.Handle(event(0x118), start)
	b := r.wire.packets[0]
	// 45, TOS c0 (CS6), length 44, id 1, DF, TTL 255, UDP; ports ffff -> 1021; then format 1.
	want := "45c0002c00014000ff11" + hex.EncodeToString(b[10:12]) + "cb007101" + "cb007109" +
		"ffff" + "03fd" + "0018" + hex.EncodeToString(b[26:28]) +
		"c6336402" + "c0000201" + "c350" + "12b7" + "11" + "000118"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s := onesSum(b[:20]); s != 0xffff {
		t.Errorf("IPv4 header checksum: sum %#x", s)
	}
	if s := onesSum(b[12:], 17, uint32(len(b)-20)); s != 0xffff {
		t.Errorf("UDP checksum: sum %#x", s)
	}
}

func TestPacketOverIPv6(t *testing.T) {
	r := newRig(t, Config{Port: 2021, DSCP: BestEffort, TTL: 64})
	r.answer.Proxy = proxy6
	r.Handle(event(0x118), start)
	b := r.wire.packets[0]
	want := "60000000" + "0018" + "11" + "40" + "20010db8ffff00000000000000000001" + "20010db8ffff00000000000000000009" +
		"ffff" + "07e5" + "0018" + hex.EncodeToString(b[46:48]) +
		"c6336402" + "c0000201" + "c350" + "12b7" + "11" + "000118"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s := onesSum(b[8:], 17, uint32(len(b)-40)); s != 0xffff {
		t.Errorf("UDP checksum: sum %#x", s)
	}
}

func TestOuterFamilyIsIndependentOfTheInner(t *testing.T) {
	r := newRig(t, Config{})
	ev := event(1)
	ev.Sender, ev.Receiver = netip.MustParseAddr("2001:db8:2::8"), netip.MustParseAddr("2001:db8:1::7")
	r.Handle(ev, start)
	b := r.wire.packets[0]
	if b[0]>>4 != 4 || len(b) != 28+message.Format1LenIPv6 {
		t.Fatalf("version %d, %d octets", b[0]>>4, len(b))
	}
	n, err := message.Parse(b[28:])
	if err != nil || n.Src != ev.Sender || n.Dst != ev.Receiver {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestAChecksumOfZeroIsSentAsAllOnes(t *testing.T) {
	n := message.Notification{
		Src: netip.MustParseAddr("198.51.100.2"), Dst: netip.MustParseAddr("192.0.2.1"), DstPort: 4791, Proto: 17,
	}
	o := outer{src: self4, dst: proxy4, ttl: 255, srcPort: 49152, dstPort: 1021, id: 1}
	b, err := appendPacket(nil, &o, &n)
	if err != nil {
		t.Fatal(err)
	}
	// Adding the checksum to a word that is summed up makes the new checksum zero.
	n.SrcPort = binary.BigEndian.Uint16(b[26:])
	if b, err = appendPacket(nil, &o, &n); err != nil {
		t.Fatal(err)
	}
	if got := binary.BigEndian.Uint16(b[26:]); got != 0xffff {
		t.Errorf("checksum %#x, want 0xffff", got)
	}
}

func TestIPv4IdentificationIsNeverZero(t *testing.T) {
	r := newRig(t, Config{TotalPerSecond: 1e9, TotalBurst: 1 << 20})
	for i := range uint32(70_000) {
		r.Handle(event(i), start)
	}
	if len(r.wire.packets) != 70_000 {
		t.Fatalf("%d packets", len(r.wire.packets))
	}
	for i, b := range r.wire.packets {
		if binary.BigEndian.Uint16(b[4:]) == 0 {
			t.Fatalf("packet %d has identification 0", i)
		}
	}
}
