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

// remotes gives the costs of routers of other areas by the definition, from the LSAs and the costs of the border
// routers (RFC 2328 section 16.2): as those of them say that are not the root.
func remotes(v packet.Version, root packet.ID, by map[packet.ID][]packet.LSA, cost func(packet.ID) uint32) map[packet.ID]uint32 {
	out := map[packet.ID]uint32{}
	for adv, list := range by {
		isBorder, said := saidOfOthers(v, list)
		for router, metric := range said {
			c := uint64(cost(adv)) + uint64(metric)
			if adv == root || !isBorder || c >= uint64(Unreachable) {
				continue
			}
			if old, ok := out[router]; !ok || uint32(c) < old {
				out[router] = uint32(c)
			}
		}
	}
	return out
}

// saidOfOthers reads the LSAs of a router: whether it is a border router, and the least metric for each router of
// another area.
func saidOfOthers(v packet.Version, list []packet.LSA) (isBorder bool, said map[packet.ID]uint32) {
	said = map[packet.ID]uint32{}
	lowest := -1 // link state ID of a router LSA of OSPFv3: its flags count
	for _, l := range list {
		if l.AgeSeconds() == packet.MaxAge {
			continue
		}
		router, metric, err := l.ID, packet.MaxMetric, error(nil)
		switch {
		case v == packet.V2 && l.Type == packet.V2Router:
			if r, err := packet.ParseV2Router(l.Body()); err == nil && l.ID == l.Adv {
				isBorder = r.Flags&packet.RouterB != 0
			}
		case v == packet.V2 && l.Type == packet.V2ASBR:
			_, metric, err = packet.ParseV2Summary(l.Body())
		case v == packet.V3 && l.Type == packet.V3Router:
			if r, err := packet.ParseV3Router(l.Body()); err == nil && (lowest < 0 || int(l.ID) < lowest) {
				lowest, isBorder = int(l.ID), r.Flags&packet.RouterB != 0
			}
		case v == packet.V3 && l.Type == packet.V3InterAreaRouter:
			metric, router, err = packet.ParseV3InterAreaRouter(l.Body())
		}
		if old, ok := said[router]; err == nil && metric != packet.MaxMetric && (!ok || metric < old) {
			said[router] = metric
		}
	}
	return isBorder, said
}

// FuzzArea holds that LSAs of any octets neither panic nor leave anything behind, that the same again is no change,
// and that routers of other areas cost what their border routers say.
func FuzzArea(f *testing.F) {
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		for _, list := range recordedLSAs(f, v) {
			var b []byte
			for _, l := range list {
				b = append(b, l.Raw...)
			}
			f.Add(uint8(v), b)
		}
		f.Add(uint8(v), twoAreas(f, v))
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
			want := remotes(v, root, by, a.Cost)
			for _, list := range by {
				for _, l := range list {
					_, said := saidOfOthers(v, []packet.LSA{l})
					for router := range said {
						if got := a.InterArea(router); got != orNone(want, router) {
							t.Errorf("cost of router %s of another area is %d, want %d", router, got, orNone(want, router))
						}
					}
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

// twoAreas are the LSAs of three routers in a row, of which the outer ones say what they know of routers of another area.
func twoAreas(f *testing.F, v packet.Version) (b []byte) {
	bed := newBed(f, v)
	bed.router(1, border, p2p(2, 3))
	bed.router(2, 0, p2p(1, 3), p2p(3, 4))
	bed.router(3, border, p2p(2, 4))
	bed.remote(1, 50, 6)
	bed.remote(3, 50, 7)
	bed.remote(3, 51, packet.MaxMetric)
	for _, list := range bed.lsas {
		for _, l := range list {
			b = append(b, l.Raw...)
		}
	}
	return b
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
