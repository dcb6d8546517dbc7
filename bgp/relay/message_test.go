package relay

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"testing"
)

func octets(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const marker = "ffffffffffffffffffffffffffffffff"

func TestAnOpenIsReadForWhatCountsHere(t *testing.T) {
	head := marker + "0000" + "01" + "04" + "5ba0" + "00b4" + "c0000201"
	for name, tt := range map[string]struct {
		in   string
		want open
	}{
		"no parameters": {head + "00", open{speaker: speaker{addr("192.0.2.1"), 0x5ba0}, hold: 180}},
		"4-octet AS, graceful restart with a family": {head + "12" + "0206" + "4104fa56ea01" + "0208" + "4006" + "0078" + "00010180",
			open{speaker: speaker{addr("192.0.2.1"), 4200000001}, hold: 180, restarts: true}},
		"graceful restart without a family": {head + "06" + "0204" + "4002" + "0078", open{speaker: speaker{addr("192.0.2.1"), 0x5ba0}, hold: 180}},
		"RFC 9072":                          {head + "ff" + "ff" + "0009" + "02" + "0006" + "4104fa56ea01", open{speaker: speaker{addr("192.0.2.1"), 4200000001}, hold: 180}},
		"a parameter that is cut short":     {head + "08" + "0209" + "4104fa56ea01", open{speaker: speaker{addr("192.0.2.1"), 0x5ba0}, hold: 180}},
		"a capability that is cut short":    {head + "08" + "0206" + "4105fa56ea01", open{speaker: speaker{addr("192.0.2.1"), 0x5ba0}, hold: 180}},
	} {
		if got, ok := parseOpen(octets(t, tt.in)); !ok || got != tt.want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	for name, in := range map[string]string{"a KEEPALIVE": marker + "001304", "cut short": (head + "00")[:56], "an UPDATE": marker + "0000" + "02" + "0000000000000000000000"} {
		if got, ok := parseOpen(octets(t, in)); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(octets(f, marker+"0000"+"01"+"04"+"5ba0"+"00b4"+"c0000201"+"12"+"0206"+"4104fa56ea01"+"0208"+"4006"+"0078"+"00010180"))
	f.Add(octets(f, marker+"0000"+"01"+"04"+"5ba0"+"00b4"+"c0000201"+"ff"+"ff"+"0009"+"02"+"0006"+"4104fa56ea01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, ok := parseOpen(b); ok && !o.id.Is4() {
			t.Errorf("%x: %+v", b, o)
		}
	})
}

// RFC 4271 section 6.8, RFC 6286 section 2.3: both ends must keep the same connection.
func TestOfTwoConnectionsBothEndsKeepTheSame(t *testing.T) {
	low, high := speaker{addr("192.0.2.1"), 65001}, speaker{addr("192.0.2.2"), 65000}
	lowAS := speaker{addr("192.0.2.2"), 64999}
	for _, tt := range []struct{ local, remote speaker }{{low, high}, {high, low}, {high, lowAS}, {lowAS, high}} {
		if keepIncoming(tt.local, tt.remote) == keepIncoming(tt.remote, tt.local) {
			t.Errorf("%+v and %+v keep different ones", tt.local, tt.remote)
		}
	}
	if !keepIncoming(low, high) {
		t.Error("the connection of the speaker with the higher BGP Identifier must stay")
	}
	if !keepIncoming(lowAS, high) {
		t.Error("with equal identifiers, that of the speaker with the higher AS")
	}
}

func TestANotificationIsWrittenAsOnTheWire(t *testing.T) {
	if got, want := notification(6, 7, []byte{1, 2}), octets(t, marker+"0017"+"03"+"0607"+"0102"); !bytes.Equal(got, want) || !isNotification(got) {
		t.Errorf("%x, want %x", got, want)
	}
	if got := notification(1, 2, make([]byte, 9000)); len(got) != 4096 {
		t.Errorf("%d octets", len(got))
	}
}

func TestWholeSeesMessagesInTheBuffer(t *testing.T) {
	keepalive := octets(t, marker+"001304")
	for n, want := range map[int]bool{18: false, 19: true, 20: true} {
		r := bufio.NewReader(bytes.NewReader(append(keepalive, 0)[:n]))
		r.Peek(1)
		if got := whole(r); got != want {
			t.Errorf("%d octets: %v", n, got)
		}
	}
	long := append(octets(t, marker+"001702"), 0, 0, 0)
	r := bufio.NewReader(bytes.NewReader(long))
	r.Peek(1)
	if whole(r) {
		t.Error("a message that isn't whole")
	}
}
