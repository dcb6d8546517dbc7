package kernel

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Support says what the kernel offers. A nil error means that the mode can be used.
type Support struct {
	Kernel string // its release
	TCX    error  // wraps ErrNotSupported or ErrPermission
	Clsact error
	XDP    error
}

// Of returns what stands against a mode, nil when nothing does.
func (s Support) Of(m Mode) error {
	switch m {
	case TCX:
		return s.TCX
	case Clsact:
		return s.Clsact
	}
	return s.XDP
}

// loopback is the index of a network namespace's loopback interface.
const loopback = 1

func isUnsupported(err error) bool {
	return errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, link.ErrNotSupported)
}

// Probe asks the kernel. It attaches nothing, and leaves nothing behind.
func Probe() Support {
	var s Support
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		s.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if err := haveMaps(); err != nil {
		s.TCX, s.Clsact, s.XDP = err, err, err
		return s
	}
	s.Clsact, s.XDP = loads(), haveXDP()
	if s.TCX = haveTCX(); s.TCX == nil {
		s.TCX = s.Clsact // it is the same program
	}
	return s
}

// loads tries the program of TCX and clsact: what it needs beyond a type of program is no one feature, and who asks for no mode by name
// must get one that works. It takes as long as the verifier does.
func loads() error {
	t, err := Open(Config{Mode: Clsact, MaxFlows: minFlows, RingSize: os.Getpagesize()})
	if err != nil {
		return err
	}
	return t.Close()
}

func haveMaps() error {
	for _, m := range []ebpf.MapType{ebpf.RingBuf, ebpf.Array, ebpf.PerCPUArray} {
		if err := features.HaveMapType(m); err != nil {
			return fmt.Errorf("eBPF map of type %v: %w", m, Explain(err))
		}
	}
	return nil
}

// haveTCX asks for the programs on the loopback interface: a kernel without TCX refuses the question.
func haveTCX() error {
	if err := features.HaveProgramType(ebpf.SchedCLS); err != nil {
		return fmt.Errorf("eBPF program of type %v: %w", ebpf.SchedCLS, Explain(err))
	}
	_, err := link.QueryPrograms(link.QueryOptions{Target: loopback, Attach: ebpf.AttachTCXIngress})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), isUnsupported(err):
		return fmt.Errorf("TCX (Linux 6.6): %w: %w", ErrNotSupported, err)
	}
	return fmt.Errorf("TCX: %w", Explain(err))
}

func haveXDP() error {
	if err := features.HaveProgramType(ebpf.XDP); err != nil {
		return fmt.Errorf("eBPF program of type %v: %w", ebpf.XDP, Explain(err))
	}
	if err := features.HaveProgramHelper(ebpf.XDP, asm.FnXdpLoadBytes); err != nil {
		return fmt.Errorf("XDP with fragments (Linux 5.18): %w", Explain(err))
	}
	return nil
}

// Choose says in which mode the kernel's tap is used when nobody asked for one: TCX, else clsact, or none, and then it is
// the packet ring's turn. XDP is never chosen: it excludes others' XDP programs. why is in words for people.
func (s Support) Choose() (mode Mode, ok bool, why string) {
	switch {
	case s.TCX == nil:
		return TCX, true, "Linux " + s.Kernel + " has it"
	case s.Clsact == nil:
		return Clsact, true, fmt.Sprintf("no %v", s.TCX)
	}
	why = fmt.Sprint(s.TCX)
	if clsact := fmt.Sprint(s.Clsact); clsact != why {
		why += "; clsact: " + clsact
	}
	return 0, false, why
}
