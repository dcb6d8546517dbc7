// Package kerneltest is a model in Go of what the program of package kernel hands up: its function observe, without
// a kernel. Simulations put it in front of what learns; a test of package kernel holds it to the program. It is for
// tests only.
package kerneltest

import (
	"net/netip"

	"pncd/dataplane/roce"
)

// The states of a flow and the reasons; their numbers are those of learn.c.
const (
	Watched, Followed, Quiet = 0, 1, 2

	New, Vote, Interval, Step, Transport, Identity, Source = 2, 3, 4, 5, 6, 7, 8
)

// Steps within which a decided flow goes on, as in learn.c.
const (
	reqAhead  = 1024
	respAhead = 16384
	respBack  = 1024
	psnBack   = 64
	msnBack   = 4
	msnLow    = 64
	readMTU   = 256
	bulkEvery = 255
	idle      = 100_000_000
)

// Key names a flow.
type Key struct {
	Src, Dst netip.Addr
	DestQP   uint32
	SrcPort  uint16
	VLAN     uint16
}

// KeyOf returns the key of a packet's flow.
func KeyOf(p *roce.Packet) Key { return Key{p.Src, p.Dst, p.BTH.DestQP, p.SrcPort, p.VLAN} }

// Flow is what the program knows of a flow. Times are nanoseconds.
type Flow struct {
	LastSeen                int64
	Packets, Skipped        uint32
	ReqHigh, RespHigh       uint32
	MSN, ReadLen            uint32
	State                   uint8
	HasReq, HasResp, HasMSN bool

	Transport roce.Transport

	toldAt  int64
	ifIndex int
	mac     [6]byte
	ttl     uint8
}

// Model is the program with its flow map, which is not bounded here.
type Model struct {
	Interval int64 // nanoseconds
	Flows    map[Key]*Flow
}

// NewModel makes a model without flows.
func NewModel(interval int64) *Model { return &Model{Interval: interval, Flows: map[Key]*Flow{}} }

// Take takes a packet of a flow, and returns why it is handed up (0: it is not) and what was known of the flow
// before. Management datagrams and CNPs are of no flow: the caller leaves them out.
func (m *Model) Take(p *roce.Packet, ifIndex int, now int64) (reason uint8, before Flow) {
	k := KeyOf(p)
	f := m.Flows[k]
	isNew := f == nil
	if isNew {
		f = &Flow{Transport: p.BTH.Opcode.Transport()}
		f.takeSender(p, ifIndex)
		if f.Transport != roce.TransportRC && f.Transport != roce.TransportUC && f.Transport != roce.TransportUD {
			f.State = Quiet
		}
		m.Flows[k] = f
	}
	before = *f
	reason = m.observe(p, ifIndex, f, isNew, now)
	if reason != 0 {
		f.toldAt, f.Skipped = now, 0
	}
	return reason, before
}

func (m *Model) observe(p *roce.Packet, ifIndex int, f *Flow, isNew bool, now int64) (reason uint8) {
	t := p.BTH.Opcode.Transport()
	kind := kindOf(p)
	bulk := kind == middle && !p.BTH.AckReq || kind == respMiddle
	due := now-f.toldAt >= m.Interval
	switch {
	case isNew:
		reason = New
	case f.State == Followed && !f.sameSender(p, ifIndex):
		f.Skipped++
		if !bulk || due {
			return Identity
		}
		return 0
	case f.Transport != t:
		reason = Transport
		f.State, f.Transport = Watched, t
		f.HasReq, f.HasResp, f.HasMSN = false, false, false
	}
	if f.State != Followed {
		f.takeSender(p, ifIndex)
	}
	fits := f.follow(p, kind, now)
	f.LastSeen = now
	f.Packets++
	if reason != 0 {
		return reason
	}
	if !fits && f.State != Quiet {
		f.State = Watched
		if t == roce.TransportUD {
			return Source
		}
		return Step
	}
	learns := (kind != other || t == roce.TransportUD) && (!bulk || p.BTH.PSN&bulkEvery == 0)
	if f.State == Watched && learns {
		return Vote
	}
	if due {
		return Interval
	}
	f.Skipped++
	return 0
}

func (f *Flow) takeSender(p *roce.Packet, ifIndex int) {
	f.ifIndex, f.mac, f.ttl = ifIndex, p.SrcMAC, p.TTL
}

func (f *Flow) sameSender(p *roce.Packet, ifIndex int) bool {
	ttl := int(p.TTL) - int(f.ttl)
	return f.ifIndex == ifIndex && f.mac == p.SrcMAC && ttl >= -1 && ttl <= 1
}
