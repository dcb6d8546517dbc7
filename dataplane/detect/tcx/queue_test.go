package tcx

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"pncd/dataplane/detect"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

// queue reads the virtual queue.
func (d *Detector) queue(t testing.TB) detectQueue {
	t.Helper()
	var q detectQueue
	if err := d.maps.Queues.Lookup(uint32(0), &q); err != nil {
		t.Fatal(err)
	}
	return q
}

// fill sets the depth in octets as of a time, CLOCK_MONOTONIC; the random numbers go on.
func (d *Detector) fill(t testing.TB, depth uint32, at uint64) {
	t.Helper()
	q := d.queue(t)
	q.Depth, q.At = uint64(depth)<<depthShift, at
	if err := d.maps.Queues.Put(uint32(0), &q); err != nil {
		t.Fatal(err)
	}
}

func monotonic(t testing.TB) uint64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return uint64(ts.Nano())
}

// never is a time that no test reaches: until then nothing drains.
const never = 1 << 63

var slow = Queue{Rate: MinRate, Kmin: 40_000, Kmax: 100_000, Pmax: 0.25}

func TestMarksRiseFromKminToPmaxAtKmax(t *testing.T) {
	q := slow
	d := need(t, taptest.Need(t), Config{Interface: "lo", Queue: &q, Gate: eachPacket, Seed: 12345})
	f := taptest.Ethernet(packet(t, false, 2, writeOnly, 1))
	const packets = 2000
	for _, tt := range []struct {
		depth uint32
		want  float64
	}{
		{0, 0}, {40_000, 0}, {43_000, 0.0125}, {55_000, 0.0625}, {70_000, 0.125}, {85_000, 0.1875}, {100_000, 0.25},
		{101_000, 1}, {200_000, 1},
	} {
		marked := 0
		for range packets {
			d.fill(t, tt.depth, never)
			out, events := run(t, d, f)
			is := tos(out)&3 == 3
			if is != (len(events) == 1) {
				t.Fatalf("marked %v, with %d events", is, len(events))
			}
			if is {
				marked++
				if e := events[0]; e.Source != detect.SourceVirtualQueue || e.QueueDepth != uint64(tt.depth) {
					t.Fatalf("%+v at a depth of %d", e, tt.depth)
				}
			}
		}
		got := float64(marked) / packets
		if bound := 4 * math.Sqrt(tt.want*(1-tt.want)/packets); math.Abs(got-tt.want) > bound {
			t.Errorf("at %d octets %.4f are marked, want %.4f within %.4f", tt.depth, got, tt.want, bound)
		}
	}
}

func TestQueueFillsAndDrains(t *testing.T) {
	for _, rate := range []uint64{MinRate, 3_333_333_333, 400e9, MaxRate} {
		q := Queue{Rate: rate, Kmin: 10_000, Kmax: 100_000, Pmax: 1}
		d := need(t, taptest.Need(t), Config{Interface: "lo", Queue: &q})
		frame := taptest.Ethernet(packet(t, false, 2, writeOnly, 1))
		d.fill(t, 150_000, monotonic(t))
		before := d.queue(t)
		run(t, d, frame)
		after := d.queue(t)
		drained := float64(after.At-before.At) * float64(rate) / 8e9
		want := max(0, 150_000-drained) + float64(len(frame))
		if got := float64(after.Depth) / (1 << depthShift); math.Abs(got-want) > 1+want/1000 {
			t.Errorf("%d b/s: after %d ns there are %.1f octets, want %.1f", rate, after.At-before.At, got, want)
		}
		d.fill(t, 2*q.Kmax, monotonic(t))
		run(t, d, frame)
		if got := d.queue(t).Depth >> depthShift; got > 2*uint64(q.Kmax) {
			t.Errorf("%d b/s: %d octets, more than twice Kmax", rate, got)
		}
		// What another processor wrote a moment later drains nothing.
		later := d.queue(t)
		later.Depth, later.At = 50_000<<depthShift, never
		if err := d.maps.Queues.Put(uint32(0), &later); err != nil {
			t.Fatal(err)
		}
		run(t, d, frame)
		if got := d.queue(t); got.At != later.At || got.Depth>>depthShift != 50_000+uint64(len(frame)) {
			t.Errorf("%d b/s: %+v", rate, got)
		}
		// After a long time it is empty.
		old := detectQueue{Random: 1, Depth: 2 * uint64(q.Kmax) << depthShift}
		if err := d.maps.Queues.Put(uint32(0), &old); err != nil {
			t.Fatal(err)
		}
		run(t, d, frame)
		if got := d.queue(t).Depth; rate > MinRate && got != uint64(len(frame))<<depthShift {
			t.Errorf("%d b/s: %d octets are left", rate, got>>depthShift)
		}
	}
}

func TestQueueMarksOnlyECNCapableData(t *testing.T) {
	q := slow
	d := need(t, taptest.Need(t), Config{Interface: "lo", CE: true, Queue: &q, Gate: eachPacket})
	d.fill(t, 2*q.Kmax, never)
	g := taptest.NewFrames(5)
	var marked, came uint64
	for range 20_000 {
		f := g.Next()
		if len(f) < minRun {
			continue
		}
		if d.queue(t).Depth>>depthShift < uint64(q.Kmax)+1000 {
			d.fill(t, 2*q.Kmax, never)
		}
		out, events := run(t, d, f)
		var p, after roce.Packet
		err := roce.ParseEthernet(f[:min(len(f), snap)], &p)
		data := p
		data.TOS |= 3
		if err != nil || !detect.Counts(&data) || p.TOS&3 == 0 {
			if string(out) != string(f) || len(events) != 0 {
				t.Fatalf("%x\nbecame %x, with %+v", f, out, events)
			}
			continue
		}
		if len(events) != 1 {
			t.Fatalf("%d events of %x", len(events), f)
		}
		source := detect.SourceVirtualQueue
		if p.TOS&3 == 3 {
			source = detect.SourceCE
			came++
		} else {
			marked++
		}
		if events[0].Source != source || events[0].QueueDepth <= uint64(q.Kmax) {
			t.Fatalf("%+v of %x", events[0], f)
		}
		// But for the mark, and the checksum of IPv4, it is the same packet.
		if err := roce.ParseEthernet(out[:min(len(out), snap)], &after); err != nil || after.TOS != p.TOS|3 || len(out) != len(f) {
			t.Fatalf("%x\nbecame %x: %v", f, out, err)
		}
		was := len(f) - len(f[ipAt(f):])
		if p.Src.Is4() && checksum(f[was:]) != checksum(out[was:]) {
			t.Fatalf("%x\nbecame %x: checksum %#x was %#x", f, out, checksum(out[was:]), checksum(f[was:]))
		}
		differ := 0
		for i := range f {
			if f[i] != out[i] {
				differ++
			}
		}
		if differ > 3 {
			t.Fatalf("%x\nbecame %x", f, out)
		}
	}
	if c := d.mustCount(t); c.Queue.Events != marked || c.CE.Events != came || c.MarkFailed != 0 || marked < 1000 || came < 1000 {
		t.Errorf("%+v, want %d and %d", c, marked, came)
	}
}

// ipAt finds the IP header of a frame.
func ipAt(f []byte) int {
	at := 12
	for range 2 {
		if typ := uint16(f[at])<<8 | uint16(f[at+1]); typ == 0x8100 || typ == 0x88A8 {
			at += 4
		}
	}
	return at + 2
}

// checksum sums an IPv4 header with its checksum: a right one gives 0xFFFF.
func checksum(ip []byte) uint16 {
	var sum uint32
	for i := 0; i < int(ip[0]&0xF)*4; i += 2 {
		sum += uint32(ip[i])<<8 | uint32(ip[i+1])
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return uint16(sum)
}

// A packet that came marked is the queue's when marks that come aren't watched.
func TestQueueReportsWhatItWouldMark(t *testing.T) {
	q := slow
	d := need(t, taptest.Need(t), Config{Interface: "lo", Queue: &q, Gate: eachPacket})
	f := taptest.Ethernet(packet(t, true, 3, writeOnly, 1))
	if _, events := run(t, d, f); len(events) != 0 {
		t.Errorf("an empty queue reports %+v", events)
	}
	d.fill(t, 2*q.Kmax, never)
	if _, events := run(t, d, f); len(events) != 1 || events[0].Source != detect.SourceVirtualQueue {
		t.Errorf("a full queue reports %+v", events)
	}
}

// On a link: the receiver sees exactly the marks that are counted, every IPv4 checksum and ICRC is right, and an idle queue is empty
// again.
func TestReceiverSeesTheMarks(t *testing.T) {
	a, b := taptest.Pair(t)
	q := Queue{Rate: MinRate, Kmin: 20_000, Kmax: 60_000, Pmax: 0.5}
	d := need(t, a, Config{Interface: "va", Queue: &q, Gate: eachPacket, Seed: 7})
	c := collect(t, d)
	wait := frames(t, b, "vb")
	in := taptest.NeedInjector(t, a, "va")
	const (
		rounds = 700
		burst  = 25 // rounds at once: the backlog of the receiving side's processor, of 1,000 frames, is everybody's
		ack    = 0x11
	)
	for i := range rounds {
		if i%burst == 0 {
			wait(4 * i)
		}
		if err := in.Send(
			taptest.Ethernet(packet(t, false, 0x6A, writeOnly, 1)), taptest.Ethernet(packet(t, true, 0x69, writeOnly, 2), [2]uint16{0x8100, 5}),
			taptest.Ethernet(packet(t, false, 0x68, writeOnly, 3)), taptest.Ethernet(packet(t, false, 0x6A, ack, 4)),
		); err != nil {
			t.Fatal(err)
		}
	}
	var marked [5]int
	for _, f := range wait(4 * rounds) {
		var p roce.Packet
		if err := roce.ParseEthernet(f, &p); err != nil {
			t.Fatal(err)
		}
		if p.TOS&3 == 3 {
			marked[p.BTH.DestQP]++
		}
		if ok, err := roce.VerifyICRC(p.IP); !ok || err != nil {
			t.Fatalf("%x: ICRC %v %v", f, ok, err)
		}
		if at := len(f) - len(p.IP); p.Src.Is4() && checksum(f[at:]) != 0xFFFF {
			t.Fatalf("%x: checksum", f)
		}
	}
	counts := d.mustCount(t)
	if marked[1] == 0 || marked[2] == 0 || marked[3] != 0 || marked[4] != 0 || marked[1] == rounds || uint64(marked[1]+marked[2]) != counts.Queue.Packets() {
		t.Errorf("marked by flow %v, counted %+v", marked, counts)
	}
	c.wait(t, int(counts.Queue.Events))
	testwait.Until(t, "the queue empty", func() bool {
		before := d.mustCount(t).Queue.Packets()
		if err := in.Send(taptest.Ethernet(packet(t, false, 0x6A, writeOnly, 1))); err != nil {
			t.Fatal(err)
		}
		return d.mustCount(t).Queue.Packets() == before && d.queue(t).Depth>>depthShift < uint64(q.Kmin)
	})
}
