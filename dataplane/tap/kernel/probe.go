package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Support says what the kernel offers. A nil error means that the mode can be used.
type Support struct {
	Kernel string // its release
	TCX    error  // wraps ErrNotSupported or ErrPermission
	XDP    error
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
		s.TCX, s.XDP = err, err
		return s
	}
	s.TCX, s.XDP = haveTCX(), haveXDP()
	return s
}

func haveMaps() error {
	for _, m := range []ebpf.MapType{ebpf.RingBuf, ebpf.LRUHash, ebpf.PerCPUArray} {
		if err := features.HaveMapType(m); err != nil {
			return fmt.Errorf("eBPF map of type %v: %w", m, explain(err))
		}
	}
	return nil
}

// haveTCX asks for the programs on the loopback interface: a kernel without TCX refuses the question.
func haveTCX() error {
	if err := features.HaveProgramType(ebpf.SchedCLS); err != nil {
		return fmt.Errorf("eBPF program of type %v: %w", ebpf.SchedCLS, explain(err))
	}
	_, err := link.QueryPrograms(link.QueryOptions{Target: loopback, Attach: ebpf.AttachTCXIngress})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), isUnsupported(err):
		return fmt.Errorf("TCX (Linux 6.6): %w: %w", ErrNotSupported, err)
	}
	return fmt.Errorf("TCX: %w", explain(err))
}

func haveXDP() error {
	if err := features.HaveProgramType(ebpf.XDP); err != nil {
		return fmt.Errorf("eBPF program of type %v: %w", ebpf.XDP, explain(err))
	}
	if err := features.HaveProgramHelper(ebpf.XDP, helperXDPLoadBytes); err != nil {
		return fmt.Errorf("XDP with fragments (Linux 5.18): %w", explain(err))
	}
	return nil
}

// Choose says whether the kernel's tap can be used in the mode that costs an operator nothing, TCX, or the
// packet ring must be, and why, in words for people.
func (s Support) Choose() (mode Mode, ok bool, why string) {
	if s.TCX == nil {
		return TCX, true, "tcx: Linux " + s.Kernel + " has it"
	}
	return 0, false, fmt.Sprintf("packet ring: %v", s.TCX)
}
