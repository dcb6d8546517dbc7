package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// jiffies is how the program tells the time from the kernel's count of timer interrupts, which it reads without a call. The
// kernel counts them by CLOCK_MONOTONIC, so that they stay together.
type jiffies struct {
	from  uint64 // a count
	at    uint64 // CLOCK_MONOTONIC then, nanoseconds
	nanos uint64 // of one; 0: it is not known, and the program reads the clock
}

// The rates that kernels are built for (CONFIG_HZ), a second.
var rates = [...]uint64{100, 200, 250, 256, 300, 512, 1000, 1024, 1200}

// newJiffies finds the rate that fits a count and a time: it began 5 minutes before it would pass 32 bits, when the clock was
// zero (INITIAL_JIFFIES of include/linux/jiffies.h).
func newJiffies(count, at uint64) jiffies {
	j := jiffies{}
	for _, hz := range rates {
		nanos := (1e9 + hz/2) / hz // TICK_NSEC
		since := (count - (1<<32 - 300*hz)) * nanos
		if d := int64(since - at); d <= -1e9 || d >= 1e9 {
			continue
		}
		if j.nanos != 0 {
			return jiffies{} // around those 5 minutes several do
		}
		j = jiffies{count, at, nanos}
	}
	return j
}

// readJiffies reads both in a program of its own.
func readJiffies() (j jiffies, err error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "clock", Type: ebpf.Array, KeySize: 4, ValueSize: 24, MaxEntries: 1})
	if err != nil {
		return j, fmt.Errorf("kernel tap: clock: %w", Explain(err))
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "clock", Type: ebpf.XDP, License: "Apache-2.0", Instructions: asm.Instructions{
		asm.LoadMapValue(asm.R6, m.FD(), 0),
		asm.FnJiffies64.Call(),
		asm.StoreMem(asm.R6, 0, asm.R0, asm.DWord),
		asm.FnKtimeGetCoarseNs.Call(),
		asm.StoreMem(asm.R6, 8, asm.R0, asm.DWord),
		asm.FnJiffies64.Call(),
		asm.StoreMem(asm.R6, 16, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}})
	if err != nil {
		return j, fmt.Errorf("kernel tap: clock: %w", Explain(err))
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	const (
		tries = 10 // a timer interrupt may come in between
		frame = 14 // the least that a test run takes
	)
	for range tries {
		if _, err := p.Run(&ebpf.RunOptions{Data: make([]byte, frame), Repeat: 1}); err != nil {
			return j, fmt.Errorf("kernel tap: clock: test run: %w", err)
		}
		var v struct{ Before, At, After uint64 }
		if err := m.Lookup(uint32(0), &v); err != nil {
			return j, fmt.Errorf("kernel tap: clock: %w", err)
		}
		if v.Before == v.After {
			return newJiffies(v.Before, v.At), nil
		}
	}
	return jiffies{}, nil
}
