package daemon

import (
	"net/netip"
	"testing"

	"pncd/proxyagent/nrpmap"
	"pncd/proxyagent/translator"
)

const withNRP = "taps: [lo]\n  port_format2: 2022\n  nrp: {map: [{id: 7, sender: 198.51.100.7, receiver: 203.0.113.7, source_qp: 0x777}]}"

// What the kernel has of format 2 is what the NRP map and the settings say, once the change of them returns.
func TestTheKernelsAnswersOfFormat2FollowTheNRPMap(t *testing.T) {
	k := newInKernel(t)
	parts, p := k.parts.Load(), k.program.Load()
	closed := []translator.Context{{
		Name: "blue", ID: 5, ServedPrefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
		Local: translator.LocalFunc(func(netip.Addr) bool { return false }), Sender: &vpn{name: "blue", id: 5},
	}}
	apply := func(edit ...string) {
		t.Helper()
		if err := parts.apply(k.load(edit...), closed, k.Daemon.now()); err != nil {
			t.Fatal(err)
		}
	}
	flow := func(nrp uint32) translator.Flow2 {
		return translator.Flow2{Sender: netip.MustParseAddr("198.51.100.7"), Receiver: netip.MustParseAddr("203.0.113.7"), SrcPort: 50000, NRP: nrp}
	}
	want := func(what string, nrp uint32, answered bool) {
		t.Helper()
		until, has := p.Has(kernelFlow2(flow(nrp)))
		if has != answered || !until.IsZero() {
			t.Errorf("%s: NRP %d has an answer: %v, until %v", what, nrp, has, until)
		}
		kept := false
		for _, flows := range p.format2 {
			if _, is := flows[flow(nrp)]; is {
				kept = true
			}
		}
		if kept != answered {
			t.Errorf("%s: NRP %d is followed: %v", what, nrp, kept)
		}
	}
	ask := func(nrp uint32) { kernelShares{p}.Want(flow(nrp), k.Daemon.now()) }
	set := func(m nrpmap.Mapping) {
		t.Helper()
		if _, err := parts.nrps.Set([]nrpmap.Mapping{m}, k.Daemon.now()); err != nil {
			t.Fatal(err)
		}
	}

	ask(7)
	want("before the map has it", 7, false)
	apply("taps: [lo]", withNRP)
	want("nobody has asked", 7, false)
	ask(7)
	want("asked for", 7, true)

	eight := nrpmap.Key{NRP: 8, Sender: flow(8).Sender, Receiver: flow(8).Receiver}
	set(nrpmap.Mapping{Key: eight, SourceQP: 0x888})
	ask(8)
	want("set by the API", 8, true)
	set(nrpmap.Mapping{Key: eight, SourceQP: 0x888, Context: "blue"})
	want("in a VPN whose sockets are closed", 8, false)
	set(nrpmap.Mapping{Key: eight, SourceQP: 0x889})
	ask(8)
	want("in the default context again", 8, true)
	if err := parts.nrps.Delete(eight); err != nil {
		t.Fatal(err)
	}
	want("deleted by the API", 8, false)
	want("another one", 7, true)

	apply("taps: [lo]", withNRP, "{prefix: 198.51.100.0/24}", "{prefix: 192.0.2.0/24}")
	want("the sender is not served any more", 7, false)
	apply("taps: [lo]", withNRP)
	ask(7)
	want("served again", 7, true)
	if err := p.Remove(kernelFlow2(flow(7))); err != nil { // as Evict does
		t.Fatal(err)
	}
	k.followFormat2()
	want("evicted", 7, false)
}
