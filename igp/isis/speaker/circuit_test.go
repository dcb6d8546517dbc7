package speaker

import (
	"testing"
	"time"

	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/packet"
)

// twoWayHello gives a system's hello on a point-to-point circuit, without three-way handshake.
func twoWayHello(t *testing.T, m *Machine, system byte) []byte {
	t.Helper()
	raw, err := packet.Hello{
		Header: packet.Header{Type: packet.P2PHello}, CircuitType: packet.Level12, Source: packet.SystemID{5: system}, HoldingTime: 3000,
		TLVs: packet.TLVs{packet.AreasTLV(m.cfg.Areas...), {Type: packet.TLVProtocolsSupported, Value: []byte{packet.NLPIDIPv4, packet.NLPIDIPv6}}},
	}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func sent(frames []Frame) map[packet.PDUType]int {
	n := map[packet.PDUType]int{}
	for _, f := range frames {
		typ, _ := packet.Type(f.PDU)
		n[typ]++
	}
	return n
}

// A neighbour in another's place, up with its first hello, has nothing of what the other one had.
func TestANeighborInAnothersPlaceGetsEverything(t *testing.T) {
	n := build(t, nil, [2]int{10, 1})
	m := n.systems[10]
	m.Receive(n.now, Frame{Circuit: "10-1", PDU: twoWayHello(t, m, 7)})
	n.systems = map[int]*Machine{10: m} // nobody answers
	n.pass(2 * time.Second)
	psnp, err := packet.SNP{Header: packet.Header{Type: packet.L2PSNP}, Source: packet.SystemID{5: 7}.Node(0),
		TLVs: packet.EntryTLVs([]packet.Entry{m.levels[0].flood.DB().Get(m.cfg.System.Node(0).Fragment(0)).Summary(n.now)})}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Receive(n.now, Frame{Circuit: "10-1", PDU: psnp})
	if m.levels[0].flood.Pending() {
		t.Fatal("not acknowledged")
	}
	m.Receive(n.now, Frame{Circuit: "10-1", PDU: twoWayHello(t, m, 8)})
	if got := sent(m.Tick(n.now)); got[packet.L2CSNP] != 1 || got[packet.L2LSP] != 1 {
		t.Errorf("sent %v", got)
	}
}

// An interface that was made anew under the same name and with the same address needs another socket.
func TestAnotherInterfaceOfTheSameNameIsAChange(t *testing.T) {
	a := Link{Up: true, Index: 3, MAC: [6]byte{2, 5: 1}, MTU: 1500}
	b := a
	b.Index = 4
	if a.equal(b) || !a.equal(a) {
		t.Error("not told apart")
	}
}

// Padded hellos have the length of the circuit's MTU, also after it changed (ISO 10589 clause 8.2.3).
func TestPaddingFollowsTheMTU(t *testing.T) {
	n := build(t, nil, [2]int{10, 1})
	m := n.systems[10]
	for _, mtu := range []int{1500, 1400, 1500} {
		l := m.circuits["10-1"].link
		l.MTU = mtu
		m.circuits["10-1"].cfg.Padding = adjacency.PadAlways
		m.LinkChanged(n.now, "10-1", Link{})
		m.LinkChanged(n.now, "10-1", l)
		hellos := 0
		for _, f := range m.Tick(n.now) {
			if typ, _ := packet.Type(f.PDU); typ == packet.P2PHello {
				if hellos++; len(f.PDU) != mtu-llcLen {
					t.Errorf("MTU %d: a hello of %d octets", mtu, len(f.PDU))
				}
			}
		}
		if hellos != 1 {
			t.Errorf("MTU %d: %d hellos", mtu, hellos)
		}
	}
}
