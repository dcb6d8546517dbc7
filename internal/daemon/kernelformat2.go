package daemon

import (
	"errors"
	"net/netip"
	"time"

	"pncd/dataplane/roce"
	"pncd/dataplane/translate"
	"pncd/proxyagent/translator"
)

// The kernel's answers of format 2. Each is what the translator in user space answered to the same notification: it tells by Want of a flow
// that it found an answer for, and Resolve says what the answer is, in which VPN, and by which entry of the NRP map. When the NRP map, the
// settings or a VPN's place change, all are looked up again, and those of two hosts when the Source-QP map has something new of the two in a VPN:
// before the change is done with.

// hostPair is a sender and a receiver, in whatever context.
type hostPair struct{ sender, receiver netip.Addr }

// format2Flows are the flows of format 2 that may have an answer in the kernel.
type format2Flows map[hostPair]map[translator.Flow2]struct{}

func kernelFlow2(f translator.Flow2) translate.Flow {
	return translate.Flow{Sender: f.Sender, Receiver: f.Receiver, Format2: true, SrcPort: f.SrcPort, NRP: f.NRP}
}

// Want implements translator.Shares.
func (s kernelShares) Want(f translator.Flow2, now time.Time) {
	p := s.kernelProgram
	p.offer(kernelFlow2(f), now, func() error { return p.owner.put2(p, f) })
}

// followFormat2 brings all answers of format 2 to what they are now.
func (t *kernelTranslator) followFormat2() {
	p := t.program.Load()
	if p == nil {
		return
	}
	t.answers.Lock()
	defer t.answers.Unlock()
	for _, flows := range p.format2 {
		t.refresh(p, flows)
	}
}

// refresh does so for some. The caller holds t.answers.
func (t *kernelTranslator) refresh(p *kernelProgram, flows map[translator.Flow2]struct{}) {
	for f := range flows {
		if _, has := p.Has(kernelFlow2(f)); !has { // evicted
			p.format2.remove(f)
			continue
		}
		p.check(t.put2(p, f))
	}
}

// put2 writes what the answer is now. The caller holds t.answers.
func (t *kernelTranslator) put2(p *kernelProgram, f translator.Flow2) error {
	flow := kernelFlow2(f)
	r, ok := t.user.Resolve(f, t.flows, t.now())
	table, reachable := tableOf(&r)
	if !ok || !reachable {
		p.format2.remove(f)
		return p.Remove(flow)
	}
	s := t.settings.Load()
	a := translate.Answer{
		CNP:     roce.CNP{Src: f.Receiver, Dst: f.Sender, TOS: s.tos, TTL: s.ttl, PKey: r.PKey, DestQP: r.SourceQP},
		Context: r.Context, Table: table, Version: r.Entry.Version, NRPVersion: r.NRPVersion,
	}
	if a.Version != 0 {
		a.Until = r.Entry.LastSeen.Add(s.age)
	}
	if err := p.Put(flow, a); err != nil {
		p.format2.remove(f)
		return errors.Join(err, p.Remove(flow)) // not the one from before
	}
	p.format2.add(f)
	return nil
}

// tableOf gives the routing table by which the kernel sends CNPs into a context, 0 for this host's own; false where only user space can.
func tableOf(r *translator.Resolved) (table uint32, ok bool) {
	if r.Context == 0 {
		return 0, true
	}
	v, ok := r.Sender.(*vpn)
	if !ok {
		return 0, false
	}
	table = v.table()
	return table, table != 0
}

func (all format2Flows) add(f translator.Flow2) {
	k := hostPair{f.Sender, f.Receiver}
	if all[k] == nil {
		all[k] = map[translator.Flow2]struct{}{}
	}
	all[k][f] = struct{}{}
}

func (all format2Flows) remove(f translator.Flow2) {
	k := hostPair{f.Sender, f.Receiver}
	delete(all[k], f)
	if len(all[k]) == 0 {
		delete(all, k)
	}
}
