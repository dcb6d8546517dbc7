package bench

import (
	"encoding/binary"
	"fmt"
	"net"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/taptest"
)

// frameSource sends a chain's frames as XDP frames: they reach the router as those of a network adapter reach its
// driver, in pages with room in front and before there is a socket buffer. It is a program that the kernel's test run runs
// over and over; the program makes each the next of all flows and redirects it to the sender's interface.
type frameSource struct {
	prog  *ebpf.Program
	count *ebpf.Map
	frame []byte
}

// frameRuns is how many frames one system call sends, frameBatch at a time. It is many: each call waits for grace periods of RCU at
// its begin and end, some 20 to 30 ms in steps of the timer, which no tap makes slower.
const (
	frameRuns  = 4096 * frameBatch
	frameBatch = 64
)

// liveFrames is BPF_F_TEST_XDP_LIVE_FRAMES: what the program says is done.
const liveFrames = 1 << 1

// newFrameSource makes a source of the chain's frames. The router's interface gets its driver's poll loop, which is what takes
// such frames, with and without a program.
func newFrameSource(c *chain) (*frameSource, error) {
	if err := setGRO(c.router, "r0"); err != nil {
		return nil, fmt.Errorf("GRO of r0: %w", err)
	}
	var sender *net.Interface
	if err := c.spaces[0].Do(func() (err error) {
		sender, err = net.InterfaceByName("s0")
		return err
	}); err != nil {
		return nil, err
	}
	count, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Instructions: nextFrame(c, count, sender.Index), License: "Apache-2.0"})
	if err != nil {
		_ = count.Close()
		return nil, err
	}
	return &frameSource{prog: prog, count: count, frame: c.frames[0]}, nil
}

// nextFrame makes the frame in a page the next one, whatever the router has made of it: another flow (UDP source port and
// Destination QP, as makeFrames has them), or the next PSN, in the order of chain.send; and all that a router changes.
func nextFrame(c *chain, count *ebpf.Map, to int) asm.Instructions {
	const ip, udp, bth = 14, 34, 42
	first := c.frames[0]
	var fresh asm.Instructions
	for _, at := range []int{0, 4, 8, ip + 8} { // MAC addresses; TTL, protocol and checksum
		word := int64(int32(binary.NativeEndian.Uint32(first[at:])))
		fresh = append(fresh, asm.StoreImm(asm.R5, int16(at), word, asm.Word))
	}
	out := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapValue(asm.R1, count.FD(), 0),
		asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, 1),
		asm.StoreMem(asm.R1, 0, asm.R4, asm.DWord),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Mod.Imm(asm.R4, sendBatch), // the flow, in those that take turns
		asm.Div.Imm(asm.R2, sendBatch),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.Mod.Imm(asm.R3, int32(c.message)), // the packet in the message
		asm.Div.Imm(asm.R2, int32(c.message)),
		asm.Mov.Reg(asm.R0, asm.R2),
		asm.Mod.Imm(asm.R0, int32(len(c.frames)/sendBatch)),
		asm.Mul.Imm(asm.R0, sendBatch),
		asm.Add.Reg(asm.R4, asm.R0),
		asm.Div.Imm(asm.R2, int32(len(c.frames)/sendBatch)), // the round
		asm.Mul.Imm(asm.R2, int32(c.message)),
		asm.Add.Reg(asm.R2, asm.R3),
		asm.Add.Imm(asm.R2, 1),
		asm.LoadMem(asm.R5, asm.R6, 0, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, 4, asm.Word),
		asm.Mov.Reg(asm.R0, asm.R5),
		asm.Add.Imm(asm.R0, bth+12),
		asm.JGT.Reg(asm.R0, asm.R1, "short"),
		asm.Or.Imm(asm.R2, -1<<31), // asks for an ACK
		asm.HostTo(asm.BE, asm.R2, asm.Word),
		asm.StoreMem(asm.R5, bth+8, asm.R2, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R4),
		asm.Mod.Imm(asm.R3, firstPorts),
		asm.Add.Imm(asm.R3, firstPort),
		asm.HostTo(asm.BE, asm.R3, asm.Half),
		asm.StoreMem(asm.R5, udp, asm.R3, asm.Half),
		asm.Add.Imm(asm.R4, firstQP),
		asm.HostTo(asm.BE, asm.R4, asm.Word),
		asm.StoreMem(asm.R5, bth+4, asm.R4, asm.Word),
	}
	return append(append(out, fresh...),
		asm.Mov.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("short"), // XDP_ABORTED
		asm.Return(),
	)
}

// send sends the next frames. The calling thread must be in the sender's namespace.
func (s *frameSource) send() error {
	_, err := s.prog.Run(&ebpf.RunOptions{Data: s.frame, Repeat: frameRuns, Flags: liveFrames, BatchSize: frameBatch})
	return err
}

func (s *frameSource) close() {
	_ = s.prog.Close()
	_ = s.count.Close()
}

// setGRO switches generic receive offload on, as ethtool does: on veth that gives the interface a poll loop (NAPI).
func setGRO(ns *taptest.NS, name string) error {
	return ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		value := [2]uint32{unix.ETHTOOL_SGRO, 1}
		var req struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}
		copy(req.name[:], name)
		req.data = unsafe.Pointer(&value)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
			return errno
		}
		return nil
	})
}
