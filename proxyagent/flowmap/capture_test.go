package flowmap

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"pncd/dataplane/roce"
	"pncd/internal/testvectors"
)

// frames reads a capture's RoCEv2 packets in order, with their times.
func frames(t *testing.T, name string, use func(p *roce.Packet, at time.Time)) {
	t.Helper()
	r, err := pcapgo.NewReader(testvectors.Open(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	n := 0
	for {
		data, info, err := r.ReadPacketData()
		if err != nil {
			break
		}
		var p roce.Packet
		if roce.ParseEthernet(data, &p) == nil {
			use(&p, info.Timestamp)
			n++
		}
	}
	if n == 0 {
		t.Fatalf("%s: no RoCEv2 packet", name)
	}
}

func observeAll(t *testing.T, m *Map, name string, use func(p *roce.Packet) bool, after func(at time.Time)) (end time.Time) {
	frames(t, name, func(p *roce.Packet, at time.Time) {
		if use(p) {
			m.Observe(&Observation{Packet: p, IfIndex: 1 + int(p.SrcMAC[5]&1), At: at})
			end = at
			if after != nil {
				after(at)
			}
		}
	})
	return end
}

func all(*roce.Packet) bool    { return true }
func noCM(p *roce.Packet) bool { return !p.IsMAD() }
func noDisc(p *roce.Packet) bool {
	m, err := roce.ParseMAD(p.Body)
	return !p.IsMAD() || err != nil || m.CM.Kind != roce.CMDREQ && m.CM.Kind != roce.CMDREP
}

func TestCaptureConnectionManagement(t *testing.T) {
	for _, c := range []struct {
		file   string
		a, b   string
		qa, qb uint32
	}{
		{"nvme-discover.pcap", "2.2.2.1", "2.2.2.3", 0xdc, 0x8d},
		{"cm-write.pcap", "172.17.242.47", "172.17.242.56", 0x137, 0x167},
	} {
		t.Run(c.file, func(t *testing.T) {
			a, b := netip.MustParseAddr(c.a), netip.MustParseAddr(c.b)
			ab, ba := Key{Sender: a, Receiver: b, DestQP: c.qb}, Key{Sender: b, Receiver: a, DestQP: c.qa}
			m := New(Config{ICRCSample: 1})
			end := observeAll(t, m, c.file, noDisc, nil)
			for _, d := range []struct {
				k  Key
				qp uint32
			}{{ab, c.qa}, {ba, c.qb}} {
				e, v := m.Lookup(d.k, end)
				if v != Hit || e.SourceQP != d.qp || e.Source != SourceCM || e.State != StateConfirmed {
					t.Errorf("before DREQ, %v: %v 0x%x by %v, %v; want 0x%x by CM, confirmed", d.k, v, e.SourceQP, e.Source, e.State, d.qp)
				}
			}
			if n := m.Counters(); n.Contradicted+n.Withdrawn+n.BadICRC+n.Malformed != 0 {
				t.Errorf("%+v", n)
			}
			m = New(Config{})
			end = observeAll(t, m, c.file, all, nil)
			for _, k := range []Key{ab, ba} {
				if _, v := m.Lookup(k, end); v != Closed {
					t.Errorf("at the end, %v: %v, want closed", k, v)
				}
			}
		})
	}
}

func TestCaptureWithoutCMIsUndecidedOrRight(t *testing.T) {
	a, b := netip.MustParseAddr("2.2.2.1"), netip.MustParseAddr("2.2.2.3")
	m := New(Config{})
	observeAll(t, m, "nvme-discover.pcap", noCM, func(at time.Time) {
		for _, d := range []struct {
			k  Key
			qp uint32
		}{{Key{Sender: a, Receiver: b, DestQP: 0x8d}, 0xdc}, {Key{Sender: b, Receiver: a, DestQP: 0xdc}, 0x8d}} {
			if e, v := m.Lookup(d.k, at); v == Hit && e.SourceQP != d.qp {
				t.Fatalf("%v: 0x%x, which is wrong", d.k, e.SourceQP)
			}
		}
	})
}

func TestCapturePerftestByVotesWithThePortFormula(t *testing.T) {
	m := New(Config{})
	end := observeAll(t, m, "perftest-no-cm.pcap", all, nil)
	a, b := netip.MustParseAddr("10.10.10.26"), netip.MustParseAddr("10.10.10.27")
	for _, k := range []Key{{Sender: a, Receiver: b, DestQP: 0x18b}, {Sender: b, Receiver: a, DestQP: 0x18b}} {
		e, v := m.Lookup(k, end)
		if v != Hit || e.SourceQP != 0x18b || e.Source != SourcePort {
			t.Errorf("%v: %v 0x%x by %v; want 0x18b by port", k, v, e.SourceQP, e.Source)
		}
	}
}

func TestCaptureDCTeachesNothing(t *testing.T) {
	m := New(Config{})
	end := observeAll(t, m, "dc-negative.pcap", all, nil)
	known, total := m.Len()
	if known != 0 || total == 0 {
		t.Fatalf("%d known of %d", known, total)
	}
	if n := m.Counters(); n.UnsupportedDC != n.Packets || n.Packets == 0 {
		t.Fatalf("%d of %d packets counted as unsupported", n.UnsupportedDC, n.Packets)
	}
	a, b := netip.MustParseAddr("10.22.116.220"), netip.MustParseAddr("10.22.116.221")
	if _, v := m.Lookup(Key{Sender: a, Receiver: b, DestQP: 0x807fff}, end); v != Unsupported {
		t.Fatalf("%v, want unsupported", v)
	}
}
