package integration

import (
	"fmt"
	"strings"
	"testing"

	"pncd/bgp/engine"
	"pncd/bgp/guard"
	"pncd/bgp/speakertest"
	"pncd/integration/bgpraw"
)

// opening is an OPEN with which a session comes up.
type opening struct {
	name   string
	params string // what follows the BGP Identifier, in hexadecimal
	find   guard.Kind
	// families that the session has; zero: all three.
	families int
}

// openings are OPENs that are odd, and right; or of which a part is to be left out.
func openings() []opening {
	usual := strings.Join(strings.Fields(hFamilies+hFour), "")
	params := func(caps string) string {
		c := strings.Join(strings.Fields(caps), "")
		return fmt.Sprintf("%02x 02 %02x %s", len(c)/2+2, len(c)/2, c)
	}
	long := func(caps string) string {
		c := strings.Join(strings.Fields(caps), "")
		return fmt.Sprintf("ff ff %04x 02 %04x %s", len(c)/2+3, len(c)/2, c)
	}
	each := ""
	for i := 0; i < len(usual); i += 12 {
		each += "0206" + usual[i:i+12]
	}
	return []opening{
		{name: "RFC 4760 8 without capabilities: IPv4 only", params: "00", families: 1},
		{name: "RFC 4760 8 an empty parameter", params: "02 02 00", families: 1},
		{name: "RFC 4760 8 families of others only", params: params("0104 0019 00 46 0104 4004 00 47" + hFour), families: -1},
		{name: "RFC 5492 4 a parameter for each capability", params: fmt.Sprintf("%02x", len(each)/2) + each},
		{name: "RFC 5492 4 a capability many times", params: params(usual + strings.Repeat("0200", 60))},
		{name: "RFC 5492 4 a family many times", params: params(usual + strings.Repeat("0104 0001 00 01", 30))},
		{name: "RFC 5492 4 unknown capabilities", params: params(usual + "0000 c803 010203 ff00 fe40" + strings.Repeat("aa", 64))},
		{name: "RFC 5492 4 the longest parameter", params: params(usual + "c8e1" + strings.Repeat("00", 0xe1))},
		{name: "RFC 9072 2 extended parameters", params: long(usual)},
		{name: "RFC 9072 2 more than GoBGP takes", params: long(usual + "c8ff" + strings.Repeat("00", 255) + "c9ff" + strings.Repeat("00", 255))},
		{name: "RFC 9072 2 whatever the short length says", params: "01" + long(usual)[2:]},
		{name: "RFC 7911 4 neither send nor receive", params: params(usual + "4504 0001 01 00")},
		{name: "RFC 7911 4 an unknown mode is ignored", params: params(usual + "4508 0001 01 07 0002 01 ff"), find: guard.WrongValue},
		{name: "RFC 7911 4 of a family that isn't there", params: params(usual + "4504 0019 46 03")},
		{name: "RFC 4724 3 graceful restart without families", params: params(usual + "4002 0078")},
		{name: "RFC 4724 3 graceful restart of other families", params: params(usual + "4006 f078 0019 46 80")},
		{name: "RFC 9494 3 long-lived without graceful restart", params: params(usual + "4707 0001 01 80 000e10")},
		{name: "RFC 8654 extended message", params: params(usual + "0600")},
		{name: "RFC 7313 enhanced route refresh", params: params(usual + "4600")},
		{name: "RFC 9234 role", params: params(usual + "0901 03")},
		{name: "host name", params: params(usual + "4907 03 616263 02 6465")},
		{name: "host name runs over", params: params(usual + "4903 ff 6162"), find: guard.WrongLength},
		{name: "host name without domain", params: params(usual + "4903 02 6162"), find: guard.WrongLength},
		{name: "host name empty", params: params(usual + "4900"), find: guard.WrongLength},
		{name: "version", params: params(usual + "4b04 03 312e30")},
		{name: "version runs over", params: params(usual + "4b02 ff 31"), find: guard.WrongLength},
		{name: "version empty", params: params(usual + "4b00"), find: guard.WrongLength},
	}
}

func TestBGPHostileNeighbourOpens(t *testing.T) {
	cases := openings()
	h := newHostile(t, len(cases))
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h.cases++
			a := h.fault(i)
			open := h.open(a, "")
			open = bgpraw.Bytes(bgpraw.Open, append(open[bgpraw.HeaderLen:len(open)-1:len(open)-1], bgpraw.Hex(c.params)...))
			p := h.dial(a)
			t.Cleanup(p.Close)
			if _, err := p.Establish(h.ctx, open); err != nil {
				t.Fatal(err)
			}
			r := &raw{Peer: p, h: h, addr: a}
			h.p.AwaitUp(a.String())
			var got speakertest.Answer
			want := 3
			switch {
			case c.families == 1:
				r.addr = hTwo // its AS numbers have two octets
				r.send(t, r.announce(hPrefix, hProxy))
				got = h.p.Await("the route", func(x speakertest.Answer) bool { return stateOf(x, hPrefix, a) == believed })
				r.send(t, r.withdraw(hPrefix))
				want = 1
			case c.families == -1:
				r.send(t, r.announce(hPrefix, hProxy))
				got = h.p.Await("the route to be left out", func(x speakertest.Answer) bool {
					return countedFor(x, a).findings[guard.FamilyNotOffered] > 0
				})
				want = 0
			default:
				got = r.settle(t)
			}
			n := got.Neighbor(a.String())
			if n.State != engine.StateEstablished || len(n.Families) != want || n.Flaps != 1 {
				t.Errorf("%+v", n)
			}
			if c.find != 0 && n.Findings[c.find] == 0 || c.find == 0 && c.families >= 0 && len(n.Findings) != 0 {
				t.Errorf("findings %v, want %v", n.Findings, c.find)
			}
		})
	}
	h.others(t)
}

// TestBGPHostileNeighbourInPieces: however the octets arrive, the messages are the same; and whoever leaves
// within one takes nobody along.
func TestBGPHostileNeighbourInPieces(t *testing.T) {
	h := newHostile(t, 20)
	r := h.establish(hIBGP, hFamilies+hFour)
	for _, b := range r.announce(hPrefix, hProxy) {
		r.send(t, []byte{b})
	}
	if s := stateOf(r.settle(t), hPrefix, hIBGP); s != believed {
		t.Errorf("octet by octet: %v", s)
	}
	all := append(r.withdraw(hPrefix), bgpraw.Bytes(bgpraw.Keepalive, nil)...)
	all = append(all, r.announce(hPrefix, hProxy)...)
	r.send(t, all[:30], all[30:])
	if s := stateOf(r.settle(t), hPrefix, hIBGP); s != believed {
		t.Errorf("several in one: %v", s)
	}
	whole := r.announce(hPrefix, hProxy)
	for i := range 20 {
		a := h.fault(i)
		p := h.dial(a)
		var err error
		switch i % 4 {
		case 0: // says nothing
		case 1:
			err = p.Send(h.open(a, hFamilies+hFour)[:5+i])
		case 2:
			_, err = p.Establish(h.ctx, h.open(a, hFamilies+hFour))
			if err == nil {
				err = p.Send(whole[:5+i])
			}
		case 3:
			err = p.Send(h.open(a, hFamilies+hFour))
		}
		if err != nil {
			t.Error(err)
		}
		p.Close()
	}
	h.p.Await("all of them to be gone", func(x speakertest.Answer) bool {
		for i := range 20 {
			if x.Neighbor(h.fault(i).String()).State == engine.StateEstablished {
				return false
			}
		}
		return true
	})
	if s := stateOf(r.settle(t), hPrefix, hIBGP); s != believed {
		t.Errorf("beside those who left: %v", s)
	}
	h.others(t)
}
