package translate

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
	"pncd/proxyagent/nrpmap"
	"pncd/proxyagent/translator"
)

// notificationsEnv says how many notifications the differential test takes: CI affords fewer than a million.
const (
	notificationsEnv     = "PNCD_TRANSLATE_NOTIFICATIONS"
	defaultNotifications = 100_000
)

// keeper is a Sender that keeps the last packet.
type keeper struct{ packet []byte }

func (k *keeper) Send(packets [][]byte) (int, error) {
	k.packet = append(k.packet[:0], packets[len(packets)-1]...)
	return len(packets), nil
}

// knowledge is a Source-QP map that the test writes.
type knowledge map[flowmap.Key]known

type known struct {
	qp      uint32
	pkey    uint16
	version uint64
	verdict flowmap.Verdict
}

func (k knowledge) Lookup(key flowmap.Key, _ time.Time) (flowmap.Entry, flowmap.Verdict) {
	x, ok := k[key]
	if !ok {
		return flowmap.Entry{Key: key}, flowmap.Miss
	}
	e := flowmap.Entry{Key: key, State: flowmap.StateUndecided, Version: x.version}
	if x.verdict == flowmap.Hit {
		e.State, e.SourceQP, e.PKey = flowmap.StateConfirmed, x.qp, x.pkey
	}
	return e, x.verdict
}

// portOf is the UDP source port of a flow of the test.
func portOf(k flowmap.Key) uint16 { return 50000 + uint16(k.DestQP) }

// LookupTuple is for format 2.
func (k knowledge) LookupTuple(t flowmap.Tuple, now time.Time) (flowmap.Entry, flowmap.Verdict) {
	return k.Lookup(flowmap.Key{Context: t.Context, Sender: t.Sender, Receiver: t.Receiver, DestQP: uint32(t.SrcPort - 50000)}, now)
}

// LookupTupleAlone is LookupTuple: each port is one flow's.
func (k knowledge) LookupTupleAlone(t flowmap.Tuple, now time.Time) (flowmap.Entry, flowmap.Verdict) {
	return k.LookupTuple(t, now)
}

// shares are the program's, for the translator behind it.
type shares struct {
	*Translator
	want func(translator.Flow2)
}

func (s shares) Want(f translator.Flow2, _ time.Time) { s.want(f) }

func (s shares) Take(context uint32, sender netip.Addr, qp uint32) (evidence.Outcome, uint64, error) {
	o, receipt, err := s.Translator.Take(context, sender, qp)
	return evidence.Outcome(o), receipt, err
}

// user is a translator in user space with all that it needs.
type user struct {
	*translator.Translator
	rec  *evidence.Recorder
	wire keeper
}

func newUser(t *testing.T, cfg translator.Config, flows knowledge, nrps *nrpmap.Map) *user {
	t.Helper()
	rec, err := evidence.NewRecorder(evidence.Config{Capacity: 16})
	if err != nil {
		t.Fatal(err)
	}
	u := &user{rec: rec}
	cfg.Contexts = u.contexts()
	u.Translator, err = translator.New(cfg, translator.Deps{
		FlowMap: flows, NRPs: nrps, Local: translator.LocalFunc(func(a netip.Addr) bool { return a == localSender }),
		Sender: &u.wire, Recorder: rec, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	u.SetEnabled(true)
	return u
}

// contexts of the test, with numbers in the Source-QP map: and one of them that the program can't send to.
var contexts = map[string]uint32{"blue": 1, "red": 2, "elsewhere": 3}

func (u *user) contexts() (out []translator.Context) {
	for name, id := range contexts {
		out = append(out, translator.Context{
			Name: name, ID: id, ServedPrefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/23"), netip.MustParsePrefix("2001:db8:2::/47")},
			Local: translator.LocalFunc(func(netip.Addr) bool { return false }), Sender: &u.wire,
		})
	}
	return out
}

// one gives the outcome of a datagram, and its CNP.
func (u *user) one(dg translator.Datagram, format2 bool, now time.Time) (evidence.Record, []byte) {
	u.wire.packet = u.wire.packet[:0]
	var h translator.Handler = u
	if format2 {
		h = u.Format2()
	}
	h.Process([]translator.Datagram{dg}, now)
	return u.rec.List(evidence.Filter{}, 1)[0], u.wire.packet
}

// localSender is an address of the place itself, among the prefixes served.
var localSender = netip.MustParseAddr("198.51.104.1")

// differential feeds the same notifications to a translator in user space, and to one behind the program.
type differential struct {
	*bench
	r         *rand.Rand
	flows     knowledge
	nrps      *nrpmap.Map
	installed map[translator.Flow2]bool // flows of format 2 that the program has had an answer for
	err       error                     // of keeping them
	vpnKeys   []flowmap.Key
	keys      []flowmap.Key
	reference *user
	behind    *user
	policy    Policy
	start     time.Time
	mono      uint64        // the program's clock at start
	at        time.Duration // since then
	version   uint64
	buf       []byte
	decided   map[evidence.Outcome]int // by the program
	up        int
	sent      map[uint32]int // XDP actions
	vpns      map[string]int // CNPs by the program into VPNs
	byNRP     int            // decisions by the program with a Source QP of the NRP map
}

func (d *differential) now() time.Time { return d.start.Add(d.at) }

func newDifferential(t *testing.T) *differential {
	b := newBench(t, Config{}, true)
	if err := b.place.ns.Addr("va", netip.PrefixFrom(localSender, 32)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var clock kernel.WallClock
	clock.Compare(start)
	d := &differential{
		bench: b, r: rand.New(rand.NewPCG(1, 2)), flows: knowledge{}, policy: testPolicy(), start: start, mono: clock.Mono(start),
		buf: make([]byte, 512), decided: map[evidence.Outcome]int{}, sent: map[uint32]int{}, vpns: map[string]int{},
	}
	cfg := d.userConfig()
	d.nrps, d.installed = nrpmap.New(1000), map[translator.Flow2]bool{}
	d.reference, d.behind = newUser(t, cfg, d.flows, d.nrps), newUser(t, cfg, d.flows, d.nrps)
	d.nrps.OnChange(func() { d.follow2(func(translator.Flow2) bool { return true }) })
	if err := d.behind.Share(func(used uint64) (translator.Shares, error) {
		return shares{b.Translator, func(f translator.Flow2) { d.err = errors.Join(d.err, d.put2(f)) }}, b.SetReceipts(used)
	}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct{ sender, receiver netip.Addr }{
		{here4, receiver4}, {there4, receiver4}, {here6, receiver6}, {there6, receiver6}, {silent4, receiver4}, {lost4, receiver4}, {localSender, receiver4},
	} {
		for qp := range uint32(6) {
			k := flowmap.Key{Sender: s.sender, Receiver: s.receiver, DestQP: 0x100 + qp}
			d.keys = append(d.keys, k)
			if s.sender == here4 || s.sender == here6 || s.sender == there4 { // the last one without a route in a VPN
				for _, k.Context = range contexts {
					d.vpnKeys = append(d.vpnKeys, k)
				}
			}
		}
	}
	return d
}

// put2 gives the program the answer of a flow of format 2 as it is now, or takes it back.
func (d *differential) put2(f translator.Flow2) error {
	flow := Flow{Sender: f.Sender, Receiver: f.Receiver, Format2: true, SrcPort: f.SrcPort, NRP: f.NRP}
	r, ok := d.behind.Resolve(f, d.flows, d.now())
	at, here := d.place.vpns[r.Name]
	if !ok || r.Name != "" && !here {
		return d.Remove(flow)
	}
	d.installed[f] = true
	a := Answer{
		CNP:     roce.CNP{Src: f.Receiver, Dst: f.Sender, TOS: roce.DefaultCNPTOS, PKey: r.PKey, DestQP: r.SourceQP},
		Context: r.Context, Table: at.table, Version: r.Entry.Version, NRPVersion: r.NRPVersion,
	}
	if a.Version != 0 {
		a.Until = d.now().Add(time.Duration(1+d.r.IntN(60)) * 500 * time.Millisecond)
	}
	return d.Put(flow, a)
}

// follow2 brings answers of format 2 to what they are now.
func (d *differential) follow2(which func(translator.Flow2) bool) {
	for f := range d.installed {
		if which(f) {
			d.err = errors.Join(d.err, d.put2(f))
		}
	}
}

// remap changes the NRP map: entries for Source QPs and for VPNs, of which one does not exist.
func (d *differential) remap() error {
	k := d.keys[d.r.IntN(len(d.keys))]
	m := nrpmap.Mapping{Key: nrpmap.Key{NRP: uint32(d.r.IntN(8))}, Context: []string{"blue", "red", "elsewhere", "nowhere"}[d.r.IntN(4)]}
	if d.r.IntN(2) == 0 {
		m.Sender, m.Receiver, m.SourceQP = k.Sender, k.Receiver, 0x1000+uint32(d.r.IntN(12))
		m.Context = []string{"", "blue", "red", "elsewhere"}[d.r.IntN(4)]
	}
	if d.r.IntN(4) == 0 {
		if err := d.nrps.Delete(m.Key); !errors.Is(err, nrpmap.ErrNotFound) {
			return err
		}
		return nil
	}
	_, err := d.nrps.Set([]nrpmap.Mapping{m}, d.now())
	return err
}

// relearnVPN gives some flow of a VPN another state.
func (d *differential) relearnVPN() {
	k := d.vpnKeys[d.r.IntN(len(d.vpnKeys))]
	d.version++
	d.flows[k] = known{version: d.version, qp: 0x1000 + uint32(d.r.IntN(12)), pkey: uint16(d.r.IntN(3))}
	if d.r.IntN(5) == 0 {
		d.flows[k] = known{version: d.version, verdict: flowmap.Verdict(d.r.IntN(7))}
	} else {
		x := d.flows[k]
		x.verdict = flowmap.Hit
		d.flows[k] = x
	}
	d.follow2(func(f translator.Flow2) bool { return f.Sender == k.Sender && f.Receiver == k.Receiver })
}

func (d *differential) userConfig() translator.Config {
	p := d.policy
	return translator.Config{
		AcceptFrom: p.AcceptFrom, Interfaces: []string{"va"}, MinTTL: p.MinTTL, ServedPrefixes: p.Served, PaceWindow: p.Window,
		PerQPPerSecond: p.PerSecond, TotalPerSecond: p.TotalPerSecond, TotalBurst: p.TotalBurst,
	}
}

// relearn gives some flow another state, in both maps; the kernel gets no answer for some that are known.
func (d *differential) relearn() error {
	k := d.keys[d.r.IntN(len(d.keys))]
	f := Flow{Sender: k.Sender, Receiver: k.Receiver, DestQP: k.DestQP}
	d.version++
	x := known{version: d.version, verdict: flowmap.Verdict(d.r.IntN(7))}
	if d.r.IntN(6) > 0 {
		x.verdict = flowmap.Hit
	}
	d.flows[k] = x
	if x.verdict == flowmap.Miss {
		delete(d.flows, k)
	}
	if x.verdict != flowmap.Hit {
		return d.Remove(f)
	}
	x.qp = 0x1000 + uint32(d.r.IntN(12)) // several flows of one Source QP
	if d.r.IntN(3) == 0 {
		x.qp = d.r.Uint32() & 0xFFFFFF
	}
	if d.r.IntN(2) == 0 {
		x.pkey = uint16(d.r.Uint32())
	}
	d.flows[k] = x
	if d.r.IntN(8) == 0 {
		return d.Remove(f)
	}
	until := d.now().Add(time.Duration(1+d.r.IntN(60)) * 500 * time.Millisecond)
	err := d.Put(f, Answer{
		CNP:   roce.CNP{Src: k.Receiver, Dst: k.Sender, TOS: roce.DefaultCNPTOS, PKey: x.pkey, DestQP: x.qp},
		Until: until, Version: x.version,
	})
	return err
}

// newPolicy changes limits and prefixes.
func (d *differential) newPolicy() error {
	p := testPolicy()
	p.Window = []time.Duration{0, 50 * time.Microsecond, time.Millisecond}[d.r.IntN(3)]
	p.PerSecond = []int{1, 5, 1000}[d.r.IntN(3)]
	p.TotalPerSecond = []int{3, 20_000, 1_000_000}[d.r.IntN(3)]
	p.TotalBurst = []int{1, 10, 10_000}[d.r.IntN(3)]
	p.MinTTL = []uint8{0, 1, 250, 255}[d.r.IntN(4)]
	if d.r.IntN(4) == 0 {
		p.AcceptFrom = append(p.AcceptFrom, netip.MustParsePrefix("::/0"))
	}
	if d.r.IntN(4) == 0 {
		p.Served = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("2001:db8:2:1::/64")}
	}
	if p.Window == 0 {
		p.Window = 1 // the translator in user space takes zero for the default
	}
	d.policy = p
	reconfigure := func(u *user) error {
		cfg := d.userConfig()
		cfg.Contexts = u.contexts()
		return u.Reconfigure(cfg)
	}
	err := errors.Join(d.SetPolicy(p), reconfigure(d.reference), reconfigure(d.behind))
	d.follow2(func(translator.Flow2) bool { return true })
	return err
}

// probe is one notification, and what the stack would make of it.
type probe struct {
	outer
	payload []byte
	ifindex uint32
	stray   bool // it is not one for our socket
	format2 bool
}

func (d *differential) next() probe {
	r := d.r
	chance := func(n int) bool { return r.IntN(n) == 0 }
	k := d.keys[r.IntN(len(d.keys))]
	n := message.Notification{Src: k.Sender, Dst: k.Receiver, SrcPort: uint16(r.Uint32()), DstPort: roce.UDPPort, Proto: 17, DestQP: k.DestQP}
	if chance(40) {
		n.DstPort = uint16(r.Uint32())
	}
	if chance(40) {
		n.Proto = uint8(r.Uint32())
	}
	if chance(40) {
		n.DestQP = r.Uint32() & 0xFFFFFF
	}
	if chance(40) { // addresses of all kinds
		odd := []string{"0.0.0.0", "255.255.255.255", "224.0.0.5", "239.1.1.1", "240.0.0.1", "127.0.0.1", "198.51.100.9", "192.0.2.77"}
		if !n.Src.Is4() {
			odd = []string{"::", "::1", "ff02::1", "fe80::2", "::ffff:198.51.100.2", "2001:db8:2:1::77", "2001:db8:77::1"}
		}
		a := netip.MustParseAddr(odd[r.IntN(len(odd))])
		if chance(2) {
			n.Src = a
		} else {
			n.Dst = a
		}
	}
	payload, err := n.Append(nil)
	port, format2 := uint16(testPort), chance(2)
	if format2 {
		n2 := message.Notification2{Src: n.Src, Dst: n.Dst, SrcPort: portOf(k), DstPort: n.DstPort, Proto: n.Proto, NRP: uint32(r.IntN(9))}
		if chance(20) {
			n2.SrcPort = uint16(r.Uint32())
		}
		if chance(40) {
			n2.NRP = r.Uint32()
		}
		payload, err = n2.Append(nil)
		if at := len(payload) - 7; chance(3) { // what is reserved doesn't matter
			payload[at], payload[at+2] = byte(r.Uint32()), byte(r.Uint32())
		}
		port = testPort2
	}
	if err != nil {
		panic(err)
	}
	p := probe{payload: payload, ifindex: d.place.inner, format2: format2}
	p.outer = outer{from: node4, to: own4, port: port, fromPort: uint16(r.Uint32()), ttl: 255}
	if chance(3) {
		p.from, p.to = node6, own6
	}
	if chance(30) {
		p.from = netip.MustParseAddr("203.0.114.1")
		if p.to == own6 {
			p.from = netip.MustParseAddr("2001:db8:fffe::1")
		}
	}
	if chance(30) {
		p.ttl = uint8(r.Uint32())
	}
	if chance(30) {
		p.ifindex = d.place.outer
	}
	if chance(20) {
		p.payload = make([]byte, r.IntN(64))
		if chance(4) {
			p.payload = make([]byte, []int{16, 20, 40, 44}[r.IntN(4)])
		}
		for i := range p.payload {
			p.payload[i] = byte(r.Uint32())
		}
	}
	switch r.IntN(60) {
	case 0:
		p.badSum = true
	case 1:
		p.noSum = true
		p.badSum = p.to == own6 // over IPv6 there has to be one
	case 2:
		p.options, p.from, p.to = true, node4, own4
	case 3:
		p.padTo = 60 + r.IntN(40)
	case 4:
		p.stray, p.port = true, testPort+2
	case 5:
		p.stray, p.to = true, netip.MustParseAddr("192.0.2.2")
		p.from = node4
	case 6:
		p.stray, p.fragment, p.from, p.to = true, true, node4, own4
	case 7:
		p.stray, p.badIPSum, p.from, p.to = true, true, node4, own4
	case 8:
		p.stray, p.udpLength = true, 1
	}
	p.mac = d.place.macs[p.ifindex]
	if chance(60) {
		p.stray, p.mac[5] = true, p.mac[5]^1
	}
	if chance(3) {
		p.padTo = max(p.padTo, 60)
	}
	return p
}

// datagram is what the socket would give of it.
func (d *differential) datagram(p *probe) translator.Datagram {
	dg := translator.Datagram{
		Payload: p.payload, Length: len(p.payload), From: netip.AddrPortFrom(p.from, p.fromPort), To: p.to, TTL: int(p.ttl),
		IfIndex: int(p.ifindex), IfName: "va", BadSum: p.badSum, At: d.now(), ReadAt: d.now(),
	}
	if p.ifindex == d.place.outer {
		dg.IfName = "wa"
	}
	return dg
}

// compare takes one notification through both.
func (d *differential) compare() error {
	p := d.next()
	frame := p.frame(p.payload)
	if err := d.vars.TurnedTo.Set(d.mono + uint64(d.at)); err != nil {
		return err
	}
	clear(d.buf)
	action, out, err := d.run(frame, d.buf[:cap(d.buf)], p.ifindex)
	if err != nil {
		return err
	}
	if p.stray {
		if action != xdpPass || !bytes.Equal(out, frame) {
			return fmt.Errorf("%+v: action %d: it is not for us", p, action)
		}
		return nil
	}
	dg := d.datagram(&p)
	want, packet := d.reference.one(dg, p.format2, d.now())
	if action == xdpPass {
		if !bytes.Equal(out, frame) {
			return fmt.Errorf("%+v: passed on, and changed:\n%x\n%x", p, frame, out)
		}
		d.up++
		got, cnp := d.behind.one(dg, p.format2, d.now())
		if got.Outcome != want.Outcome || !bytes.Equal(cnp, packet) || got.Err != want.Err || got.Translation.Receipt != want.Translation.Receipt {
			return fmt.Errorf("%+v: behind the program %v %x (%s), reference %v %x (%s)", p, got.Outcome, cnp, got.Err, want.Outcome, packet, want.Err)
		}
		return nil
	}
	return d.compareDecided(&p, action, out, want, packet)
}

func (d *differential) compareDecided(p *probe, action uint32, out []byte, want evidence.Record, packet []byte) error {
	var e Event
	var cnp []byte
	n, err := d.read(time.Now(), func(x *Event) { e = *x; e.Payload = bytes.Clone(x.Payload) })
	if err != nil || n != 1 {
		return fmt.Errorf("%+v: %d events, %w", p, n, err)
	}
	d.decided[evidence.Outcome(e.Outcome)]++
	d.sent[action]++
	if action != xdpDrop {
		cnp = out[14:]
		to := d.place.inner
		if name := want.Flow.Context; name != "" {
			to = d.place.vpns[name].port
			d.vpns[name]++
		} else if action == xdpRedirect {
			to = d.place.outer
		}
		next, own := d.place.next[to], d.place.macs[to]
		if !bytes.Equal(out[:6], next[:]) || !bytes.Equal(out[6:12], own[:]) || out[12] != map[bool]byte{true: 0x08, false: 0x86}[len(cnp) == 60] {
			return fmt.Errorf("%+v: frame %x", p, out)
		}
		if ok, err := roce.VerifyICRC(cnp); !ok || err != nil {
			return fmt.Errorf("%+v: %x: ICRC %v, %v", p, cnp, ok, err)
		}
	}
	t := &want.Translation
	qp := t.Entry.SourceQP
	if m, ok := d.nrps.Lookup(want.Flow.NRP, want.Flow.Sender, want.Flow.Receiver); p.format2 && t.NRPVersion != 0 && ok && m.ForQP() {
		qp = m.SourceQP
		d.byNRP++
	}
	if evidence.Outcome(e.Outcome) != want.Outcome || !bytes.Equal(cnp, packet) || e.Receipt != t.Receipt ||
		e.From != netip.AddrPortFrom(t.Node, t.EventPort) || e.To != p.to || e.TTL != p.ttl || !bytes.Equal(e.Payload, p.payload) ||
		e.IfIndex != int(p.ifindex) || e.Version != t.Entry.Version || e.SourceQP != qp || e.NRP != t.NRPVersion {
		return fmt.Errorf("%+v:\nprogram   %d %+v %x\nreference %v %+v %x", p, action, e, cnp, want.Outcome, want, packet)
	}
	return nil
}

// step moves the clock: mostly a little, sometimes past a second.
func (d *differential) step() {
	switch d.r.IntN(2000) {
	case 0:
		d.at += time.Duration(d.r.Int64N(int64(2 * time.Second)))
	default:
		d.at += time.Duration(d.r.Int64N(int64(20 * time.Microsecond)))
	}
}

// Both translators come to the same outcome and the same CNP, byte for byte, receipt numbers included, whoever decides.
func TestDecidesAsTheReference(t *testing.T) {
	n := defaultNotifications
	if s := os.Getenv(notificationsEnv); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s: %v", notificationsEnv, err)
		}
	}
	d := newDifferential(t)
	err := d.place.ns.Do(func() error {
		for i := range n {
			if i < 500 || d.r.IntN(20) == 0 {
				if err := d.relearn(); err != nil {
					return err
				}
				d.relearnVPN()
			}
			if i < 50 || d.r.IntN(100) == 0 {
				if err := d.remap(); err != nil {
					return err
				}
			}
			if d.err != nil {
				return d.err
			}
			if d.r.IntN(1000) == 0 {
				if err := d.newPolicy(); err != nil {
					return err
				}
			}
			d.step()
			if err := d.compare(); err != nil {
				return fmt.Errorf("notification %d: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d notifications: %d to user space, by the program %v, actions %v", n, d.up, d.decided, d.sent)
	// The test must have met everything that the program can say.
	for _, o := range []Outcome{Translated, NotOurDomain, TTLTooLow, NotRoCEv2, NotOurPrefix, Paced, RateLimited} {
		if d.decided[evidence.Outcome(o)] < n/2000 {
			t.Errorf("%v: %d of %d", pncv1.Outcome(o), d.decided[evidence.Outcome(o)], n)
		}
	}
	if d.vpns["blue"] < n/1000 || d.vpns["red"] < n/1000 || d.vpns["elsewhere"] != 0 || d.byNRP < n/1000 {
		t.Errorf("decided of VPNs %v, by an NRP's Source QP %d", d.vpns, d.byNRP)
	}
	if d.sent[xdpTx] < n/200 || d.sent[xdpRedirect] < n/200 {
		t.Errorf("actions %v", d.sent)
	}
	c, err := d.Counters()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for o, got := range c.Outcomes {
		total += int(got)
		if int(got) != d.decided[evidence.Outcome(o)] {
			t.Errorf("%v: counted %d, decided %d", pncv1.Outcome(o), got, d.decided[evidence.Outcome(o)])
		}
	}
	if total == 0 || c.Lost != 0 {
		t.Errorf("%d outcomes, %d events lost", total, c.Lost)
	}
	for _, why := range []Reason{UpChecksum, UpFormat, UpAnswer, UpRoute} {
		if c.Up[why] == 0 {
			t.Errorf("%v: none", why)
		}
	}
	if got, err := d.Receipts(); err != nil || got != d.reference.Stats().Receipts {
		t.Errorf("%d receipt numbers, %v; the reference gave %d", got, err, d.reference.Stats().Receipts)
	}
}
