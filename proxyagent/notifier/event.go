package notifier

import (
	"net/netip"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/evidence"
)

// Event is one congestion event: a flow that the detector saw congested.
type Event struct {
	Context string // VPN; empty for the default one

	Sender, Receiver netip.Addr // of the data packet
	SrcPort, DstPort uint16     // of the data packet, UDP
	Proto            uint8      // of the data packet, 17
	DestQP           uint32     // of the data packet, 24 bits

	CECount    uint64               // CE-marked packets that this event stands for; zero when not known
	QueueDepth uint64               // in the queue, before the packet or when it was looked at; zero when not known
	DepthUnit  pncv1.QueueDepthUnit // of QueueDepth
	Source     string               // the detector, as in "ce eth1"
	At         time.Time            // when it was seen; zero means when it is handled
}

// flowKey is what pacing goes by: the queue pair at the receiver that one sender's data names. The UDP
// source port is left out, for a flow may use several.
type flowKey struct {
	context          string
	sender, receiver netip.Addr
	destQP           uint32
}

func (ev *Event) key() flowKey {
	return flowKey{context: ev.Context, sender: ev.Sender, receiver: ev.Receiver, destQP: ev.DestQP}
}

// describe starts the event's record.
func (ev *Event) describe(now time.Time, rec *evidence.Record) {
	*rec = evidence.Record{
		At: ev.At,
		Flow: evidence.Flow{
			Context: ev.Context, Sender: ev.Sender, Receiver: ev.Receiver,
			SrcPort: ev.SrcPort, DstPort: ev.DstPort, Proto: ev.Proto, DestQP: ev.DestQP,
		},
		Congestion: evidence.Congestion{Source: ev.Source, CECount: ev.CECount, QueueDepth: ev.QueueDepth, DepthUnit: ev.DepthUnit},
	}
	if rec.At.IsZero() {
		rec.At = now
	}
}

// hash spreads flows over equal proxies (FNV-1a, 64 bits). It is the same on every node and after
// every start.
func (ev *Event) hash() uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	s, r := ev.Sender.As16(), ev.Receiver.As16()
	for i := range s {
		h = (h ^ uint64(s[i])) * prime
	}
	for i := range r {
		h = (h ^ uint64(r[i])) * prime
	}
	for shift := 0; shift < 24; shift += 8 {
		h = (h ^ uint64(byte(ev.DestQP>>shift))) * prime
	}
	return h
}
