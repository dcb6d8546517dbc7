package labtraffic

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"pncd/dataplane/roce"
	"pncd/internal/testvectors"
)

// replayer is a Replay without sockets.
func replayer(c *Capture, cfg ReplayConfig, a, b string) *Replay {
	cfg.Capture = c
	r := &Replay{cfg: cfg, adv: newAdvance(c.packets)}
	r.ends[local] = &Endpoint{host: Host{Addr: netip.MustParseAddr(a)}, raw: -1, sink: -1}
	r.ends[peer] = &Endpoint{host: Host{Addr: netip.MustParseAddr(b)}, raw: -1, sink: -1}
	return r
}

func TestLoopedCaptureContinuesItsSequenceNumbers(t *testing.T) {
	dir := testvectors.Dir(t)
	for _, file := range []string{"cm-write.pcap", "nvme-discover.pcap", "perftest-no-cm.pcap", "dc-negative.pcap"} {
		t.Run(file, func(t *testing.T) {
			c, err := ReadCapture(filepath.Join(dir, file), false)
			if err != nil {
				t.Fatal(err)
			}
			r := replayer(c, ReplayConfig{}, "10.0.0.1", "10.0.0.2")
			last := map[stream]uint32{}               // PSN of each stream's latest request
			msns := map[stream]uint32{}               // MSN of each stream's latest answer
			requested := map[stream]map[uint32]bool{} // request PSNs in all passes so far
			for pass := range uint32(4) {
				for i := range c.packets {
					p := &c.packets[i]
					if p.packet.IsMAD() {
						continue
					}
					s, err := r.rewrite(p, pass)
					if err != nil {
						t.Fatal(err)
					}
					key := stream{p.from, s.BTH.DestQP}
					op := s.BTH.Opcode
					if !op.IsResponse() {
						if requested[key] == nil {
							requested[key] = map[uint32]bool{}
						}
						if pass > 0 && requested[key][s.BTH.PSN] != requestedBefore(c, p) {
							t.Fatalf("pass %d packet %d: PSN %d was requested in an earlier pass", pass, i, s.BTH.PSN)
						}
						requested[key][s.BTH.PSN] = true
					}
					if before, ok := last[key]; ok && op.IsRequest() {
						// Within a pass the capture's own order stands; from one pass to the next there is no gap
						// larger than a READ's responses, and nothing goes back.
						if d := diff24(s.BTH.PSN, before); d < -8 || d > 64 {
							t.Errorf("pass %d packet %d %v: PSN moves by %d", pass, i, op, d)
						}
					}
					if op.IsRequest() {
						last[key] = s.BTH.PSN
					}
					if op.HasAETH() && op.Transport() == roce.TransportRC {
						msn := msnOf(s.Body)
						if before, ok := msns[key]; ok && diff24(msn, before) < 0 {
							t.Errorf("pass %d packet %d: MSN goes back from %d to %d", pass, i, before, msn)
						}
						msns[key] = msn
					}
				}
			}
		})
	}
}

// requestedBefore tells whether the capture itself has p's request earlier.
func requestedBefore(c *Capture, p *captured) bool {
	for i := range c.packets {
		q := &c.packets[i]
		if q == p {
			return false
		}
		if q.from == p.from && q.packet.BTH.DestQP == p.packet.BTH.DestQP && !q.packet.BTH.Opcode.IsResponse() &&
			q.packet.BTH.PSN == p.packet.BTH.PSN {
			return true
		}
	}
	return false
}

func TestLoopedAnswersStillAnswerTheirRequests(t *testing.T) {
	c, err := ReadCapture(filepath.Join(testvectors.Dir(t), "nvme-discover.pcap"), false)
	if err != nil {
		t.Fatal(err)
	}
	r := replayer(c, ReplayConfig{}, "10.0.0.1", "10.0.0.2")
	for pass := range uint32(3) {
		asked, answered := map[uint32]bool{}, 0
		for i := range c.packets {
			p := &c.packets[i]
			if p.from == local && !p.packet.IsMAD() && p.packet.BTH.Opcode.IsRequest() {
				s, _ := r.rewrite(p, pass)
				asked[s.BTH.PSN] = true
			}
		}
		for i := range c.packets {
			p := &c.packets[i]
			if p.from == peer && p.packet.BTH.Opcode.IsAck() {
				s, _ := r.rewrite(p, pass)
				if !asked[s.BTH.PSN] {
					t.Errorf("pass %d: ACK of PSN %d, which was not asked", pass, s.BTH.PSN)
				}
				answered++
			}
		}
		if answered == 0 {
			t.Error("no ACK seen")
		}
	}
}

func TestReplayRewritesAddressesGIDsAndICRC(t *testing.T) {
	c, err := ReadCapture(filepath.Join(testvectors.Dir(t), "cm-write.pcap"), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, ends := range [][2]string{{"10.9.0.1", "10.9.1.1"}, {"2001:db8::1", "2001:db8:1::1"}} {
		a, b := netip.MustParseAddr(ends[0]), netip.MustParseAddr(ends[1])
		r := replayer(c, ReplayConfig{ECN: ECNCE}, ends[0], ends[1])
		for i := range c.packets {
			p := &c.packets[i]
			s, err := r.rewrite(p, 2)
			if err != nil {
				t.Fatal(err)
			}
			ip, err := roce.AppendPacket(nil, &s)
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := roce.VerifyICRC(ip); !ok || err != nil {
				t.Errorf("packet %d: ICRC wrong: %v", i, err)
			}
			var got roce.Packet
			if err := roce.ParseIP(ip, &got); err != nil {
				t.Fatal(err)
			}
			src, dst := a, b
			if p.from == peer {
				src, dst = b, a
			}
			if got.Src != src || got.Dst != dst || got.TOS&3 != ecnCE {
				t.Errorf("packet %d: %v to %v, TOS %#x", i, got.Src, got.Dst, got.TOS)
			}
			if !got.IsMAD() {
				continue
			}
			m, err := roce.ParseMAD(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			if m.CM.Kind == roce.CMREQ && (m.CM.LocalGID != GID(a) || m.CM.RemoteGID != GID(b)) {
				t.Errorf("REQ's GIDs are %x and %x", m.CM.LocalGID, m.CM.RemoteGID)
			}
		}
	}
}

func TestSwapMakesTheOtherHostLocal(t *testing.T) {
	path := filepath.Join(testvectors.Dir(t), "cm-write.pcap")
	a, err := ReadCapture(path, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ReadCapture(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if a.Local != b.Peer || a.Peer != b.Local || a.packets[0].from != local || b.packets[0].from != peer {
		t.Errorf("%v %v against %v %v", a.Local, a.Peer, b.Local, b.Peer)
	}
}

func TestBadCaptureNamesFileAndReason(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{
		"empty": "", "text": "this is no capture file",
		"header-only": "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x01\x00\x00\x00",
		"cooked":      "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x71\x00\x00\x00",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCapture(path, false); err == nil {
			t.Errorf("%s: read without an error", name)
		} else {
			t.Log(err)
		}
	}
}

func TestResponsesToTwoLikeRequestStreamsAlwaysMoveWithTheSameOne(t *testing.T) {
	packet := func(from side, op roce.Opcode, qp, psn uint32, body ...byte) captured {
		return captured{from: from, packet: roce.Packet{BTH: roce.BTH{Opcode: op, DestQP: qp, PSN: psn}, Body: body}}
	}
	send := roce.Opcode(roce.OpSendOnly)
	packets := []captured{
		packet(local, send, 9, 100), packet(local, send, 5, 100), packet(local, send, 7, 100),
		packet(peer, roce.OpcodeRCAck, 3, 100, 0, 0, 0, 1),
	}
	for range 50 {
		if got := newAdvance(packets).responses[stream{peer, 3}]; got != (stream{local, 5}) {
			t.Fatalf("the responses move with %+v", got)
		}
	}
}
