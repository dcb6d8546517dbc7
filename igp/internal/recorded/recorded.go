// Package recorded holds PDUs seen on the wire between routers of FRR 8.4.4, BIRD and a scripted speaker. It is for
// tests.
package recorded

import (
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

//go:embed igp.json
var file []byte

// PDU is one of them.
type PDU struct {
	Kind string // protocol-PDU type, as in ospf2-1 or isis-16
	Note string
	PDU  string // octets behind the frame's header, hexadecimal
}

// PDUs gives those whose kind begins so, of which there must be at least so many.
func PDUs(t testing.TB, kind string, least int) (out []PDU) {
	t.Helper()
	var all struct{ PDUs []PDU }
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatal(err)
	}
	for _, p := range all.PDUs {
		if strings.HasPrefix(p.Kind, kind) {
			out = append(out, p)
		}
	}
	if len(out) < least {
		t.Fatalf("%d recorded PDUs of kind %s, must be at least %d", len(out), kind, least)
	}
	return out
}

// Unhex gives the octets of hexadecimal digits, between which there may be spaces.
func Unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
