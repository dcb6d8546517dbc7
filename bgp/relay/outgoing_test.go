package relay

import (
	"bytes"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"pncd/bgp/guard"
)

func wire(t testing.TB, m *bgp.BGPMessage) []byte {
	t.Helper()
	b, err := m.Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ownOpen is an OPEN as GoBGP writes it, with the flags of the restart capability.
func ownOpen(t testing.TB, restarting, forward bool) []byte {
	return wire(t, bgp.NewBGPOpenMessage(65000, 90, "192.0.2.1", []bgp.OptionParameterInterface{bgp.NewOptionParameterCapability(
		[]bgp.ParameterCapabilityInterface{
			bgp.NewCapRouteRefresh(), bgp.NewCapMultiProtocol(bgp.RF_IPv4_UC), bgp.NewCapFourOctetASNumber(4200000001),
			bgp.NewCapGracefulRestart(restarting, false, 120, []*bgp.CapGracefulRestartTuple{
				bgp.NewCapGracefulRestartTuple(bgp.RF_IPv4_UC, forward), bgp.NewCapGracefulRestartTuple(bgp.RF_IPv6_UC, forward)}),
			bgp.NewCapFQDN("node", "example"),
		})}))
}

func eor(t testing.TB, f bgp.RouteFamily) []byte { return wire(t, bgp.NewEndOfRib(f)) }

func TestRFC4724Section41TheOpenAfterARestartHasTheBits(t *testing.T) {
	for name, tt := range map[string]struct {
		o    outgoing
		want []byte
	}{
		"restarted":                   {outgoing{asked: true, restarted: true}, ownOpen(t, true, true)},
		"not restarted":               {outgoing{asked: true}, ownOpen(t, false, true)},
		"own restarts are not wanted": {outgoing{}, ownOpen(t, false, false)},
	} {
		msg := ownOpen(t, false, false)
		if !tt.o.pass(msg) || !bytes.Equal(msg, tt.want) {
			t.Errorf("%s: % x, want % x", name, msg, tt.want)
		}
	}
}

func TestOtherMessagesGoOutAsTheyAre(t *testing.T) {
	helper := wire(t, bgp.NewBGPOpenMessage(65000, 90, "192.0.2.1", []bgp.OptionParameterInterface{bgp.NewOptionParameterCapability(
		[]bgp.ParameterCapabilityInterface{bgp.NewCapRouteRefresh()})}))
	withdrawal := wire(t, bgp.NewBGPUpdateMessage([]*bgp.IPAddrPrefix{bgp.NewIPAddrPrefix(24, "192.0.2.0")}, nil, nil))
	cut := ownOpen(t, false, false)[:40]
	for name, msg := range map[string][]byte{
		"OPEN without the capability": helper, "KEEPALIVE": wire(t, bgp.NewBGPKeepAliveMessage()), "withdrawal": withdrawal, "cut": cut, "nothing": nil,
	} {
		o := outgoing{asked: true, restarted: true, early: true, over: new(atomic.Bool)}
		was := slices.Clone(msg)
		if !o.pass(msg) || !bytes.Equal(msg, was) {
			t.Errorf("%s: % x became % x", name, was, msg)
		}
	}
}

func TestRFC4724Section41EndOfRIBWaitsForWhatIsAnnounced(t *testing.T) {
	var over atomic.Bool
	o := outgoing{asked: true, restarted: true, early: true, over: &over}
	for i, tt := range []struct {
		family bgp.RouteFamily
		over   bool
		want   bool
	}{
		{bgp.RF_IPv4_UC, false, false}, {bgp.RF_IPv6_UC, false, false},
		{bgp.RF_IPv4_UC, false, false}, // a resend before the end
		{bgp.RF_IPv4_UC, true, true}, {bgp.RF_IPv6_UC, true, true},
		{bgp.RF_IPv4_VPN, true, false}, // the session's first, which was on its way
		{bgp.RF_IPv4_VPN, true, true},
	} {
		over.Store(tt.over)
		if got := o.pass(eor(t, tt.family)); got != tt.want {
			t.Errorf("End-of-RIB %d of %s: passed %v", i, tt.family, got)
		}
	}
	late := outgoing{asked: true}
	if !late.pass(eor(t, bgp.RF_IPv4_UC)) || !late.pass(eor(t, bgp.RF_IPv6_VPN)) {
		t.Error("held back although everything is announced")
	}
}

func TestRouteRefreshIsAsRFC2918HasIt(t *testing.T) {
	want := wire(t, bgp.NewBGPRouteRefreshMessage(bgp.AFI_IP6, 0, bgp.SAFI_MPLS_VPN))
	if got := routeRefresh(guard.Family{AFI: bgp.AFI_IP6, SAFI: bgp.SAFI_MPLS_VPN}); !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
	if o, ok := parseOpen(ownOpen(t, false, false)); !ok || !o.refresh {
		t.Errorf("the capability isn't seen: %+v", o)
	}
}

// What GoBGP sends is well formed; whatever it is, its length stays and nothing but the bits changes.
func FuzzOutgoing(f *testing.F) {
	f.Add(ownOpen(f, false, false))
	f.Add(eor(f, bgp.RF_IPv4_UC))
	f.Add(eor(f, bgp.RF_IPv6_VPN))
	f.Fuzz(func(t *testing.T, msg []byte) {
		was := slices.Clone(msg)
		var over atomic.Bool
		o := outgoing{asked: true, restarted: true, early: true, over: &over}
		if !o.pass(msg) {
			if _, yes := endOfRIBOf(msg); !yes {
				t.Fatalf("held back: % x", msg)
			}
			over.Store(true)
			if !o.pass(msg) {
				t.Fatal("held back twice")
			}
		}
		for i := range msg {
			if d := msg[i] ^ was[i]; d != 0 && d != flagForward {
				t.Fatalf("octet %d: %02x became %02x", i, was[i], msg[i])
			}
		}
	})
}
