package bench

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"pncd/igp/isis/packet"
	"pncd/igp/isis/speaker"
)

// ISISMemory measures what 100,000 prefixes of 1,000 systems, 5,000 of them with the P flag, take in an IS-IS
// system that has them from one router: on the heap, and of the process's resident memory. Baseline: the octets
// of the LSPs.
func ISISMemory() ([]Result, error) {
	const systems, perSystem, marked = 1000, 100, 5000
	const prefixes = systems * perSystem
	id := func(s int) packet.SystemID { return packet.SystemID{1, 4: byte(s >> 8), 5: byte(s)} }
	now := time.Now()
	m, err := speaker.New(speaker.Config{System: packet.SystemID{5: 1}, Areas: []packet.Area{{0x49}}, Levels: packet.Level2, Flag: packet.FlagProxy,
		Circuits: []speaker.CircuitConfig{{Name: "up"}}}, now)
	if err != nil {
		return nil, err
	}
	m.LinkChanged(now, "up", speaker.Link{Up: true, MAC: [6]byte{2}, MTU: 1500, IPv4: []netip.Addr{netip.MustParseAddr("192.0.2.1")}})
	hello, err := packet.Hello{Header: packet.Header{Type: packet.P2PHello}, CircuitType: packet.Level2, Source: id(0), HoldingTime: 65535,
		TLVs: packet.TLVs{packet.AreasTLV(packet.Area{0x49}), {Type: packet.TLVProtocolsSupported, Value: []byte{packet.NLPIDIPv4}}}}.Append(nil)
	if err != nil {
		return nil, err
	}
	m.Receive(now, speaker.Frame{Circuit: "up", MAC: [6]byte{4}, PDU: hello})
	m.Tick(now)
	heapBefore, rssBefore, err := memoryInUse()
	if err != nil {
		return nil, err
	}
	octets := 0
	for s := range systems {
		lsps, err := benchLSPs(id, s, systems, perSystem, marked/systems)
		if err != nil {
			return nil, err
		}
		for _, raw := range lsps {
			octets += len(raw)
			m.Receive(now, speaker.Frame{Circuit: "up", MAC: [6]byte{4}, PDU: raw})
		}
	}
	learned := 0
	for range 100 { // SPF, and bursts of what is flooded
		now = now.Add(100 * time.Millisecond)
		m.Tick(now)
		learned += len(m.Learned())
	}
	heap, rss, err := memoryInUse()
	if err != nil {
		return nil, err
	}
	if st := m.Status(now).Levels[0]; st.Prefixes != prefixes || st.Marked != marked || learned < prefixes {
		return nil, fmt.Errorf("isis-memory-100k: %d prefixes, %d marked, %d learned", st.Prefixes, st.Marked, learned)
	}
	runtime.KeepAlive(m)
	base := float64(octets) / prefixes
	return []Result{
		{Name: "isis-memory-100k", Value: float64(heap-heapBefore) / prefixes, Unit: "octets/prefix", Baseline: base,
			Note: "heap; 100,000 prefixes of 1,000 systems, 5,000 with P; baseline: the LSPs themselves"},
		{Name: "isis-memory-100k-rss", Value: float64(rss-rssBefore) / prefixes, Unit: "octets/prefix", Baseline: base,
			Note: "resident memory, after the collector returned what is free"},
	}, nil
}

// benchLSPs are the LSPs of a system: a link to the system before and the one after it, and its prefixes.
func benchLSPs(id func(int) packet.SystemID, s, systems, prefixes, marked int) (lsps [][]byte, err error) {
	links := []packet.NodeID{}
	if s > 0 {
		links = append(links, id(s-1).Node(0))
	} else {
		links = append(links, packet.SystemID{5: 1}.Node(0))
	}
	if s+1 < systems {
		links = append(links, id(s+1).Node(0))
	}
	var first []byte
	for _, to := range links {
		if first, err = (packet.ISReach{Neighbor: to, Metric: 10}).Append(first); err != nil {
			return nil, err
		}
	}
	tlvs := packet.TLVs{{Type: packet.TLVExtendedISReach, Value: first}}
	router := netip.AddrFrom4([4]byte{198, 51, byte(s >> 8), byte(s)})
	var value []byte
	flush := func(last bool) error {
		if len(value) > 0 {
			tlvs = append(tlvs, packet.TLV{Type: packet.TLVExtendedIPReach, Value: value})
			value = nil
		}
		if !last && tlvs.Len() < 1200 {
			return nil
		}
		raw, err := packet.LSP{Header: packet.Header{Type: packet.L2LSP}, ID: id(s).Node(0).Fragment(uint8(len(lsps))), Sequence: 1, Lifetime: 1200,
			Flags: packet.LSPISType, TLVs: tlvs}.Append(nil)
		if err != nil {
			return err
		}
		packet.SetChecksum(raw)
		lsps, tlvs = append(lsps, raw), nil
		return nil
	}
	for i := range prefixes {
		n := s*prefixes + i
		p := packet.Prefix{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(11 + n>>16), byte(n >> 8), byte(n), 0}), 24), Metric: 10}
		if i < marked {
			p.SubTLVs = packet.TLVs{{Type: packet.SubTLVPrefixAttributes, Value: packet.PrefixFlags{}.With(packet.FlagProxy)},
				{Type: packet.SubTLVIPv4SourceRouterID, Value: router.AsSlice()}}
		}
		body, err := p.Append(nil)
		if err != nil {
			return nil, err
		}
		if len(value)+len(body) > 255 {
			if err := flush(false); err != nil {
				return nil, err
			}
		}
		value = append(value, body...)
	}
	return lsps, flush(true)
}

// memoryInUse gives the heap in use and the resident memory, octets, after a collection.
func memoryInUse() (heap, rss int64, err error) {
	debug.FreeOSMemory() // collects first
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(raw), &size, &resident); err != nil {
		return 0, 0, fmt.Errorf("/proc/self/statm: %w", err)
	}
	return int64(st.HeapAlloc), resident * int64(os.Getpagesize()), nil
}
