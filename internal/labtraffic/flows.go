package labtraffic

import (
	"fmt"
	"math/rand/v2"

	"pncd/dataplane/roce"
)

// PortRule is how the two ends choose the UDP source port of a queue pair.
type PortRule string

// Port rules. Adapters with rdma-core's formula use the same port at both ends.
const (
	PortsFormula  PortRule = "formula"  // rdma-core's, from both QP numbers
	PortsUnique   PortRule = "unique"   // one port for each pair, the same at both ends
	PortsConstant PortRule = "constant" // one port for everything
	PortsUnequal  PortRule = "unequal"  // another one at each end
)

// PSNStart is where a queue pair's packet sequence numbers start.
type PSNStart string

// PSN starts.
const (
	PSNRandom PSNStart = "random"
	PSNZero   PSNStart = "zero"
)

// Operation is what the generated traffic does.
type Operation string

// Operations.
const (
	OpWrite   Operation = "write"    // RC RDMA WRITE
	OpSend    Operation = "send"     // RC SEND
	OpRead    Operation = "read"     // RC RDMA READ: the data comes from the other end
	OpUCWrite Operation = "uc-write" // UC RDMA WRITE: nothing is acknowledged
)

// FlowConfig describes the queue pairs of a Generator and what they send.
type FlowConfig struct {
	QPs       int    // number of pairs; 1 when zero
	LocalQPN  uint32 // the first pair's QP at the local host; the next ones follow; 0x000111 when zero
	PeerQPN   uint32 // at the peer; 0x000A22 when zero
	QPNStep   uint32 // from one pair to the next; 1 when zero
	CM        bool   // connection management handshake first, DREQ and DREP last
	Start     PSNStart
	Ports     PortRule
	Operation Operation
	// Both makes the peer send too; otherwise only the local host requests.
	Both bool
	// OneWay leaves the answers out, as when they take another path.
	OneWay  bool
	Packets int // packets of a message; 1 when zero
	Payload int // octets of payload in a packet, a multiple of 4; 1024 when zero
	// CEShare of the data packets leave with CE set, 0 to 1; the others carry ECT(0).
	CEShare float64
	Seed    uint64 // of PSN starts and unique ports
}

// Pair is the truth about a generated queue pair.
type Pair struct {
	LocalQPN, PeerQPN   uint32
	LocalPort, PeerPort uint16 // UDP source ports
}

// ValueError is a value of a configuration that can't be.
type ValueError struct {
	Field string // of FlowConfig or GeneratorConfig
	Rule  string
}

// Error implements error.
func (e *ValueError) Error() string { return e.Field + ": " + e.Rule }

func wrong(field, rule string, args ...any) error {
	return &ValueError{field, fmt.Sprintf(rule, args...)}
}

// withDefaults fills in and checks a configuration.
func (c FlowConfig) withDefaults() (FlowConfig, error) {
	set := func(v *uint32, d uint32) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.LocalQPN, 0x111)
	set(&c.PeerQPN, 0xA22)
	set(&c.QPNStep, 1)
	if c.QPs == 0 {
		c.QPs = 1
	}
	if c.Packets == 0 {
		c.Packets = 1
	}
	if c.Payload == 0 {
		c.Payload = 1024
	}
	if c.Start == "" {
		c.Start = PSNRandom
	}
	if c.Ports == "" {
		c.Ports = PortsFormula
	}
	if c.Operation == "" {
		c.Operation = OpWrite
	}
	last := uint64(c.QPs-1) * uint64(c.QPNStep)
	switch {
	case c.QPs < 0 || c.QPs > 1<<16:
		return c, wrong("QPs", "%d is not 1 to 65536", c.QPs)
	case uint64(c.LocalQPN)+last > mask24 || c.LocalQPN < 2:
		return c, wrong("LocalQPN", "%#x to %#x: a QP number has 24 bits, and 0 and 1 are management's", c.LocalQPN, uint64(c.LocalQPN)+last)
	case uint64(c.PeerQPN)+last > mask24 || c.PeerQPN < 2:
		return c, wrong("PeerQPN", "%#x to %#x: a QP number has 24 bits, and 0 and 1 are management's", c.PeerQPN, uint64(c.PeerQPN)+last)
	case c.Packets < 0 || c.Packets > 1<<15:
		return c, wrong("Packets", "%d is not 1 to 32768", c.Packets)
	case c.Payload < 4 || c.Payload > 4096 || c.Payload%4 != 0:
		return c, wrong("Payload", "%d is not a multiple of 4 up to 4096", c.Payload)
	case c.CEShare < 0 || c.CEShare > 1:
		return c, wrong("CEShare", "%v is not 0 to 1", c.CEShare)
	case c.Start != PSNRandom && c.Start != PSNZero:
		return c, wrong("Start", "%q is not random or zero", c.Start)
	}
	switch c.Ports {
	case PortsFormula, PortsUnique, PortsConstant, PortsUnequal:
	default:
		return c, wrong("Ports", "%q is not formula, unique, constant or unequal", c.Ports)
	}
	switch c.Operation {
	case OpWrite, OpSend, OpRead, OpUCWrite:
	default:
		return c, wrong("Operation", "%q is not write, send, read or uc-write", c.Operation)
	}
	return c, nil
}

// flow is the state of one queue pair. Index local or peer: what that end uses.
type flow struct {
	qpn  [2]uint32 // its own QP
	port [2]uint16
	psn  [2]uint32 // of its next request
	msn  [2]uint32 // messages it has completed as responder
}

// newFlows makes the pairs; the same seed gives the same ones.
func newFlows(c FlowConfig) []flow {
	rng := rand.New(rand.NewPCG(c.Seed, 0x706e6364))
	flows := make([]flow, c.QPs)
	free := rng.Perm(1 << 14) // 14 bits of port: the dynamic range that RoCEv2 uses
	for i := range flows {
		f := &flows[i]
		f.qpn = [2]uint32{c.LocalQPN + uint32(i)*c.QPNStep, c.PeerQPN + uint32(i)*c.QPNStep}
		if c.Start == PSNRandom {
			// Away from zero and from the wrap, as drivers draw them, so that streams differ from the start.
			f.psn = [2]uint32{1<<16 + rng.Uint32N(1<<24-1<<17), 1<<16 + rng.Uint32N(1<<24-1<<17)}
		}
		switch c.Ports {
		case PortsFormula:
			f.port[local] = FormulaPort(f.qpn[local], f.qpn[peer])
			f.port[peer] = f.port[local]
		case PortsUnique:
			f.port[local] = 0xC000 | uint16(free[i%len(free)])
			f.port[peer] = f.port[local]
		case PortsConstant:
			f.port = [2]uint16{0xC000, 0xC000}
		case PortsUnequal:
			f.port = [2]uint16{0xC000 | uint16(free[(2*i)%len(free)]), 0xC000 | uint16(free[(2*i+1)%len(free)])}
		}
	}
	return flows
}

// FormulaPort is the UDP source port that rdma-core derives from the two QP numbers (its
// ibv_flow_label_to_udp_sport over rdma_calc_flow_label, as in the kernel's ib_verbs.h).
func FormulaPort(a, b uint32) uint16 {
	v := uint64(a) * uint64(b)
	v ^= v >> 20
	v ^= v >> 40
	label := uint32(v) & 0xFFFFF
	return uint16(label&0x3FFF^label>>14) | 0xC000
}

// packet is one packet to send.
type packet struct {
	from side
	data bool // carries the flow's data, so that CE may be set
	port uint16
	bth  roce.BTH
	body []byte
}

// opcode joins a transport and an operation.
func opcode(t roce.Transport, op uint8) roce.Opcode { return roce.Opcode(uint8(t)<<5 | op) }

// message is one message that `from` requests, and the answers to it.
func (f *flow) message(c *FlowConfig, from side, payload []byte) (request, answer []packet) {
	switch c.Operation {
	case OpRead:
		return f.read(c, from, payload)
	case OpUCWrite:
		return f.write(c, from, roce.TransportUC, payload), nil
	}
	request = f.write(c, from, roce.TransportRC, payload)
	return request, []packet{f.ack(from.other(), request[len(request)-1].bth.PSN)}
}

func (f *flow) header(from side, op roce.Opcode, psn uint32) packet {
	return packet{from: from, port: f.port[from], bth: roce.BTH{
		Opcode: op, PKey: roce.DefaultPKey, DestQP: f.qpn[from.other()], PSN: psn & mask24,
	}}
}

func (f *flow) nextPSN(from side) uint32 {
	n := f.psn[from]
	f.psn[from] = (n + 1) & mask24
	return n
}

// write is a WRITE or SEND of c.Packets packets.
func (f *flow) write(c *FlowConfig, from side, t roce.Transport, payload []byte) []packet {
	first, middle, last, only := roce.OpWriteFirst, roce.OpWriteMiddle, roce.OpWriteLast, roce.OpWriteOnly
	if c.Operation == OpSend {
		first, middle, last, only = roce.OpSendFirst, roce.OpSendMiddle, roce.OpSendLast, roce.OpSendOnly
	}
	out := make([]packet, c.Packets)
	for i := range out {
		op := middle
		switch {
		case c.Packets == 1:
			op = only
		case i == 0:
			op = first
		case i == c.Packets-1:
			op = last
		}
		p := f.header(from, opcode(t, op), f.nextPSN(from))
		p.data = true
		p.bth.AckReq = i == c.Packets-1 && t == roce.TransportRC
		if op == roce.OpWriteFirst || op == roce.OpWriteOnly {
			p.body = roce.AppendRETH(nil, roce.RETH{VA: 0x1000, RKey: 1, DMALen: uint32(c.Packets * c.Payload)})
		}
		p.body = append(p.body, payload...)
		out[i] = p
	}
	return out
}

// read is a READ request and the responses that bring its data.
func (f *flow) read(c *FlowConfig, from side, payload []byte) (request, answer []packet) {
	first := f.psn[from]
	p := f.header(from, opcode(roce.TransportRC, roce.OpReadRequest), first)
	p.bth.AckReq = true
	p.body = roce.AppendRETH(nil, roce.RETH{VA: 0x1000, RKey: 1, DMALen: uint32(c.Packets * c.Payload)})
	f.psn[from] = (first + uint32(c.Packets)) & mask24
	to := from.other()
	f.msn[to] = (f.msn[to] + 1) & mask24
	for i := range c.Packets {
		op := roce.OpReadRespMiddle
		switch {
		case c.Packets == 1:
			op = roce.OpReadRespOnly
		case i == 0:
			op = roce.OpReadRespFirst
		case i == c.Packets-1:
			op = roce.OpReadRespLast
		}
		r := f.header(to, opcode(roce.TransportRC, op), first+uint32(i))
		r.data = true
		if op != roce.OpReadRespMiddle {
			r.body = roce.AppendAETH(nil, roce.AETH{Syndrome: ackCredits, MSN: f.msn[to]})
		}
		r.body = append(r.body, payload...)
		answer = append(answer, r)
	}
	return []packet{p}, answer
}

// ackCredits is an ACK's syndrome with credit count 31: no end-to-end credits (IBTA volume 1, table 45).
const ackCredits = 0x1F

func (f *flow) ack(from side, psn uint32) packet {
	f.msn[from] = (f.msn[from] + 1) & mask24
	p := f.header(from, roce.OpcodeRCAck, psn)
	p.body = roce.AppendAETH(nil, roce.AETH{Syndrome: ackCredits, MSN: f.msn[from]})
	return p
}
