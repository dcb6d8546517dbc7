package labtraffic

import (
	"testing"

	"pncd/dataplane/roce"
)

func TestFormulaPortIsTheAdapters(t *testing.T) {
	// perftest-no-cm.pcap: 0x18b to 0x18b uses 57712.
	if got := FormulaPort(0x18b, 0x18b); got != 57712 {
		t.Errorf("port %d, want 57712", got)
	}
	if FormulaPort(0x123, 0xABCDE) != FormulaPort(0xABCDE, 0x123) {
		t.Error("the formula must give both ends the same port")
	}
}

func TestMessagesFollowTheTransportsRules(t *testing.T) {
	for _, c := range []struct {
		name    string
		cfg     FlowConfig
		request []roce.Opcode
		answer  []roce.Opcode
		psns    uint32 // that a message uses
	}{
		{"one-packet WRITE", FlowConfig{}, []roce.Opcode{0x0A}, []roce.Opcode{0x11}, 1},
		{"WRITE of three", FlowConfig{Packets: 3}, []roce.Opcode{0x06, 0x07, 0x08}, []roce.Opcode{0x11}, 3},
		{"SEND of two", FlowConfig{Packets: 2, Operation: OpSend}, []roce.Opcode{0x00, 0x02}, []roce.Opcode{0x11}, 2},
		{"READ of one", FlowConfig{Operation: OpRead}, []roce.Opcode{0x0C}, []roce.Opcode{0x10}, 1},
		{"READ of three", FlowConfig{Packets: 3, Operation: OpRead}, []roce.Opcode{0x0C}, []roce.Opcode{0x0D, 0x0E, 0x0F}, 3},
		{"UC WRITE of two", FlowConfig{Packets: 2, Operation: OpUCWrite}, []roce.Opcode{0x26, 0x28}, nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := c.cfg.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			f := newFlows(cfg)[0]
			before := f.psn[local]
			for n := range uint32(3) {
				req, ans := f.message(&cfg, local, make([]byte, cfg.Payload))
				checkOpcodes(t, req, c.request, f.qpn[peer])
				checkOpcodes(t, ans, c.answer, f.qpn[local])
				if req[0].bth.PSN != (before+n*c.psns)&mask24 {
					t.Errorf("message %d starts at PSN %d", n, req[0].bth.PSN)
				}
				if len(ans) > 0 {
					last := ans[len(ans)-1]
					if want := (before + (n+1)*c.psns - 1) & mask24; last.bth.PSN != want {
						t.Errorf("the last answer has PSN %d, want %d", last.bth.PSN, want)
					}
					if msn := msnOf(last.body); msn != n+1 {
						t.Errorf("message %d: MSN %d", n, msn)
					}
				}
			}
			if f.psn[peer] != newFlows(cfg)[0].psn[peer] {
				t.Error("the peer's own PSNs moved")
			}
		})
	}
}

func checkOpcodes(t *testing.T, got []packet, want []roce.Opcode, qp uint32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d packets, want %d", len(got), len(want))
	}
	for i, p := range got {
		if p.bth.Opcode != want[i] || p.bth.DestQP != qp {
			t.Errorf("packet %d: %v to %#x, want %v to %#x", i, p.bth.Opcode, p.bth.DestQP, want[i], qp)
		}
	}
}

func TestPortRules(t *testing.T) {
	for _, c := range []struct {
		rule           PortRule
		equal, several bool
	}{{PortsFormula, true, true}, {PortsUnique, true, true}, {PortsConstant, true, false}, {PortsUnequal, false, true}} {
		cfg, err := FlowConfig{QPs: 64, Ports: c.rule}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		ports := map[uint16]bool{}
		for _, f := range newFlows(cfg) {
			if (f.port[local] == f.port[peer]) != c.equal {
				t.Errorf("%s: ports %d and %d", c.rule, f.port[local], f.port[peer])
			}
			if f.port[local] < 0xC000 {
				t.Errorf("%s: port %d is below the dynamic range", c.rule, f.port[local])
			}
			ports[f.port[local]] = true
		}
		if (len(ports) > 1) != c.several {
			t.Errorf("%s: %d ports for 64 pairs", c.rule, len(ports))
		}
	}
}

func TestFlowConfigSaysWhatIsWrong(t *testing.T) {
	for _, c := range []FlowConfig{
		{QPs: -1}, {QPs: 1 << 17}, {LocalQPN: 1}, {LocalQPN: mask24, QPs: 2}, {Packets: -1}, {Payload: 5}, {Payload: 8192},
		{CEShare: 1.5}, {Start: "x"}, {Ports: "x"}, {Operation: "x"},
	} {
		if _, err := c.withDefaults(); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestHandshakeNamesThePSNOfTheFirstPacketTowardsEachQP(t *testing.T) {
	cfg, err := FlowConfig{CM: true}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	f := newFlows(cfg)[0]
	var mads [2]uint32
	cms := append(f.connectionManagement(0, [2][16]byte{}), f.disconnection(0)...)
	for i, want := range []struct {
		kind     roce.CMKind
		from     side
		qpn, psn uint32
	}{
		{roce.CMREQ, local, f.qpn[local], f.psn[peer]},
		{roce.CMREP, peer, f.qpn[peer], f.psn[local]},
		{roce.CMRTU, local, 0, 0},
		{roce.CMDREQ, local, 0, 0},
		{roce.CMDREP, peer, 0, 0},
	} {
		p, err := datagram(cms[i], &mads)
		if err != nil {
			t.Fatal(err)
		}
		m, err := roce.ParseMAD(p.body)
		if err != nil {
			t.Fatal(err)
		}
		if m.CM.Kind != want.kind || p.from != want.from || m.CM.LocalQPN != want.qpn || m.CM.StartingPSN != want.psn {
			t.Errorf("message %d: %v from %d, QPN %#x, PSN %d", i, m.CM.Kind, p.from, m.CM.LocalQPN, m.CM.StartingPSN)
		}
		if want.kind == roce.CMDREQ && m.CM.RemoteQPN != f.qpn[peer] {
			t.Errorf("DREQ names QP %#x, want the peer's %#x", m.CM.RemoteQPN, f.qpn[peer])
		}
	}
}
