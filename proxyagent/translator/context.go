package translator

import (
	"net/netip"

	"github.com/gaissmai/bart"

	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
	"pncd/proxyagent/nrpmap"
)

// place is a context made ready for the packet path.
type place struct {
	id     uint32
	served bart.Lite
	local  LocalAddresses
	sender Sender
}

func newPlace(id uint32, served []netip.Prefix, local LocalAddresses, sender Sender) *place {
	p := &place{id: id, local: local, sender: sender}
	for _, s := range served {
		p.served.Insert(s.Masked())
	}
	return p
}

// named is what a notification names.
type named struct {
	message.Notification        // with DestQP in format 1
	nrp                  uint32 // in format 2
	format               message.Format
}

func (n *named) flow() evidence.Flow {
	return evidence.Flow{
		Sender: n.Src, Receiver: n.Dst, SrcPort: n.SrcPort, DstPort: n.DstPort,
		Proto: n.Proto, DestQP: n.DestQP, NRP: n.nrp, HasNRP: n.format == message.Format2,
	}
}

// parseAs reads a payload in the format of the port that it came to.
func parseAs(format message.Format, payload []byte) (named, error) {
	if format == message.Format2 {
		n, err := message.ParseFormat2(payload)
		return named{
			Notification: message.Notification{Src: n.Src, Dst: n.Dst, SrcPort: n.SrcPort, DstPort: n.DstPort, Proto: n.Proto},
			nrp:          n.NRP, format: format,
		}, err
	}
	n, err := message.Parse(payload)
	return named{Notification: n, format: format}, err
}

// tuple is what a notification of format 2 names, in a context.
func (n *named) tuple(p *place) flowmap.Tuple {
	return flowmap.Tuple{Context: p.id, Sender: n.Src, Receiver: n.Dst, SrcPort: n.SrcPort}
}

// check gives the outcome for a sender that no CNP goes to here, else zero.
func (p *place) check(sender netip.Addr) evidence.Outcome {
	switch {
	case !p.served.Contains(sender):
		return pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_PREFIX
	case p.local.IsLocal(sender):
		return pncv1.Outcome_OUTCOME_PROXY_LOOP
	}
	return 0
}

// placeOf finds the context of a notification, and for format 2 the entry of the NRP map, whose Version is zero when there
// is none. Format 1 stays in the default context. Without a context, or for a sender that no CNP goes to there, the outcome says why.
func placeOf(s *settings, nrps NRPMap, n *named) (*place, nrpmap.Entry, evidence.Outcome) {
	p, e, refused := contextOf(s, nrps, n)
	if refused == 0 {
		refused = p.check(n.Src)
	}
	return p, e, refused
}

func contextOf(s *settings, nrps NRPMap, n *named) (*place, nrpmap.Entry, evidence.Outcome) {
	if n.format != message.Format2 {
		return s.home, nrpmap.Entry{}, 0
	}
	if nrps == nil {
		return nil, nrpmap.Entry{}, pncv1.Outcome_OUTCOME_PROXY_NRP_UNKNOWN
	}
	e, ok := nrps.Lookup(n.nrp, n.Src, n.Dst)
	if !ok {
		return nil, nrpmap.Entry{}, pncv1.Outcome_OUTCOME_PROXY_NRP_UNKNOWN
	}
	if e.Context == "" {
		return s.home, e, 0
	}
	p := s.contexts[e.Context]
	if p == nil {
		return nil, e, pncv1.Outcome_OUTCOME_PROXY_VPN_UNKNOWN
	}
	return p, e, 0
}
