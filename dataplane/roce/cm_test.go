package roce

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// cmSamples has one message of each kind with every field that the kind has.
func cmSamples() []CM {
	gidA, gidB := [16]byte{10: 0xFF, 11: 0xFF, 12: 10, 15: 1}, [16]byte{10: 0xFF, 11: 0xFF, 12: 10, 15: 2}
	private := []byte("private")
	return []CM{
		{Kind: CMREQ, TransactionID: 1 << 60, LocalCommID: 0x11223344, LocalQPN: 0xDC, StartingPSN: 0xABCDEF, Transport: CMTransportUC,
			ServiceID: 0x0000000001061144, PKey: 0x8001, PathMTU: 5, LocalGID: gidA, RemoteGID: gidB, PrivateData: private},
		{Kind: CMMRA, TransactionID: 2, LocalCommID: 1, RemoteCommID: 2, RejMessage: 1, PrivateData: private},
		{Kind: CMREJ, TransactionID: 3, LocalCommID: 1, RemoteCommID: 2, RejMessage: 2, RejReason: 28, PrivateData: private},
		{Kind: CMREP, TransactionID: 4, LocalCommID: 1, RemoteCommID: 2, LocalQPN: 0x8D, StartingPSN: 0xFFFFFF, PrivateData: private},
		{Kind: CMRTU, TransactionID: 5, LocalCommID: 1, RemoteCommID: 2, PrivateData: private},
		{Kind: CMDREQ, TransactionID: 6, LocalCommID: 1, RemoteCommID: 2, RemoteQPN: 0xFFFFFE, PrivateData: private},
		{Kind: CMDREP, TransactionID: 7, LocalCommID: 1, RemoteCommID: 2, PrivateData: private},
		{Kind: CMSIDRREQ, TransactionID: 8, LocalCommID: 1, ServiceID: 77, PKey: 0xFFFF, PrivateData: private},
		{Kind: CMSIDRREP, TransactionID: 9, LocalCommID: 1, LocalQPN: 5, ServiceID: 77, SIDRStatus: 2, PrivateData: private},
		{Kind: CMLAP, TransactionID: 10, LocalCommID: 1, RemoteCommID: 2, RemoteQPN: 3, PrivateData: private},
		{Kind: CMAPR, TransactionID: 11, LocalCommID: 1, RemoteCommID: 2, PrivateData: private},
	}
}

func mad(tb testing.TB, c *CM) []byte {
	tb.Helper()
	b, err := c.Append(AppendDETH(nil, DETH{QKey: GSIQKey, SrcQP: QP1}))
	if err != nil {
		tb.Fatal(err)
	}
	if len(b) != DETHLen+MADLen {
		tb.Fatalf("%v: %d octets", c.Kind, len(b))
	}
	return b
}

func TestEveryCMMessageIsReadAsItWasBuilt(t *testing.T) {
	for _, c := range cmSamples() {
		t.Run(c.Kind.String(), func(t *testing.T) {
			m, err := ParseMAD(mad(t, &c))
			if err != nil {
				t.Fatal(err)
			}
			if m.DETH != (DETH{QKey: GSIQKey, SrcQP: QP1}) || m.AttrID != uint16(c.Kind) || m.TransactionID != c.TransactionID {
				t.Errorf("header %+v", m)
			}
			got := m.CM
			if !bytes.HasPrefix(got.PrivateData, c.PrivateData) || len(got.Body) != cmBodyLen {
				t.Errorf("private data %q, body of %d", got.PrivateData, len(got.Body))
			}
			got.Body, got.PrivateData = nil, c.PrivateData
			if !reflect.DeepEqual(got, c) {
				t.Errorf("got  %+v\nwant %+v", got, c)
			}
		})
	}
}

// The offsets of the learning rules, from the UDP payload: message at 44.
func TestCMFieldsStandWhereTheSpecificationSays(t *testing.T) {
	for kind, fields := range map[CMKind]map[int][]byte{
		CMREQ: {0: {0x11, 0x22, 0x33, 0x44}, 8: {0, 0, 0, 0, 1, 6, 0x11, 0x44}, 32: {0, 0, 0xDC}, 43: {1 << 1},
			44: {0xAB, 0xCD, 0xEF}, 48: {0x80, 0x01}, 68: {10, 0, 0, 1}, 84: {10, 0, 0, 2}, 140: []byte("private")},
		CMREP:  {0: {0, 0, 0, 1}, 4: {0, 0, 0, 2}, 12: {0, 0, 0x8D}, 20: {0xFF, 0xFF, 0xFF}, 36: []byte("private")},
		CMDREQ: {0: {0, 0, 0, 1}, 4: {0, 0, 0, 2}, 8: {0xFF, 0xFF, 0xFE}, 12: []byte("private")},
		CMREJ:  {8: {2 << 6}, 10: {0, 28}, 84: []byte("private")},
	} {
		for _, c := range cmSamples() {
			if c.Kind != kind {
				continue
			}
			payload := append(make([]byte, BTHLen), mad(t, &c)...)
			if payload[20] != 1 || payload[21] != 7 || payload[22] != 2 || payload[23] != 3 || payload[37] != byte(kind) {
				t.Errorf("%v: MAD header %x", kind, payload[20:44])
			}
			for at, want := range fields {
				if got := payload[44+at : 44+at+len(want)]; !bytes.Equal(got, want) {
					t.Errorf("%v +%d: %x, want %x", kind, at, got, want)
				}
			}
		}
	}
}

func TestMADIsWrittenBackByteForByte(t *testing.T) {
	for k := CMREQ; k <= CMAPR; k++ {
		in := make([]byte, DETHLen+MADLen)
		for i := range in {
			in[i] = byte(i*37 + int(k))
		}
		h := in[DETHLen:]
		copy(h, []byte{1, 7, 2, 3})
		h[16], h[17], h[18], h[19] = 0, byte(k), 0, 0
		m, err := ParseMAD(in)
		if err != nil {
			t.Fatal(k, err)
		}
		out, err := m.Append(nil)
		if err != nil || !bytes.Equal(in, out) {
			t.Errorf("%v: %v\nin  %x\nout %x", k, err, in, out)
		}
	}
}

func TestParseMADNamesWhatIsWrong(t *testing.T) {
	c := cmSamples()[0]
	ok := mad(t, &c)
	set := func(at int, v byte) []byte {
		b := bytes.Clone(ok)
		b[at] = v
		return b
	}
	for name, tt := range map[string]struct {
		body []byte
		err  error
		says string
	}{
		"empty":              {nil, ErrTruncated, "DETH"},
		"DETH cut":           {ok[:7], ErrTruncated, "DETH"},
		"MAD header cut":     {ok[:31], ErrTruncated, "MAD"},
		"base version":       {set(8, 2), ErrNotCM, "base version"},
		"class SA":           {set(9, 3), ErrNotCM, "management class"},
		"class version":      {set(10, 1), ErrNotCM, "class version"},
		"method":             {set(11, 0x81), ErrNotCM, "method"},
		"attribute below":    {set(25, 0x0F), ErrNotCM, "attribute id"},
		"attribute above":    {set(25, 0x1B), ErrNotCM, "attribute id"},
		"REQ cut at its GID": {ok[:8+24+139], ErrTruncated, "private data"},
	} {
		_, err := ParseMAD(tt.body)
		if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %v about %s", name, err, tt.err, tt.says)
		}
	}
	if m, err := ParseMAD(ok[:8+24+140]); err != nil || m.CM.LocalQPN != 0xDC || len(m.CM.PrivateData) != 0 {
		t.Errorf("a capture that ends at the private data: %+v, %v", m.CM, err)
	}
}

func TestAppendRefusesCMValuesThatDoNotFit(t *testing.T) {
	for says, c := range map[string]CM{
		"kind":         {Kind: 0x0F},
		"QPN":          {Kind: CMREQ, LocalQPN: 1 << 24},
		"starting PSN": {Kind: CMREP, StartingPSN: 1 << 24},
		"transport":    {Kind: CMREQ, Transport: 4},
		"private data": {Kind: CMREQ, PrivateData: make([]byte, 93)},
		"body":         {Kind: CMREQ, Body: make([]byte, 233)},
	} {
		dst := []byte("kept")
		out, err := c.Append(dst)
		if !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), says) || string(out) != "kept" {
			t.Errorf("%s: %q, %v", says, out, err)
		}
		m := MAD{CM: c}
		if out, err := m.Append(dst); !errors.Is(err, ErrValue) || string(out) != "kept" {
			t.Errorf("MAD, %s: %q, %v", says, out, err)
		}
	}
}

func TestIsMADNeedsUDSendOnlyToQP1(t *testing.T) {
	for _, tt := range []struct {
		op   Opcode
		qp   uint32
		want bool
	}{{0x64, 1, true}, {0x64, 2, false}, {0x65, 1, false}, {0x04, 1, false}} {
		p := Packet{BTH: BTH{Opcode: tt.op, DestQP: tt.qp}}
		if p.IsMAD() != tt.want {
			t.Errorf("opcode 0x%02x to QP %d: %v", uint8(tt.op), tt.qp, p.IsMAD())
		}
	}
}
