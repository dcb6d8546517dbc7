package bench

import (
	"fmt"
	"iter"
	"net/netip"
	"runtime"
	"time"

	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/speaker"
)

// OSPFMemory measures what 100,000 prefixes of 1,000 routers, each in an Extended Prefix LSA of its own and 5,000 of
// them with the P flag, take in an OSPFv2 router that has them from one neighbour: on the heap, and of the process's
// resident memory. Baseline: the octets of the LSAs.
func OSPFMemory() ([]Result, error) {
	const routers, perRouter, marked = 1000, 100, 5000
	const prefixes = routers * perRouter
	p, err := newOSPFPeer(1 << 18)
	if err != nil {
		return nil, err
	}
	heapBefore, rssBefore, err := memoryInUse()
	if err != nil {
		return nil, err
	}
	octets, learned := 0, 0
	for n := range routers {
		lsas, err := benchLSAs(n, routers, perRouter, marked/routers)
		if err != nil {
			return nil, err
		}
		for _, l := range lsas {
			octets += len(l.Raw)
		}
		for _, u := range packet.Updates(lsas, 1400) {
			if err := p.send(u); err != nil {
				return nil, err
			}
		}
		p.m.Tick(p.now)
		learned += len(p.m.Learned())
	}
	for range 100 { // SPF, and delayed acknowledgments
		p.now = p.now.Add(100 * time.Millisecond)
		p.m.Tick(p.now)
		learned += len(p.m.Learned())
	}
	heap, rss, err := memoryInUse()
	if err != nil {
		return nil, err
	}
	if st := p.m.Status(p.now).Areas[0]; st.Prefixes != prefixes || st.Marked != marked || learned < prefixes {
		return nil, fmt.Errorf("ospf-memory-100k: %d prefixes, %d marked, %d learned", st.Prefixes, st.Marked, learned)
	}
	runtime.KeepAlive(p)
	base := float64(octets) / prefixes
	return []Result{
		{Name: "ospf-memory-100k", Value: float64(heap-heapBefore) / prefixes, Unit: "octets/prefix", Baseline: base,
			Note: "heap; 100,000 prefixes of 1,000 routers, each in an LSA, 5,000 with P; baseline: the LSAs themselves"},
		{Name: "ospf-memory-100k-rss", Value: float64(rss-rssBefore) / prefixes, Unit: "octets/prefix", Baseline: base,
			Note: "resident memory, after the collector returned what is free"},
	}, nil
}

// ospfPeer is a router that is full with a machine under test.
type ospfPeer struct {
	m   *speaker.Machine
	now time.Time
	seq auth.Sequence
}

var (
	ospfHere, ospfThere = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	ospfPeerID          = benchRouter(0)
)

func benchRouter(n int) packet.ID { return packet.ID(10<<24 + 1 + n) }

const benchLeaf packet.ID = 1

// newOSPFPeer makes a machine with a bound of LSAs, and brings the adjacency up with an interface machine of the
// other side.
func newOSPFPeer(maxLSAs int) (*ospfPeer, error) {
	p := &ospfPeer{now: time.Now()}
	var err error
	intervals := [2]time.Duration{time.Second, time.Hour}
	p.m, err = speaker.New(speaker.Config{Version: packet.V2, Router: benchLeaf, Carrier: marks.Carrier{Bit: 2}, MaxLSAs: maxLSAs,
		Links: []speaker.LinkConfig{{Name: "up", Hello: intervals[0], Dead: intervals[1]}}}, p.now)
	if err != nil {
		return nil, err
	}
	p.m.LinkChanged(p.now, "up", speaker.Link{Up: true, Index: 1, MTU: 1500, Address: netip.PrefixFrom(ospfHere, 24)})
	other := iface.New(iface.Config{
		Config: neighbor.Config{Version: packet.V2, Router: ospfPeerID, Options: packet.OptionE, MTU: 1500, Dead: intervals[1]},
		Prefix: netip.PrefixFrom(ospfThere, 24), Hello: intervals[0],
	}, emptyOSPF{})
	other.Up(p.now)
	for range 100 {
		for _, d := range p.m.Tick(p.now) {
			if x, err := packet.Parse(packet.V2, d.Payload); err == nil {
				other.Receive(p.now, d.Source, d.Destination, x)
			}
		}
		for _, s := range other.Tick(p.now) {
			if err := p.send(s.Body); err != nil {
				return nil, err
			}
		}
		if st := p.m.Status(p.now).Links[0].Neighbors; len(st) == 1 && st[0].State == neighbor.Full {
			return p, nil
		}
		p.now = p.now.Add(time.Second)
	}
	return nil, fmt.Errorf("ospf: no adjacency: %+v", p.m.Status(p.now).Links)
}

// send brings a packet of the peer to the machine.
func (p *ospfPeer) send(b packet.Body) error {
	raw, err := auth.Chain{}.Seal(&packet.Packet{Version: packet.V2, Router: ospfPeerID, Body: b}, auth.Addresses{Source: ospfThere, Destination: iface.AllSPFRouters(packet.V2)}, &p.seq, p.now)
	if err != nil {
		return err
	}
	p.m.Receive(p.now, speaker.Datagram{Link: "up", Source: ospfThere, Destination: iface.AllSPFRouters(packet.V2), Payload: raw})
	return nil
}

// emptyOSPF is the database of a router that has nothing to describe.
type emptyOSPF struct{}

func (emptyOSPF) Summary(time.Time) iter.Seq[packet.Header] { return func(func(packet.Header) bool) {} }
func (emptyOSPF) Lookup(time.Time, packet.Key) (h packet.Header, ok bool) {
	return h, false
}
func (emptyOSPF) Append(dst []byte, _ time.Time, _ packet.Key) ([]byte, bool) { return dst, false }

// benchLSAs are the LSAs of a router: a link to the router before and the one after it, and its prefixes.
func benchLSAs(n, routers, prefixes, marked int) (lsas []packet.LSA, err error) {
	var r packet.V2RouterLSA
	link := func(to packet.ID) {
		r.Links = append(r.Links, packet.V2Link{ID: to, Data: 1, Kind: packet.LinkPointToPoint, Metric: 10})
	}
	if n > 0 {
		link(benchRouter(n - 1))
	} else {
		link(benchLeaf)
	}
	if n+1 < routers {
		link(benchRouter(n + 1))
	}
	me := benchRouter(n)
	add := func(k packet.Key, body []byte) {
		l, e := packet.NewLSA(packet.V2, packet.Header{Options: packet.OptionE, Key: k, Sequence: packet.InitialSequence}, body)
		if lsas = append(lsas, l); e != nil {
			err = e
		}
	}
	add(packet.Key{Type: packet.V2Router, ID: me, Adv: me}, r.Append(nil))
	proxy := netip.AddrFrom4([4]byte{198, 51, byte(n >> 8), byte(n)})
	for i := range prefixes {
		at := n*prefixes + i
		x := packet.V2ExtendedPrefix{RouteType: packet.RouteIntraArea, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(11 + at>>16), byte(at >> 8), byte(at), 0}), 24)}
		if i < marked {
			x.Subs = []packet.TLV{{Type: packet.V2SubPrefixFlags, Value: packet.WithFlagBit(2)}, {Type: packet.V2SubSourceRouterAddr, Value: proxy.AsSlice()}}
		}
		add(packet.Key{Type: packet.V2OpaqueArea, ID: packet.OpaqueID(packet.OpaqueExtendedPrefix, uint32(i+1)), Adv: me}, x.Append(nil))
	}
	return lsas, err
}
