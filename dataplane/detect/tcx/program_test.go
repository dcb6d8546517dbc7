package tcx

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"pncd/dataplane/detect"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
	"pncd/dataplane/tap/taptest"
)

// snap is how much of a frame the program reads.
const snap = 512

// minRun is a frame that every test run of the kernel takes: Ethernet and IPv6.
const minRun = 14 + 40

// run puts a frame through the program without an interface, and returns the frame that goes on and the events.
func run(t testing.TB, d *Detector, frame []byte) (out []byte, events []detect.Event) {
	t.Helper()
	out = make([]byte, len(frame)+256)
	o := ebpf.RunOptions{Data: frame, DataOut: out, Repeat: 1}
	ret, err := d.prog.Run(&o)
	if err != nil {
		t.Fatalf("frame of %d octets: %v", len(frame), err)
	}
	if ret != 0xFFFFFFFF {
		t.Fatalf("the program returned %#x: a packet must go on", ret)
	}
	return o.DataOut, pending(t, d)
}

// testClock is one for all tests, so that times of events can be compared: of several readings the one that nothing came between.
var testClock = sync.OnceValue(func() *kernel.WallClock {
	var best kernel.WallClock
	for i := range 20 {
		var c kernel.WallClock
		c.Compare(time.Now())
		if i == 0 || c.Wall(0).Before(best.Wall(0)) {
			best = c
		}
	}
	return &best
})

// pending takes what is in the ring buffer.
func pending(t testing.TB, d *Detector) (events []detect.Event) {
	t.Helper()
	clock := testClock()
	for {
		var rec ringbuf.Record
		d.reader.SetDeadline(time.Now())
		if err := d.reader.ReadInto(&rec); errors.Is(err, os.ErrDeadlineExceeded) {
			return events
		} else if err != nil {
			t.Fatal(err)
		}
		ev, ok := d.decode(rec.RawSample, clock)
		if !ok {
			t.Fatalf("bad record %x", rec.RawSample)
		}
		events = append(events, ev)
	}
}

// tos finds the TOS or traffic class of a frame that is UDP to RoCEv2's port.
func tos(f []byte) uint8 {
	at := ipAt(f)
	if f[at-2] == 0x08 {
		return f[at+1]
	}
	return f[at]<<4 | f[at+1]>>4
}

// refused reports an error of the parser about a packet that is UDP to port 4791.
func refused(err error) bool {
	var fe *roce.FieldError
	if !errors.As(err, &fe) {
		return false
	}
	return fe.Layer == "BTH" || fe.Layer == "UDP" && fe.Offset == 4 || strings.Contains(fe.Rule, "IPv4-mapped")
}

// compare puts a frame through the program and the parser of user space, whose verdict counts.
func compare(t *testing.T, d *Detector, want *Counters, frame []byte) {
	t.Helper()
	if len(frame) < minRun {
		return // the kernel's test run refuses it
	}
	before := time.Now()
	out, got := run(t, d, frame)
	if !bytes.Equal(out, frame) {
		t.Fatalf("%x\nbecame %x", frame, out)
	}
	var p roce.Packet
	err := roce.ParseEthernet(frame[:min(len(frame), snap)], &p)
	switch {
	case err != nil && refused(err) && tos(frame)&3 == 3:
		want.Refused++
	case err == nil && p.TOS&3 == 3 && !detect.Counts(&p):
		want.Ignored++
	case err == nil && detect.Counts(&p):
		want.CE.Events++
		ev := detect.Event{
			Sender: p.Src, Receiver: p.Dst, SrcPort: p.SrcPort, DstPort: roce.UDPPort, Proto: 17, DestQP: p.BTH.DestQP,
			CECount: 1, Source: detect.SourceCE, Interface: "lo", VLAN: p.VLAN,
		}
		if len(got) != 1 {
			t.Fatalf("%d events of %x", len(got), frame)
		}
		if at := got[0].At; at.Before(before.Add(-time.Millisecond)) || at.After(time.Now().Add(time.Millisecond)) {
			t.Fatalf("at %v, which is not now", at)
		}
		if got[0].At = (time.Time{}); got[0] != ev {
			t.Fatalf("got  %+v\nwant %+v\nof %x", got[0], ev, frame)
		}
		return
	}
	if len(got) != 0 {
		t.Fatalf("%+v of %x (%v, %+v)", got, frame, err, p)
	}
}

func (d *Detector) mustCount(t testing.TB) Counters {
	t.Helper()
	c, err := d.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestProgramFindsWhatThePacketRingFinds(t *testing.T) {
	d := need(t, taptest.Need(t), Config{Interface: "lo", CE: true, Gate: eachPacket})
	g := taptest.NewFrames(3)
	var want Counters
	for range 30_000 {
		compare(t, d, &want, g.Next())
	}
	if got := d.mustCount(t); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// The frames must be of use.
	if want.CE.Events < 1000 || want.Ignored < 100 || want.Refused < 20 {
		t.Errorf("the frames leave something out: %+v", want)
	}
}

// Every opcode, marked and not, in each family, behind no tag, one and two.
func TestProgramKnowsEveryOpcode(t *testing.T) {
	d := need(t, taptest.Need(t), Config{Interface: "lo", CE: true, Gate: eachPacket})
	tags := [][2]uint16{{0x88A8, 3<<13 | 100}, {0x8100, 42}}
	var want Counters
	for op := range 256 {
		for ecn := range uint8(4) {
			for _, v6 := range []bool{false, true} {
				for n := range 3 {
					compare(t, d, &want, taptest.Ethernet(packet(t, v6, 0x68|ecn, roce.Opcode(op), 7), tags[:n]...))
				}
			}
		}
	}
	if got := d.mustCount(t); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func FuzzProgramAgainstParser(f *testing.F) {
	g := taptest.NewFrames(4)
	for range 20 {
		f.Add(g.Next())
	}
	d := need(f, taptest.Need(f), Config{Interface: "lo", CE: true, Gate: eachPacket})
	var want Counters
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) <= 1514 {
			compare(t, d, &want, frame)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(make([]byte, 72))
	f.Add(make([]byte, 71))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := &Detector{name: "x"}
		if ev, ok := d.decode(b, &kernel.WallClock{}); ok && (ev.Source == "" || !ev.Sender.IsValid() || ev.Sender.Is4In6() || !ev.Receiver.IsValid()) {
			t.Errorf("%x: %+v", b, ev)
		}
	})
}
