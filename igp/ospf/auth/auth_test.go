package auth

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"pncd/igp/ospf/packet"
)

var both = []packet.Version{packet.V2, packet.V3}

func TestWhatIsSealedVerifiesAndNoOctetMayChange(t *testing.T) {
	for _, v := range both {
		for _, k := range append(keysOf(v), Key{}) {
			c := Chain{Send: k, Accept: []Key{k}}
			for _, p := range packets(v, 2) {
				before := p.Append(nil)
				b := seal(t, k, p)
				if !bytes.Equal(before, p.Append(nil)) {
					t.Errorf("%s %s: the packet itself was changed", v, k)
				}
				if n := packet.Length(b) + c.Overhead(v); n != len(b) {
					t.Errorf("%s %s: %d octets, Overhead says %d", v, k, len(b), n)
				}
				if lls, err := c.Verify(v, b, addresses(v), nil); err != nil || len(lls) != 0 {
					t.Errorf("%s %s %s: %x, %v", v, k, p.Type(), lls, err)
				}
				if _, err := packet.Parse(v, b); err != nil {
					t.Errorf("%s %s: %v", v, k, err)
				}
				for i := range b {
					if v == packet.V2 && k.Algorithm == Null && i >= authAt && i < v2HeaderLen {
						continue // RFC 2328 section D.1: not examined
					}
					b[i] ^= 0x10
					if _, err := c.Verify(v, b, addresses(v), nil); err == nil {
						t.Errorf("%s %s %s: octet %d changed goes unnoticed", v, k, p.Type(), i)
					}
					b[i] ^= 0x10
				}
				for i := range b {
					if _, err := c.Verify(v, b[:i], addresses(v), nil); err == nil {
						t.Errorf("%s %s %s: cut to %d octets goes unnoticed", v, k, p.Type(), i)
					}
				}
			}
		}
	}
}

func TestTheSourceAddressIsBound(t *testing.T) {
	other := map[packet.Version]Addresses{
		packet.V2: {Source: v2Addr.Source.Next(), Destination: v2Addr.Destination},
		packet.V3: {Source: v3Addr.Source.Next(), Destination: v3Addr.Destination},
	}
	for _, v := range both {
		for _, k := range keysOf(v) {
			want := error(nil)
			if v == packet.V3 || k.BindSource {
				want = ErrDigest
			}
			if _, err := (Chain{Accept: []Key{k}}).Verify(v, seal(t, k, packets(v, 2)[0]), other[v], nil); !errors.Is(err, want) {
				t.Errorf("%s %s: %v, want %v", v, k, err, want)
			}
		}
	}
}

func TestWhyAPacketIsRefused(t *testing.T) {
	simple := Key{Algorithm: Simple, Secret: "pass"}
	md := Key{ID: 1, Algorithm: MD5, Secret: "s"}
	sha := Key{ID: 2, Algorithm: HMACSHA256, Secret: "s"}
	with := func(b []byte, at int, v ...byte) []byte {
		b = bytes.Clone(b)
		copy(b[at:], v)
		return b
	}
	hello := func(v packet.Version, k Key) []byte { return seal(t, k, packets(v, 2)[0]) }
	ack := func(v packet.Version, k Key) []byte { return seal(t, k, packets(v, 2)[4]) }
	const v2, v3 = packet.V2, packet.V3
	for _, c := range []struct {
		name   string
		v      packet.Version
		b      []byte
		accept []Key
		want   error
	}{
		{"no authentication", v2, hello(v2, Key{}), []Key{md}, ErrMissing},
		{"no authentication, with a key or without", v2, hello(v2, Key{}), []Key{md, {}}, nil},
		{"a key, with a key or without", v2, hello(v2, md), []Key{md, {}}, nil},
		{"a password where none is asked for", v2, hello(v2, simple), nil, ErrType},
		{"another password", v2, hello(v2, simple), []Key{{Algorithm: Simple, Secret: "pas"}}, ErrPassword},
		{"a password where MD5 is asked for", v2, hello(v2, simple), []Key{md}, ErrType},
		{"MD5 where a password is asked for", v2, hello(v2, md), []Key{simple}, ErrType},
		{"MD5 where SHA is asked for", v2, hello(v2, md), []Key{sha}, ErrKey},
		{"roll-over: the second key", v2, hello(v2, sha), []Key{md, sha}, nil},
		{"roll-over: two keys with one ID", v2, hello(v2, sha), []Key{{ID: 2, Algorithm: HMACSHA256, Secret: "t"}, sha}, nil},
		{"another secret", v2, hello(v2, sha), []Key{{ID: 2, Algorithm: HMACSHA256, Secret: "t"}, md}, ErrDigest},
		{"the type of RFC 7474", v2, with(hello(v2, md), auTypeAt, 0, 3), []Key{md}, ErrType},
		{"a digest longer than what is there", v2, with(hello(v2, md), digestLenAt, 17), []Key{md}, ErrTrailer},
		{"a key that is none", v2, hello(v2, md), []Key{{ID: 1, Algorithm: MD5}, {ID: 1, Algorithm: 99}}, ErrType},
		{"wrong version", v2, hello(v3, Key{}), nil, ErrPacket},
		{"length", v2, with(hello(v2, Key{}), 2, 0, 23), nil, ErrPacket},
		{"type", v2, with(hello(v2, Key{}), 1, 6), nil, ErrPacket},
		{"v3: no trailer", v3, hello(v3, Key{}), []Key{sha}, ErrMissing},
		{"v3: no trailer, no options", v3, ack(v3, Key{}), []Key{sha}, ErrMissing},
		{"v3: no trailer, with or without", v3, ack(v3, Key{}), []Key{sha, {}}, nil},
		{"v3: a trailer where none is asked for", v3, hello(v3, sha), nil, ErrType},
		{"v3: a trailer where none is asked for, no options", v3, ack(v3, sha), nil, ErrType},
		{"v3: AT option, no trailer", v3, with(hello(v3, Key{}), 22, 4), []Key{sha}, ErrTrailer},
		{"v3: trailer of another type", v3, with(ack(v3, sha), 16, 0, 2), []Key{sha}, ErrType},
		{"v3: trailer of another length", v3, with(ack(v3, sha), 18, 0, 47), []Key{sha}, ErrTrailer},
		{"v3: something behind the trailer", v3, append(ack(v3, sha), 0), []Key{sha}, ErrTrailer},
		{"v3: L option, no block", v3, with(hello(v3, sha), 22, 6), []Key{sha}, ErrTrailer},
		{"v3: another association", v3, ack(v3, sha), []Key{{ID: 3, Algorithm: HMACSHA256, Secret: "s"}}, ErrKey},
		{"v3: another SHA", v3, ack(v3, sha), []Key{{ID: 2, Algorithm: HMACSHA512, Secret: "s"}}, ErrKey},
		{"v3: roll-over", v3, ack(v3, sha), []Key{{ID: 3, Algorithm: HMACSHA512, Secret: "t"}, sha}, nil},
		{"v3: another secret", v3, ack(v3, sha), []Key{{ID: 2, Algorithm: HMACSHA256, Secret: "t"}}, ErrDigest},
	} {
		if _, err := (Chain{Accept: c.accept}).Verify(c.v, c.b, addresses(c.v), nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	for _, v := range both {
		bad := Addresses{}
		k := Key{ID: 1, Algorithm: HMACSHA1, Secret: "s", BindSource: v == v2}
		if _, err := (Chain{Accept: []Key{k}}).Verify(v, hello(v, k), bad, nil); !errors.Is(err, ErrAddress) {
			t.Errorf("%s: %v", v, err)
		}
		if _, err := (Chain{Send: k}).Seal(packets(v, 2)[0], bad, &Sequence{}, now); !errors.Is(err, ErrAddress) {
			t.Errorf("%s: %v", v, err)
		}
	}
	if _, err := (Chain{}).Seal(packets(v3, 2)[0], v2Addr, &Sequence{}, now); !errors.Is(err, ErrAddress) {
		t.Error(err)
	}
}

func TestAReplayIsRefused(t *testing.T) {
	k := Key{ID: 1, Algorithm: HMACSHA256, Secret: "s"}
	c := Chain{Send: k, Accept: []Key{k}}
	for _, v := range both {
		var r Replay
		var s Sequence
		seal := func(typ packet.Type, at time.Duration) []byte {
			b, err := c.Seal(packets(v, 2)[typ-1], addresses(v), &s, now.Add(at))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		check := func(what string, b []byte, want error) {
			t.Helper()
			if _, err := c.Verify(v, b, addresses(v), &r); !errors.Is(err, want) {
				t.Errorf("%s: %s: %v, want %v", v, what, err, want)
			}
		}
		first, ack, second := seal(1, 0), seal(5, 0), seal(1, time.Second)
		forged := seal(1, time.Hour)
		forged[len(forged)-1] ^= 1
		check("the first", first, nil)
		check("forged", forged, ErrDigest)
		check("the second: a forged one does not count", second, nil)
		check("the first again", first, ErrReplay)
		// OSPFv2 counts all types together and lets a number come twice, OSPFv3 does neither.
		once, again := error(nil), ErrReplay
		if v == packet.V2 {
			once, again = ErrReplay, nil
		}
		check("an older one of another type", ack, once)
		check("the second again", second, again)
		r = Replay{}
		check("the neighbour is new", first, nil)
	}
}

func TestSequenceNumbersNeverGoBack(t *testing.T) {
	var s2, s3 Sequence
	var last2 uint32
	var last3 uint64
	at := now
	for i := range 2000 {
		switch {
		case i == 500: // the clock goes back
			at = at.Add(-time.Hour)
		case i%100 == 0: // a restart at once; packets came ten in a second
			at = at.Add(time.Second)
			if i < 500 {
				s2, s3 = Sequence{}, Sequence{}
			}
		}
		at = at.Add(100 * time.Millisecond)
		n2, n3 := s2.v2(at), s3.v3(at)
		if n2 < last2 || n3 <= last3 || uint32(n3) <= uint32(last3) {
			t.Fatalf("%d: %d after %d, %#x after %#x", i, n2, last2, n3, last3)
		}
		last2, last3 = n2, n3
	}
	burst := Sequence{}
	a, b := burst.v3(now), uint64(0)
	for range 1000 {
		b = burst.v3(now)
	}
	if b != a+1000 {
		t.Errorf("%#x after %#x and 1000 more", b, a)
	}
	var restarted Sequence
	if n := restarted.v3(now.Add(time.Second)); n <= b {
		t.Errorf("%#x after %#x: a burst must not outrun a restart", n, b)
	}
	kept := Sequence{Last: b}
	if n := kept.v3(now.Add(-time.Hour)); n <= b {
		t.Errorf("%#x after %#x, which was kept", n, b)
	}
}

func TestABlockOfLinkLocalSignallingIsKept(t *testing.T) {
	for _, v := range both {
		bit := uint32(packet.V2OptL)
		if v == packet.V3 {
			bit = packet.V3OptL
		}
		for _, k := range append(keysOf(v), Key{}) {
			p := packets(v, bit)[0]
			p.Trailer = block
			b := seal(t, k, p)
			lls, err := Chain{Accept: []Key{k}}.Verify(v, b, addresses(v), nil)
			if err != nil || !bytes.Equal(lls, block) {
				t.Errorf("%s %s: %x, %v", v, k, lls, err)
			}
		}
	}
	p := packets(packet.V3, 0)[0]
	p.Trailer = block
	if _, err := (Chain{Send: Key{Algorithm: HMACSHA1, Secret: "s"}}).Seal(p, v3Addr, &Sequence{}, now); !errors.Is(err, ErrTrailer) {
		t.Errorf("a block that no option announces: %v", err)
	}
}

func TestTheATOptionIsAsTheKeysWantIt(t *testing.T) {
	for _, k := range []Key{{}, {Algorithm: HMACSHA1, Secret: "s"}} {
		for _, before := range []uint32{packet.OptionE, packet.OptionE | packet.V3OptAT} {
			for _, p := range packets(packet.V3, before)[:2] {
				want := uint32(packet.OptionE)
				if k.Algorithm != Null {
					want |= packet.V3OptAT
				}
				if got := options(packet.V3, seal(t, k, p)); got != want {
					t.Errorf("%s %s: options %#x, want %#x", k, p.Type(), got, want)
				}
			}
		}
	}
}

func TestKeysUnfitForTheVersion(t *testing.T) {
	for _, c := range []struct {
		name string
		v    packet.Version
		k    Key
		rule string
	}{
		{"null", packet.V3, Key{}, ""},
		{"password in v3", packet.V3, Key{Algorithm: Simple, Secret: "s"}, "RFC 7166"},
		{"MD5 in v3", packet.V3, Key{Algorithm: MD5, Secret: "s"}, "RFC 7166"},
		{"no secret", packet.V2, Key{Algorithm: MD5}, "empty"},
		{"key ID", packet.V2, Key{ID: 256, Algorithm: MD5, Secret: "s"}, "at most 255"},
		{"association", packet.V3, Key{ID: 256, Algorithm: HMACSHA1, Secret: "s"}, ""},
		{"long password", packet.V2, Key{Algorithm: Simple, Secret: "123456789"}, "at most 8"},
		{"long MD5", packet.V2, Key{Algorithm: MD5, Secret: strings.Repeat("s", 17)}, "at most 16"},
		{"bound MD5", packet.V2, Key{Algorithm: MD5, Secret: "s", BindSource: true}, "RFC 7474"},
		{"protocol ID", packet.V2, Key{Algorithm: HMACSHA1, Secret: "s", SwapProtocolID: true}, "only OSPFv3"},
		{"unknown", packet.V2, Key{Algorithm: 99, Secret: "s"}, "not known"},
	} {
		for _, chain := range []Chain{{Send: c.k}, {Accept: []Key{c.k}}} {
			err := chain.Check(c.v)
			if c.rule == "" && err != nil || c.rule != "" && (err == nil || !strings.Contains(err.Error(), c.rule)) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if _, err := (Chain{Send: c.k}).Seal(packets(c.v, 2)[0], addresses(c.v), &Sequence{}, now); (err != nil) != (c.rule != "") {
			t.Errorf("%s: sealed: %v", c.name, err)
		}
	}
}

func TestAlgorithmNames(t *testing.T) {
	for a := range algorithms {
		if got, err := ParseAlgorithm(Algorithm(a).String()); err != nil || got != Algorithm(a) {
			t.Errorf("%s: %v, %v", Algorithm(a), got, err)
		}
	}
	if _, err := ParseAlgorithm("sha"); err == nil || !strings.Contains(err.Error(), "hmac-sha-256") {
		t.Error(err)
	}
	if got := (Key{ID: 3, Algorithm: MD5, Secret: "hidden"}).String(); got != "md5 key 3" {
		t.Error(got)
	}
}

func FuzzVerify(f *testing.F) {
	for _, v := range both {
		for _, k := range append(keysOf(v), Key{}) {
			for _, p := range packets(v, 2)[:2] {
				f.Add(v == packet.V3, seal(f, k, p))
			}
		}
	}
	f.Fuzz(func(t *testing.T, six bool, b []byte) {
		v := packet.V2
		if six {
			v = packet.V3
		}
		accept := append(keysOf(v), Key{})
		in := bytes.Clone(b)
		lls, err := Chain{Accept: accept}.Verify(v, b, addresses(v), &Replay{})
		if !bytes.Equal(in, b) {
			t.Fatal("the input was changed")
		}
		if err == nil && len(lls) > len(b)-packet.Length(b) {
			t.Fatalf("a block of %d octets", len(lls))
		}
		p, err := packet.Parse(v, b)
		if err != nil {
			return
		}
		for _, k := range accept {
			sealed, err := Chain{Send: k}.Seal(p, addresses(v), &Sequence{}, now)
			if errors.Is(err, ErrTrailer) || errors.Is(err, ErrPacket) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			lls, err := Chain{Accept: []Key{k}}.Verify(v, sealed, addresses(v), nil)
			if err == nil && !bytes.Equal(lls, p.Trailer) {
				t.Fatalf("%s: block %x, want %x", k, lls, p.Trailer)
			}
			if err != nil && (v == packet.V2 || k.Algorithm != Null || len(p.Trailer) == 0) {
				t.Fatalf("%s: what was sealed doesn't verify: %v", k, err)
			}
		}
	})
}
