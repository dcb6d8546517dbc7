package flowmap

import (
	"encoding/binary"
	"testing"
	"time"

	"pncd/dataplane/roce"
)

// FuzzObserve plays arbitrary sequences of packets: few addresses, QPs and PSNs, so that they meet; any
// opcode and any body. Nothing may panic, and the bounds and counts must hold.
func FuzzObserve(f *testing.F) {
	step := func(hosts, op, qp, psn, wait, n byte, body ...byte) []byte {
		return append([]byte{hosts, op, qp, psn, wait, n}, body...)
	}
	var seed []byte
	for i := range byte(6) {
		seed = append(seed, step(1, roce.OpSendOnly, 2, i, 1, 0)...)
		seed = append(seed, step(4, roce.OpAck, 1, i, 9, 4, 0, 0, 0, i)...)
	}
	f.Add(seed)
	f.Add(step(1, 0x64, 1, 0, 0, 20, make([]byte, 20)...))
	f.Add(append(step(1, roce.OpReadRequest, 2, 0, 1, 16, make([]byte, 16)...), step(4, roce.OpReadRespOnly, 1, 0, 1, 4, 0, 0, 0, 1)...))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 4096 {
			return // longer ones only take longer
		}
		const bound = 12
		m := New(Config{MaxEntries: bound, AgeAfter: time.Second, TapComplete: len(in)%2 == 0})
		l := &lab{t: t, m: m, now: time.Unix(1_700_000_000, 0)}
		hosts := [4]flow{{from: hostA}, {from: hostB}, {from: hostC}, {from: simAddr[0]}}
		for len(in) >= 6 {
			h, op, qp, psn, wait, n := in[0], in[1], in[2], in[3], in[4], int(in[5])
			in = in[6:]
			n = min(n, len(in))
			body := in[:n]
			in = in[n:]
			fl := flow{from: hosts[h>>2&3].from, to: hosts[h&3].from, qp: uint32(qp % 4), port: 49152 + uint16(h>>6), ttl: 64 + wait>>7, mac: h >> 7, ifIndex: 1}
			if op == 0x64 && qp%4 == 1 { // a MAD with what CM needs, the body over it
				body = fuzzMAD(fl, body)
			}
			l.packet(fl, roce.Opcode(op), uint32(psn)*uint32(psn)*uint32(psn), wait&1 != 0, body)
			switch {
			case wait == 0xFF:
				l.wait(2 * time.Second)
				m.Tick(l.now)
			case wait == 0xFE:
				l.wait(150 * time.Millisecond)
			default:
				l.wait(time.Duration(wait) * 10 * time.Microsecond)
			}
			m.Lookup(fl.key(), l.now)
		}
		counted(t, m, bound)
		l.wait(time.Minute)
		m.Tick(l.now)
		l.wait(time.Minute)
		m.Tick(l.now)
		counted(t, m, 0)
	})
}

// FuzzCatchUp plays packets with arbitrary words of a tap that selects: how far the flow was, how it is shown, and that it is
// another's. Pairs are settled at once; the tap asked is as arbitrary. Nothing may panic, and the bounds and counts
// must hold.
func FuzzCatchUp(f *testing.F) {
	var seed []byte
	for i := range byte(12) {
		seed = append(seed, 0, 1, i, i, 0, 1, i&1)
		seed = append(seed, 1, 1, i, i, 0, 1, i&1)
	}
	f.Add(seed)
	f.Add([]byte{0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 200, 9, 77, 0xFF, 200})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 2048 {
			return
		}
		const bound = 8
		m := New(Config{MaxEntries: bound, AgeAfter: time.Second})
		m.settleAfter = 0
		tap := &fuzzTap{}
		m.SetTap(tap)
		now := time.Unix(1_700_000_000, 0)
		n := formulaConn(hostA, hostB, 0x11, 0x2200)
		other := formulaConn(hostA, hostC, 0x11, 0x3300)
		told := make([]Telling, 0, 3)
		for ; len(in) >= 7; in = in[7:] {
			fl := [...]flow{n.ab, n.ba, other.ab, other.ba}[in[0]&3]
			op := [...]roce.Opcode{rcSend, rcAck, rcRead, 0x01, 0x0D, 0x2A, 0x64, 0x44}[in[1]&7]
			if in[0]&1 == 1 && in[1] < 8 { // mostly responses the other way
				op = rcAck
			}
			at := uint32(in[2])
			fl.port += uint16(in[0] >> 7)
			p := &roce.Packet{Src: fl.from, Dst: fl.to, TTL: 64 - in[0]>>6&1*9, SrcPort: fl.port, SrcMAC: [6]byte{2, 5: fl.mac}}
			p.BTH = roce.BTH{Opcode: op, DestQP: fl.qp, PSN: (highStart + at + at*at*at*uint32(in[1]>>6)) & psnMask, AckReq: true}
			p.Body = []byte{0, 0, 0, in[2], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, in[4], 0}
			high := uint32(in[3])
			b := &Progress{Sight: Sight(in[6] % 3), Skipped: uint32(in[4]), ReqHigh: (highStart + high*high*high) & psnMask, RespHigh: (highStart + high) & psnMask,
				MSN: uint32(in[5]), ReadLen: uint32(in[4]) << (in[5] & 31), HasReq: in[6]&4 != 0, HasResp: in[6]&8 != 0, HasMSN: in[6]&16 != 0, Foreign: in[6]&32 != 0}
			if in[5] != 0 {
				b.LastSeen = now.Add(-time.Duration(in[5]) * time.Microsecond)
			}
			tap.p = *b
			m.Observe(&Observation{Packet: p, IfIndex: fl.ifIndex, At: now, Before: b})
			for told = m.Due(told[:0], now); len(told) > 0; told = m.Due(told[:0], now) {
				tap.told += len(told)
			}
			m.Lookup(fl.key(), now)
			switch in[6] >> 6 {
			case 1:
				m.Tick(now)
			case 2:
				m.Seen(FlowID{Key: fl.key(), SrcPort: fl.port}, Progress{Sight: Sight(in[6] % 3), LastSeen: now})
				now = now.Add(300 * time.Millisecond)
			case 3:
				m.Doubt(now)
			}
			now = now.Add(time.Duration(in[5]) * 50 * time.Microsecond)
		}
		counted(t, m, bound)
		m.SetTap(nil)
		for range 2 {
			now = now.Add(time.Minute)
			m.Tick(now)
		}
		counted(t, m, 0)
	})
}

// fuzzTap answers what it was set to.
type fuzzTap struct {
	p    Progress
	told int
}

func (f *fuzzTap) Progress(FlowID) (Progress, bool) { return f.p, f.p.HasReq }

// fuzzMAD makes a CM datagram of the body's octets: kind, ids, QPs and PSN.
func fuzzMAD(f flow, body []byte) []byte {
	var b [8]byte
	copy(b[:], body)
	mad := roce.MAD{BaseVersion: 1, Class: 7, ClassVersion: 2, Method: 3, AttrID: uint16(roce.CMREQ) + uint16(b[0]%11),
		DETH: roce.DETH{SrcQP: 1}}
	mad.CM = roce.CM{Kind: roce.CMKind(mad.AttrID), LocalCommID: uint32(b[1] % 4), RemoteCommID: uint32(b[2] % 4), LocalQPN: uint32(b[3] % 4),
		RemoteQPN: uint32(b[4] % 4), StartingPSN: uint32(b[5]), Transport: b[6] & 3, LocalGID: f.from.As16(), RemoteGID: f.to.As16()}
	out, err := mad.Append(nil)
	if err != nil {
		return body
	}
	return out
}

// FuzzObserveBytes plays one packet of arbitrary bytes as a tap would see it, between packets of a pair.
func FuzzObserveBytes(f *testing.F) {
	ip, err := roce.AppendPacket(nil, &roce.PacketSpec{Src: hostA, Dst: hostB, SrcPort: 49152,
		BTH: roce.BTH{Opcode: rcRead, DestQP: 0x22, PSN: highStart}, Body: binary.BigEndian.AppendUint32(make([]byte, 12), 5000)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ip)
	f.Fuzz(func(t *testing.T, in []byte) {
		m := New(Config{MaxEntries: 100, ICRCSample: 1})
		l := &lab{t: t, m: m, now: time.Unix(1_700_000_000, 0)}
		n := formulaConn(hostA, hostB, 0x11, 0x22)
		for i := range uint32(6) {
			l.exchange(n, highStart+i, 1)
			var p roce.Packet
			if roce.ParseIP(in, &p) == nil {
				m.Observe(&Observation{Packet: &p, IfIndex: 1, At: l.now})
			}
		}
		counted(t, m, 100)
	})
}
