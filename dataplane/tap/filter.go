package tap

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"pncd/dataplane/roce"
)

// What the filter looks at. Offsets of IP fields are from the IP header.
const (
	etherTypeAt = 12
	etherIPv4   = 0x0800
	etherIPv6   = 0x86DD
	etherVLAN   = 0x8100
	etherQinQ   = 0x88A8
	etherRoCEv1 = 0x8915 // IBTA annex A16
	protoUDP    = 17
	rocePort    = 4791 // IANA: rocev2
	vxlanPort   = 4789 // RFC 7348
	ipv6Len     = 40

	fragmentBits = 0x3FFF // more-fragments flag and offset
	ecnIPv4      = 0x03   // in octet 1, the TOS
	ecnIPv6      = 0x30   // in octet 1, whose high four bits end the traffic class

	// roceV1Keep is what is kept of a RoCEv1 frame: it is only counted.
	roceV1Keep = 64

	// maxTags is how many VLAN tags may stand in the bytes: the outer one is metadata when the kernel took it
	// off, and still in the bytes of some frames that leave.
	maxTags = 2
)

// filter is the classic BPF programme of a tap: UDP to port 4791 over IPv4 (no fragment) or IPv6 (no
// extension header), behind up to two VLAN tags in the bytes, and the beginning of RoCEv1 frames; all that has the
// outer header of one of Tunnels, whatever is behind it; with CEOnly only packets marked CE; for Outgoing only
// frames that leave; with Sample one in so many. It returns how many octets to keep.
func filter(c Config) []bpf.Instruction {
	var p []bpf.Instruction
	if c.Direction == Outgoing {
		p = append(p, bpf.LoadExtension{Num: bpf.ExtType})
		p = append(p, must(bpf.JumpEqual, unix.PACKET_OUTGOING)...)
	}
	if c.Sample > 1 {
		p = append(p, bpf.LoadExtension{Num: bpf.ExtRand}, bpf.ALUOpConstant{Op: bpf.ALUOpMod, Val: uint32(c.Sample)})
		p = append(p, must(bpf.JumpEqual, 0)...)
	}
	return append(p, frameFilter(c.CEOnly, c.Tunnels, uint32(c.SnapLen))...)
}

// frameFilter is the part of the filter that reads only the frame's bytes.
func frameFilter(ceOnly bool, tunnels roce.Tunnels, keep uint32) []bpf.Instruction {
	var p []bpf.Instruction
	for tags := uint32(0); ; tags++ {
		at := etherTypeAt + 4*tags
		p = append(p, bpf.LoadAbsolute{Off: at, Size: 2})
		p = append(p, when(etherIPv4, ipv4Filter(at+2, ceOnly, tunnels, keep))...)
		p = append(p, when(etherIPv6, ipv6Filter(at+2, ceOnly, tunnels, keep))...)
		if !ceOnly {
			p = append(p, when(etherRoCEv1, []bpf.Instruction{bpf.RetConstant{Val: min(keep, roceV1Keep)}})...)
		}
		if tags == maxTags {
			return append(p, bpf.RetConstant{Val: 0})
		}
		p = append(p,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherVLAN, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherQinQ, SkipTrue: 1},
			bpf.RetConstant{Val: 0})
	}
}

// ipv4Filter ends the programme for an IPv4 header at ip.
func ipv4Filter(ip uint32, ceOnly bool, tunnels roce.Tunnels, keep uint32) []bpf.Instruction {
	var p []bpf.Instruction
	p = append(p, bpf.LoadAbsolute{Off: ip + 6, Size: 2})
	p = append(p, must(bpf.JumpBitsNotSet, fragmentBits)...)
	p = append(p, bpf.LoadAbsolute{Off: ip + 9, Size: 1})
	p = append(p, tunnelFilter(tunnels, keep)...)
	p = append(p, must(bpf.JumpEqual, protoUDP)...)
	p = append(p, bpf.LoadMemShift{Off: ip}, bpf.LoadIndirect{Off: ip + 2, Size: 2})
	p = append(p, vxlanFilter(tunnels, keep)...)
	p = append(p, must(bpf.JumpEqual, rocePort)...)
	if ceOnly {
		p = append(p, ceFilter(ip, ecnIPv4)...)
	}
	return append(p, bpf.RetConstant{Val: keep})
}

// ipv6Filter ends the programme for an IPv6 header at ip.
func ipv6Filter(ip uint32, ceOnly bool, tunnels roce.Tunnels, keep uint32) []bpf.Instruction {
	var p []bpf.Instruction
	p = append(p, bpf.LoadAbsolute{Off: ip + 6, Size: 1})
	p = append(p, tunnelFilter(tunnels, keep)...)
	if tunnels&roce.TunnelSRv6 != 0 {
		p = append(p, when(unix.IPPROTO_ROUTING, []bpf.Instruction{bpf.RetConstant{Val: keep}})...)
	}
	if tunnels != 0 { // Linux limits how deep tunnels are nested by such an option (RFC 2473 section 4.1.1)
		p = append(p, when(unix.IPPROTO_DSTOPTS, []bpf.Instruction{bpf.RetConstant{Val: keep}})...)
	}
	p = append(p, must(bpf.JumpEqual, protoUDP)...)
	p = append(p, bpf.LoadAbsolute{Off: ip + ipv6Len + 2, Size: 2})
	p = append(p, vxlanFilter(tunnels, keep)...)
	p = append(p, must(bpf.JumpEqual, rocePort)...)
	if ceOnly {
		p = append(p, ceFilter(ip, ecnIPv6)...)
	}
	return append(p, bpf.RetConstant{Val: keep})
}

// tunnelFilter ends the programme for the protocols of outer headers that IPv4 and IPv6 have.
func tunnelFilter(t roce.Tunnels, keep uint32) (p []bpf.Instruction) {
	for _, x := range []struct {
		of    roce.Tunnels
		proto uint32
	}{{roce.TunnelIP, unix.IPPROTO_IPIP}, {roce.TunnelIP, unix.IPPROTO_IPV6}, {roce.TunnelGRE, unix.IPPROTO_GRE}} {
		if t&x.of != 0 {
			p = append(p, when(x.proto, []bpf.Instruction{bpf.RetConstant{Val: keep}})...)
		}
	}
	return p
}

// vxlanFilter ends the programme for the UDP port of VXLAN.
func vxlanFilter(t roce.Tunnels, keep uint32) []bpf.Instruction {
	if t&roce.TunnelVXLAN == 0 {
		return nil
	}
	return when(vxlanPort, []bpf.Instruction{bpf.RetConstant{Val: keep}})
}

// ceFilter goes on only when both ECN bits are set (RFC 3168 section 5).
func ceFilter(ip, bits uint32) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: ip + 1, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: bits},
	}
	return append(p, must(bpf.JumpEqual, bits)...)
}

// must refuses the frame unless the accumulator satisfies the condition.
func must(cond bpf.JumpTest, val uint32) []bpf.Instruction {
	return []bpf.Instruction{bpf.JumpIf{Cond: cond, Val: val, SkipTrue: 1}, bpf.RetConstant{Val: 0}}
}

// when runs body, which ends the programme, if the accumulator equals val.
func when(val uint32, body []bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: val, SkipFalse: uint8(len(body))}}, body...)
}

// assemble returns the filter in the kernel's form.
func assemble(c Config) ([]unix.SockFilter, error) {
	raw, err := bpf.Assemble(filter(c))
	if err != nil {
		return nil, err
	}
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}
