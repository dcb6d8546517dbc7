package notifier

import (
	"encoding/binary"
	"strings"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/message"
)

func TestEventsOfAVPNAreNotifiedInFormat2(t *testing.T) {
	r := newRig(t, Config{Contexts: map[string]uint32{"blue": 0xdeadbeef, "red": 0}, PortFormat2: 3022})
	for i, tc := range []struct {
		context string
		nrp     uint32
		port    uint16
	}{{"blue", 0xdeadbeef, 3022}, {"red", 0, 3022}, {"", 0, message.PortFormat1}, {"blue", 0xdeadbeef, 3022}} {
		ev := event(uint32(7 + i))
		ev.Context = tc.context
		if got := r.Handle(ev, start); got != pncv1.Outcome_OUTCOME_SENT {
			t.Fatalf("%q: %v (%s)", tc.context, got, r.last().Err)
		}
		b := r.wire.packets[i]
		u := b[ipv4Len:]
		if port := binary.BigEndian.Uint16(u[2:]); port != tc.port {
			t.Errorf("%q: to port %d, want %d", tc.context, port, tc.port)
		}
		if sum := fold(sum16(b[12:20]) + protoUDP + uint32(len(u)) + sum16(u)); sum != 0xffff {
			t.Errorf("%q: the checksum is wrong", tc.context)
		}
		rec := r.last()
		if rec.Flow.Context != tc.context || rec.Flow.HasNRP != (tc.context != "") || rec.Flow.NRP != tc.nrp || rec.Flow.DestQP != ev.DestQP {
			t.Errorf("%q: %+v", tc.context, rec.Flow)
		}
		if tc.context == "" {
			if _, err := message.Parse(u[udpLen:]); err != nil {
				t.Error(err)
			}
			continue
		}
		n, err := message.ParseFormat2(u[udpLen:])
		if want := (message.Notification2{Src: ev.Sender, Dst: ev.Receiver, SrcPort: ev.SrcPort, DstPort: 4791, Proto: 17, NRP: tc.nrp}); err != nil || n != want {
			t.Errorf("%q: %+v, %v", tc.context, n, err)
		}
	}
	// Each format has event numbers of its own: a proxy reads the two ports apart.
	var ports []uint16
	for _, b := range r.wire.packets {
		ports = append(ports, binary.BigEndian.Uint16(b[ipv4Len:]))
	}
	if ports[1] != message.EventPort(16_384) || ports[2] != ports[0] || ports[3] != message.EventPort(16_385) {
		t.Errorf("event numbers %v", ports)
	}
}

func TestAContextWithoutAnNRPIsUnknown(t *testing.T) {
	r := newRig(t, Config{Contexts: map[string]uint32{"blue": 1}})
	ev := event(7)
	ev.Context = "red"
	if got := r.Handle(ev, start); got != pncv1.Outcome_OUTCOME_CONTEXT_UNKNOWN || r.asked != 0 {
		t.Errorf("%v, %d look-ups", got, r.asked)
	}
	if err := (Config{Contexts: map[string]uint32{"": 1}}).Validate(); err == nil || !strings.Contains(err.Error(), "Contexts") {
		t.Errorf("%v", err)
	}
}

func TestFormat2DoesNotAllocate(t *testing.T) {
	r := newRig(t, Config{Contexts: map[string]uint32{"blue": 1}})
	ev := event(7)
	ev.Context = "blue"
	now := start
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(DefaultPaceWindow)
		if p := r.core.decide(ev, now, &r.record); p == nil {
			t.Fatal("no packet")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
