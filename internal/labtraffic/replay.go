package labtraffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pncd/dataplane/roce"
)

// ECN is what happens to the ECN field (RFC 3168) of packets sent.
type ECN uint8

// ECN choices. The ICRC leaves the field out, so that routers may mark.
const (
	ECNKeep ECN = iota // as captured or generated
	ECNECT0            // ECT(0)
	ECNCE              // congestion experienced
)

// ReplayConfig of a Replay.
type ReplayConfig struct {
	Capture     *Capture
	Local, Peer Host
	// Loop sends the data again after the first pass until Close; connection management goes once.
	Loop bool
	// HoldClose keeps DREQ and DREP back until Close. Without it they go where the capture has them, and
	// with Loop after the last pass.
	HoldClose bool
	// MaxGap bounds the pauses between packets, which otherwise are the capture's; 1 ms when zero.
	MaxGap time.Duration
	ECN    ECN
}

// Replay sends a capture's packets between two hosts.
type Replay struct {
	cfg       ReplayConfig
	ends      [2]*Endpoint
	adv       *advance
	buf       []byte
	closeOnce sync.Once
	closing   chan struct{}
	passes    atomic.Uint64
}

// NewReplay opens the hosts. Run must be called, which closes them.
func NewReplay(cfg ReplayConfig) (*Replay, error) {
	if cfg.Capture == nil {
		return nil, errors.New("replay: no capture")
	}
	if cfg.Local.Addr.Is4() != cfg.Peer.Addr.Is4() {
		return nil, errors.New("replay: the hosts' addresses are of different families")
	}
	if cfg.MaxGap <= 0 {
		cfg.MaxGap = time.Millisecond
	}
	r := &Replay{cfg: cfg, adv: newAdvance(cfg.Capture.packets), closing: make(chan struct{})}
	var err error
	if r.ends[local], err = cfg.Local.Open(); err != nil {
		return nil, err
	}
	if r.ends[peer], err = cfg.Peer.Open(); err != nil {
		return nil, errors.Join(err, r.ends[local].Close())
	}
	return r, nil
}

// Close ends the looping after the pass under way and lets the held DREQ and DREP go. It does not wait.
func (r *Replay) Close() { r.closeOnce.Do(func() { close(r.closing) }) }

// Passes counts the complete passes over the data.
func (r *Replay) Passes() uint64 { return r.passes.Load() }

// Sent counts the packets sent by both hosts.
func (r *Replay) Sent() uint64 { return r.ends[local].Sent() + r.ends[peer].Sent() }

// Run replays until everything is sent: with Loop or HoldClose, until Close was called. It returns nil
// then and when ctx ends.
func (r *Replay) Run(ctx context.Context) (err error) {
	defer func() {
		err = errors.Join(err, r.ends[local].Close(), r.ends[peer].Close())
	}()
	err = r.run(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func (r *Replay) run(ctx context.Context) error {
	all := r.cfg.Capture.packets
	var first, loop, last []captured
	for i := range all {
		closes := all[i].isClose()
		if closes && (r.cfg.HoldClose || r.cfg.Loop) {
			last = append(last, all[i])
			continue
		}
		first = append(first, all[i])
		if !all[i].packet.IsMAD() {
			loop = append(loop, all[i])
		}
	}
	if err := r.pass(ctx, first, 0); err != nil {
		return err
	}
	r.passes.Add(1)
	for n := uint32(1); r.cfg.Loop && len(loop) > 0; n++ {
		select {
		case <-r.closing:
			return r.pass(ctx, last, 0)
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if err := r.pass(ctx, loop, n); err != nil {
			return err
		}
		r.passes.Add(1)
	}
	if r.cfg.HoldClose {
		select {
		case <-r.closing:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return r.pass(ctx, last, 0)
}

// pass sends packets in order with the capture's pauses.
func (r *Replay) pass(ctx context.Context, packets []captured, n uint32) error {
	for i := range packets {
		gap := time.Duration(0)
		switch {
		case i > 0:
			gap = packets[i].at - packets[i-1].at
		case n > 0:
			gap = r.cfg.MaxGap
		}
		if gap = min(gap, r.cfg.MaxGap); gap > 0 {
			if err := sleep(ctx, gap); err != nil {
				return err
			}
		}
		if err := r.send(&packets[i], n); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (r *Replay) send(p *captured, pass uint32) error {
	spec, err := r.rewrite(p, pass)
	if err != nil {
		return err
	}
	if r.buf, err = roce.AppendPacket(r.buf[:0], &spec); err != nil {
		return fmt.Errorf("rewrite packet: %w", err)
	}
	return r.ends[p.from].Send(spec.Dst, r.buf)
}

// rewrite gives a captured packet the lab's addresses, and the sequence numbers of a pass.
func (r *Replay) rewrite(p *captured, pass uint32) (roce.PacketSpec, error) {
	s := roce.PacketSpec{
		Src: r.ends[p.from].Addr(), Dst: r.ends[p.from.other()].Addr(),
		TOS: p.packet.TOS, TTL: p.packet.TTL, IPID: p.ipID, SrcPort: p.packet.SrcPort,
		FlowLabel: p.packet.FlowLabel, BTH: p.packet.BTH, Body: p.packet.Body,
	}
	if s.IPID == 0 {
		s.IPID = 1
	}
	switch r.cfg.ECN {
	case ECNECT0:
		s.TOS = s.TOS&^3 | ecnECT0
	case ECNCE:
		s.TOS |= ecnCE
	}
	if p.packet.IsMAD() {
		body, err := r.rewriteMAD(p)
		s.Body = body
		return s, err
	}
	s.BTH.PSN = (s.BTH.PSN + pass*r.adv.psn(p)) & mask24
	if s.BTH.Opcode.HasAETH() && len(s.Body) >= 4 && pass > 0 {
		s.Body = slices.Clone(s.Body)
		setMSN(s.Body, msnOf(s.Body)+pass*r.adv.msns(p))
	}
	return s, nil
}

// rewriteMAD maps the GIDs of a REQ's primary path that are the captured addresses to the lab's.
func (r *Replay) rewriteMAD(p *captured) ([]byte, error) {
	m, err := roce.ParseMAD(p.packet.Body)
	if err != nil || m.CM.Kind != roce.CMREQ {
		return p.packet.Body, nil // not a connection request: nothing in it names an address
	}
	m.CM.LocalGID = r.mapGID(m.CM.LocalGID)
	m.CM.RemoteGID = r.mapGID(m.CM.RemoteGID)
	out, err := m.Append(nil)
	if err != nil {
		return nil, fmt.Errorf("rewrite REQ: %w", err)
	}
	return out, nil
}

func (r *Replay) mapGID(gid [16]byte) [16]byte {
	switch netip.AddrFrom16(gid).Unmap() {
	case r.cfg.Capture.Local:
		return GID(r.ends[local].Addr())
	case r.cfg.Capture.Peer:
		return GID(r.ends[peer].Addr())
	}
	return gid
}

// GID is the RoCEv2 GID of an address: IPv4 as an IPv4-mapped IPv6 address (IBTA annex A17).
func GID(a netip.Addr) [16]byte { return a.As16() }

// ECN code points (RFC 3168, section 5).
const (
	ecnECT0 = 2
	ecnCE   = 3
)

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
