package flowmap

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

// benchTraffic is a round of one request and one ACK for each connection, to be played again and again.
type benchTraffic struct {
	pkts    []roce.Packet
	now     time.Time
	selects bool // the tap does, but it shows all
}

func newBenchTraffic(conns, perHost int, ports func(qa, qb uint32) uint16) *benchTraffic {
	b := &benchTraffic{now: time.Unix(1_700_000_000, 0)}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range conns {
		h := i / perHost
		a, z := netip.AddrFrom4([4]byte{10, 1, byte(h >> 8), byte(h)}), netip.AddrFrom4([4]byte{10, 2, byte(h >> 8), byte(h)})
		qa, qb := 0x100+uint32(i%perHost), 0x4000+uint32(i%perHost)*3
		port, psn := ports(qa, qb), rng.Uint32()&psnMask
		req := roce.Packet{Src: a, Dst: z, TTL: 64, SrcPort: port, SrcMAC: [6]byte{2}, BTH: roce.BTH{Opcode: rcSend, PKey: 0xFFFF, DestQP: qb, AckReq: true, PSN: psn}}
		ack := roce.Packet{Src: z, Dst: a, TTL: 64, SrcPort: port, SrcMAC: [6]byte{3}, Body: make([]byte, 4), BTH: roce.BTH{Opcode: rcAck, PKey: 0xFFFF, DestQP: qa, PSN: psn}}
		b.pkts = append(b.pkts, req, ack)
	}
	return b
}

// play shows the map n packets.
func (b *benchTraffic) play(m *Map, n int) {
	var o Observation
	for i := range n {
		p := &b.pkts[i%len(b.pkts)]
		o.Packet, o.IfIndex, o.At = p, 1+i&1, b.now
		if b.selects {
			o.Before = &Progress{LastSeen: b.now}
			if i < len(b.pkts) {
				o.Before = &Progress{}
			}
		}
		m.Observe(&o)
		p.BTH.PSN = (p.BTH.PSN + 1) & psnMask
		if len(p.Body) > 0 { // an ACK: it completes a message more
			binary.BigEndian.PutUint32(p.Body, (binary.BigEndian.Uint32(p.Body)+1)&psnMask)
		}
		b.now = b.now.Add(2 * time.Microsecond)
	}
}

func kernelPort(qa, qb uint32) uint16 { return formulaPort(uint64(qa) * uint64(qb)) }
func onePort(uint32, uint32) uint16   { return 49152 }

// BenchmarkObserve is the cost of a packet: while pairs are decided by PSN alone, so that votes go on, and once
// they are decided by ports.
func BenchmarkObserve(b *testing.B) {
	for _, c := range []struct {
		conns, perHost int
		name           string
		ports          func(uint32, uint32) uint16
	}{
		{64, 64, "votes", onePort}, {64, 64, "decided", kernelPort}, {100_000, 50, "decided", kernelPort}, {100_000, 50, "votes", onePort},
	} {
		b.Run(fmt.Sprintf("%s/%d", c.name, c.conns), func(b *testing.B) {
			m := New(Config{ICRCSample: -1})
			tr := newBenchTraffic(c.conns, c.perHost, c.ports)
			tr.play(m, 8*len(tr.pkts))
			known, total := m.Len()
			b.ReportAllocs()
			b.ResetTimer()
			tr.play(m, b.N)
			b.ReportMetric(100*float64(known)/float64(total), "%known")
		})
	}
}

// BenchmarkLookup is the cost of a look-up among 200,000 entries: of streams, and of settled pairs.
func BenchmarkLookup(b *testing.B) {
	b.Run("streams", func(b *testing.B) { benchmarkLookup(b, false) })
	b.Run("settled", func(b *testing.B) { benchmarkLookup(b, true) })
}

func benchmarkLookup(b *testing.B, settle bool) {
	m := New(Config{ICRCSample: -1})
	m.settleAfter = 0
	tr := newBenchTraffic(100_000, 50, kernelPort)
	tr.selects = settle
	tr.play(m, 8*len(tr.pkts))
	for told := make([]Telling, 0, 64); len(m.Due(told, tr.now)) > 0; {
	}
	m.Tick(tr.now)
	if n := m.settled.count.Load(); (n == 100_000) != settle {
		b.Fatalf("%d settled pairs", n)
	}
	keys := make([]Key, len(tr.pkts))
	for i := range tr.pkts {
		p := &tr.pkts[i]
		keys[i] = Key{Sender: p.Src, Receiver: p.Dst, DestQP: p.BTH.DestQP}
	}
	rand.New(rand.NewPCG(2, 2)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, v := m.Lookup(keys[i%len(keys)], tr.now); v != Hit {
			b.Fatal(v)
		}
	}
}

// BenchmarkMemory is the heap that an entry takes: decided ones, and undecided ones at their worst, with many
// rivals and a full index: in lockstep from zero with one port.
func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	for _, c := range []struct {
		name  string
		ports func(uint32, uint32) uint16
		want  int
	}{{"decided", kernelPort, 12800}, {"undecided", onePort, 0}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				tr := newBenchTraffic(6400, 64, c.ports)
				for i := range tr.pkts {
					tr.pkts[i].BTH.PSN = 0
				}
				before := heap()
				m := New(Config{ICRCSample: -1})
				tr.play(m, 100*len(tr.pkts))
				known, total := m.Len()
				if known != c.want {
					b.Fatalf("%d of %d decided, want %d", known, total, c.want)
				}
				b.ReportMetric(float64(heap()-before)/float64(total), "octets/entry")
				runtime.KeepAlive(m)
				runtime.KeepAlive(tr)
			}
		})
	}
}
