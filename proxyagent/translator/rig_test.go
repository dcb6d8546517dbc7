package translator

import (
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	start    = time.Unix(1_800_000_000, 0)
	node4    = netip.MustParseAddr("203.0.113.1")
	node6    = netip.MustParseAddr("2001:db8:ffff::1")
	sender4  = netip.MustParseAddr("198.51.100.2")
	recv4    = netip.MustParseAddr("192.0.2.1")
	sender6  = netip.MustParseAddr("2001:db8:2::8")
	recv6    = netip.MustParseAddr("2001:db8:1::7")
	own4     = netip.MustParseAddr("198.51.100.254")
	errQueue = errors.New("no buffer space available")
)

// flows is a Source-QP map in which Destination QP d has Source QP d+0x1000, or the verdict set for it.
type flows map[uint32]flowmap.Verdict

func (f flows) Lookup(k flowmap.Key, now time.Time) (flowmap.Entry, flowmap.Verdict) {
	v, ok := f[k.DestQP]
	if !ok {
		v = flowmap.Hit
	}
	e := flowmap.Entry{Key: k, State: flowmap.StateUndecided, Version: 7}
	if v == flowmap.Hit {
		e.State, e.SourceQP, e.PKey = flowmap.StateConfirmed, k.DestQP+0x1000, 0x8001
	}
	return e, v
}

// LookupTuple has Destination QP 0x70 for each flow of a context, and the same answers.
func (f flows) LookupTuple(t flowmap.Tuple, now time.Time) (flowmap.Entry, flowmap.Verdict) {
	return f.Lookup(flowmap.Key{Context: t.Context, Sender: t.Sender, Receiver: t.Receiver, DestQP: 0x70 + t.Context}, now)
}

// wire is a Sender that keeps copies, and refuses the packets for which fail says so, as the kernel
// does: what stands before one has left.
type wire struct {
	mu      sync.Mutex
	packets [][]byte
	fail    func(packet []byte) error
}

func (w *wire) Send(packets [][]byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range packets {
		if w.fail != nil {
			if err := w.fail(p); err != nil {
				return i, err
			}
		}
		w.packets = append(w.packets, append([]byte(nil), p...))
	}
	return len(packets), nil
}

type rig struct {
	*Translator
	rec   *evidence.Recorder
	wire  *wire
	flows flows
}

func testConfig() Config {
	return Config{
		AcceptFrom:     []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8:ffff::/48")},
		ServedPrefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:2::/48")},
		MinTTL:         250,
	}
}

func newRig(t testing.TB, edit func(*Config)) *rig {
	t.Helper()
	rec, err := evidence.NewRecorder(evidence.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig()
	if edit != nil {
		edit(&cfg)
	}
	r := &rig{rec: rec, wire: &wire{}, flows: flows{}}
	r.Translator, err = New(cfg, Deps{
		FlowMap: r.flows, Local: LocalFunc(func(a netip.Addr) bool { return a == own4 }),
		Sender: r.wire, Recorder: rec, Now: func() time.Time { return start.Add(time.Millisecond) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.SetEnabled(true)
	return r
}

// notification is a good one, of event number n.
func notification(qp uint32, n uint64) Datagram {
	return datagram(message.Notification{
		Src: sender4, Dst: recv4, SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: qp,
	}, n)
}

func datagram(n message.Notification, number uint64) Datagram {
	b, err := n.Append(nil)
	if err != nil {
		panic(err)
	}
	return Datagram{
		Payload: b, Length: len(b), From: netip.AddrPortFrom(node4, message.EventPort(number)),
		TTL: 255, IfIndex: 3, IfName: "eth1", At: start.Add(-time.Microsecond), ReadAt: start,
	}
}

// one processes one datagram and returns its record.
func (r *rig) one(dg Datagram, after time.Duration) evidence.Record {
	r.Process([]Datagram{dg}, start.Add(after))
	return r.rec.List(evidence.Filter{}, 1)[0]
}

func (r *rig) checkSum(t *testing.T, received uint64) {
	t.Helper()
	if got, sum := r.rec.TotalReceived(evidence.PartProxy), r.rec.Sum(evidence.PartProxy); got != received || sum != received {
		t.Errorf("%d datagrams: %d received, %d outcomes", received, got, sum)
	}
}

func netipPort(port uint16) netip.AddrPort { return netip.AddrPortFrom(node4, port) }
