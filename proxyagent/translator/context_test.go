package translator

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
	"pncd/proxyagent/nrpmap"
)

// vpnRig has the contexts blue (1) and red (2) with the same senders, and NRP Selector IDs 10 and 20 for them; 30
// is for a context that is not there, and 40 to 42 are for Source QPs.
type vpnRig struct {
	*rig
	blue, red *wire
	nrps      *nrpmap.Map
}

func newVPNRig(t *testing.T) *vpnRig {
	t.Helper()
	v := &vpnRig{blue: &wire{}, red: &wire{}, nrps: nrpmap.New(100)}
	v.rig = newRig(t, func(c *Config) {
		served := []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
		c.Contexts = []Context{
			{Name: "blue", ID: 1, ServedPrefixes: served, Sender: v.blue, Local: LocalFunc(func(a netip.Addr) bool { return a == own4.Next() })},
			{Name: "red", ID: 2, ServedPrefixes: served, Sender: v.red, Local: LocalFunc(func(netip.Addr) bool { return false })},
		}
		// Only IPv6 is served in the default context: nothing of a VPN may fall back to it.
		c.ServedPrefixes = []netip.Prefix{netip.MustParsePrefix("2001:db8:2::/48")}
	})
	v.core.nrps = v.nrps
	qp := func(nrp, qp uint32, context string, sender netip.Addr) nrpmap.Mapping {
		receiver := recv4
		if sender.Is6() {
			receiver = recv6
		}
		return nrpmap.Mapping{Key: nrpmap.Key{NRP: nrp, Sender: sender, Receiver: receiver}, SourceQP: qp, Context: context}
	}
	if _, err := v.nrps.Set([]nrpmap.Mapping{
		{Key: nrpmap.Key{NRP: 10}, Context: "blue"}, {Key: nrpmap.Key{NRP: 20}, Context: "red"}, {Key: nrpmap.Key{NRP: 30}, Context: "gone"},
		qp(40, 0x444, "red", sender4), qp(41, 0x555, "gone", sender4), qp(42, 0x666, "", sender6), qp(43, 0x777, "", sender4),
	}, start); err != nil {
		t.Fatal(err)
	}
	return v
}

// format2Datagram names the flow from a sender in a partition.
func format2Datagram(nrp uint32, sender netip.Addr) Datagram {
	receiver := recv4
	if sender.Is6() {
		receiver = recv6
	}
	n := message.Notification2{Src: sender, Dst: receiver, SrcPort: 50000, DstPort: 4791, Proto: 17, NRP: nrp}
	b, err := n.Append(nil)
	if err != nil {
		panic(err)
	}
	dg := notification(7, 0)
	dg.Payload, dg.Length = b, len(b)
	return dg
}

func (v *vpnRig) last() evidence.Record { return v.rec.List(evidence.Filter{}, 1)[0] }

func TestFormat2GoesToTheContextThatTheNRPNames(t *testing.T) {
	const unknownNRP, unknownVPN = pncv1.Outcome_OUTCOME_PROXY_NRP_UNKNOWN, pncv1.Outcome_OUTCOME_PROXY_VPN_UNKNOWN
	for _, tc := range []struct {
		name    string
		nrp     uint32
		sender  netip.Addr
		want    evidence.Outcome
		context string
		qp      uint32 // of the CNP
		entry   bool   // of the Source-QP map
	}{
		{"VPN blue", 10, sender4, translated, "blue", 0x1071, true},
		{"VPN red, the same addresses", 20, sender4, translated, "red", 0x1072, true},
		{"Source QP in a VPN", 40, sender4, translated, "red", 0x444, false},
		{"Source QP in the default context", 42, sender6, translated, "", 0x666, false},
		{"Source QP of a sender that the default context does not serve", 43, sender4, pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_PREFIX, "", 0, false},
		{"NRP not known", 11, sender4, unknownNRP, "", 0, false},
		{"NRP known for another flow only", 40, sender4.Next(), unknownNRP, "", 0, false},
		{"VPN not here", 30, sender4, unknownVPN, "gone", 0, false},
		{"VPN of a Source QP not here", 41, sender4, unknownVPN, "gone", 0, false},
		{"sender not in the VPN, but in the default context", 10, sender6, pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_PREFIX, "blue", 0, false},
		{"our own address in the VPN", 10, own4.Next(), pncv1.Outcome_OUTCOME_PROXY_LOOP, "blue", 0, false},
		{"our own address in another VPN only", 20, own4.Next(), translated, "red", 0x1072, true},
		{"our own address outside of the VPN", 20, own4, translated, "red", 0x1072, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := newVPNRig(t)
			v.Format2().Process([]Datagram{format2Datagram(tc.nrp, tc.sender)}, start)
			rec := v.last()
			if rec.Outcome != tc.want || rec.Flow.Context != tc.context || !rec.Flow.HasNRP || rec.Flow.NRP != tc.nrp || rec.Translation.SourceQP != tc.qp {
				t.Errorf("%v (%s), context %q, NRP %d, Source QP %#x", rec.Outcome, rec.Err, rec.Flow.Context, rec.Flow.NRP, rec.Translation.SourceQP)
			}
			if mapped := tc.want != unknownNRP; (rec.Translation.NRPVersion != 0) != mapped {
				t.Errorf("version %d of the NRP map", rec.Translation.NRPVersion)
			}
			if got := rec.Translation.Entry.State != 0; got != tc.entry || tc.entry && rec.Flow.DestQP != tc.qp-0x1000 {
				t.Errorf("entry %v, destination QP %#x", got, rec.Flow.DestQP)
			}
			for name, w := range map[string]*wire{"": v.wire, "blue": v.blue, "red": v.red} {
				want := 0
				if tc.want == translated && name == tc.context {
					want = 1
				}
				if len(w.packets) != want {
					t.Fatalf("%d CNPs in context %q, want %d", len(w.packets), name, want)
				}
				if want == 1 {
					if cnp, err := roce.ParseCNP(w.packets[0]); err != nil || cnp.Dst != tc.sender || cnp.DestQP != tc.qp {
						t.Errorf("CNP %+v, %v", cnp, err)
					}
				}
			}
		})
	}
}

func TestFormat1StaysInTheDefaultContext(t *testing.T) {
	v := newVPNRig(t)
	v.Process([]Datagram{notification(7, 0)}, start) // of a sender that only the VPNs serve
	if rec := v.last(); rec.Outcome != pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_PREFIX || rec.Flow.Context != "" || rec.Flow.HasNRP {
		t.Errorf("%+v", rec)
	}
}

func TestEachFormatBelongsToItsPort(t *testing.T) {
	v := newVPNRig(t)
	v.Process([]Datagram{format2Datagram(10, sender4)}, start)
	v.Format2().Process([]Datagram{notification(7, 0)}, start)
	long := format2Datagram(10, sender4)
	long.Length = 9000
	v.Format2().Process([]Datagram{long}, start)
	if n := v.rec.Outcome(pncv1.Outcome_OUTCOME_PROXY_MALFORMED); n != 3 {
		t.Errorf("%d malformed, want 3", n)
	}
}

func TestWithoutAnNRPMapNoNRPIsKnown(t *testing.T) {
	r := newRig(t, nil)
	r.Format2().Process([]Datagram{format2Datagram(10, sender4)}, start)
	r.Format2().Discard([]Datagram{format2Datagram(10, sender4)}, start)
	r.SetEnabled(false)
	r.Format2().Process([]Datagram{format2Datagram(10, sender4)}, start)
	for _, o := range []evidence.Outcome{
		pncv1.Outcome_OUTCOME_PROXY_NRP_UNKNOWN, pncv1.Outcome_OUTCOME_PROXY_SHUTDOWN, pncv1.Outcome_OUTCOME_PROXY_DISABLED,
	} {
		if n := r.rec.Outcome(o); n != 1 {
			t.Errorf("%v: %d, want 1", o, n)
		}
	}
	for _, rec := range r.rec.List(evidence.Filter{}, 0) {
		if !rec.Flow.HasNRP || rec.Flow.NRP != 10 {
			t.Errorf("%v: %+v", rec.Outcome, rec.Flow)
		}
	}
}

func TestABatchForSeveralContextsIsOneCNPForEachInOrder(t *testing.T) {
	v := newVPNRig(t)
	v.blue.fail = func([]byte) error { return errQueue }
	var batch []Datagram
	for i := range 3 {
		for _, nrp := range []uint32{10, 20} {
			batch = append(batch, format2Datagram(nrp, netip.AddrFrom4([4]byte{198, 51, 100, byte(10 + i)})))
		}
	}
	v.Format2().Process(batch, start)
	if len(v.red.packets) != 3 || v.rec.Outcome(failed) != 3 || v.rec.Outcome(translated) != 3 || v.Stats().Receipts != 3 {
		t.Errorf("%d sent, %d refused, %d receipts", len(v.red.packets), v.rec.Outcome(failed), v.Stats().Receipts)
	}
	for i, p := range v.red.packets {
		if cnp, err := roce.ParseCNP(p); err != nil || cnp.SrcPort != message.EventPort(uint64(i)+1) {
			t.Errorf("CNP %d has port %d, %v", i, cnp.SrcPort, err)
		}
	}
}

func TestTheSameSourceQPInTwoContextsIsPacedApart(t *testing.T) {
	v := newVPNRig(t)
	if _, err := v.nrps.Set([]nrpmap.Mapping{
		{Key: nrpmap.Key{NRP: 50, Sender: sender4, Receiver: recv4}, SourceQP: 0x444, Context: "blue"},
	}, start); err != nil {
		t.Fatal(err)
	}
	v.Format2().Process([]Datagram{format2Datagram(40, sender4), format2Datagram(50, sender4), format2Datagram(50, sender4)}, start)
	if len(v.red.packets) != 1 || len(v.blue.packets) != 1 || v.rec.Outcome(paced) != 1 {
		t.Errorf("%d and %d CNPs, %d paced", len(v.red.packets), len(v.blue.packets), v.rec.Outcome(paced))
	}
}

func TestVerdictsOfAVPNsMapAreThoseOfTheDefaultOne(t *testing.T) {
	v := newVPNRig(t)
	v.flows[0x71] = flowmap.Undecided
	v.Format2().Process([]Datagram{format2Datagram(10, sender4), format2Datagram(20, sender4)}, start)
	if v.rec.Outcome(pncv1.Outcome_OUTCOME_PROXY_MAP_UNDECIDED) != 1 || len(v.red.packets) != 1 || len(v.blue.packets) != 0 {
		t.Errorf("%d and %d CNPs", len(v.blue.packets), len(v.red.packets))
	}
}

func TestContextsAreHeldToTheRules(t *testing.T) {
	good := Context{Name: "x", ID: 3, Local: LocalFunc(func(netip.Addr) bool { return false }), Sender: &wire{}}
	for want, edit := range map[string]func(*Context){
		"the name must":                  func(x *Context) { x.Name = "" },
		"the ID must":                    func(x *Context) { x.ID = 0 },
		"both Local and Sender":          func(x *Context) { x.Local = nil },
		"Local and Sender must be given": func(x *Context) { x.Sender = nil },
		"ServedPrefixes[0]":              func(x *Context) { x.ServedPrefixes = []netip.Prefix{{}} },
		"the same Name or ID":            func(x *Context) { x.Name = "first" },
		"as Contexts[0]":                 func(x *Context) { x.ID = 1 },
	} {
		first, x := good, good
		first.Name, first.ID = "first", 1
		edit(&x)
		cfg := testConfig()
		cfg.Contexts = []Context{first, x}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "Contexts[1]") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		r := newRig(t, nil)
		if err := r.Reconfigure(cfg); err == nil || errors.Is(err, errQueue) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
