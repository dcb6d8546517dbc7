package boundary

import (
	"encoding/binary"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// reg is the register that every value passes through (NFT_REG_1).
const reg = 1

// field is where an address is in a packet, with the family that it is in.
type field struct {
	nfproto     byte
	offset, len uint32
}

var (
	source4      = field{unix.NFPROTO_IPV4, 12, 4}
	destination4 = field{unix.NFPROTO_IPV4, 16, 4}
	source6      = field{unix.NFPROTO_IPV6, 8, 16}
	destination6 = field{unix.NFPROTO_IPV6, 24, 16}
	ttl          = field{unix.NFPROTO_IPV4, 8, 1}
	hopLimit     = field{unix.NFPROTO_IPV6, 7, 1}
)

// load puts the field into the register; a packet of the other family doesn't match.
func (f field) load() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: reg},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: []byte{f.nfproto}},
		&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: f.offset, Len: f.len},
	}
}

// udp matches UDP; what follows may look into its header.
func udp() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: []byte{unix.IPPROTO_UDP}},
	}
}

// transport loads octets from the start of the UDP header.
func transport(offset, length uint32) *expr.Payload {
	return &expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: length}
}

// notification matches a datagram to one of the notification ports.
func notification() []expr.Any {
	return append(udp(), transport(2, 2), &expr.Lookup{SourceRegister: reg, SetName: portsSet})
}

// cnp matches a RoCEv2 CNP: its opcode is the first octet after the UDP header.
func cnp() []expr.Any {
	return append(udp(),
		transport(2, 2), &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: binary.BigEndian.AppendUint16(nil, roceUDPPort)},
		transport(8, 1), &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: []byte{cnpOpcode}})
}

// iface matches an interface by name.
func iface(key expr.MetaKey, op expr.CmpOp, name string) []expr.Any {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, name)
	return []expr.Any{&expr.Meta{Key: key, Register: reg}, &expr.Cmp{Op: op, Register: reg, Data: data}}
}

// notIn matches packets whose field isn't in a set.
func notIn(f field, set string) []expr.Any {
	return append(f.load(), &expr.Lookup{SourceRegister: reg, SetName: set, Invert: true})
}

// below matches packets whose field, of one octet, is less than v.
func below(f field, v uint8) []expr.Any {
	return append(f.load(), &expr.Cmp{Op: expr.CmpOpLt, Register: reg, Data: []byte{v}})
}

// meter matches packets above the rate of their source. A source for which the set has no room doesn't match.
func (b *builder) meter(f field, set string) []expr.Any {
	return append(f.load(), &expr.Dynset{
		SrcRegKey: reg, SetName: set, Operation: unix.NFT_DYNSET_OP_UPDATE, Exprs: []expr.Any{over(b.policy.PerSource)},
	})
}

// sources makes a set that packets fill.
func (b *builder) sources(name string, key nftables.SetDatatype) Set {
	return Set{Set: nftables.Set{
		Name: name, KeyType: key, Size: b.policy.Sources, Dynamic: true, HasTimeout: true, Timeout: b.policy.SourceAge,
	}}
}

func over(l Limit) *expr.Limit {
	return &expr.Limit{Type: expr.LimitTypePkts, Rate: l.Rate, Unit: expr.LimitTimeSecond, Burst: l.Burst, Over: true}
}

func counter(name string) *expr.Objref {
	return &expr.Objref{Type: unix.NFT_OBJECT_COUNTER, Name: name}
}

// drop makes a rule that counts and drops what matches.
func drop(name string, match ...expr.Any) Rule {
	return Rule{Exprs: append(match, counter(name), &expr.Verdict{Kind: expr.VerdictDrop})}
}
