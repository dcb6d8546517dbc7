package translator

import (
	"errors"
	"net/netip"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/internal/pace"
	"pncd/proxyagent/message"
)

const protoUDP = 17

// errAddress: a flow's address that no data packet can have.
var errAddress = errors.New("the flow's addresses must be unicast, and not IPv4 mapped into IPv6")

// qpKey is what pacing goes by: the sender's own QP.
type qpKey struct {
	sender            netip.Addr
	context, sourceQP uint32
}

// core decides. It does no I/O, reads no clock and is not safe for concurrent use.
type core struct {
	flows FlowMap
	nrps  NRPMap // may be nil

	qps    *pace.Keyed[qpKey]
	total  *pace.Bucket
	shares Shares // in place of these two; nil without
	nodes  *nodes
}

// decision is what becomes of one datagram.
type decision struct {
	rec    evidence.Record
	cnp    roce.CNP // with the outcome translated: all but what the receipt number sets
	number uint64   // receipt number, where it came with the share; else 0
	place  *place   // where it leaves
	packet []byte   // the CNP as it is sent; shares buf
	buf    [roce.CNPLenIPv6]byte
}

func newCore(s *settings, deps *Deps) *core {
	return &core{
		flows: deps.FlowMap, nrps: deps.NRPs,
		qps:   pace.NewKeyed[qpKey](s.limits(), s.MaxQPs),
		total: pace.NewBucket(s.TotalPerSecond, s.TotalBurst),
		nodes: newNodes(s.MaxNodes),
	}
}

// decide fills d about a datagram to the port of a format. With the outcome translated the CNP is due: stamp and
// send it.
func (c *core) decide(s *settings, format message.Format, dg *Datagram, now time.Time, d *decision) {
	d.packet, d.number = nil, 0
	d.rec = evidence.Record{At: dg.At}
	if d.rec.At.IsZero() {
		d.rec.At = now
	}
	d.rec.Translation.Node = dg.From.Addr()
	d.rec.Translation.EventPort = dg.From.Port()

	trusted := s.inDomain(dg.From.Addr(), dg.IfName)
	near := s.MinTTL == 0 || dg.TTL >= int(s.MinTTL)
	if trusted && near && !dg.BadSum && !s.Sampled {
		// Also of a notification that is refused below: its number is not missing.
		d.rec.Translation.Gap = c.nodes.observe(format, dg.From, dg.To, now)
	}
	d.rec.Outcome = c.check(s, format, dg, trusted, near, now, d)
}

func (c *core) check(s *settings, format message.Format, dg *Datagram, trusted, near bool, now time.Time, d *decision) evidence.Outcome {
	if dg.BadSum {
		return pncv1.Outcome_OUTCOME_PROXY_BAD_CHECKSUM
	}
	n, err := parse(format, dg)
	if n.Src.IsValid() {
		d.rec.Flow = n.flow()
	}
	switch {
	case err != nil:
		d.rec.Err = err.Error()
		return pncv1.Outcome_OUTCOME_PROXY_MALFORMED
	case !trusted:
		return pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN
	case !near:
		return pncv1.Outcome_OUTCOME_PROXY_TTL_TOO_LOW
	case n.Proto != protoUDP || n.DstPort != roce.UDPPort:
		return pncv1.Outcome_OUTCOME_PROXY_NOT_ROCEV2
	}
	p, nrp, refused := placeOf(s, c.nrps, &n)
	d.rec.Flow.Context, d.rec.Translation.NRPVersion = nrp.Context, nrp.Version
	if refused != 0 {
		return refused
	}
	d.place = p
	if nrp.ForQP() {
		return c.pace(s, p, &n, nrp.SourceQP, 0, now, d)
	}
	return c.translate(s, p, &n, now, d)
}

// parse reads the notification; with errAddress it gives what was read as well.
func parse(format message.Format, dg *Datagram) (named, error) {
	if dg.Length != len(dg.Payload) {
		// Longer than what is kept of a datagram, and so than any format.
		return named{}, message.CheckLength(format, dg.Length)
	}
	n, err := parseAs(format, dg.Payload)
	if err == nil && !(isHost(n.Src) && isHost(n.Dst)) {
		err = errAddress
	}
	return n, err
}

func isHost(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && !a.Is4In6() && a != broadcast
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// translate looks the Source QP up in the context of a place, by Destination QP or, where there is none, by
// UDP source port.
func (c *core) translate(s *settings, p *place, n *named, now time.Time, d *decision) evidence.Outcome {
	var e flowmap.Entry
	var verdict flowmap.Verdict
	if n.format == message.Format2 {
		e, verdict = c.flows.LookupTuple(n.tuple(p), now)
		d.rec.Flow.DestQP = e.Key.DestQP
	} else {
		e, verdict = c.flows.Lookup(flowmap.Key{Context: p.id, Sender: n.Src, Receiver: n.Dst, DestQP: n.DestQP}, now)
	}
	if verdict != flowmap.Miss {
		d.rec.Translation.Entry = entryOf(&e)
	}
	if verdict != flowmap.Hit {
		return outcomeOf(verdict)
	}
	return c.pace(s, p, n, e.SourceQP, e.PKey, now, d)
}

// pace makes the CNP due unless its Source QP or the proxy has had its share. A P_Key of zero is not known.
func (c *core) pace(s *settings, p *place, n *named, sourceQP uint32, pkey uint16, now time.Time, d *decision) evidence.Outcome {
	if c.shares != nil && n.format == message.Format2 {
		c.shares.Want(Flow2{Sender: n.Src, Receiver: n.Dst, SrcPort: n.SrcPort, NRP: n.nrp}, now)
	}
	if o := c.share(qpKey{sender: n.Src, context: p.id, sourceQP: sourceQP}, now, d); o != pncv1.Outcome_OUTCOME_PROXY_TRANSLATED {
		return o
	}
	d.cnp = roce.CNP{
		Src: n.Dst, Dst: n.Src, // as if from the receiver: so the sender's NIC finds its QP
		TOS: s.CNPTOS, TTL: s.CNPTTL, PKey: pkey, DestQP: sourceQP,
	}
	if d.cnp.PKey == 0 {
		d.cnp.PKey = s.CNPPKey
	}
	return pncv1.Outcome_OUTCOME_PROXY_TRANSLATED
}

// share uses up a share of the Source QP and of the total, or says which of them there was none of.
func (c *core) share(k qpKey, now time.Time, d *decision) evidence.Outcome {
	if c.shares != nil {
		return c.sharedShare(k, d)
	}
	q := c.qps.State(k)
	switch {
	case !c.qps.Allowed(q, now):
		return pncv1.Outcome_OUTCOME_PROXY_PACED
	case !c.total.Take(now):
		return pncv1.Outcome_OUTCOME_PROXY_RATE_LIMITED
	}
	c.qps.Sent(q, now)
	return pncv1.Outcome_OUTCOME_PROXY_TRANSLATED
}

// stamp gives a due CNP its receipt number and builds it.
func (d *decision) stamp(receipt uint64) error {
	d.cnp.SrcPort = message.EventPort(receipt) // the same range as the event numbers
	// Not zero, or the kernel would choose it and break the ICRC that covers it.
	d.cnp.IPID = uint16((receipt-1)%0xffff) + 1
	packet, err := roce.AppendCNP(d.buf[:0], &d.cnp)
	if err != nil {
		return err
	}
	d.packet = packet
	t := &d.rec.Translation
	t.SourceQP, t.Receipt, t.ReceiptPort = d.cnp.DestQP, receipt, d.cnp.SrcPort
	return nil
}

// refuse ends a due CNP that did not leave.
func (d *decision) refuse(err error) {
	d.rec.Outcome = pncv1.Outcome_OUTCOME_PROXY_SEND_ERROR
	d.rec.Err = err.Error()
	t := &d.rec.Translation
	t.SourceQP, t.Receipt, t.ReceiptPort = 0, 0, 0
}
