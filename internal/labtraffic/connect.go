package labtraffic

import "pncd/dataplane/roce"

// cmServiceID is in the range that RDMA CM uses for its TCP port space: 0x0000000001060000 + port.
const cmServiceID = 0x01060000 + 18515

// connectionManagement is the exchange that opens a pair, in order (IBTA volume 1, section 12.9.2).
func (f *flow) connectionManagement(index int, gids [2][16]byte) []roce.CM {
	comm := [2]uint32{0x10000 + uint32(index), 0x20000 + uint32(index)}
	tid := uint64(0x706e6364)<<32 | uint64(index)
	return []roce.CM{
		// A starting PSN is that of the first packet sent to the QP that the message names.
		{Kind: roce.CMREQ, TransactionID: tid, LocalCommID: comm[local], LocalQPN: f.qpn[local], StartingPSN: f.psn[peer],
			ServiceID: cmServiceID, PKey: roce.DefaultPKey, PathMTU: pathMTU1024, LocalGID: gids[local], RemoteGID: gids[peer]},
		{Kind: roce.CMREP, TransactionID: tid, LocalCommID: comm[peer], RemoteCommID: comm[local], LocalQPN: f.qpn[peer],
			StartingPSN: f.psn[local]},
		{Kind: roce.CMRTU, TransactionID: tid, LocalCommID: comm[local], RemoteCommID: comm[peer]},
	}
}

// pathMTU1024 is the IBTA code of 1024 octets.
const pathMTU1024 = 3

// disconnection is the exchange that closes a pair; the local host asks for it.
func (f *flow) disconnection(index int) []roce.CM {
	comm := [2]uint32{0x10000 + uint32(index), 0x20000 + uint32(index)}
	tid := uint64(0x706e6365)<<32 | uint64(index)
	return []roce.CM{
		{Kind: roce.CMDREQ, TransactionID: tid, LocalCommID: comm[local], RemoteCommID: comm[peer], RemoteQPN: f.qpn[peer]},
		{Kind: roce.CMDREP, TransactionID: tid, LocalCommID: comm[peer], RemoteCommID: comm[local]},
	}
}

// fromPeer tells the messages that the passive side sends.
func fromPeer(k roce.CMKind) bool { return k == roce.CMREP || k == roce.CMDREP }

// datagram is a CM message as a packet; mads counts the datagrams a side has sent on QP 1.
func datagram(c roce.CM, mads *[2]uint32) (packet, error) {
	from := local
	if fromPeer(c.Kind) {
		from = peer
	}
	mad, err := c.Append(roce.AppendDETH(nil, roce.DETH{QKey: roce.GSIQKey, SrcQP: roce.QP1}))
	if err != nil {
		return packet{}, err
	}
	psn := mads[from]
	mads[from] = (psn + 1) & mask24
	return packet{from: from, port: 0xC000, body: mad, bth: roce.BTH{
		Opcode: roce.OpcodeUDSendOnly, PKey: roce.DefaultPKey, DestQP: roce.QP1, PSN: psn,
	}}, nil
}
