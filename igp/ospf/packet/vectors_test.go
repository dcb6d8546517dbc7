package packet

import (
	"bytes"
	"strings"
	"testing"

	"pncd/igp/internal/recorded"
)

func vectors(t testing.TB) []recorded.PDU {
	t.Helper()
	return recorded.PDUs(t, "ospf", 60)
}

func version(p recorded.PDU) Version {
	if strings.HasPrefix(p.Kind, "ospf3-") {
		return V3
	}
	return V2
}

func TestEveryPacketSeenIsWrittenBackByteForByte(t *testing.T) {
	types := map[Type]int{}
	for _, v := range vectors(t) {
		b := recorded.Unhex(t, v.PDU)
		p, err := Parse(version(v), b)
		if err != nil {
			t.Errorf("%s %s: %v\n%x", v.Kind, v.Note, err, b)
			continue
		}
		types[p.Type()]++
		if got := p.Append(nil); !bytes.Equal(got, b) {
			t.Errorf("%s %s: got %x\nwant %x", v.Kind, v.Note, got, b)
		}
		if got := PeekType(b); got != p.Type() {
			t.Errorf("%s: PeekType %s, Parse %s", v.Kind, got, p.Type())
		}
		if digest := len(b) - Length(b); (p.AuType == AuthCryptographic) != (digest == 16) {
			t.Errorf("%s: authentication type %d, %d octets behind the packet", v.Kind, p.AuType, digest)
		}
	}
	for typ := TypeHello; typ <= TypeAck; typ++ {
		if types[typ] == 0 {
			t.Errorf("no %s among the vectors", typ)
		}
	}
}

func TestEveryLSASeenIsReadAndMadeAgain(t *testing.T) {
	read := map[LSType]int{}
	for _, v := range vectors(t) {
		p, err := Parse(version(v), recorded.Unhex(t, v.PDU))
		if err != nil {
			t.Fatal(err)
		}
		u, ok := p.Body.(*Update)
		if !ok {
			continue
		}
		for _, l := range u.LSAs {
			if !l.ChecksumOK() {
				t.Errorf("%s: %s: the checksum is wrong", v.Kind, l.Key)
			}
			again, err := NewLSA(p.Version, l.Header, l.Body())
			if err != nil || !bytes.Equal(again.Raw, l.Raw) {
				t.Errorf("%s: %s: made again: %x, %v\nwant %x", v.Kind, l.Key, again.Raw, err, l.Raw)
			}
			if err := l.CheckBody(p.Version); err != nil {
				t.Errorf("%s: %s: %v", v.Kind, l.Key, err)
			}
			out, known, err := retype(p.Version, l)
			if err != nil {
				t.Errorf("%s: %s: %v", v.Kind, l.Key, err)
			}
			if known {
				read[l.Type]++
			}
			if out != nil && !bytes.Equal(out, l.Body()) {
				t.Errorf("%s: %s: got %x\nwant %x", v.Kind, l.Key, out, l.Body())
			}
		}
	}
	for _, typ := range []LSType{V2Router, V2Network, V2OpaqueArea, V3Router, V3Network, V3Link, V3IntraAreaPrefix, V3EIntraAreaPrefix} {
		if read[typ] == 0 {
			t.Errorf("no LSA of type %#x was read", uint16(typ))
		}
	}
}

// retype reads an LSA's body in its typed form, if it has one, and writes those that can be written.
func retype(v Version, l LSA) (out []byte, known bool, err error) {
	b := l.Body()
	type key struct {
		v Version
		t LSType
	}
	switch (key{v, l.Type}) {
	case key{V2, V2Router}:
		r, err := ParseV2Router(b)
		if err != nil {
			return nil, true, err
		}
		return r.Append(nil), true, nil
	case key{V2, V2Network}:
		_, err = ParseV2Network(b)
	case key{V2, V2Summary}, key{V2, V2ASBR}:
		_, _, err = ParseV2Summary(b)
	case key{V2, V2OpaqueLink}, key{V3, V3Grace}:
		if !l.IsGrace(v) {
			return nil, false, nil
		}
		g, err := ParseGrace(v, b)
		if err != nil {
			return nil, true, err
		}
		return g.Append(nil), true, nil
	case key{V2, V2OpaqueArea}:
		if l.ID.OpaqueType() == OpaqueTE {
			_, err = ParseTERouterAddress(V2, b)
			break
		}
		if l.ID.OpaqueType() != OpaqueExtendedPrefix {
			_, err = ParseTLVs(b)
			break
		}
		list, err := ParseV2ExtendedPrefixes(b)
		if err != nil {
			return nil, true, err
		}
		for _, p := range list {
			out = p.Append(out)
		}
		return out, true, nil
	case key{V3, V3Link}:
		l, err := ParseV3Link(b)
		if err != nil {
			return nil, true, err
		}
		return l.Append(nil), true, nil
	case key{V3, V3Router}:
		r, err := ParseV3Router(b)
		if err != nil {
			return nil, true, err
		}
		return r.Append(nil), true, nil
	case key{V3, V3Network}:
		_, err = ParseV3Network(b)
	case key{V3, V3InterAreaPrefix}:
		_, _, err = ParseV3InterAreaPrefix(b)
	case key{V3, V3InterAreaRouter}:
		_, _, err = ParseV3InterAreaRouter(b)
	case key{V3, V3IntraAreaPrefix}:
		_, err = ParseV3IntraArea(b)
	case key{V3, V3EIntraAreaPrefix}:
		e, err := ParseV3EIntraArea(b)
		if err != nil {
			return nil, true, err
		}
		return e.Append(nil), true, nil
	case key{V3, V3IntraAreaTE}:
		_, err = ParseTERouterAddress(V3, b)
	case key{V3, V3EInterAreaPrefix}, key{V3, V3EExternal}:
		_, err = ParseV3ExtendedPrefixes(b)
	default:
		return nil, false, nil
	}
	return nil, true, err
}
