package flowmap

import (
	"sync/atomic"

	"pncd/dataplane/roce"
)

// identity is what a forger of packets can't easily match: how a stream's packets reach the tap (rule 11).
type identity struct {
	way atomic.Uint64 // source MAC and interface; 0: not known. Read without the shard's lock, too
	ttl uint8
}

func wayOf(o *Observation) uint64 {
	mac := &o.Packet.SrcMAC
	return uint64(mac[0])<<56 | uint64(mac[1])<<48 | uint64(mac[2])<<40 | uint64(mac[3])<<32 | uint64(mac[4])<<24 | uint64(mac[5])<<16 |
		uint64(uint16(o.IfIndex))
}

func (i *identity) take(o *Observation) {
	i.way.Store(wayOf(o))
	i.ttl = o.Packet.TTL
}

func (i *identity) known() bool { return i.way.Load() != 0 }

// fits says whether a packet looks as the stream's packets did before.
func (i *identity) fits(o *Observation) bool {
	d := int(o.Packet.TTL) - int(i.ttl)
	return i.sameSource(o) && d >= -ttlSlack && d <= ttlSlack
}

func (i *identity) sameSource(o *Observation) bool { return i.way.Load() == wayOf(o) }

// admit applies rule 11. A stream whose packets stopped for a second while others like it come another
// way has been rerouted: it takes the new way, and the votes so far are dropped. It reports whether
// the packet may be used. Which way the packets of a stream came that was settled, or adopted, only the tap knows.
func (sh *shard) admit(s *stream, o *Observation, at int64) bool {
	b := o.Before
	own := s.packets != 0 && at-s.lastAt <= liveFor // packets that come the stream's way
	switch {
	case s.id.known():
		if s.id.fits(o) {
			return true
		}
	case b == nil || !b.Foreign:
		s.id.take(o)
		return true
	default:
		own = at-b.LastSeen.UnixNano() <= liveFor
	}
	sh.c.Foreign++
	if own {
		return false
	}
	s.id.take(o)
	sh.dropVotes(s)
	return true
}

// mtuOf is the path MTU that a FIRST or MIDDLE packet shows, 0 for other packets.
func mtuOf(p *roce.Packet) uint16 {
	op := p.BTH.Opcode
	var header int
	switch op.Op() {
	case roce.OpSendFirst, roce.OpSendMiddle, roce.OpWriteMiddle, roce.OpReadRespMiddle:
	case roce.OpWriteFirst:
		header = roce.RETHLen
	case roce.OpReadRespFirst:
		header = roce.AETHLen
	default:
		return 0
	}
	switch n := payloadLen(p) - header; n {
	case 256, 512, 1024, 2048, 4096:
		return uint16(n)
	}
	return 0
}

// payloadLen is the length on the wire of what follows the BTH, also when the capture holds less of it.
func payloadLen(p *roce.Packet) int {
	if !p.Truncated || len(p.IP) < 6 {
		return len(p.Body)
	}
	const udpBTHICRC = 8 + 12 + 4
	if p.IP[0]>>4 == 4 {
		return int(p.IP[2])<<8 + int(p.IP[3]) - int(p.IP[0]&0xF)*4 - udpBTHICRC
	}
	return int(p.IP[4])<<8 + int(p.IP[5]) - udpBTHICRC
}
