package auth

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pncd/igp/internal/recorded"
	"pncd/igp/ospf/packet"
)

// sameAgain seals what was parsed and wants the octets that were seen.
func sameAgain(t *testing.T, v packet.Version, b []byte, a Addresses) {
	t.Helper()
	p, err := packet.Parse(v, b)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (Chain{}).Seal(p, a, &Sequence{}, now); err != nil || !bytes.Equal(got, b) {
		t.Errorf("sealed again: %x, %v\nwant %x", got, err, b)
	}
}

func TestChecksumsSeenWithoutAuthentication(t *testing.T) {
	n := 0
	for _, v := range recorded.PDUs(t, "ospf2-", 1) {
		if v.Note != "auth 0" {
			continue
		}
		n++
		b := recorded.Unhex(t, v.PDU)
		if _, err := (Chain{}).Verify(packet.V2, b, Addresses{}, nil); err != nil {
			t.Errorf("%s: %v", v.Kind, err)
		}
		sameAgain(t, packet.V2, b, Addresses{})
	}
	for _, v := range recorded.PDUs(t, "ospf3-", 1) {
		f := strings.Fields(v.Note)
		if len(f) != 4 {
			t.Fatalf("note %q", v.Note)
		}
		n++
		var from, to netip.Addr
		from, _ = netip.AddrFromSlice(recorded.Unhex(t, f[1]))
		to, _ = netip.AddrFromSlice(recorded.Unhex(t, f[3]))
		a := Addresses{Source: from, Destination: to}
		b := recorded.Unhex(t, v.PDU)
		if _, err := (Chain{}).Verify(packet.V3, b, a, nil); err != nil {
			t.Errorf("%s: %v", v.Kind, err)
		}
		sameAgain(t, packet.V3, b, a)
		other := Addresses{Source: from.Next(), Destination: to}
		if _, err := (Chain{}).Verify(packet.V3, b, other, nil); !errors.Is(err, ErrChecksum) {
			t.Errorf("%s: from another address: %v", v.Kind, err)
		}
	}
	if n < 90 {
		t.Errorf("%d packets", n)
	}
}

// The key of the MD5 packets seen was not recorded: what is held to them is all but the digest.
func TestPacketsSeenWithMD5(t *testing.T) {
	n := 0
	k := Key{ID: 1, Algorithm: MD5, Secret: "some other"}
	for _, v := range recorded.PDUs(t, "ospf2-", 1) {
		if v.Note != "auth 2" {
			continue
		}
		n++
		b := recorded.Unhex(t, v.PDU)
		for _, c := range []struct {
			name   string
			accept []Key
			want   error
		}{
			{"the right ID", []Key{k}, ErrDigest},
			{"another ID", []Key{{ID: 2, Algorithm: MD5, Secret: "x"}}, ErrKey},
			{"another algorithm", []Key{{ID: 1, Algorithm: HMACSHA256, Secret: "x"}}, ErrKey},
			{"no cryptographic key", nil, ErrType},
		} {
			if _, err := (Chain{Accept: c.accept}).Verify(packet.V2, b, v2Addr, nil); !errors.Is(err, c.want) {
				t.Errorf("%s: %s: %v", v.Kind, c.name, err)
			}
		}
		p, err := packet.Parse(packet.V2, b)
		if err != nil {
			t.Fatal(err)
		}
		p.Trailer = nil
		s := Sequence{Last: uint64(binary.BigEndian.Uint32(b[v2SequenceAt:]))}
		got, err := Chain{Send: k}.Seal(p, v2Addr, &s, now.AddDate(-50, 0, 0))
		if l := packet.Length(b); err != nil || len(got) != len(b) || !bytes.Equal(got[:l], b[:l]) {
			t.Errorf("%s: sealed again: %x, %v\nwant %x", v.Kind, got, err, b)
		}
	}
	if n < 10 {
		t.Errorf("%d packets", n)
	}
}
