package engine

import (
	"strings"
	"testing"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

func openWith(t *testing.T, caps ...bgp.ParameterCapabilityInterface) []byte {
	t.Helper()
	b, err := bgp.NewBGPOpenMessage(65000, 90, "192.0.2.1", []bgp.OptionParameterInterface{bgp.NewOptionParameterCapability(caps)}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const marker = "ffffffffffffffffffffffffffffffff"

// An UPDATE of 203.0.113.0/24, with a path identifier or without, decodes only under the options of its
// session.
func TestMessagesAreDecodedAsTheSessionDoes(t *testing.T) {
	addPath := func(mode bgp.BGPAddPathMode) []byte {
		return openWith(t, bgp.NewCapMultiProtocol(bgp.RF_IPv4_UC), bgp.NewCapAddPath([]*bgp.CapAddPathTuple{bgp.NewCapAddPathTuple(bgp.RF_IPv4_UC, mode)}))
	}
	plain := openWith(t, bgp.NewCapMultiProtocol(bgp.RF_IPv4_UC))
	attributes := "0015" + "40010100" + "400200" + "400304c0000202" + "40050400000064"
	with := octets(t, marker+"0038"+"02"+"0000"+attributes+"00000100"+"18cb0071")
	without := octets(t, marker+"0030"+"02"+"0000"+attributes+"18cb0071")
	with[17], without[17] = byte(len(with)), byte(len(without))
	for name, tt := range map[string]struct {
		sent, received []byte
		msg            []byte
		ok             bool
	}{
		"agreed":                {addPath(bgp.BGP_ADD_PATH_RECEIVE), addPath(bgp.BGP_ADD_PATH_BOTH), with, true},
		"not offered":           {plain, addPath(bgp.BGP_ADD_PATH_BOTH), without, true},
		"only receives":         {addPath(bgp.BGP_ADD_PATH_RECEIVE), addPath(bgp.BGP_ADD_PATH_RECEIVE), without, true},
		"agreed, no identifier": {addPath(bgp.BGP_ADD_PATH_RECEIVE), addPath(bgp.BGP_ADD_PATH_SEND), without, false},
		"two messages":          {plain, plain, append(append([]byte{}, without...), without...), true},
		"cut short":             {plain, plain, without[:len(without)-1], false},
		"part of a header":      {plain, plain, without[:7], false},
		"no OPEN":               {plain[:10], plain, without, false},
	} {
		if err := decoder(tt.sent, tt.received)(tt.msg); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What panics in GoBGP's decoder is an error here.
func TestAPanicOfTheDecoderIsAnError(t *testing.T) {
	err := guarded(func() error { panic("index out of range") })
	if err == nil || !strings.Contains(err.Error(), "index out of range") {
		t.Error(err)
	}
}

func TestANotificationIsPutInWords(t *testing.T) {
	for in, want := range map[string]string{
		"0607":             "code 6(cease) subcode 7(connection collision resolution)",
		"06020568656c6c6f": `: "hello"`,
		"06020968656c6c6f": "subcode 2(administrative shutdown)",
		"0602":             "subcode 2(administrative shutdown)",
		"0909":             "code 9",
	} {
		got := receivedNotification(append(make([]byte, 19), octets(t, in)...))
		if !strings.HasPrefix(got, "received notification: ") || !strings.Contains(got, want) {
			t.Errorf("%s: %s", in, got)
		}
	}
}
