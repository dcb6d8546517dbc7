package flowmap

import (
	"math/bits"

	"pncd/dataplane/roce"
)

// observeUC takes a packet of Unreliable Connection, which has no responses (rule 7): only ports tell.
// Before it, the stream had shown so many packets.
func (sh *shard) observeUC(s *stream, p *roce.Packet, before uint32, at int64) {
	if !p.BTH.Opcode.IsRequest() {
		sh.c.Malformed++
		return
	}
	if _, ok := sh.sequence(s, &s.req, p.BTH.PSN, p.BTH.PSN, at); !ok {
		return
	}
	if s.link != nil {
		if o := s.link.partner(s); o.packets > 0 {
			sh.confirm(s.link, at, "data both ways")
		}
		return
	}
	// Ports do not change with each packet: looking when another power of two is reached is enough, and bounds the cost.
	if s.packets >= ucPackets && bits.Len32(s.packets) > bits.Len32(before) {
		sh.decideUC(s, at)
	}
}

func (sh *shard) decideUC(s *stream, at int64) {
	p := s.pair
	if !p.ports.unique(s.port) {
		return
	}
	var o *stream
	for _, c := range p.streams[1-s.side] {
		if c.port == s.port && c.hasPort && c.transport == roce.TransportUC {
			o = c
		}
	}
	if o == nil || o.link != nil || o.packets < ucPackets {
		return
	}
	detail := "UC: the UDP source ports are those of these two QPs"
	if !portMatches(s.qp, o.qp, s.port) {
		if !sh.m.tapComplete.Load() || !p.ports.symmetric() || p.ports.common < ucPortsBlind ||
			s.packets < ucPacketsBlind || o.packets < ucPacketsBlind {
			return
		}
		detail = "UC: equal and unique UDP source ports, with a complete tap"
	}
	l := &link{source: SourcePort, context: p.key.context}
	l.streams[s.side], l.streams[o.side] = s, o
	lost, ok := sh.m.claim(l, at, false)
	if !ok {
		sh.c.Refused++
		return
	}
	sh.sweepLost(lost, at)
	sh.establish(l, at, detail)
}
