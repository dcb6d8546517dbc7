package translator

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
)

const (
	translated = pncv1.Outcome_OUTCOME_PROXY_TRANSLATED
	paced      = pncv1.Outcome_OUTCOME_PROXY_PACED
	limited    = pncv1.Outcome_OUTCOME_PROXY_RATE_LIMITED
	failed     = pncv1.Outcome_OUTCOME_PROXY_SEND_ERROR
	malformed  = pncv1.Outcome_OUTCOME_PROXY_MALFORMED
)

// A datagram with everything wrong has its faults taken away one by one: the outcomes come in the
// order of the package comment.
func TestChecksComeInTheDocumentedOrder(t *testing.T) {
	r := newRig(t, func(c *Config) { c.TotalBurst, c.TotalPerSecond = 1, 1 })
	r.SetEnabled(false)
	r.flows[7] = flowmap.Undecided
	n := message.Notification{Src: own4, Dst: recv4, SrcPort: 50000, DstPort: 53, Proto: 6, DestQP: 7}
	served := testConfig().ServedPrefixes
	cfg := testConfig()
	cfg.TotalBurst, cfg.TotalPerSecond = 1, 1
	cfg.ServedPrefixes = nil
	if err := r.Reconfigure(cfg); err != nil {
		t.Fatal(err)
	}
	dg := datagram(n, 0)
	dg.BadSum, dg.TTL = true, 10
	dg.From = netip.MustParseAddrPort("10.0.0.1:49152")
	good := dg.Payload
	dg.Payload, dg.Length = good[:15], 15
	rebuild := func() { dg.Payload = datagram(n, 0).Payload; dg.Length = len(dg.Payload) }

	for i, s := range []struct {
		want evidence.Outcome
		fix  func()
	}{
		{pncv1.Outcome_OUTCOME_PROXY_DISABLED, func() { r.SetEnabled(true) }},
		{pncv1.Outcome_OUTCOME_PROXY_BAD_CHECKSUM, func() { dg.BadSum = false }},
		{malformed, func() { dg.Payload, dg.Length = good, len(good) }},
		{pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN, func() { dg.From = netip.AddrPortFrom(node4, 49152) }},
		{pncv1.Outcome_OUTCOME_PROXY_TTL_TOO_LOW, func() { dg.TTL = 250 }},
		{pncv1.Outcome_OUTCOME_PROXY_NOT_ROCEV2, func() { n.Proto = 17; rebuild() }},
		{pncv1.Outcome_OUTCOME_PROXY_NOT_ROCEV2, func() { n.DstPort = 4791; rebuild() }},
		{pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_PREFIX, func() {
			cfg.ServedPrefixes = served
			if err := r.Reconfigure(cfg); err != nil {
				t.Fatal(err)
			}
		}},
		{pncv1.Outcome_OUTCOME_PROXY_LOOP, func() { n.Src = sender4; rebuild() }},
		{pncv1.Outcome_OUTCOME_PROXY_MAP_UNDECIDED, func() { r.flows[7] = flowmap.Hit }},
		{translated, func() {}},
		{paced, func() { n.DestQP = 8; rebuild() }},
		{limited, func() {}},
	} {
		if got := r.one(dg, 0).Outcome; got != s.want {
			t.Fatalf("step %d: outcome %v, want %v", i, got, s.want)
		}
		if cnps := len(r.wire.packets); cnps != 0 && s.want != translated && s.want != paced && s.want != limited {
			t.Fatalf("step %d: %d CNPs", i, cnps)
		}
		s.fix()
	}
	if len(r.wire.packets) != 1 {
		t.Errorf("%d CNPs, want 1", len(r.wire.packets))
	}
	r.checkSum(t, 13)
}

func TestEveryVerdictOfTheMapHasItsOutcome(t *testing.T) {
	want := map[flowmap.Verdict]evidence.Outcome{
		flowmap.Miss:         pncv1.Outcome_OUTCOME_PROXY_MAP_MISS,
		flowmap.Hit:          translated,
		flowmap.Undecided:    pncv1.Outcome_OUTCOME_PROXY_MAP_UNDECIDED,
		flowmap.Contradicted: pncv1.Outcome_OUTCOME_PROXY_MAP_CONTRADICTED,
		flowmap.Aged:         pncv1.Outcome_OUTCOME_PROXY_MAP_AGED,
		flowmap.Closed:       pncv1.Outcome_OUTCOME_PROXY_MAP_AGED,
		flowmap.Unsupported:  pncv1.Outcome_OUTCOME_PROXY_UNSUPPORTED_TRANSPORT,
	}
	for v := flowmap.Verdict(0); v.String() != "unknown"; v++ {
		outcome, ok := want[v]
		if !ok {
			t.Errorf("no outcome is decided on for verdict %v", v)
			continue
		}
		r := newRig(t, nil)
		r.flows[7] = v
		rec := r.one(notification(7, 0), 0)
		if rec.Outcome != outcome {
			t.Errorf("%v: outcome %v, want %v", v, rec.Outcome, outcome)
		}
		if hasCNP := len(r.wire.packets) == 1; hasCNP != (v == flowmap.Hit) {
			t.Errorf("%v: %d CNPs", v, len(r.wire.packets))
		}
		if hasEntry := rec.Translation.Entry.Version == 7; hasEntry != (v != flowmap.Miss) {
			t.Errorf("%v: entry %+v", v, rec.Translation.Entry)
		}
	}
	if got := outcomeOf(flowmap.Verdict(200)); got != pncv1.Outcome_OUTCOME_PROXY_MAP_MISS {
		t.Errorf("a verdict that is not known gives %v", got)
	}
}

// The numbers of flowmap's enums are taken over as those of the protobuf.
func TestStatesAndSourcesOfTheMapAreThoseOfTheProtobuf(t *testing.T) {
	for n, name := range pncv1.FlowState_name {
		want := strings.ToLower(strings.TrimPrefix(name, "FLOW_STATE_"))
		if got := flowmap.State(n).String(); got != want {
			t.Errorf("state %d: %q in the map, %q in the protobuf", n, got, want)
		}
	}
	for n, name := range pncv1.FlowSource_name {
		want := strings.ToLower(strings.TrimPrefix(name, "FLOW_SOURCE_"))
		if n == 0 {
			want = "none"
		}
		if got := flowmap.Source(n).String(); got != want {
			t.Errorf("source %d: %q in the map, %q in the protobuf", n, got, want)
		}
	}
}

func TestTheCNPNamesTheSourceQPAsIfFromTheReceiver(t *testing.T) {
	for _, tc := range []struct {
		n    message.Notification
		want roce.CNP
	}{
		{
			message.Notification{Src: sender4, Dst: recv4, SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: 0x18d},
			roce.CNP{Src: recv4, Dst: sender4, SrcPort: 49153, TOS: 0xC2, TTL: 64, IPID: 1, PKey: 0x8001, DestQP: 0x118d},
		},
		{
			message.Notification{Src: sender6, Dst: recv6, SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: 0x18d},
			roce.CNP{Src: recv6, Dst: sender6, SrcPort: 49153, TOS: 0xC2, TTL: 64, PKey: 0x8001, DestQP: 0x118d},
		},
	} {
		r := newRig(t, nil)
		rec := r.one(datagram(tc.n, 5), 0)
		want, err := roce.AppendCNP(nil, &tc.want)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.wire.packets) != 1 || !bytes.Equal(r.wire.packets[0], want) {
			t.Fatalf("CNPs %x, want %x", r.wire.packets, want)
		}
		if ok, err := roce.VerifyICRC(r.wire.packets[0]); !ok {
			t.Errorf("ICRC: %v", err)
		}
		tr := rec.Translation
		if tr.SourceQP != 0x118d || tr.Receipt != 1 || tr.ReceiptPort != 49153 || tr.Node != node4 || tr.EventPort != 49157 ||
			tr.Latency != time.Millisecond || rec.Flow.DestQP != 0x18d || !rec.At.Equal(start.Add(-time.Microsecond)) {
			t.Errorf("record %+v", rec)
		}
	}
}

func TestMalformedSaysWhy(t *testing.T) {
	base := message.Notification{Src: sender4, Dst: recv4, SrcPort: 50000, DstPort: 4791, Proto: 17, DestQP: 7}
	with := func(edit func(*message.Notification)) Datagram {
		n := base
		edit(&n)
		return datagram(n, 0)
	}
	format2 := notification(7, 0)
	format2.Payload = append(format2.Payload, 0, 0, 0, 1)
	format2.Length += 4
	empty := notification(7, 0)
	empty.Payload, empty.Length = nil, 0
	long := notification(7, 0)
	long.Payload, long.Length = make([]byte, keep), 9000
	for _, tc := range []struct {
		name string
		dg   Datagram
		want string
	}{
		{"format 2", format2, "format 2 has a port of its own"},
		{"empty", empty, "length fits no format: 0 octets"},
		{"longer than what is kept", long, "length fits no format: 9000 octets"},
		{"no sender", with(func(n *message.Notification) { n.Src = netip.IPv4Unspecified() }), "unicast"},
		{"no receiver", with(func(n *message.Notification) { n.Dst = netip.IPv4Unspecified() }), "unicast"},
		{"multicast receiver", with(func(n *message.Notification) { n.Dst = netip.MustParseAddr("224.0.0.1") }), "unicast"},
		{"broadcast sender", with(func(n *message.Notification) { n.Src = broadcast }), "unicast"},
		{"IPv4 mapped into IPv6", with(func(n *message.Notification) {
			n.Src, n.Dst = netip.MustParseAddr("::ffff:198.51.100.2"), recv6
		}), "mapped"},
	} {
		r := newRig(t, nil)
		rec := r.one(tc.dg, 0)
		if rec.Outcome != malformed || !strings.Contains(rec.Err, tc.want) || len(r.wire.packets) != 0 {
			t.Errorf("%s: outcome %v, error %q, %d CNPs", tc.name, rec.Outcome, rec.Err, len(r.wire.packets))
		}
	}
}

func TestDomainIsSourceAndInterface(t *testing.T) {
	foreign := netip.MustParseAddr("10.0.0.1")
	for _, tc := range []struct {
		name   string
		edit   func(*Config)
		from   netip.Addr
		ifname string
		want   bool
	}{
		{"IPv4 source within", nil, node4, "eth1", true},
		{"IPv6 source within", nil, node6, "eth1", true},
		{"source outside", nil, foreign, "eth1", false},
		{"nothing configured", func(c *Config) { c.AcceptFrom = nil }, node4, "eth1", false},
		{"interface listed", func(c *Config) { c.Interfaces = []string{"eth0", "eth1"} }, node4, "eth1", true},
		{"interface not listed", func(c *Config) { c.Interfaces = []string{"eth0"} }, node4, "eth1", false},
		{"interface gone", func(c *Config) { c.Interfaces = []string{"eth0"} }, node4, "", false},
	} {
		r := newRig(t, tc.edit)
		dg := notification(7, 0)
		dg.From, dg.IfName = netip.AddrPortFrom(tc.from, 50000), tc.ifname
		got := r.one(dg, 0).Outcome
		if want := pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN; tc.want != (got == translated) || !tc.want && got != want {
			t.Errorf("%s: outcome %v", tc.name, got)
		}
		if followed := len(r.Nodes()) == 1; followed != tc.want {
			t.Errorf("%s: event numbers followed: %v", tc.name, followed)
		}
	}
}

func TestMinimumTTL(t *testing.T) {
	for _, tc := range []struct {
		min  uint8
		ttl  int
		want bool
	}{{250, 250, true}, {250, 249, false}, {255, 255, true}, {1, UnknownTTL, false}, {0, UnknownTTL, true}, {0, 1, true}} {
		r := newRig(t, func(c *Config) { c.MinTTL = tc.min })
		dg := notification(7, 0)
		dg.TTL = tc.ttl
		if got := r.one(dg, 0).Outcome; (got == translated) != tc.want {
			t.Errorf("minimum %d, TTL %d: outcome %v", tc.min, tc.ttl, got)
		}
	}
}

func TestPacingGoesBySourceQPAndSender(t *testing.T) {
	r := newRig(t, nil)
	other := datagram(message.Notification{Src: sender6, Dst: recv6, DstPort: 4791, Proto: 17, DestQP: 7}, 0)
	for i, s := range []struct {
		dg    Datagram
		after time.Duration
		want  evidence.Outcome
	}{
		{notification(7, 0), 0, translated},
		{notification(7, 1), 49 * time.Microsecond, paced},
		{notification(8, 2), 49 * time.Microsecond, translated},
		{other, 49 * time.Microsecond, translated}, // the same Source QP at another sender
		{notification(7, 3), 50 * time.Microsecond, translated},
	} {
		if got := r.one(s.dg, s.after).Outcome; got != s.want {
			t.Errorf("step %d: outcome %v, want %v", i, got, s.want)
		}
	}
	for i := range 40_000 {
		r.Process([]Datagram{notification(9, 0)}, start.Add(time.Duration(i)*25*time.Microsecond))
	}
	if got := r.rec.Outcome(translated); got != 4+1000 {
		t.Errorf("%d CNPs for one Source QP in a second, want 1000", got-4)
	}
}

func TestTwoOfOneBatchForOneSourceQPAreOneCNP(t *testing.T) {
	r := newRig(t, nil)
	r.Process([]Datagram{notification(7, 0), notification(7, 1), notification(8, 2)}, start)
	if len(r.wire.packets) != 2 || r.rec.Outcome(paced) != 1 {
		t.Errorf("%d CNPs, %d paced; want 2, 1", len(r.wire.packets), r.rec.Outcome(paced))
	}
}

func TestTheFlowsPKeyIsTakenWhenItWasLearned(t *testing.T) {
	r := newRig(t, func(c *Config) { c.CNPPKey = 0x7fff; c.CNPTOS = 0xc0; c.CNPTTL = 32 })
	r.core.flows = noPKey{}
	r.one(notification(7, 0), 0)
	c, err := roce.ParseCNP(r.wire.packets[0])
	if err != nil || c.PKey != 0x7fff || c.TOS != 0xc0 || c.TTL != 32 {
		t.Errorf("CNP %+v, %v", c, err)
	}
}

type noPKey struct{ flows }

func (noPKey) Lookup(k flowmap.Key, _ time.Time) (flowmap.Entry, flowmap.Verdict) {
	return flowmap.Entry{Key: k, State: flowmap.StateLearned, SourceQP: 5}, flowmap.Hit
}

func TestConfigNamesTheFieldOutOfRange(t *testing.T) {
	for field, cfg := range map[string]Config{
		"AcceptFrom[0]":     {AcceptFrom: []netip.Prefix{{}}},
		"ServedPrefixes[1]": {ServedPrefixes: []netip.Prefix{netip.MustParsePrefix("::/0"), netip.PrefixFrom(netip.MustParseAddr("::ffff:1.2.3.4"), 128)}},
		"Interfaces[0]":     {Interfaces: []string{""}},
		"PaceWindow":        {PaceWindow: -1},
		"PerQPPerSecond":    {PerQPPerSecond: -1},
		"TotalPerSecond":    {TotalPerSecond: -1},
		"TotalBurst":        {TotalBurst: -1},
		"MaxQPs":            {MaxQPs: -1},
		"MaxNodes":          {MaxNodes: -1},
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
	if _, err := New(testConfig(), Deps{}); err == nil || !strings.Contains(err.Error(), "FlowMap") {
		t.Errorf("error %v", err)
	}
}
