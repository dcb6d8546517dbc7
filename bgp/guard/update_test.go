package guard

import (
	"bytes"
	"slices"
	"testing"
)

// Attributes that are right, for tests.
const (
	aOrigin = "40 01 01 00"
	aPath   = "40 02 06 02 01 0000fc01"
	aHop    = "40 03 04 c0000201"
	aMED    = "80 04 04 00000064"
	aPref   = "40 05 04 00000064"
	aBase   = aOrigin + aPath + aHop
	aNHC    = "c0 27 10 0001 01 04 c0000201 ff78 0004 c0000263"
	nlri10  = "18 0a4d01"
	// MP_REACH_NLRI and MP_UNREACH_NLRI of 2001:db8:1::/48.
	aReach6   = "80 0e 1c 0002 01 10 20010db8000000000000000000000001 00 30 20010db80001"
	aUnreach6 = "80 0f 0a 0002 01 30 20010db80001"
	// VPN-IPv4 64512:1:10.0.0.0/8, label 16, next hop 192.0.2.1.
	aReachVPN   = "80 0e 1e 0001 80 0c 0000000000000000c0000201 00 60 000101 0000fc0000000001 0a"
	aUnreachVPN = "80 0f 10 0001 80 60 800000 0000fc0000000001 0a"
	as4         = capsFamilies + capsAS4
)

// updateCase is an UPDATE and what must become of it.
type updateCase struct {
	name                   string
	withdrawn, attrs, nlri string
	raw                    []byte // instead of the three
	ebgp                   bool
	caps                   string // both sides'; as4 when empty
	families               []Family

	same   bool     // passed unchanged
	pass   [][]byte // passed instead; none: nothing is passed
	fault  [2]uint8 // session ends
	finds  []Finding
	unsure bool
}

func (c updateCase) msg() []byte {
	if c.raw != nil {
		return c.raw
	}
	return updateOf(c.withdrawn, c.attrs, c.nlri)
}

func finding(k Kind, a Action, typ uint8) []Finding {
	return []Finding{{Kind: k, Action: a, Attribute: typ}}
}

func TestUpdate(t *testing.T) {
	for _, c := range slices.Concat(updateCases, mpCases, asCases) {
		t.Run(c.name, func(t *testing.T) {
			caps := c.caps
			if caps == "" {
				caps = as4
			}
			s := sessionOf(t, Config{EBGP: c.ebgp, Families: c.families}, caps)
			msg := c.msg()
			v := s.FromPeer(msg)
			if c.fault != [2]uint8{} {
				if v.Fault == nil || [2]uint8{v.Fault.Code, v.Fault.Subcode} != c.fault {
					t.Fatalf("fault %v, want %v; pass %x, findings %v", v.Fault, c.fault, v.Pass, v.Findings)
				}
				return
			}
			if v.Fault != nil {
				t.Fatalf("session ends: %v", v.Fault)
			}
			if c.same != (len(v.Pass) > 0 && &v.Pass[0] == &msg[0] && len(v.Pass) == len(msg)) {
				t.Errorf("unchanged: %v, want %v: %x", !c.same, c.same, v.Pass)
			}
			if want := bytes.Join(c.pass, nil); !c.same && !bytes.Equal(v.Pass, want) {
				t.Errorf("pass\n%x, want\n%x", v.Pass, want)
			}
			if !slices.Equal(v.Findings, c.finds) {
				t.Errorf("findings %v, want %v", v.Findings, c.finds)
			}
			if v.Unsure != c.unsure {
				t.Errorf("unsure %v, want %v", v.Unsure, c.unsure)
			}
		})
	}
}
