package daemon

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"pncd/dataplane/host"
	"pncd/dataplane/roce"
	tapkernel "pncd/dataplane/tap/kernel"
	"pncd/internal/config"
	"pncd/internal/testwait"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/readiness"
)

// ownNamespace is a place for a VPN that every test has: that of the thread which opens it. The main thread, which
// /proc/self is about, may be in another one, where a test has left it.
const ownNamespace = "/proc/thread-self/ns/net"

const vpnTemplate = template + `
  port_format2: %PORT2%
  nrp: {map: [{id: 1, context: blue}]}
contexts: [{name: blue, namespace: ` + ownNamespace + `, taps: [lo]}, {name: gone}]
`

// inBlue and inGone are the sender with its address in VPNs: one that is here, and one that is not.
var inBlue, inGone = readiness.Key{Context: "blue", Prefix: theSender.Prefix}, readiness.Key{Context: "gone", Prefix: theSender.Prefix}

// vpnsUnderTest runs a daemon with the same sender in the default context and in VPNs.
func vpnsUnderTest(t *testing.T, within time.Duration) (r *running, port2 string) {
	t.Helper()
	port2 = strconv.Itoa(int(freePort(t)))
	r = start(t, strings.ReplaceAll(vpnTemplate, "%PORT2%", port2))
	r.senders.mu.Lock()
	r.senders.paths = newSenderPaths(&routes{})
	r.senders.mu.Unlock()
	r.change(func(p *config.Proxy) {
		p.Readiness.TrafficWithin = config.Duration{Duration: within}
		p.Senders = nil
		for _, k := range []readiness.Key{theSender, inBlue, inGone} {
			p.Senders = append(p.Senders, config.Sender{Context: k.Context, Prefix: config.Prefix{Prefix: k.Prefix}, Mode: "originate", Proxy: p.IPv4, NextHop: p.IPv4})
		}
	})
	if _, err := r.Enable(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r, port2
}

// lacks gives the first thing that a prefix lacks.
func (r *running) lacks(k readiness.Key) readiness.Failure {
	r.followReadiness()
	r.senders.mu.Lock()
	defer r.senders.mu.Unlock()
	if st, _ := r.senders.book.Get(k); len(st.Failed) > 0 {
		return st.Failed[0]
	}
	return readiness.Failure{}
}

// keyOf finds a unit by its name.
func (r *running) keyOf(name string) string {
	r.t.Helper()
	r.units.mu.Lock()
	defer r.units.mu.Unlock()
	for key, u := range r.units.units {
		if u.spec.name == name {
			return key
		}
	}
	r.t.Fatalf("no unit %s", name)
	return ""
}

func TestEachContextsSendersFollowTheirOwnParts(t *testing.T) {
	for part, want := range map[string][2]readiness.Reason{ // of the default context's sender, and of blue's
		"tap:lo":                     {readiness.TapDown, readiness.None},
		"tap:blue/lo":                {readiness.None, readiness.TapDown},
		"learner":                    {readiness.SocketDown, readiness.None},
		"learner:contexts":           {readiness.None, readiness.SocketDown},
		"sender":                     {readiness.SocketDown, readiness.None},
		"context:blue":               {readiness.None, readiness.SocketDown},
		"translator:127.0.0.1:PORT":  {readiness.SocketDown, readiness.None},
		"translator:127.0.0.1:PORT2": {readiness.None, readiness.SocketDown},
	} {
		t.Run(part, func(t *testing.T) {
			r, port2 := vpnsUnderTest(t, 0)
			for _, k := range []readiness.Key{theSender, inBlue} {
				if f := r.lacks(k); f.Reason != readiness.None {
					t.Fatalf("%v lacks %+v", k, f)
				}
			}
			name := strings.NewReplacer("PORT2", port2, "PORT", strconv.Itoa(int(r.port))).Replace(part)
			r.replace(name, r.keyOf(name)).breakDown(errors.New("it is gone"))
			for i, k := range []readiness.Key{theSender, inBlue} {
				testwait.Until(t, k.Context+" lacks "+want[i].String(), func() bool { return r.lacks(k).Reason == want[i] })
				if f := r.lacks(k); f.Reason != readiness.None && !strings.HasSuffix(f.Detail, "it is gone") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestASenderInAVPNWithoutAPlaceIsNeverReady(t *testing.T) {
	r, _ := vpnsUnderTest(t, 0)
	if f := r.lacks(inGone); f.Reason != readiness.SocketDown || !strings.Contains(f.Detail, "context gone has no place") {
		t.Errorf("%+v", f)
	}
	r.change(func(p *config.Proxy) { p.NRP = nil })
	if f := r.lacks(inBlue); f.Reason != readiness.SocketDown || !strings.Contains(f.Detail, "proxy.nrp") {
		t.Errorf("without a port for format 2: %+v", f)
	}
	if f := r.lacks(theSender); f.Reason != readiness.None {
		t.Errorf("format 1 needs none of it: %+v", f)
	}
}

func TestTrafficAndCNPsCountInTheirContext(t *testing.T) {
	r, _ := vpnsUnderTest(t, time.Hour)
	blue, _ := r.contexts.number("blue")
	for context, k := range map[uint32]readiness.Key{0: theSender, blue: inBlue} {
		if f := r.lacks(k); f.Reason != readiness.NoTraffic {
			t.Errorf("before any traffic %v lacks %+v", k, f)
		}
		for i, a := range [][2]string{{"198.51.100.9", "203.0.113.9"}, {"203.0.113.9", "198.51.100.9"}} {
			p := roce.Packet{Src: netip.MustParseAddr(a[0]), Dst: netip.MustParseAddr(a[1]), TTL: 64, SrcPort: 50000, BTH: roce.BTH{Opcode: 4, PKey: 0xFFFF, DestQP: 7 + uint32(i), PSN: 1}}
			r.parts.Load().flows.Observe(&flowmap.Observation{Packet: &p, At: r.now(), Context: context})
		}
		if f := r.lacks(k); f.Reason != readiness.None {
			t.Errorf("with traffic %v lacks %+v", k, f)
		}
	}
	r.contexts.named("blue").counts.Load().prefixes[inBlue.Prefix].failed.Add(1)
	if f := r.lacks(inBlue); f.Reason != readiness.SendErrors {
		t.Errorf("blue lacks %+v", f)
	}
	if f := r.lacks(theSender); f.Reason != readiness.None {
		t.Errorf("the default context lacks %+v", f)
	}
}

func TestADetectorsProgramIsShownInItsNamespace(t *testing.T) {
	requireRaw(t)
	if s := tapkernel.Probe(); s.TCX != nil {
		t.Skip(s.TCX)
	}
	s := detectorSettings{context: "blue", iface: "lo", namespace: ownNamespace, ce: true, mode: config.DetectTCX, flows: 1024}
	err := host.Inside(s.namespace, func() error {
		r, err := openDetector(s, tapkernel.Probe, nil, time.Now, newRingBook())
		if err != nil {
			return err
		}
		if o := r.(owner).Objects(); len(o) != 1 || o[0].GetNamespace() != ownNamespace || o[0].GetError() != "" {
			t.Errorf("%v", o)
		}
		return r.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}
