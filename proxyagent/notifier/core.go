package notifier

import (
	"net/netip"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/pnc"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/internal/lru"
	"pncd/proxyagent/internal/pace"
	"pncd/proxyagent/message"
)

// core decides. It does no I/O, reads no clock and is not safe for concurrent use.
type core struct {
	cfg     Config
	resolve func(context string, sender netip.Addr, hash uint64) pnc.Resolution
	random  func() uint64

	flows   *pace.Keyed[flowKey]
	total   *pace.Bucket
	proxies *lru.Table[proxyKey, proxyState]
	buf     []byte
	format1 message.Notification
	format2 message.Notification2

	// Between decide and settle.
	flow  *pace.State
	proxy *proxyState
}

// proxyKey has the port too: a proxy reads each format's port apart, and so not in the order of sending.
type proxyKey struct {
	proxy netip.Addr
	port  uint16
}

// proxyState numbers the notifications to one proxy. A proxy that made room for another starts at
// random again, which the proxy takes for a restart.
type proxyState struct {
	start uint64 // random
	count uint64 // notifications sent
}

func newCore(cfg Config, resolve func(string, netip.Addr, uint64) pnc.Resolution, random func() uint64) *core {
	cfg = cfg.withDefaults()
	return &core{
		cfg: cfg, resolve: resolve, random: random,
		flows:   pace.NewKeyed[flowKey](cfg.limits(), cfg.MaxFlows),
		total:   pace.NewBucket(cfg.TotalPerSecond, cfg.TotalBurst),
		proxies: lru.New[proxyKey, proxyState](DefaultMaxProxies),
		buf:     make([]byte, 0, maxPacket),
	}
}

func (c *Config) limits() pace.Limits {
	return pace.Limits{Window: c.PaceWindow, PerSecond: c.PerFlowPerSecond}
}

// reconfigure changes all but MaxFlows; what was used and the event numbers stay.
func (c *core) reconfigure(cfg Config) {
	cfg = cfg.withDefaults()
	cfg.MaxFlows = c.cfg.MaxFlows
	if cfg.TotalPerSecond != c.cfg.TotalPerSecond || cfg.TotalBurst != c.cfg.TotalBurst {
		c.total.Set(cfg.TotalPerSecond, cfg.TotalBurst)
	}
	c.flows.SetLimits(cfg.limits())
	c.cfg = cfg
}

// decide fills rec. It returns the packet to send, valid until the next call, or nil: then rec holds
// the outcome. After a packet settle must be called.
func (c *core) decide(ev *Event, now time.Time, rec *evidence.Record) []byte {
	ev.describe(now, rec)
	if ev.Context != "" {
		if rec.Flow.NRP, rec.Flow.HasNRP = c.cfg.Contexts[ev.Context]; !rec.Flow.HasNRP {
			rec.Outcome = pncv1.Outcome_OUTCOME_CONTEXT_UNKNOWN
			return nil
		}
	}
	res := c.resolve(ev.Context, ev.Sender, ev.hash())
	rec.Congestion.Route = res.Route
	if res.Reason != pnc.ReasonFound {
		rec.Outcome = outcomeOf(res.Reason)
		return nil
	}
	rec.Congestion.Proxy = res.Proxy

	if rec.Outcome = c.suppress(ev, now, rec); rec.Outcome != 0 {
		return nil
	}
	packet, err := c.build(ev, res.Proxy, rec)
	if err != nil {
		c.refuse(rec, err)
		return nil
	}
	return packet
}

// suppress applies sampling, pacing and the total rate; zero lets the event pass.
func (c *core) suppress(ev *Event, now time.Time, rec *evidence.Record) evidence.Outcome {
	s := c.flows.State(ev.key())
	c.flow = s
	s.Offered++
	s.Pending += ev.CECount
	rec.Congestion.CECount = s.Pending
	switch {
	case (s.Offered-1)%uint64(c.cfg.SampleN) != 0:
		return pncv1.Outcome_OUTCOME_SAMPLED_OUT
	case !c.flows.Allowed(s, now):
		return pncv1.Outcome_OUTCOME_PACED
	case !c.total.Take(now):
		return pncv1.Outcome_OUTCOME_RATE_LIMITED
	}
	c.flows.Sent(s, now)
	return 0
}

func (c *core) build(ev *Event, proxy netip.Addr, rec *evidence.Record) ([]byte, error) {
	dstPort, n := c.notification(ev, rec)
	key := proxyKey{proxy, dstPort}
	p := c.proxies.Get(key)
	if p == nil {
		p = c.proxies.Put(key)
		p.start = c.random() % message.EventPortCount
	}
	c.proxy = p
	rec.Congestion.Event = evidence.EventNumber{
		Port:  message.EventPort(p.start + p.count),
		Count: p.count + 1,
	}
	o := outer{
		src: c.cfg.SourceIPv6, dst: proxy, tos: c.cfg.trafficClass(), ttl: c.cfg.TTL,
		srcPort: rec.Congestion.Event.Port, dstPort: dstPort,
		id: uint16(p.count%0xffff) + 1,
	}
	if proxy.Is4() {
		o.src = c.cfg.SourceIPv4
	}
	packet, err := appendPacket(c.buf[:0], &o, n)
	if err != nil {
		return nil, err
	}
	c.buf = packet
	return packet, nil
}

// notification makes the event's notification, and gives the port of its format.
func (c *core) notification(ev *Event, rec *evidence.Record) (dstPort uint16, n payload) {
	if rec.Flow.HasNRP {
		c.format2 = message.Notification2{
			Src: ev.Sender, Dst: ev.Receiver, SrcPort: ev.SrcPort, DstPort: ev.DstPort,
			Proto: ev.Proto, NRP: rec.Flow.NRP,
		}
		return c.cfg.PortFormat2, &c.format2
	}
	c.format1 = message.Notification{
		Src: ev.Sender, Dst: ev.Receiver, SrcPort: ev.SrcPort, DstPort: ev.DstPort,
		Proto: ev.Proto, DestQP: ev.DestQP,
	}
	return c.cfg.Port, &c.format1
}

// settle ends what decide began: the event number and the CE count step only for what left.
func (c *core) settle(rec *evidence.Record, err error) {
	if err != nil {
		c.refuse(rec, err)
		return
	}
	rec.Outcome = pncv1.Outcome_OUTCOME_SENT
	c.proxy.count++
	c.flow.Pending = 0
}

func (c *core) refuse(rec *evidence.Record, err error) {
	rec.Outcome = pncv1.Outcome_OUTCOME_SEND_ERROR
	rec.Err = err.Error()
	rec.Congestion.Event = evidence.EventNumber{}
}
