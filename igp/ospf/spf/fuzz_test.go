package spf

import (
	"slices"
	"strings"
	"testing"

	"pncd/igp/internal/recorded"
	"pncd/igp/ospf/packet"
)

// recordedLSAs are the LSAs of a version that were seen on the wire, the newest instance of each, by router.
func recordedLSAs(t testing.TB, v packet.Version) map[packet.ID][]packet.LSA {
	t.Helper()
	newest := map[packet.Key]packet.LSA{}
	kind := map[packet.Version]string{packet.V2: "ospf2-4", packet.V3: "ospf3-4"}[v]
	for _, pdu := range recorded.PDUs(t, kind, 5) {
		p, err := packet.Parse(v, recorded.Unhex(t, pdu.PDU))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range p.Body.(*packet.Update).LSAs {
			if old, ok := newest[l.Key]; !ok || l.Newer(old.Header) > 0 {
				newest[l.Key] = l
			}
		}
	}
	by := map[packet.ID][]packet.LSA{}
	for _, l := range newest {
		by[l.Adv] = append(by[l.Adv], l)
	}
	for _, list := range by {
		slices.SortFunc(list, func(x, y packet.LSA) int { return x.Compare(y.Key) })
	}
	return by
}

// FuzzArea holds that LSAs of any octets neither panic nor leave anything behind, and that their order doesn't
// matter for OSPFv2, nor for OSPFv3 as long as the keys are in order.
func FuzzArea(f *testing.F) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		for _, list := range recordedLSAs(f, v) {
			var b []byte
			for _, l := range list {
				b = append(b, l.Raw...)
			}
			f.Add(uint8(v), b)
		}
	}
	f.Fuzz(func(t *testing.T, version uint8, b []byte) {
		v := packet.V2 + packet.Version(version&1)
		by := map[packet.ID][]packet.LSA{}
		for len(b) > 0 {
			l, err := packet.ParseLSA(v, b)
			if err != nil {
				break
			}
			b = b[len(l.Raw):]
			by[l.Adv] = append(by[l.Adv], l)
		}
		for root := range by {
			a := New(v, root)
			for router, list := range by {
				if _, err := a.Set(router, list); err != nil && !strings.Contains(err.Error(), "LSA ") {
					t.Errorf("an error that names no LSA: %v", err)
				}
			}
			a.Run()
			for router, list := range by {
				if changed, _ := a.Set(router, list); changed {
					t.Errorf("the same again of router %s is a change", router)
				}
			}
			for router := range by {
				if a.InterArea(router) != Unreachable && len(by) == 1 {
					t.Errorf("router %s is reached by border routers, and there are none", router)
				}
			}
			for router := range by {
				a.Set(router, nil)
			}
			if a.graph.Len() != 0 || len(a.routers) != 0 || len(a.networks) != 0 {
				t.Errorf("left behind: %v, %v", a.routers, a.networks)
			}
			break // one root is enough
		}
	})
}

func TestLSAsSeenOnTheWire(t *testing.T) {
	both(t, func(t *testing.T, v packet.Version) {
		const first = packet.ID(10<<24 | 255<<16) // FRR routers 10.255.0.1 to 3 on one network, each at a cost of 10
		a, all := New(v, first+1), recordedLSAs(t, v)
		for router, list := range all {
			if _, err := a.Set(router, list); err != nil {
				t.Errorf("router %s: %v", router, err)
			}
		}
		a.Run()
		for router, want := range map[packet.ID]uint32{first + 1: 0, first + 2: 10, first + 3: 10} {
			if got := a.Cost(router); got != want {
				t.Errorf("cost of %s is %d, want %d", router, got, want)
			}
		}
	})
}
