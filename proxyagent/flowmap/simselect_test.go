package flowmap

import (
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel/kerneltest"
)

// selector is the tap in the kernel in front of a map: a model of its program, its ring buffer, through which packets
// come in batches and late, and the daemon, which tells the program what the map wants.
type selector struct {
	m     *Map
	model *kerneltest.Model
	// program, when it is there, selects in place of the model.
	program *program
	delay   int64 // the ring buffer's: what is told meanwhile comes too late for the packets in it
	queue   []selectedPacket
	next    int // in queue
	told    []Telling
	shown   int
	now     int64 // when the latest packet passed
	ticks   bool  // the map ticks each millisecond
	tick    int64 // the last one
}

type selectedPacket struct {
	pkt     roce.Packet
	body    [16]byte
	ifIndex int
	at      int64
	reason  uint8
	before  Progress
	after   func() // once it would have been shown
}

func newSelector(m *Map, interval, delay time.Duration) *selector {
	f := &selector{m: m, model: kerneltest.NewModel(int64(interval)), delay: int64(delay), told: make([]Telling, 0, 7)}
	m.SetTap(f)
	return f
}

// Progress implements Tap.
func (f *selector) Progress(id FlowID) (Progress, bool) {
	if f.program != nil {
		return f.program.lookup(id)
	}
	fl := f.model.Flows[modelKey(id)]
	if fl == nil {
		return Progress{}, false
	}
	return progressOf(fl, fl.State), true
}

func modelKey(id FlowID) kerneltest.Key {
	return kerneltest.Key{Src: id.Sender, Dst: id.Receiver, DestQP: id.DestQP, SrcPort: id.SrcPort, VLAN: id.VLAN}
}

func progressOf(f *kerneltest.Flow, sight uint8) Progress {
	p := Progress{Sight: Sight(sight), Skipped: f.Skipped, ReqHigh: f.ReqHigh, RespHigh: f.RespHigh, MSN: f.MSN, ReadLen: f.ReadLen, Transport: f.Transport,
		HasReq: f.HasReq, HasResp: f.HasResp, HasMSN: f.HasMSN}
	if f.LastSeen != 0 {
		p.LastSeen = time.Unix(0, f.LastSeen)
	}
	return p
}

// observe takes a packet that passes the tap; after, if any, is called when the map has been shown what it will be.
func (f *selector) observe(o *Observation, after func()) {
	at := o.At.UnixNano()
	f.now = at
	q := selectedPacket{pkt: *o.Packet, ifIndex: o.IfIndex, at: at, after: after}
	copy(q.body[:], o.Packet.Body)
	if o.Packet.IsMAD() {
		q.reason = 1
	} else if f.program != nil {
		q.reason, q.before = f.program.take(o.Packet, at)
	} else if o.Packet.BTH.Opcode.Transport() != roce.TransportCNP {
		var before kerneltest.Flow
		q.reason, before = f.model.Take(o.Packet, o.IfIndex, at)
		q.before = progressOf(&before, f.model.Flows[kerneltest.KeyOf(o.Packet)].State)
		q.before.Foreign = q.reason == kerneltest.Identity
	}
	f.queue = append(f.queue, q)
	f.deliver(at - f.delay)
}

// deliver shows the map what was seen until a time, and tells the program what the map wants.
func (f *selector) deliver(until int64) {
	for ; f.next < len(f.queue) && f.queue[f.next].at <= until; f.next++ {
		q := &f.queue[f.next]
		if q.reason != 0 && f.m != nil { // a daemon that is dead reads nothing
			f.shown++
			if q.pkt.Body != nil && len(q.pkt.Body) <= len(q.body) {
				q.pkt.Body = q.body[:len(q.pkt.Body)]
			}
			f.m.Observe(&Observation{Packet: &q.pkt, IfIndex: q.ifIndex, At: time.Unix(0, q.at), Before: &q.before})
			f.tell()
		}
		if f.ticks && q.at-f.tick >= int64(time.Millisecond) {
			f.tick = q.at
			f.m.Tick(time.Unix(0, q.at))
			f.tell()
		}
		if q.after != nil {
			q.after()
		}
	}
	if 2*f.next >= len(f.queue) {
		f.queue = f.queue[:copy(f.queue, f.queue[f.next:])]
		f.next = 0
	}
}

func (f *selector) tell() {
	for {
		f.told = f.m.Due(f.told[:0], time.Unix(0, f.now))
		if len(f.told) == 0 {
			return
		}
		for _, t := range f.told {
			if f.program != nil {
				f.program.tell(&t)
			} else if fl := f.model.Flows[modelKey(t.Flow)]; fl != nil {
				fl.State = uint8(t.Sight)
			}
		}
	}
}
