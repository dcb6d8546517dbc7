package neighbor

import (
	"testing"

	"pncd/igp/ospf/packet"
)

// A neighbour whose MTU is smaller drops descriptions and stays in ExStart (RFC 2328 section 10.6): when the MTU is put
// right here, what is sent again must say so, or the two never get on.
func TestADescriptionThatIsSentAgainHasTheNewMTU(t *testing.T) {
	for name, neighbor := range map[string]packet.ID{"master": 1, "slave": 3} {
		c := Config{Version: packet.V2, Router: 2, Options: packet.OptionE, MTU: 1500}
		m, now := New(c, neighbor, memory{v: packet.V2}), begin
		m.AdjOK(now, true)
		m.Hello(now)
		m.TwoWay(now)
		sends := func(mtu uint16) {
			t.Helper()
			out := m.Tick(now)
			if len(out) == 0 {
				t.Fatalf("%s: nothing is sent", name)
			}
			if d, ok := out[0].(*packet.Description); !ok || d.MTU != mtu {
				t.Errorf("%s: %+v, want an MTU of %d", name, out[0], mtu)
			}
		}
		sends(1500)
		c.MTU = 1400
		m.Reconfigure(c)
		now = now.Add(DefaultRetransmit)
		sends(1400)
		first := &packet.Description{MTU: 1300, Options: packet.OptionE | packet.V2OptO, Flags: packet.FlagInit | packet.FlagMore | packet.FlagMaster, Sequence: 7}
		if neighbor == 1 {
			first.Flags, first.Sequence = packet.FlagMore, m.sequence
		}
		if why := m.Receive(now, first); why != ReasonNone {
			t.Fatalf("%s: dropped for %s", name, why)
		}
		sends(1400)
		c.MTU = 1300
		m.Reconfigure(c)
		if neighbor == 1 {
			now = now.Add(DefaultRetransmit)
		} else {
			m.Receive(now, first) // again: the answer was not taken
		}
		sends(1300)
	}
}
