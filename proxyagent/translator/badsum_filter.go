package translator

import "golang.org/x/net/bpf"

const (
	// maxEarlySum is the longest UDP datagram, header included, that the kernel verifies before it
	// looks for a socket (CHECKSUM_BREAK in linux/skbuff.h).
	maxEarlySum = 76
	// netOffset makes an offset count from the network header (SKF_NET_OFF in linux/filter.h).
	netOffset = 0xfff00000
)

// Scratch words of the filter.
const (
	memSum    = iota // the sum so far
	memLength        // the UDP length
	memBase          // where the UDP header begins
	memTemp
)

// badSumFilter is a classic BPF program for a raw UDP socket: it lets by a datagram to the port whose
// checksum is wrong and that the kernel verifies before it looks for a socket.
//
// A checksum that a local sender left to its device holds the pseudo header's sum alone, and is not
// wrong: the kernel knows such a packet by other means, this filter by that value (so one wrong
// checksum in 65,536 passes for it). Over IPv4 zero means none; over IPv6 it is wrong (RFC 8200
// section 8.1).
//
// Over IPv4 the packet begins with the IP header, over IPv6 with the UDP header.
func badSumFilter(v4 bool, port uint16) []bpf.Instruction {
	f := &filter{v4: v4}
	if v4 {
		f.add(bpf.LoadMemShift{Off: 0})
	} else {
		f.add(bpf.LoadConstant{Dst: bpf.RegX, Val: 0})
	}
	f.add(bpf.StoreScratch{Src: bpf.RegX, N: memBase})
	f.load(2) // first, for it is run on all UDP datagrams to the address
	f.rejectUnless(bpf.JumpEqual, uint32(port))

	if v4 {
		f.addresses(12, 4)
	} else {
		f.addresses(netOffset+8, 16)
	}
	f.load(4)
	f.add(bpf.StoreScratch{Src: bpf.RegA, N: memLength})
	f.rejectUnless(bpf.JumpLessOrEqual, maxEarlySum)
	f.rejectUnless(bpf.JumpGreaterOrEqual, udpHeaderLen)
	f.add(bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: protoUDP})
	f.addToSum()

	f.load(6)
	if v4 {
		f.rejectUnless(bpf.JumpNotEqual, 0)
	} else {
		f.add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipFalse: 1}, accept)
	}
	f.rejectPseudoSum()
	f.addDatagram()
	f.fold()
	f.add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0xffff, SkipTrue: 1}, accept, reject)
	return f.code
}

var (
	reject = bpf.RetConstant{Val: 0}
	accept = bpf.RetConstant{Val: 1 << 18}
)

type filter struct {
	v4   bool
	code []bpf.Instruction
}

func (f *filter) add(i ...bpf.Instruction) { f.code = append(f.code, i...) }

// load puts the 16-bit word at offset from the UDP header into A.
func (f *filter) load(offset uint32) {
	f.add(bpf.LoadScratch{Dst: bpf.RegX, N: memBase}, bpf.LoadIndirect{Off: offset, Size: 2})
}

// addToSum adds A to the sum.
func (f *filter) addToSum() {
	f.add(
		bpf.TAX{},
		bpf.LoadScratch{Dst: bpf.RegA, N: memSum},
		bpf.ALUOpX{Op: bpf.ALUOpAdd},
		bpf.StoreScratch{Src: bpf.RegA, N: memSum},
	)
}

func (f *filter) rejectUnless(cond bpf.JumpTest, val uint32) {
	f.add(bpf.JumpIf{Cond: cond, Val: val, SkipTrue: 1}, reject)
}

// addresses starts the sum with those of the pseudo header: words 16-bit words from the offset on.
func (f *filter) addresses(offset uint32, words int) {
	f.add(bpf.LoadConstant{Dst: bpf.RegA, Val: 0}, bpf.StoreScratch{Src: bpf.RegA, N: memSum})
	for i := range words {
		f.add(bpf.LoadAbsolute{Off: offset + 2*uint32(i), Size: 2})
		f.addToSum()
	}
}

// rejectPseudoSum rejects a checksum (in A) that is the pseudo header's sum.
func (f *filter) rejectPseudoSum() {
	f.add(bpf.StoreScratch{Src: bpf.RegA, N: memTemp + 1})
	f.fold()
	f.add(
		bpf.LoadScratch{Dst: bpf.RegX, N: memTemp + 1},
		bpf.JumpIfX{Cond: bpf.JumpNotEqual, SkipTrue: 1},
		reject,
	)
}

// fold folds the sum to 16 bits, there and in A (RFC 1071). Twice is enough for these lengths.
func (f *filter) fold() {
	for range 2 {
		f.add(
			bpf.LoadScratch{Dst: bpf.RegA, N: memSum},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xffff},
			bpf.StoreScratch{Src: bpf.RegA, N: memTemp},
			bpf.LoadScratch{Dst: bpf.RegA, N: memSum},
			bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 16},
			bpf.LoadScratch{Dst: bpf.RegX, N: memTemp},
			bpf.ALUOpX{Op: bpf.ALUOpAdd},
			bpf.StoreScratch{Src: bpf.RegA, N: memSum},
		)
	}
}

// addDatagram adds the UDP datagram, word by word: classic BPF has no loops.
func (f *filter) addDatagram() {
	const words, perWord = maxEarlySum / 2, 18
	end := len(f.code) + words*perWord
	for i := range words {
		k := uint32(2 * i)
		f.add(
			bpf.LoadScratch{Dst: bpf.RegA, N: memLength},
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: k + 2, SkipTrue: 10}, // a whole word
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: k + 1, SkipTrue: 1},           // the last octet
		)
		f.add(bpf.Jump{Skip: uint32(end - len(f.code) - 1)})
		f.add(
			bpf.LoadScratch{Dst: bpf.RegX, N: memBase},
			bpf.LoadIndirect{Off: k, Size: 1},
			bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 8},
		)
		f.addToSum()
		f.add(bpf.Jump{Skip: uint32(end - len(f.code) - 1)})
		f.load(k)
		f.addToSum()
	}
}
