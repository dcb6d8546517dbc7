package auth

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pncd/igp/isis/packet"
)

func pdus(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for name, p := range map[string]interface{ Append([]byte) ([]byte, error) }{
		"hello": packet.Hello{Header: packet.Header{Type: packet.P2PHello}, CircuitType: 2, TLVs: packet.TLVs{{Type: 129, Value: []byte{0xCC}}}},
		"LSP":   packet.LSP{Header: packet.Header{Type: packet.L2LSP}, Sequence: 7, Lifetime: 1200, TLVs: packet.TLVs{{Type: 1, Value: []byte{3, 0x49, 0, 1}}}},
		"purge": packet.LSP{Header: packet.Header{Type: packet.L2LSP}, Sequence: 7, TLVs: packet.TLVs{packet.PurgeOriginator{}.TLV()}},
		"CSNP":  packet.SNP{Header: packet.Header{Type: packet.L1CSNP}},
		"PSNP":  packet.SNP{Header: packet.Header{Type: packet.L2PSNP}},
	} {
		raw, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = raw
	}
	return out
}

func TestWhatIsSignedVerifies(t *testing.T) {
	for a := range algorithms {
		for _, secret := range []string{"x", strings.Repeat("s", 40), strings.Repeat("long", 50)} {
			k := Key{ID: 9, Algorithm: a, Secret: secret}
			c := Chain{Send: k, Accept: []Key{{ID: 9, Algorithm: a, Secret: "old"}, k}}
			for name, pdu := range pdus(t) {
				signed, err := c.Sign(bytes.Clone(pdu))
				if err != nil {
					t.Fatal(err)
				}
				if len(signed) != len(pdu)+c.Overhead() {
					t.Errorf("%s %s: %d octets added, Overhead says %d", a, name, len(signed)-len(pdu), c.Overhead())
				}
				if err := c.Verify(append(bytes.Clone(signed), 0, 0)); err != nil {
					t.Errorf("%s %s: %v", a, name, err)
				}
				signed[len(signed)-1] ^= 1
				if err := c.Verify(signed); err == nil {
					t.Errorf("%s %s: a changed octet goes unnoticed", a, name)
				}
			}
		}
	}
}

func TestLifetimeAndChecksumAreLeftOutOfTheDigest(t *testing.T) {
	for a := range algorithms {
		k := Key{Algorithm: a, Secret: "s"}
		c := Chain{Send: k, Accept: []Key{k}}
		signed, err := c.Sign(pdus(t)["LSP"])
		if err != nil {
			t.Fatal(err)
		}
		packet.SetChecksum(signed)
		packet.SetLifetime(signed, 77)
		if err := c.Verify(signed); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func TestAReplayedLSPIsNoPurge(t *testing.T) {
	k := Key{Algorithm: HMACSHA256, Secret: "s"}
	c := Chain{Send: k, Accept: []Key{k}}
	signed, err := c.Sign(pdus(t)["LSP"])
	if err != nil {
		t.Fatal(err)
	}
	packet.SetLifetime(signed, 0)
	if err := c.Verify(signed); !errors.Is(err, ErrPurge) {
		t.Errorf("%v", err)
	}
}

func TestWhyAPDUIsRefused(t *testing.T) {
	md5 := Key{Algorithm: HMACMD5, Secret: "s"}
	sha := Key{ID: 1, Algorithm: HMACSHA256, Secret: "s"}
	sign := func(k Key) []byte {
		b, err := Chain{Send: k}.Sign(pdus(t)["hello"])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	clear, err := packet.Hello{Header: packet.Header{Type: packet.P2PHello}, CircuitType: 2,
		TLVs: packet.TLVs{{Type: 10, Value: append([]byte{1}, "secret"...)}}}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		pdu    []byte
		accept []Key
		want   error
	}{
		{"nothing is asked for", pdus(t)["hello"], nil, nil},
		{"none", pdus(t)["hello"], []Key{md5}, ErrMissing},
		{"clear text", clear, []Key{md5, sha}, ErrType},
		{"MD5 where SHA is asked for", sign(md5), []Key{sha}, ErrType},
		{"SHA where MD5 is asked for", sign(sha), []Key{md5}, ErrType},
		{"another key ID", sign(sha), []Key{{ID: 2, Algorithm: HMACSHA256, Secret: "s"}}, ErrKey},
		{"another SHA", sign(sha), []Key{{ID: 1, Algorithm: HMACSHA512, Secret: "s"}}, ErrKey},
		{"another secret", sign(sha), []Key{{ID: 1, Algorithm: HMACSHA256, Secret: "t"}}, ErrDigest},
		{"another secret, MD5", sign(md5), []Key{{Algorithm: HMACMD5, Secret: "t"}}, ErrDigest},
		{"roll-over: the second key", sign(sha), []Key{md5, {ID: 2, Algorithm: HMACSHA256, Secret: "t"}, sha}, nil},
	} {
		if err := (Chain{Accept: tc.accept}).Verify(tc.pdu); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
	if err := (Chain{Accept: []Key{md5}}).Verify([]byte{0x83}); err == nil {
		t.Error("a fragment of a header is accepted")
	}
}

func TestAlgorithmNames(t *testing.T) {
	for a := range algorithms {
		if got, err := ParseAlgorithm(a.String()); err != nil || got != a {
			t.Errorf("%s: %v, %v", a, got, err)
		}
	}
	if _, err := ParseAlgorithm("md5"); err == nil || !strings.Contains(err.Error(), "hmac-md5") {
		t.Errorf("%v", err)
	}
}

func TestAKeyIsNamedWithoutItsSecret(t *testing.T) {
	if got := (Key{ID: 3, Algorithm: HMACSHA256, Secret: "hidden"}).String(); got != "hmac-sha-256 key 3" {
		t.Error(got)
	}
}

func FuzzVerify(f *testing.F) {
	k := Key{ID: 1, Algorithm: HMACSHA256, Secret: "s"}
	c := Chain{Send: k, Accept: []Key{{Algorithm: HMACMD5, Secret: "s"}, k}}
	for _, pdu := range pdus(f) {
		signed, _ := c.Sign(pdu)
		f.Add(signed)
		f.Add(pdu)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = c.Verify(b)
		pdu, err := packet.Trim(b)
		if err != nil {
			return
		}
		signed, err := Chain{Send: k}.Sign(bytes.Clone(pdu))
		if err != nil || len(signed) > 0xFFFF {
			return
		}
		fixed, _ := packet.FixedLen(pdu)
		if _, err := packet.ParseTLVs(pdu[fixed:]); err != nil {
			return // TLVs that can't be read are refused
		}
		if err := (Chain{Accept: []Key{k}}).Verify(signed); err != nil && !errors.Is(err, ErrPurge) {
			t.Fatalf("what was signed doesn't verify: %v", err)
		}
	})
}
