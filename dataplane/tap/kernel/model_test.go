package kernel

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"pncd/dataplane/roce"
)

// snap is how much of a frame the program reads.
const snap = 512

// model says, by the parser of user space, what the program must count and hand up while all flows are watched and no
// interval ends.
type model struct {
	tunnels roce.Tunnels
	want    Counters // all but HandedUp
	flows   map[Key]roce.Transport
	quiet   map[Key]bool
}

func newModel() *model {
	return &model{flows: map[Key]roce.Transport{}, quiet: map[Key]bool{}}
}

// verdict is whether a packet is handed up.
type verdict uint8

const (
	never verdict = iota
	maybe         // a MIDDLE packet: by its PSN
	always
)

// take takes a frame; vlan is that of a tag that the kernel took off, or -1.
func (m *model) take(frame []byte, vlan int) (verdict, roce.Packet) {
	var p roce.Packet
	if err := m.tunnels.ParseThrough(frame[:min(len(frame), snap)], &p); err != nil {
		switch {
		case errors.Is(err, roce.ErrRoCEv1):
			m.want.RoCEv1++
		case refused(err):
			m.want.Refused++
		}
		return never, p
	}
	if vlan >= 0 {
		p.VLAN = uint16(vlan)
	}
	t := p.BTH.Opcode.Transport()
	m.want.Packets++
	m.want.Octets += octets(p.IP)
	m.want.Transport[t]++
	switch {
	case t == roce.TransportCNP, t == roce.TransportUD && p.BTH.DestQP == 0:
		return never, p
	case t == roce.TransportUD && p.BTH.DestQP == roce.QP1:
		return always, p
	}
	k := KeyOf(&p)
	was, known := m.flows[k]
	m.flows[k] = t
	learnable := t == roce.TransportRC || t == roce.TransportUC || t == roce.TransportUD
	if !known {
		m.want.FlowsMade++
		m.quiet[k] = !learnable
		return always, p
	}
	if was != t {
		m.quiet[k] = false
		return always, p
	}
	if m.quiet[k] || !learnable {
		return never, p
	}
	return learns(&p), p
}

// learns says whether flowmap learns from a packet of a flow that it has not decided.
func learns(p *roce.Packet) verdict {
	op, t := p.BTH.Opcode, p.BTH.Opcode.Transport()
	switch {
	case t == roce.TransportUD:
		return always
	case !op.IsRequest() && !op.IsResponse():
		return never
	case op.IsReadResponse() && !op.HasAETH(), !p.BTH.AckReq && (op.Op() == roce.OpSendMiddle || op.Op() == roce.OpWriteMiddle):
		if p.BTH.PSN%256 == 0 {
			return always
		}
		return maybe
	}
	return always
}

// refused reports an error of the parser about a packet that is UDP to port 4791.
func refused(err error) bool {
	var fe *roce.FieldError
	if !errors.As(err, &fe) {
		return false
	}
	return fe.Layer == "BTH" || fe.Layer == "UDP" && fe.Offset == 4 || strings.Contains(fe.Rule, "IPv4-mapped")
}

func octets(ip []byte) uint64 {
	if ip[0]>>4 == 4 {
		return uint64(binary.BigEndian.Uint16(ip[2:]))
	}
	return 40 + uint64(binary.BigEndian.Uint16(ip[4:]))
}

// check compares the program's counts with the model's.
func (m *model) check(t *testing.T, k *Tap) Counters {
	t.Helper()
	got, err := k.Counters()
	if err != nil {
		t.Fatal(err)
	}
	want := m.want
	want.HandedUp = got.HandedUp
	if got != want {
		t.Errorf("counters\ngot  %+v\nwant %+v", got, want)
	}
	return got
}
