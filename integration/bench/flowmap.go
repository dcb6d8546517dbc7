package bench

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"time"

	"pncd/dataplane/roce"
	"pncd/internal/labtraffic"
	"pncd/proxyagent/flowmap"
)

const (
	flowmapFlows   = 100_000 // connections; each is two entries
	flowmapPerHost = 50      // connections between two hosts
	flowmapRounds  = 8       // a request and its ACK for each connection in each round
	flowmapLookups = 2_000_000
)

// FlowmapLearn measures the Source-QP map with 100,000 connections without CM, whose pairs it learns by votes
// with the kernel's port formula:
//
//   - flowmap-learn: nanoseconds per packet from the first packet on; baseline: one look-up in a plain Go map
//     by the same key per packet.
//   - flowmap-steady: the same once all are decided.
//   - flowmap-lookup: nanoseconds per look-up in random order, and its allocations; baseline: the plain map.
//   - flowmap-memory: octets of heap per decided entry.
func FlowmapLearn() ([]Result, error) {
	tr := flowTrafficOf(0, flowmapFlows, time.Unix(1_700_000_000, 0))
	plain := make(map[flowmap.Key]uint32, len(tr.keys))
	for i, k := range tr.keys {
		plain[k] = uint32(i)
	}
	n := flowmapRounds * len(tr.pkts)
	var sum uint32
	base := perOp(n, func() {
		for i := range n {
			p := &tr.pkts[i%len(tr.pkts)]
			sum += plain[flowmap.Key{Sender: p.Src, Receiver: p.Dst, DestQP: p.BTH.DestQP}]
		}
	})

	before := heap()
	m := flowmap.New(flowmap.Config{MaxEntries: 4 * flowmapFlows})
	learn := perOp(n, func() { tr.play(m, n) })
	known, total := m.Len()
	if known != len(tr.keys) {
		return nil, fmt.Errorf("flowmap-learn: %d of %d entries decided", known, total)
	}
	memory := float64(heap()-before) / float64(known)
	steady := perOp(n, func() { tr.play(m, n) })

	shuffle(tr.keys)
	lookBase := perOp(flowmapLookups, func() {
		for i := range flowmapLookups {
			sum += plain[tr.keys[i%len(tr.keys)]]
		}
	})
	misses := 0
	mallocs := mallocCount()
	look := perOp(flowmapLookups, func() {
		for i := range flowmapLookups {
			e, v := m.Lookup(tr.keys[i%len(tr.keys)], tr.now)
			if v != flowmap.Hit {
				misses++
			}
			sum += e.SourceQP
		}
	})
	allocs := float64(mallocCount()-mallocs) / flowmapLookups
	if misses != 0 {
		return nil, fmt.Errorf("flowmap-lookup: %d of %d missed", misses, flowmapLookups)
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(sum)
	note := fmt.Sprintf("%d connections, %d entries decided by votes and port formula", flowmapFlows, known)
	return []Result{
		{Name: "flowmap-learn", Value: learn, Unit: "ns/packet", Baseline: base, Note: note},
		{Name: "flowmap-steady", Value: steady, Unit: "ns/packet", Baseline: base, Note: "the same once decided"},
		{Name: "flowmap-lookup", Value: look, Unit: "ns", Baseline: lookBase, Allocs: allocs, Note: "random order; baseline: plain Go map by the same key"},
		{Name: "flowmap-memory", Value: memory, Unit: "octets/entry", Note: "heap per decided entry"},
	}, nil
}

// flowTraffic is a round of one request and one ACK for each connection.
type flowTraffic struct {
	pkts []roce.Packet
	keys []flowmap.Key
	now  time.Time
}

// flowTrafficOf is that of n connections from one on, which starts at a time.
func flowTrafficOf(first, n int, now time.Time) *flowTraffic {
	t := &flowTraffic{now: now}
	rng := rand.New(rand.NewPCG(1, uint64(first)+1))
	for i := first; i < first+n; i++ {
		h := i / flowmapPerHost
		a, b := netip.AddrFrom4([4]byte{10, 1, byte(h >> 8), byte(h)}), netip.AddrFrom4([4]byte{10, 2, byte(h >> 8), byte(h)})
		qa, qb := 0x100+uint32(i%flowmapPerHost), 0x4000+uint32(i%flowmapPerHost)*3
		psn := rng.Uint32() & 0xFFFFFF
		p := roce.Packet{Src: a, Dst: b, TTL: 64, SrcPort: labtraffic.FormulaPort(qa, qb), SrcMAC: [6]byte{2},
			BTH: roce.BTH{Opcode: roce.Opcode(roce.OpSendOnly), PKey: 0xFFFF, DestQP: qb, AckReq: true, PSN: psn}}
		r := p
		r.Src, r.Dst, r.SrcMAC, r.Body = b, a, [6]byte{3}, make([]byte, roce.AETHLen)
		r.BTH = roce.BTH{Opcode: roce.OpcodeRCAck, PKey: 0xFFFF, DestQP: qa, PSN: psn}
		t.pkts = append(t.pkts, p, r)
		t.keys = append(t.keys, flowmap.Key{Sender: a, Receiver: b, DestQP: qb}, flowmap.Key{Sender: b, Receiver: a, DestQP: qa})
	}
	return t
}

// play shows the map n packets, 2 us apart.
func (t *flowTraffic) play(m *flowmap.Map, n int) {
	var o flowmap.Observation
	for i := range n {
		p := &t.pkts[i%len(t.pkts)]
		o.Packet, o.IfIndex, o.At = p, 1+i&1, t.now
		m.Observe(&o)
		p.BTH.PSN = (p.BTH.PSN + 1) & 0xFFFFFF
		t.now = t.now.Add(2 * time.Microsecond)
	}
}

func shuffle(keys []flowmap.Key) {
	rand.New(rand.NewPCG(2, 2)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
}

func perOp(n int, f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

func mallocCount() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Mallocs
}
