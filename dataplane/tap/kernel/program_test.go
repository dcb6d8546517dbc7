package kernel

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/pcapgo"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/testvectors"
)

// seen is a copy of an Event.
type seen struct {
	Event
	data []byte
}

func runOptions(frame []byte) *ebpf.RunOptions { return &ebpf.RunOptions{Data: frame, Repeat: 1} }

// run puts a frame through the program without an interface and returns what it hands up.
func run(t testing.TB, k *Tap, frame []byte) (out []seen) {
	t.Helper()
	if err := k.Try(frame, func(e *Event) { out = append(out, seen{*e, bytes.Clone(e.Data)}) }); err != nil {
		t.Fatalf("frame of %d octets: %v", len(frame), err)
	}
	return out
}

// both runs a test in the two programs.
func both(t *testing.T, c Config, f func(*testing.T, *Tap)) {
	for _, m := range []Mode{TCX, XDP} {
		t.Run(m.String(), func(t *testing.T) {
			c.Mode = m
			f(t, need(t, c))
		})
	}
}

// minRun is a frame that every test run of the kernel takes: Ethernet and IPv6.
const minRun = 14 + 40

// compare puts a frame through program and model.
func compare(t *testing.T, k *Tap, m *model, frame []byte) []seen {
	t.Helper()
	if k.mode == TCX && len(frame) < minRun {
		return nil // the kernel's test run refuses it; XDP's doesn't, and on an interface it is tried too
	}
	want, p := m.take(frame, -1)
	got := run(t, k, frame)
	checkHandedUp(t, want, frame, &p, m.tunnels, got)
	return got
}

func checkHandedUp(t *testing.T, want verdict, frame []byte, p *roce.Packet, tunnels roce.Tunnels, got []seen) {
	t.Helper()
	if len(got) > 1 || want == always && len(got) == 0 || want == never && len(got) > 0 {
		t.Fatalf("handed up %d times, want %d\nframe %x\n%+v", len(got), want, frame, p)
	}
	for _, g := range got {
		n := len(g.data)
		if n != min(len(frame), snap) && n != min(len(frame), 128) || !bytes.Equal(g.data, frame[:n]) || g.Wire != len(frame) || g.Truncated != (n < len(frame)) {
			t.Fatalf("handed up %d octets of %d: %x\nframe %x", n, g.Wire, g.data, frame)
		}
		var q roce.Packet
		if err := tunnels.ParseThrough(g.data, &q); err != nil {
			t.Fatalf("what is handed up can't be parsed: %v\nframe %x", err, frame)
		}
		const headers = 16 // RETH, the longest that learning reads
		if q.BTH != p.BTH || !bytes.Equal(q.Body[:min(len(q.Body), headers)], p.Body[:min(len(p.Body), headers)]) {
			t.Fatalf("handed up %+v\nfrom      %+v", q, p)
		}
		if q.IsMAD() && !bytes.Equal(q.Body, p.Body) {
			t.Fatalf("MAD of %d octets handed up with %d", len(p.Body), len(q.Body))
		}
	}
}

func TestProgramTakesWhatTheParserTakes(t *testing.T) {
	both(t, Config{Interval: time.Hour}, func(t *testing.T, k *Tap) {
		g, m := taptest.NewFrames(6), newModel()
		const frames = 20_000
		for range frames {
			compare(t, k, m, g.Next())
		}
		c := m.check(t, k)
		t.Logf("%d frames: %+v", frames, c)
		// The frames must be of use: the most are RoCEv2, and each counter has something to count.
		if c.Packets < frames/2 || c.RoCEv1 == 0 || c.Refused == 0 || c.HandedUp[ReasonMAD] == 0 || c.HandedUp[ReasonNew] == 0 ||
			c.HandedUp[ReasonVote] == 0 || c.HandedUp[ReasonStep] == 0 || c.HandedUp[ReasonTransport] == 0 || c.HandedUp[ReasonSource] == 0 {
			t.Errorf("the frames leave something out: %+v", c)
		}
	})
}

func TestProgramLooksBehindOuterHeaders(t *testing.T) {
	const frames = 8000
	for _, tunnels := range []roce.Tunnels{roce.TunnelIP, roce.TunnelGRE, roce.TunnelVXLAN, roce.TunnelSRv6, roce.AllTunnels} {
		t.Run(tunnels.String(), func(t *testing.T) {
			both(t, Config{Interval: time.Hour, Tunnels: tunnels}, func(t *testing.T, k *Tap) {
				g, m := taptest.NewFrames(7), newModel()
				g.Wrap, m.tunnels = true, tunnels
				behind := uint64(0)
				for range frames {
					f := g.Next()
					was := m.want.Packets
					compare(t, k, m, f)
					if m.want.Packets > was && roce.ParseEthernet(f, new(roce.Packet)) != nil {
						behind++
					}
				}
				if c := m.check(t, k); behind < frames/20 || c.Refused == 0 || c.HandedUp[ReasonMAD] == 0 {
					t.Errorf("%d packets behind an outer header; %+v", behind, c)
				}
			})
		})
	}
}

var captures = []string{"nvme-discover.pcap", "cm-write.pcap", "perftest-no-cm.pcap", "dc-negative.pcap"}

// captured is a frame of a capture file.
type captured struct {
	data []byte
	at   time.Time
}

func capture(t *testing.T, name string) []captured {
	t.Helper()
	r, err := pcapgo.NewReader(testvectors.Open(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var out []captured
	for {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, captured{data, ci.Timestamp})
	}
}

func TestProgramTakesTheCapturedPackets(t *testing.T) {
	for _, name := range captures {
		t.Run(name, func(t *testing.T) {
			both(t, Config{Interval: time.Hour}, func(t *testing.T, k *Tap) {
				m := newModel()
				for _, f := range capture(t, name) {
					compare(t, k, m, f.data)
				}
				c := m.check(t, k)
				if c.Packets == 0 {
					t.Error("no packet")
				}
			})
		})
	}
}

func TestProgramTakesTheVectors(t *testing.T) {
	both(t, Config{Interval: time.Hour}, func(t *testing.T, k *Tap) {
		var file struct {
			Packets []struct{ Name, Layer, Hex string }
		}
		if err := json.NewDecoder(testvectors.Open(t, "roce.json")).Decode(&file); err != nil {
			t.Fatal(err)
		}
		m := newModel()
		for _, v := range file.Packets {
			b, err := hex.DecodeString(v.Hex)
			if err != nil {
				t.Fatalf("%s: %v", v.Name, err)
			}
			if v.Layer != "ethernet" {
				b = taptest.Ethernet(b)
			}
			compare(t, k, m, b)
		}
		if c := m.check(t, k); c.Packets != uint64(len(file.Packets)) {
			t.Errorf("%d packets of %d vectors", c.Packets, len(file.Packets))
		}
	})
}
