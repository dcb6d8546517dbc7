package labtraffic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"pncd/dataplane/roce"
)

// GeneratorConfig of a Generator.
type GeneratorConfig struct {
	Flows       FlowConfig
	Local, Peer Host
	Rate        float64 // messages a second over all pairs; 1000 when zero
	Messages    uint64  // end after so many; zero means until Close or the end of the context
	// AnswerDelay is how long answers follow their request, at least; 100 us when zero.
	AnswerDelay time.Duration
}

// Generator sends made-up traffic between two hosts.
type Generator struct {
	cfg       GeneratorConfig
	flows     []flow
	ends      [2]*Endpoint
	payload   []byte
	buf       []byte
	ipID      [2]uint16
	mads      [2]uint32
	ce        float64
	closeOnce sync.Once
	closing   chan struct{}
	messages  atomic.Uint64
	marked    atomic.Uint64
}

// NewGenerator checks the configuration and opens the hosts. Run must be called, which closes them.
func NewGenerator(cfg GeneratorConfig) (*Generator, error) {
	flows, err := cfg.Flows.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	cfg.Flows = flows
	switch {
	case cfg.Local.Addr.Is4() != cfg.Peer.Addr.Is4():
		return nil, errors.New("generate: the hosts' addresses are of different families")
	case cfg.Rate < 0 || cfg.Rate > 1e6:
		return nil, fmt.Errorf("generate: %w", wrong("Rate", "%v is not 0 to 1000000 messages a second", cfg.Rate))
	}
	if cfg.Rate == 0 {
		cfg.Rate = 1000
	}
	if cfg.AnswerDelay <= 0 {
		cfg.AnswerDelay = 100 * time.Microsecond
	}
	g := &Generator{
		cfg: cfg, flows: newFlows(flows), payload: make([]byte, flows.Payload), closing: make(chan struct{}),
	}
	for i := range g.payload {
		g.payload[i] = byte(i)
	}
	if g.ends[local], err = cfg.Local.Open(); err != nil {
		return nil, err
	}
	if g.ends[peer], err = cfg.Peer.Open(); err != nil {
		return nil, errors.Join(err, g.ends[local].Close())
	}
	return g, nil
}

// Pairs is the truth: which QP talks to which.
func (g *Generator) Pairs() []Pair {
	pairs := make([]Pair, len(g.flows))
	for i := range g.flows {
		f := &g.flows[i] // Run changes its PSNs meanwhile: only what stays is read
		pairs[i] = Pair{LocalQPN: f.qpn[local], PeerQPN: f.qpn[peer], LocalPort: f.port[local], PeerPort: f.port[peer]}
	}
	return pairs
}

// Messages counts the messages sent.
func (g *Generator) Messages() uint64 { return g.messages.Load() }

// Marked counts the packets that left with CE set.
func (g *Generator) Marked() uint64 { return g.marked.Load() }

// Sent counts the packets sent by both hosts.
func (g *Generator) Sent() uint64 { return g.ends[local].Sent() + g.ends[peer].Sent() }

// Close ends the traffic; with connection management the pairs are closed by DREQ and DREP. It does not wait.
func (g *Generator) Close() { g.closeOnce.Do(func() { close(g.closing) }) }

// Run sends until Close, the configured number of messages, or the end of ctx, all of which return nil. At
// the end of ctx no DREQ is sent, as when a host dies.
func (g *Generator) Run(ctx context.Context) (err error) {
	defer func() {
		err = errors.Join(err, g.ends[local].Close(), g.ends[peer].Close())
	}()
	err = g.run(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func (g *Generator) run(ctx context.Context) error {
	if g.cfg.Flows.CM {
		gids := [2][16]byte{GID(g.ends[local].Addr()), GID(g.ends[peer].Addr())}
		for i := range g.flows {
			if err := g.exchange(ctx, g.flows[i].connectionManagement(i, gids)); err != nil {
				return err
			}
		}
	}
	if err := g.traffic(ctx); err != nil {
		return err
	}
	if g.cfg.Flows.CM {
		for i := range g.flows {
			if err := g.exchange(ctx, g.flows[i].disconnection(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// exchange sends CM messages one after the other, each an answer to the one before.
func (g *Generator) exchange(ctx context.Context, messages []roce.CM) error {
	for _, c := range messages {
		p, err := datagram(c, &g.mads)
		if err != nil {
			return fmt.Errorf("build %v: %w", c.Kind, err)
		}
		if err := g.send(&p); err != nil {
			return err
		}
		if err := sleep(ctx, g.cfg.AnswerDelay); err != nil {
			return err
		}
	}
	return nil
}

// traffic sends messages in turns of at least 1 ms, so that the rate does not depend on the timer.
func (g *Generator) traffic(ctx context.Context) error {
	const turn = time.Millisecond
	start := time.Now()
	tick := time.NewTicker(max(turn, time.Duration(float64(time.Second)/g.cfg.Rate)))
	defer tick.Stop()
	var done uint64
	for {
		due := uint64(time.Since(start).Seconds()*g.cfg.Rate) + 1
		if g.cfg.Messages > 0 {
			due = min(due, g.cfg.Messages)
		}
		if due > done {
			n := due - done
			if most := uint64(g.cfg.Rate/100) + 1; n > most {
				// A machine that falls behind sends a bounded burst, and lets the time that it missed go.
				n = most
				start = time.Now().Add(-time.Duration(float64(done+n) / g.cfg.Rate * float64(time.Second)))
			}
			if err := g.burst(ctx, done, n); err != nil {
				return err
			}
			done += n
			g.messages.Add(n)
		}
		if g.cfg.Messages > 0 && done >= g.cfg.Messages {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.closing:
			return nil
		case <-tick.C:
		}
	}
}

// burst sends n messages, one pair after the other, and their answers after the delay.
func (g *Generator) burst(ctx context.Context, first, n uint64) error {
	var answers []packet
	for i := first; i < first+n; i++ {
		f := &g.flows[i%uint64(len(g.flows))]
		from := local
		if g.cfg.Flows.Both && i/uint64(len(g.flows))%2 == 1 {
			from = peer
		}
		request, answer := f.message(&g.cfg.Flows, from, g.payload)
		for j := range request {
			if err := g.send(&request[j]); err != nil {
				return err
			}
		}
		if !g.cfg.Flows.OneWay {
			answers = append(answers, answer...)
		}
	}
	if len(answers) == 0 {
		return nil
	}
	if err := sleep(ctx, g.cfg.AnswerDelay); err != nil {
		return err
	}
	for i := range answers {
		if err := g.send(&answers[i]); err != nil {
			return err
		}
	}
	return nil
}

func (g *Generator) send(p *packet) error {
	end := g.ends[p.from]
	g.ipID[p.from]++
	if g.ipID[p.from] == 0 {
		g.ipID[p.from] = 1
	}
	spec := roce.PacketSpec{
		Src: end.Addr(), Dst: g.ends[p.from.other()].Addr(), TOS: ecnECT0, IPID: g.ipID[p.from],
		SrcPort: p.port, BTH: p.bth, Body: p.body,
	}
	if p.data {
		if g.ce += g.cfg.Flows.CEShare; g.ce >= 1 {
			g.ce--
			spec.TOS = ecnCE
			g.marked.Add(1)
		}
	}
	var err error
	if g.buf, err = roce.AppendPacket(g.buf[:0], &spec); err != nil {
		return fmt.Errorf("build packet: %w", err)
	}
	return end.Send(spec.Dst, g.buf)
}
