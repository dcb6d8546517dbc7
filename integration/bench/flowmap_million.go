package bench

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/kernel"
	"pncd/dataplane/tap/taptest"
	"pncd/proxyagent/flowmap"
)

const (
	millionEntries = 1_000_000 // direction entries: two for each connection
	millionBatch   = 20_000    // connections that start at a time
	millionBound   = 200       // octets per entry, kernel and user together, that the design asks for
)

// FlowmapMillion measures the memory of a million direction entries, decided and followed by a tap that selects:
//
//   - flowmap-1m: octets per entry, of the map's heap and of the kernel's maps together: the flow table, and what is kept of
//     decided pairs for the next process; baseline: the 200 that are asked for. The kernel's maps are allocated when
//     the tap opens, so they count in full.
//   - flowmap-1m-user and flowmap-1m-kernel: the two parts.
//   - flowmap-1m-lookup: nanoseconds per look-up in random order.
func FlowmapMillion() ([]Result, error) {
	table, err := flowMaps(millionEntries)
	if err != nil {
		return nil, err
	}
	before := heap()
	m := flowmap.New(flowmap.Config{MaxEntries: 2 * millionEntries, AgeAfter: time.Hour})
	now := time.Unix(1_700_000_000, 0)
	for first := 0; first < millionEntries/2; first += millionBatch {
		tr := flowTrafficOf(first, min(millionBatch, millionEntries/2-first), now)
		tr.playSelected(m)
		now = tr.now.Add(2 * time.Second)
		m.Tick(now)
	}
	if known, total := m.Len(); known != millionEntries {
		return nil, fmt.Errorf("flowmap-1m: %d of %d entries decided", known, total)
	}
	user := float64(heap()-before) / millionEntries
	look, err := millionLookups(m, now)
	if err != nil {
		return nil, err
	}
	runtime.KeepAlive(m)
	inKernel := float64(table) / millionEntries
	note := fmt.Sprintf("%d entries, %d connections between two hosts; decided by votes and port formula, and followed", millionEntries, flowmapPerHost)
	out := []Result{
		{Name: "flowmap-1m-user", Value: user, Unit: "octets/entry", Note: note},
		{Name: "flowmap-1m-lookup", Value: look, Unit: "ns", Note: "random order"},
	}
	if table == 0 {
		return out, nil
	}
	return append(out,
		Result{Name: "flowmap-1m-kernel", Value: inKernel, Unit: "octets/entry", Note: "flow table of the tap in the kernel, and what it keeps of pairs for a restart, as the kernel counts them"},
		Result{Name: "flowmap-1m", Value: user + inKernel, Unit: "octets/entry", Baseline: millionBound, Note: "kernel and user together; baseline: the bound"}), nil
}

// flowMaps is the memory of a pinned kernel tap's maps for so many flows of IPv4; 0 where none can be opened.
func flowMaps(flows int) (uint64, error) {
	root, closing, err := taptest.NewBPFFS()
	if errors.Is(err, unix.EPERM) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer closing()
	pins, err := kernel.OpenPins(root)
	if err != nil {
		return 0, err
	}
	n, err := tapMemory(kernel.Config{MaxFlows: 2 * flows, MaxFlows6: 1024, Pins: pins}) // as many places as it asks for
	return n, errors.Join(err, pins.Close())
}

func tapMemory(c kernel.Config) (uint64, error) {
	t, err := kernel.Open(c)
	if errors.Is(err, kernel.ErrPermission) || errors.Is(err, kernel.ErrNotSupported) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := t.Memory()
	return n, errors.Join(err, t.Close())
}

// playSelected shows a map the traffic as a tap in the kernel does: until it is told to follow a flow.
func (t *flowTraffic) playSelected(m *flowmap.Map) {
	sights := make(map[flowmap.FlowID]flowmap.Sight, len(t.pkts))
	told := make([]flowmap.Telling, 0, 64)
	o := flowmap.Observation{}
	for round := range flowmapRounds {
		for i := range t.pkts {
			p := &t.pkts[i]
			id := flowmap.FlowID{Key: t.keys[i], SrcPort: p.SrcPort}
			if sights[id] == flowmap.Watched {
				before := flowmap.Progress{}
				if round > 0 {
					before = flowmap.Progress{LastSeen: t.now}
				}
				o.Packet, o.IfIndex, o.At, o.Before = p, 1+i&1, t.now, &before
				m.Observe(&o)
				for told = m.Due(told[:0], t.now); len(told) > 0; told = m.Due(told[:0], t.now) {
					for _, d := range told {
						sights[d.Flow] = d.Sight
					}
				}
			}
			p.BTH.PSN = (p.BTH.PSN + 1) & 0xFFFFFF
			t.now = t.now.Add(2 * time.Microsecond)
		}
	}
}

func millionLookups(m *flowmap.Map, now time.Time) (float64, error) {
	keys := make([]flowmap.Key, 0, millionEntries)
	m.Range(now, func(e flowmap.Entry) bool { keys = append(keys, e.Key); return true })
	shuffle(keys)
	misses := 0
	look := perOp(flowmapLookups, func() {
		for i := range flowmapLookups {
			if _, v := m.Lookup(keys[i%len(keys)], now); v != flowmap.Hit {
				misses++
			}
		}
	})
	if misses != 0 {
		return 0, fmt.Errorf("flowmap-1m: %d of %d look-ups missed", misses, flowmapLookups)
	}
	return look, nil
}
