package roce

import (
	"errors"
	"io"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"pncd/internal/testvectors"
)

// capture reads the frames of a capture file. The files are not part of this repository.
func capture(t *testing.T, name string) [][]byte {
	t.Helper()
	r, err := pcapgo.NewReader(testvectors.Open(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	for {
		data, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, data)
	}
}

func TestCapturedConnectionsShowTheirQPs(t *testing.T) {
	for name, want := range map[string][2]uint32{"nvme-discover.pcap": {0xDC, 0x8D}, "cm-write.pcap": {0x137, 0x167}} {
		t.Run(name, func(t *testing.T) {
			var req, rep, dreq CM
			seen := make(map[CMKind]int)
			roce, good := 0, 0
			for i, frame := range capture(t, name) {
				var p Packet
				if err := ParseEthernet(frame, &p); errors.Is(err, ErrNotRoCEv2) {
					continue
				} else if err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				roce++
				if ok, err := VerifyICRC(p.IP); err == nil && ok {
					good++
				}
				if !p.IsMAD() {
					continue
				}
				m, err := ParseMAD(p.Body)
				if err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				seen[m.CM.Kind]++
				switch m.CM.Kind {
				case CMREQ:
					req = m.CM
				case CMREP:
					rep = m.CM
				case CMDREQ:
					dreq = m.CM
				}
			}
			t.Logf("%d RoCEv2 packets, %d with a good ICRC, CM %v", roce, good, seen)
			if got := [2]uint32{req.LocalQPN, rep.LocalQPN}; got != want && got != [2]uint32{want[1], want[0]} {
				t.Errorf("QPs %#x, want %#x", got, want)
			}
			if rep.RemoteCommID != req.LocalCommID || req.Transport != CMTransportRC {
				t.Errorf("REQ %+v\nREP %+v", req, rep)
			}
			if dreq.RemoteQPN != want[0] && dreq.RemoteQPN != want[1] || seen[CMDREP] == 0 || seen[CMRTU] == 0 {
				t.Errorf("DREQ %+v, CM %v", dreq, seen)
			}
		})
	}
}

func TestCapturedPacketsAreRebuiltByteForByte(t *testing.T) {
	for _, name := range []string{"nvme-discover.pcap", "cm-write.pcap", "perftest-no-cm.pcap"} {
		t.Run(name, func(t *testing.T) {
			rebuilt := 0
			for i, frame := range capture(t, name) {
				var p Packet
				if err := ParseEthernet(frame, &p); errors.Is(err, ErrNotRoCEv2) {
					continue
				} else if err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				if ok, err := VerifyICRC(p.IP); p.Truncated || err != nil || !ok {
					continue
				}
				s := specOf(&p)
				got, err := AppendPacket(nil, &s)
				if err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				var q Packet
				if err := ParseIP(got, &q); err != nil || string(q.Body) != string(p.Body) || q.BTH != p.BTH {
					t.Fatalf("frame %d: %v\ngot  %+v\nwant %+v", i, err, q, p)
				}
				if string(got[len(got)-ICRCLen:]) != string(p.IP[len(p.IP)-ICRCLen:]) && p.IP[6]&0x40 != 0 {
					t.Fatalf("frame %d: ICRC %x, captured %x", i, got[len(got)-ICRCLen:], p.IP[len(p.IP)-ICRCLen:])
				}
				rebuilt++
			}
			t.Logf("%d packets rebuilt", rebuilt)
			if rebuilt == 0 {
				t.Error("no packet with a good ICRC")
			}
		})
	}
}

// The packets of this capture had their source ports rewritten on the way: they are decoded all the same.
func TestCapturedDCPacketsAreDecodedWithABadICRC(t *testing.T) {
	n := 0
	for i, frame := range capture(t, "dc-negative.pcap") {
		var p Packet
		if err := ParseEthernet(frame, &p); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		if p.BTH.Opcode.Transport() != TransportDC {
			t.Errorf("frame %d: %v", i, p.BTH.Opcode)
		}
		if ok, err := VerifyICRC(p.IP); ok || err != nil {
			t.Errorf("frame %d: ICRC good %v, %v", i, ok, err)
		}
		n++
	}
	if n == 0 {
		t.Error("no packet")
	}
}
