package labtraffic

import (
	"errors"

	"pncd/dataplane/roce"
)

// Pair is the queue pair of a capture: as its REQ and REP name it, else the only QP in each direction.
// closes tells whether the capture ends the pair by DREQ. A capture with several pairs gives the first one
// that connection management names.
func (c *Capture) Pair() (p Pair, closes bool, err error) {
	var qpn [2]uint32 // each side's own QP
	qps := [2]map[uint32]bool{{}, {}}
	for i := range c.packets {
		k := &c.packets[i]
		if !k.packet.IsMAD() {
			qps[k.from.other()][k.packet.BTH.DestQP] = true
			continue
		}
		m, err := roce.ParseMAD(k.packet.Body)
		if err != nil {
			continue
		}
		switch m.CM.Kind {
		case roce.CMREQ, roce.CMREP:
			if qpn[k.from] == 0 {
				qpn[k.from] = m.CM.LocalQPN
			}
		case roce.CMDREQ:
			closes = true
		}
	}
	for s := range qpn {
		if qpn[s] == 0 && len(qps[s]) == 1 {
			for qp := range qps[s] {
				qpn[s] = qp
			}
		}
	}
	if qpn[local] == 0 || qpn[peer] == 0 {
		return p, closes, errors.New("the capture holds no single queue pair, and no REQ and REP to tell them apart")
	}
	return Pair{LocalQPN: qpn[local], PeerQPN: qpn[peer]}, closes, nil
}
